/* Tokenizers: making them of characters and of bytes, asking what they hold; see tokenizer.h. */
#include "data/text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

basin_status basin_tokenizer_new(basin_tokenizer **tokenizer, basin_error *error) {
    *tokenizer = calloc(1, sizeof **tokenizer);
    if (!*tokenizer) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a tokenizer");
    (*tokenizer)->unknown = -1;
    return BASIN_OK;
}

void basin_tokenizer_free(basin_tokenizer *t) {
    if (!t) return;
    basin_pieces_free(&t->piece);
    basin_merges_free(&t->merges);
    free(t->flags);
    free(t->added);
    free(t->around);
    free(t);
}

static void list_added(basin_tokenizer *t, int32_t id, const char *bytes) {
    unsigned char start = (unsigned char)*bytes;
    t->added[t->added_count++] = id;
    t->added_start[start / 8] |= (uint8_t)(1u << start % 8);
    t->added_late = t->added_late || t->flags[id] & BASIN_TOKEN_LATE;
}

basin_status basin_tokenizer_add(basin_tokenizer *t, const char *bytes, size_t length, int flags,
                                 basin_error *error) {
    int words = flags & (BASIN_TOKEN_MODEL | BASIN_TOKEN_RAW);
    size_t need = (size_t)t->piece.count + 1, added = (size_t)t->added_count + 1;
    if (!basin_array_reserve((void **)&t->added, &t->added_room, added, sizeof *t->added) ||
        !basin_array_reserve((void **)&t->flags, &t->flags_room, need, sizeof *t->flags) ||
        !basin_pieces_add(&t->piece, bytes, length, words == BASIN_TOKEN_MODEL))
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %zu tokens", need);
    t->flags[need - 1] = (uint8_t)flags;
    if (flags & BASIN_TOKEN_ADDED) list_added(t, (int32_t)(need - 1), bytes);
    return BASIN_OK;
}

void basin_tokenizer_finish(basin_tokenizer *t) {
    for (int i = 0; i < 256; i++) {
        char byte = (char)i;
        t->first[i] = (int32_t)basin_pieces_find(&t->piece, &byte, 1);
    }
}

/* ---- characters ---- */

enum { POINTS = 0x110000 };

/* Marks the code points that a text has. */
static basin_status mark(unsigned char *seen, const char *text, size_t length, basin_error *error) {
    for (size_t at = 0; at < length;) {
        uint32_t point;
        size_t bytes = basin_text_character(&point, text + at, length - at);
        if (!bytes)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "the text is not UTF-8 at byte %zu (0x%02x); a tokenizer of bytes "
                              "takes any text",
                              at, (unsigned char)text[at]);
        if (!point)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "the text has a NUL at byte %zu; a tokenizer of bytes takes any text",
                              at);
        seen[point / 8] |= (unsigned char)(1u << point % 8);
        at += bytes;
    }
    return BASIN_OK;
}

static basin_status add_marked(basin_tokenizer *t, const unsigned char *seen, basin_error *error) {
    basin_status status = BASIN_OK;
    for (uint32_t point = 0; point < POINTS && !status; point++) {
        char bytes[BASIN_CHARACTER_BYTES];
        if (!(seen[point / 8] >> point % 8 & 1)) continue;
        size_t length = basin_text_put_character(bytes, point);
        status = basin_tokenizer_add(t, bytes, length, BASIN_TOKEN_MODEL, error);
    }
    return status;
}

/* Hands out a tokenizer, or frees it where making it failed. */
static basin_status hand_out(basin_tokenizer **out, basin_tokenizer *t, basin_status status) {
    if (status) {
        basin_tokenizer_free(t);
        t = NULL;
    } else {
        basin_tokenizer_finish(t);
    }
    *out = t;
    return status;
}

basin_status basin_tokenizer_characters(basin_tokenizer **tokenizer, const char *text,
                                        size_t length, basin_error *error) {
    basin_tokenizer *t = NULL;
    *tokenizer = NULL;
    if (!length)
        return basin_fail(error, BASIN_BAD_VALUE, "a tokenizer of characters needs a text");
    unsigned char *seen = calloc(POINTS / 8, 1);
    if (!seen) return basin_fail(error, BASIN_NO_MEMORY, "out of memory to count characters");
    basin_status status = mark(seen, text, length, error);
    if (!status) status = basin_tokenizer_new(&t, error);
    if (!status) status = add_marked(t, seen, error);
    free(seen);
    return hand_out(tokenizer, t, status);
}

/* ---- bytes ---- */

basin_status basin_tokenizer_bytes(basin_tokenizer **tokenizer, basin_error *error) {
    basin_tokenizer *t;
    basin_status status = basin_tokenizer_new(&t, error);
    if (!status) t->bytes = true;
    for (int i = 0; i < 256 && !status; i++)
        status = basin_tokenizer_add(t, (char[]){(char)i}, 1, BASIN_TOKEN_MODEL, error);
    return hand_out(tokenizer, t, status);
}

/* Bytes that Latin-1 prints stand for themselves, the others for characters from U+0100 on. */
static bool is_plain(uint32_t point) {
    return (point > 0x20 && point < 0x7f) || (point > 0xa0 && point < 0x100 && point != 0xad);
}

uint32_t basin_byte_to_character(unsigned char byte) {
    uint32_t others = 0;
    if (is_plain(byte)) return byte;
    for (uint32_t i = 0; i < byte; i++) others += !is_plain(i);
    return 0x100 + others;
}

int basin_byte_from_character(uint32_t point) {
    if (is_plain(point)) return (int)point;
    if (point < 0x100) return -1;
    for (int byte = 0; byte < 0x100; byte++)
        if (!is_plain((uint32_t)byte) && point-- == 0x100) return byte;
    return -1;
}

/* ---- asking ---- */

const char *basin_tokenizer_kind(const basin_tokenizer *t) {
    if (t->merges.count || t->words || t->prefix_space) return "bpe";
    return t->bytes ? "bytes" : "characters";
}

int64_t basin_tokenizer_size(const basin_tokenizer *t) { return t->piece.count; }

const char *basin_tokenizer_piece(size_t *length, const basin_tokenizer *t, int64_t id) {
    *length = 0;
    return id >= 0 && id < t->piece.count ? basin_pieces_get(length, &t->piece, id) : NULL;
}

/* Added tokens are few. */
int64_t basin_tokenizer_find(const basin_tokenizer *t, const char *bytes, size_t length) {
    int64_t found = basin_pieces_find(&t->piece, bytes, length);
    for (int64_t i = t->piece.count - 1; i >= 0 && found < 0; i--) {
        size_t size;
        const char *piece = basin_pieces_get(&size, &t->piece, i);
        if (size == length && !memcmp(piece, bytes, length)) found = i;
    }
    return found;
}

bool basin_tokenizer_is_special(const basin_tokenizer *t, int64_t id) {
    return id >= 0 && id < t->piece.count && t->flags[id] & BASIN_TOKEN_SPECIAL;
}
