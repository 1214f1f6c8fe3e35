/* A tokenizer as tokenizer.json; see tokenizer.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/text/tokenizer.h"
#include "io/file.h"
#include "io/json_writer.h"

typedef struct printer {
    const basin_tokenizer *tokenizer;
    basin_json json;
    char *key; /* room for the longest token */
} printer;

/* A token as the file writes it. */
static const char *key_of(printer *p, int64_t id) {
    const basin_tokenizer *t = p->tokenizer;
    size_t length, used = 0;
    const char *bytes = basin_pieces_get(&length, &t->piece, id);
    if (t->bytes && !(t->flags[id] & BASIN_TOKEN_ADDED)) {
        for (size_t i = 0; i < length; i++)
            used += basin_text_put_character(p->key + used,
                                             basin_byte_to_character((unsigned char)bytes[i]));
    } else {
        memcpy(p->key, bytes, length);
        used = length;
    }
    p->key[used] = '\0';
    return p->key;
}

static void put_added(printer *p) {
    basin_json *json = &p->json;
    basin_json_array(json, "added_tokens");
    for (int64_t i = 0; i < p->tokenizer->added_count; i++) {
        int32_t id = p->tokenizer->added[i];
        int flags = p->tokenizer->flags[id];
        basin_json_object(json, NULL);
        basin_json_integer(json, "id", id);
        basin_json_text(json, "content", key_of(p, id));
        basin_json_boolean(json, "single_word", false);
        basin_json_boolean(json, "lstrip", flags & BASIN_TOKEN_LEFT);
        basin_json_boolean(json, "rstrip", flags & BASIN_TOKEN_RIGHT);
        basin_json_boolean(json, "normalized", flags & BASIN_TOKEN_LATE);
        basin_json_boolean(json, "special", flags & BASIN_TOKEN_SPECIAL);
        basin_json_end(json);
    }
    basin_json_end(json);
}

static void put_byte_level(basin_json *json, const char *key, bool prefix_space, bool regex) {
    basin_json_object(json, key);
    basin_json_text(json, "type", "ByteLevel");
    basin_json_boolean(json, "add_prefix_space", prefix_space);
    basin_json_boolean(json, "trim_offsets", true);
    basin_json_boolean(json, "use_regex", regex);
    basin_json_end(json);
}

static void put_split(basin_json *json, basin_words words) {
    basin_json_object(json, NULL);
    basin_json_text(json, "type", "Split");
    basin_json_object(json, "pattern");
    basin_json_text(json, "Regex", basin_words_pattern(words));
    basin_json_end(json);
    basin_json_text(json, "behavior", "Isolated");
    basin_json_boolean(json, "invert", false);
    basin_json_end(json);
}

static void put_words(basin_json *json, const basin_tokenizer *t) {
    if (!t->bytes) {
        basin_json_text(json, "pre_tokenizer", NULL);
    } else if (t->words <= BASIN_WORDS_GPT2) {
        put_byte_level(json, "pre_tokenizer", t->prefix_space, t->words == BASIN_WORDS_GPT2);
    } else {
        basin_json_object(json, "pre_tokenizer");
        basin_json_text(json, "type", "Sequence");
        basin_json_array(json, "pretokenizers");
        put_split(json, t->words);
        put_byte_level(json, NULL, false, false);
        basin_json_end(json);
        basin_json_end(json);
    }
}

static void put_decoder(basin_json *json, const basin_tokenizer *t) {
    if (t->bytes) {
        put_byte_level(json, "decoder", true, true);
        return;
    }
    basin_json_object(json, "decoder");
    basin_json_text(json, "type", "Fuse");
    basin_json_end(json);
}

static void put_merges(printer *p) {
    basin_json_array(&p->json, "merges");
    for (int64_t i = 0; i < p->tokenizer->merges.count; i++) {
        const basin_token_merge *m = p->tokenizer->merges.merge + i;
        basin_json_array(&p->json, NULL);
        basin_json_text(&p->json, NULL, key_of(p, m->left));
        basin_json_text(&p->json, NULL, key_of(p, m->right));
        basin_json_end(&p->json);
    }
    basin_json_end(&p->json);
}

static void put_model(printer *p) {
    const basin_tokenizer *t = p->tokenizer;
    basin_json *json = &p->json;
    basin_json_object(json, "model");
    basin_json_text(json, "type", "BPE");
    basin_json_text(json, "dropout", NULL);
    basin_json_text(json, "unk_token", t->unknown >= 0 ? key_of(p, t->unknown) : NULL);
    basin_json_text(json, "continuing_subword_prefix", NULL);
    basin_json_text(json, "end_of_word_suffix", NULL);
    basin_json_boolean(json, "fuse_unk", t->fuse_unknown);
    basin_json_boolean(json, "byte_fallback", false);
    basin_json_boolean(json, "ignore_merges", t->whole_words);
    basin_json_object(json, "vocab");
    for (int64_t id = 0; id < t->piece.count; id++)
        if (t->flags[id] & BASIN_TOKEN_MODEL) basin_json_integer(json, key_of(p, id), id);
    basin_json_end(json);
    put_merges(p);
    basin_json_end(json);
}

static void put_all(printer *p) {
    basin_json *json = &p->json;
    basin_json_text(json, "version", "1.0");
    basin_json_text(json, "truncation", NULL);
    basin_json_text(json, "padding", NULL);
    put_added(p);
    basin_json_text(json, "normalizer", NULL);
    put_words(json, p->tokenizer);
    basin_json_raw(json, "post_processor", p->tokenizer->around ? p->tokenizer->around : "null");
    put_decoder(json, p->tokenizer);
    put_model(p);
    basin_json_end(json);
}

/* Room for a token: a byte becomes a character of at most two bytes. */
static basin_status printer_init(printer *p, const basin_tokenizer *t, basin_error *error) {
    size_t length, longest = 0;
    for (int64_t id = 0; id < t->piece.count; id++) {
        basin_pieces_get(&length, &t->piece, id);
        longest = length > longest ? length : longest;
    }
    *p = (printer){.tokenizer = t, .key = basin_array_new(longest + 2, 2)};
    if (p->key) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory to write a tokenizer");
}

basin_status basin_tokenizer_write(const char *path, const basin_tokenizer *tokenizer,
                                   basin_error *error) {
    printer p;
    basin_writer writer;
    basin_status status = printer_init(&p, tokenizer, error);
    if (!status) status = basin_writer_create(&writer, path, error);
    if (!status) {
        p.json = basin_json_begin(writer.file);
        put_all(&p);
        status = basin_writer_commit(&writer, error);
    }
    free(p.key);
    return status;
}

basin_status basin_tokenizer_print(char **json, const basin_tokenizer *tokenizer,
                                   basin_error *error) {
    printer p;
    size_t size;
    *json = NULL;
    basin_status status = printer_init(&p, tokenizer, error);
    if (status) return status;
    FILE *file = open_memstream(json, &size);
    bool failed = !file;
    if (file) {
        p.json = basin_json_begin_line(file);
        put_all(&p);
        failed = ferror(file) != 0;
        failed = fclose(file) != 0 || failed;
    }
    free(p.key);
    if (!failed) {
        (*json)[size - 1] = '\0'; /* the line end */
        return BASIN_OK;
    }
    free(*json);
    *json = NULL;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory to write a tokenizer");
}
