/* Texts: reading files, what tokens are, knowing a training text again; see text.h. */
#include <inttypes.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/sort.h"
#include "base/text.h"
#include "data/packed.h"
#include "task/text/text.h"

/* ---- files of text ---- */

typedef struct reading {
    char *text;
    size_t length, capacity;
    size_t limit; /* bytes that the text may have */
} reading;

enum { BLOCK = 1 << 20, MEMORY_PER_BYTE = 5 /* the byte and the number of its token */ };

static basin_status check_length(const reading *r, size_t length, const char *path,
                                 basin_error *error) {
    if (length <= r->limit) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY,
                      "%s: a text of more than %zu MiB, which training and scoring have no memory "
                      "for; wanted a shorter one",
                      path, r->limit >> 20);
}

/* Looks at the first bytes of a file, which are at `start` of the text. */
static basin_status check_start(reading *r, size_t start, const char *path, basin_error *error) {
    const char *head = r->text + start;
    size_t size = r->length - start;
    if (size >= 2 && (!memcmp(head, "\xff\xfe", 2) || !memcmp(head, "\xfe\xff", 2)))
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: is UTF-16; make it UTF-8 first: iconv -f UTF-16 -t UTF-8", path);
    if (size < 3 || memcmp(head, "\xef\xbb\xbf", 3) != 0) return BASIN_OK;
    memmove(r->text + start, head + 3, size - 3);
    r->length -= 3;
    return BASIN_OK;
}

static basin_status take_all(reading *r, basin_packed *packed, const char *path,
                             basin_error *error) {
    size_t start = r->length;
    for (size_t got = 1; got; r->length += got) {
        BASIN_TRY(check_length(r, r->length, path, error));
        BASIN_TRY(BASIN_GROW(&r->text, &r->capacity, r->length + BLOCK, "a text", error));
        BASIN_TRY(basin_packed_read(&got, r->text + r->length, BLOCK - 1, packed, error));
    }
    return check_start(r, start, path, error);
}

static void close_packed(basin_packed **packed) { basin_packed_close(*packed); }

static basin_status take_file(reading *r, const char *path, basin_error *error) {
    BASIN_FREE_AT_EXIT void *data = NULL;
    BASIN_AT_EXIT(close_packed) basin_packed *packed = NULL;
    struct stat info = {0};
    if (basin_stream_is(path)) {
        size_t size;
        BASIN_TRY(basin_stream_read(&data, &size, path, r->limit, error));
        BASIN_TRY(basin_packed_open_memory(&packed, data, size, path, error));
    } else {
        /* The size says at once what reading would find after minutes. */
        if (!stat(path, &info) && S_ISREG(info.st_mode))
            BASIN_TRY(check_length(r, r->length + (size_t)info.st_size, path, error));
        else if (S_ISDIR(info.st_mode))
            return basin_fail(error, BASIN_BAD_FILE, "%s: is a folder, needs files: %s/*.txt", path,
                              path);
        BASIN_TRY(basin_packed_open(&packed, path, error));
    }
    return take_all(r, packed, path, error);
}

static basin_status read_bytes(reading *r, const char *const *path, int count, basin_error *error) {
    for (int i = 0; i < count; i++) BASIN_TRY(take_file(r, path[i], error));
    if (r->length) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: there is no text", count ? path[0] : "");
}

/* ---- numbers of tokens as .npy ---- */

static int64_t number_at(const unsigned char *from, const basin_npy *npy) {
    uint64_t bits = 0;
    for (size_t i = 0; i < npy->size; i++)
        bits |= (uint64_t)from[npy->swapped ? npy->size - 1 - i : i] << 8 * i;
    int unused = 64 - 8 * (int)npy->size;
    if (strchr(npy->descr, 'u')) return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
    return (int64_t)(bits << unused) >> unused;
}

