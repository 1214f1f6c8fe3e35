/* Text to tokens and back; see tokenizer.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/text/category.h"
#include "data/text/tokenizer.h"

typedef struct encoder {
    const basin_tokenizer *tokenizer;
    const char *text, *end; /* what the caller gave */
    int32_t *id;            /* [count] */
    size_t count, room;
    int64_t *skipped; /* NULL: what is unknown is an error */
    basin_merging merging;
    char *moved;            /* a part with a blank before it, */
    const char *moved_from; /* and where it came from */
    size_t moved_room;
    basin_error *error;
} encoder;

/* ---- what goes wrong ---- */

static basin_status no_memory(const encoder *e) {
    return basin_fail(e->error, BASIN_NO_MEMORY,
                      "out of memory for the tokens of a text of %zu bytes",
                      (size_t)(e->end - e->text));
}

/* A place in the caller's text, of one in the text or in its moved part. */
static const char *origin(const encoder *e, const char *at) {
    if (at >= e->text && at <= e->end) return at;
    return e->moved_from + (at - e->moved) - (at > e->moved);
}

static void locate(int64_t *line, int64_t *column, const encoder *e, const char *at) {
    *line = *column = 1;
    for (const char *p = e->text; p < at; p++) {
        if (*p == '\n') {
            *column = 1;
            ++*line;
        } else {
            *column += (*p & 0xc0) != 0x80;
        }
    }
}

static basin_status fail_unknown(const encoder *e, const char *at, size_t bytes) {
    char name[40];
    uint32_t point;
    int64_t line, column;
    size_t valid = basin_text_character(&point, at, bytes);
    locate(&line, &column, e, origin(e, at));
    if (e->tokenizer->bytes)
        snprintf(name, sizeof name, "byte 0x%02x", (unsigned char)*at);
    else if (point < 0x20 || (point >= 0x7f && point < 0xa0))
        snprintf(name, sizeof name, "U+%04X", (unsigned)point);
    else
        snprintf(name, sizeof name, "'%.*s' (U+%04X)", (int)valid, at, (unsigned)point);
    return basin_fail(e->error, BASIN_BAD_VALUE,
                      "the tokenizer has no token for %s, line %lld, column %lld of the text", name,
                      (long long)line, (long long)column);
}

/* ---- a word ---- */

static basin_status put(encoder *e, int32_t id) {
    if (!basin_array_reserve((void **)&e->id, &e->room, e->count + 1, sizeof *e->id))
        return no_memory(e);
    e->id[e->count++] = id;
    return BASIN_OK;
}

/* A unit without a token. `first` is where the word's tokens begin. */
static basin_status put_unknown(encoder *e, const char *at, size_t bytes, size_t first) {
    const basin_tokenizer *t = e->tokenizer;
    if (t->unknown >= 0) {
        bool again = e->count > first && e->id[e->count - 1] == t->unknown;
        return t->fuse_unknown && again ? BASIN_OK : put(e, t->unknown);
    }
    if (!e->skipped) return fail_unknown(e, at, bytes);
    ++*e->skipped;
    return BASIN_OK;
}

static basin_status put_units(encoder *e, const char *word, size_t length) {
    const basin_tokenizer *t = e->tokenizer;
    basin_status status = BASIN_OK;
    size_t first = e->count, bytes = 1;
    for (size_t at = 0; at < length && !status; at += bytes) {
        uint32_t point;
        if (!t->bytes) bytes = basin_text_character(&point, word + at, length - at);
        if (!bytes)
            return basin_fail(e->error, BASIN_BAD_VALUE,
                              "the text is not UTF-8 at byte %zu (0x%02x), as a tokenizer of "
                              "characters wants it",
                              (size_t)(origin(e, word + at) - e->text), (unsigned char)word[at]);
        int64_t id = bytes == 1 ? t->first[(unsigned char)word[at]]
                                : basin_pieces_find(&t->piece, word + at, bytes);
        status = id >= 0 ? put(e, (int32_t)id) : put_unknown(e, word + at, bytes, first);
    }
    return status;
}

static basin_status put_word(encoder *e, const char *word, size_t length) {
    const basin_tokenizer *t = e->tokenizer;
    size_t first = e->count;
    int64_t whole = t->whole_words ? basin_pieces_find(&t->piece, word, length) : -1;
    if (whole >= 0) return put(e, (int32_t)whole);
    basin_status status = put_units(e, word, length);
    size_t count = e->count - first;
    if (!status && count && !basin_merging_run(e->id + first, &count, &t->merges, &e->merging))
        status = no_memory(e);
    e->count = first + count;
    return status;
}

/* ---- a text: what lies between added tokens, cut into words ---- */

static basin_status move(encoder *e, const char **part, size_t *length) {
    if (!basin_array_reserve((void **)&e->moved, &e->moved_room, *length + 1, 1))
        return no_memory(e);
    e->moved[0] = ' ';
    memcpy(e->moved + 1, *part, *length);
    e->moved_from = *part;
    *part = e->moved;
    ++*length;
    return BASIN_OK;
}