static basin_status parse_ids(basin_text *text, const basin_map *map, const char *path,
                              basin_error *error) {
    basin_npy npy;
    size_t before = 0, header = 0;
    char reason[BASIN_NPY_TEXT];
    if (map->size < BASIN_NPY_PREAMBLE || !basin_npy_lengths(&before, &header, map->data) ||
        map->size - before < header)
        return basin_fail(error, BASIN_BAD_FILE, "%s: is not a .npy array", path);
    if (basin_npy_parse(&npy, reason, (const char *)map->data + before, header))
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s", path, reason);
    if (npy.shape.rank != 1 || !strpbrk(npy.descr, "iu"))
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: an array of %d dimensions and type %s, wanted the numbers of "
                          "tokens: one dimension of integers",
                          path, npy.shape.rank, npy.descr);
    size_t count = (size_t)npy.shape.dim[0];
    if (!count || count != (map->size - before - header) / npy.size)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %zu numbers, and bytes for %zu", path, count,
                          (map->size - before - header) / npy.size);
    BASIN_TRY(
        basin_memory_check((double)count * sizeof *text->id, 0, path, BASIN_NO_MEMORY, error));
    BASIN_TRY(BASIN_NEW_RAW(&text->id, count, "the numbers of tokens", error));
    text->length = count;
    for (size_t i = 0; i < count; i++) {
        int64_t id = number_at(map->data + before + header + i * npy.size, &npy);
        if (id < 0 || id >= BASIN_TEXT_MOST_TOKENS)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: number %zu is %" PRId64 ", wanted a token from 0 to %d", path, i,
                              id, BASIN_TEXT_MOST_TOKENS - 1);
        text->id[i] = (int32_t)id;
    }
    return BASIN_OK;
}

static basin_status read_ids(basin_text *text, const char *path, basin_error *error) {
    BASIN_AT_EXIT(basin_map_close) basin_map map = {0};
    BASIN_TRY(basin_map_open(&map, path, error));
    return parse_ids(text, &map, path, error);
}

basin_status basin_text_read(basin_text *text, const char *const *path, int count,
                             basin_error *error) {
    reading r = {.limit = basin_memory_share() / MEMORY_PER_BYTE};
    basin_status status;
    *text = (basin_text){0};
    for (int i = 0; i < count; i++)
        if (count > 1 && basin_text_ends(path[i], ".npy"))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: is an array of tokens, wanted it alone, without other texts",
                              path[i]);
    if (count == 1 && basin_text_ends(path[0], ".npy")) {
        status = read_ids(text, path[0], error);
    } else {
        status = read_bytes(&r, path, count, error);
        if (!status) r.text[r.length] = '\0';
        *text = (basin_text){.bytes = r.text, .length = r.length};
    }
    if (status) basin_text_free(text);
    return status;
}

void basin_text_free(basin_text *text) {
    BASIN_FREE(text->bytes, text->id);
    *text = (basin_text){0};
}

size_t basin_text_cut(const basin_text *text, double hold_out) {
    enum { FORM = 0xC0, FOLLOWS = 0x80 };
    double left = hold_out > 0 ? fmax(1 - hold_out, 0) : 1;
    size_t at = (size_t)((double)text->length * left + 1e-6);
    if (at > text->length) at = text->length;
    while (text->bytes && at < text->length && ((unsigned char)text->bytes[at] & FORM) == FOLLOWS)
        at++;
    return at;
}

basin_text basin_text_slice(const basin_text *text, size_t first, size_t end) {
    return (basin_text){.bytes = text->bytes ? text->bytes + first : NULL,
                        .id = text->id ? text->id + first : NULL,
                        .length = end - first};
}

/* ---- the text that a model was trained on ---- */

basin_text_origin basin_text_origin_of(const basin_text *text, size_t train) {
    basin_text_origin origin = {.length = (int64_t)text->length, .train = (int64_t)train};
    const void *data = text->bytes ? (const void *)text->bytes : text->id;
    size_t bytes = text->length * (text->bytes ? 1 : sizeof *text->id);
    snprintf(origin.hash, sizeof origin.hash, "%016" PRIx64,
             basin_hash_bytes(BASIN_HASH_START, data, bytes));
    return origin;
}