static basin_status put_part(encoder *e, const char *part, size_t length) {
    const basin_tokenizer *t = e->tokenizer;
    basin_status status = BASIN_OK;
    if (t->prefix_space && length && *part != ' ') status = move(e, &part, &length);
    for (size_t at = 0, bytes; at < length && !status; at += bytes) {
        bytes = basin_words_next(t->words, part + at, length - at);
        status = put_word(e, part + at, bytes);
    }
    return status;
}

/* The added token at the start of a text, the longest of them; -1: none. */
static int64_t added_at(size_t *bytes, const basin_tokenizer *t, const char *text, size_t length,
                        int late) {
    int64_t found = -1;
    *bytes = 0;
    if (!(t->added_start[(unsigned char)*text / 8] >> (unsigned char)*text % 8 & 1)) return -1;
    for (int64_t i = 0; i < t->added_count; i++) {
        size_t size;
        int32_t id = t->added[i];
        const char *piece = basin_pieces_get(&size, &t->piece, id);
        if ((t->flags[id] & BASIN_TOKEN_LATE) != late || size > length || size <= *bytes ||
            memcmp(piece, text, size) != 0)
            continue;
        found = id;
        *bytes = size;
    }
    return found;
}

/* How many bytes of blanks end before `at`, or begin there. */
static size_t blanks_before(const char *from, const char *at) {
    const char *start = at;
    uint32_t point;
    while (start > from) {
        const char *p = start - 1;
        while (p > from && (*p & 0xc0) == 0x80) p--;
        size_t bytes = basin_text_character(&point, p, (size_t)(start - p));
        if (p + bytes != start || basin_category_of(point) != BASIN_SPACE) break;
        start = p;
    }
    return (size_t)(at - start);
}

static size_t blanks_behind(const char *at, const char *end) {
    const char *p = at;
    uint32_t point;
    for (size_t bytes; p < end; p += bytes) {
        bytes = basin_text_character(&point, p, (size_t)(end - p));
        if (!bytes || basin_category_of(point) != BASIN_SPACE) break;
    }
    return (size_t)(p - at);
}

static basin_status put_parts(encoder *e, const char *part, size_t length, int late);

/* What lies between two added tokens, which may hold others that are looked for later. */
static basin_status put_between(encoder *e, const char *part, size_t length, int late) {
    if (!late && e->tokenizer->added_late) return put_parts(e, part, length, BASIN_TOKEN_LATE);
    return put_part(e, part, length);
}

static basin_status put_parts(encoder *e, const char *part, size_t length, int late) {
    const basin_tokenizer *t = e->tokenizer;
    const char *from = part, *end = part + length;
    basin_status status = BASIN_OK;
    for (const char *at = part; at < end && !status;) {
        size_t bytes;
        int64_t id = added_at(&bytes, t, at, (size_t)(end - at), late);
        if (id < 0) {
            at++;
            continue;
        }
        const char *start = at, *stop = at + bytes;
        at = stop; /* what is found in blanks that were taken along is a token all the same */
        if (t->flags[id] & BASIN_TOKEN_LEFT) start -= blanks_before(from, start);
        if (t->flags[id] & BASIN_TOKEN_RIGHT) stop += blanks_behind(stop, end);
        if (start > from) status = put_between(e, from, (size_t)(start - from), late);
        if (!status) status = put(e, (int32_t)id);
        from = stop;
    }
    if (!status) status = put_between(e, from, (size_t)(end - from), late);
    return status;
}

basin_status basin_tokenizer_encode(int32_t **id, int64_t *count, int64_t *skipped,
                                    const basin_tokenizer *tokenizer, const char *text,
                                    size_t length, basin_error *error) {
    encoder e = {.tokenizer = tokenizer,
                 .text = text,
                 .end = text + length,
                 .skipped = skipped,
                 .error = error};
    *id = NULL;
    *count = 0;
    if (skipped) *skipped = 0;
    basin_status status =
        basin_array_reserve((void **)&e.id, &e.room, 1, sizeof *e.id) ? BASIN_OK : no_memory(&e);
    if (!status)
        status =
            tokenizer->added_count ? put_parts(&e, text, length, 0) : put_part(&e, text, length);
    basin_merging_free(&e.merging);
    free(e.moved);
    if (status) {
        free(e.id);
        return status;
    }
    *id = e.id;
    *count = (int64_t)e.count;
    return BASIN_OK;
}

basin_status basin_tokenizer_decode(char **text, size_t *length, const basin_tokenizer *tokenizer,
                                    const int32_t *id, int64_t count, basin_error *error) {
    size_t total = 0, bytes;
    *text = NULL;
    *length = 0;
    for (int64_t i = 0; i < count; i++, total += bytes)
        if (!basin_tokenizer_piece(&bytes, tokenizer, id[i]))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "token %lld is %d, the tokenizer has 0 .. %lld", (long long)i, id[i],
                              (long long)basin_tokenizer_size(tokenizer) - 1);
    *text = basin_array_new(total + 1, 1);
    if (!*text)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a text of %zu bytes", total);
    for (int64_t i = 0; i < count; i++, *length += bytes) {
        const char *piece = basin_tokenizer_piece(&bytes, tokenizer, id[i]);
        memcpy(*text + *length, piece, bytes);
    }
    (*text)[total] = '\0';
    return BASIN_OK;
}