bool basin_text_origin_equal(const basin_text_origin *a, const basin_text_origin *b) {
    return a->length == b->length && (!*a->hash || !*b->hash || !strcmp(a->hash, b->hash));
}

/* ---- vocabularies ---- */

enum { POINTS = 0x110000 };

/* Marks the code points that a text has. */
static basin_status mark(unsigned char *seen, const basin_text *text, basin_error *error) {
    for (size_t at = 0, bytes; at < text->length; at += bytes) {
        uint32_t point;
        bytes = basin_text_character(&point, text->bytes + at, text->length - at);
        if (!bytes)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "the text is not UTF-8 at byte %zu (0x%02x); tokens that are bytes "
                              "take any text",
                              at, (unsigned char)text->bytes[at]);
        if (!point)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "the text has a NUL at byte %zu; tokens that are bytes take any text",
                              at);
        seen[point / 8] |= (unsigned char)(1u << point % 8);
    }
    return BASIN_OK;
}

static basin_status list_characters(basin_vocabulary *v, const basin_text *text,
                                    basin_error *error) {
    BASIN_FREE_AT_EXIT unsigned char *seen = NULL;
    BASIN_TRY(BASIN_NEW(&seen, POINTS / 8, "the characters of a text", error));
    BASIN_TRY(mark(seen, text, error));
    for (uint32_t point = 0; point < POINTS; point++) v->count += seen[point / 8] >> point % 8 & 1;
    BASIN_TRY(BASIN_NEW_RAW(&v->point, v->count, "a vocabulary", error));
    uint32_t *to = v->point;
    for (uint32_t point = 0; point < POINTS; point++)
        if (seen[point / 8] >> point % 8 & 1) *to++ = point;
    return BASIN_OK;
}

/* The numbers of tokens that are written as text: "12 7 3". */
static basin_status parse_numbers(basin_text_corpus *corpus, const basin_text *text,
                                  basin_error *error) {
    size_t at = 0;
    for (;;) {
        int64_t number = 0;
        while (at < text->length && strchr(" \t\r\n,", text->bytes[at])) at++;
        if (at == text->length) return BASIN_OK;
        size_t first = at;
        for (; at < text->length && text->bytes[at] >= '0' && text->bytes[at] <= '9'; at++)
            number = basin_int_min(number * 10 + (text->bytes[at] - '0'), INT32_MAX);
        if (at == first)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "byte %zu is no digit, wanted the numbers of tokens", at);
        corpus->id[corpus->count++] = (int32_t)number;
    }
}

basin_status basin_vocabulary_make(basin_vocabulary *v, basin_text_tokens tokens, int64_t most,
                                   const basin_text *text, basin_error *error) {
    *v = (basin_vocabulary){.tokens = tokens};
    if (tokens == BASIN_TEXT_CHARACTERS) return list_characters(v, text, error);
    v->count = tokens == BASIN_TEXT_BYTES ? 256 : most;
    if (v->count) return BASIN_OK;
    basin_text_corpus corpus = {0};
    v->count = BASIN_TEXT_MOST_TOKENS;
    BASIN_TRY(basin_text_corpus_new(&corpus, v, text, "the text", error));
    v->count = 0;
    for (int64_t i = 0; i < corpus.count; i++) v->count = basin_int_max(v->count, corpus.id[i] + 1);
    basin_text_corpus_free(&corpus);
    return BASIN_OK;
}

void basin_vocabulary_free(basin_vocabulary *v) {
    free(v->point);
    *v = (basin_vocabulary){0};
}

basin_status basin_vocabulary_print(char **text, const basin_vocabulary *v, basin_error *error) {
    size_t length = 0;
    BASIN_TRY(BASIN_NEW(text, (size_t)v->count * BASIN_CHARACTER_BYTES + 1, "a vocabulary", error));
    for (int64_t i = 0; i < v->count; i++)
        length += basin_text_put_character(*text + length, v->point[i]);
    return BASIN_OK;
}

static int by_point(const void *a, const void *b) {
    return BASIN_COMPARE(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* The number of a character, or -1. */
static int64_t find(const basin_vocabulary *v, uint32_t point) {
    const uint32_t *at = bsearch(&point, v->point, (size_t)v->count, sizeof point, by_point);
    return at ? at - v->point : -1;
}

static basin_status fail_character(const basin_text *text, size_t at, size_t bytes,
                                   basin_error *error) {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at; i++) {
        bool starts = ((unsigned char)text->bytes[i] & 0xC0) != 0x80;
        column = text->bytes[i] == '\n' ? 1 : column + starts;
        line += text->bytes[i] == '\n';
    }
    if (!bytes)
        return basin_fail(error, BASIN_BAD_VALUE, "line %zu, column %zu: not UTF-8 (0x%02x)", line,
                          column, (unsigned char)text->bytes[at]);
    return basin_fail(error, BASIN_BAD_VALUE,
                      "line %zu, column %zu: '%.*s' is a character that the model does not know",
                      line, column, (int)bytes, text->bytes + at);
}

static basin_status encode_characters(basin_text_corpus *corpus, const basin_vocabulary *v,
                                      const basin_text *text, basin_error *error) {
    for (size_t at = 0, bytes; at < text->length; at += bytes) {
        uint32_t point;
        bytes = basin_text_character(&point, text->bytes + at, text->length - at);
        int64_t id = bytes ? find(v, point) : -1;
        if (id < 0) return fail_character(text, at, bytes, error);
        corpus->id[corpus->count++] = (int32_t)id;
    }
    return BASIN_OK;
}

static basin_status encode(basin_text_corpus *corpus, const basin_vocabulary *v,
                           const basin_text *text, basin_error *error) {
    if (text->id && v->tokens != BASIN_TEXT_IDS)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "is numbers of tokens, wanted a text: the model's tokens are %s",
                          v->tokens == BASIN_TEXT_BYTES ? "bytes" : "characters");
    BASIN_TRY(BASIN_NEW_RAW(&corpus->id, text->length, "the tokens of a text", error));
    if (v->tokens == BASIN_TEXT_CHARACTERS) return encode_characters(corpus, v, text, error);
    if (v->tokens == BASIN_TEXT_IDS && !text->id) {
        BASIN_TRY(parse_numbers(corpus, text, error));
    } else {
        for (; corpus->count < (int64_t)text->length; corpus->count++)
            corpus->id[corpus->count] =
                text->id ? text->id[corpus->count] : (unsigned char)text->bytes[corpus->count];
    }
    for (int64_t i = 0; i < corpus->count; i++)
        if (corpus->id[i] < 0 || corpus->id[i] >= v->count)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "token %" PRId64 " is %" PRId32 ", wanted 0 to %" PRId64, i,
                              corpus->id[i], v->count - 1);
    return BASIN_OK;
}

basin_status basin_text_corpus_new(basin_text_corpus *corpus, const basin_vocabulary *vocabulary,
                                   const basin_text *text, const char *what, basin_error *error) {
    basin_error inner;
    *corpus = (basin_text_corpus){
        .bytes = text->id || vocabulary->tokens == BASIN_TEXT_IDS ? 0 : (int64_t)text->length};
    basin_status status = encode(corpus, vocabulary, text, &inner);
    if (!status) return BASIN_OK;
    basin_text_corpus_free(corpus);
    return basin_fail(error, status, "%s: %s", what, inner.text);
}

void basin_text_corpus_free(basin_text_corpus *corpus) {
    free(corpus->id);
    *corpus = (basin_text_corpus){0};
}

size_t basin_vocabulary_piece(char piece[BASIN_TEXT_PIECE], const basin_vocabulary *v, int32_t id,
                              bool first) {
    if (v->tokens == BASIN_TEXT_CHARACTERS) return basin_text_put_character(piece, v->point[id]);
    if (v->tokens == BASIN_TEXT_IDS)
        return (size_t)snprintf(piece, BASIN_TEXT_PIECE, first ? "%" PRId32 : " %" PRId32, id);
    piece[0] = (char)id;
    return 1;
}
