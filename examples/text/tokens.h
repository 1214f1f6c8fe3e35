/* Texts and their tokens: bytes, or the characters of the training text in the order of their code
 * points. A character is held as its UTF-8 bytes in one number, which keeps that order. */
#pragma once
#include <errno.h>

#include "../options.h"

typedef struct passage {
    const char *name; /* for errors */
    char *bytes;
    size_t length;
} passage;

typedef struct vocabulary {
    bool bytes;
    int64_t count;
    uint32_t *character; /* [count] ascending; NULL where tokens are bytes */
} vocabulary;

typedef struct tokens {
    int32_t *id; /* [count] */
    int64_t count;
} tokens;

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) quit("text", "out of memory");
    return memory;
}

/* ---- files ---- */

/* All files as one text. */
static passage read_files(char **files, int count) {
    enum { BLOCK = 1 << 20 };
    passage p = {.name = count == 1 ? files[0] : "the text"};
    for (int i = 0; i < count; i++) {
        FILE *file = fopen(files[i], "rb");
        if (!file) quit(files[i], strerror(errno));
        for (size_t got = 1; got; p.length += got) {
            p.bytes = realloc(p.bytes, p.length + BLOCK);
            if (!p.bytes) quit(files[i], "out of memory");
            got = fread(p.bytes + p.length, 1, BLOCK, file);
        }
        if (ferror(file)) quit(files[i], strerror(errno));
        fclose(file);
    }
    return p;
}

/* Its length and its hash, FNV-1a: by these a model recognises the text that it was trained on. */
enum { ORIGIN = 40 };
static void origin_of(char origin[ORIGIN], const passage *p) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < p->length; i++)
        hash = (hash ^ (unsigned char)p->bytes[i]) * 0x100000001b3;
    snprintf(origin, ORIGIN, "%zu %016llx", p->length, (unsigned long long)hash);
}

/* Where the last tenth begins, which is held out of training: between two characters. */
static size_t nine_tenths(const passage *p) {
    size_t at = p->length / 10 * 9 + p->length % 10 * 9 / 10;
    while (at < p->length && (unsigned char)p->bytes[at] >> 6 == 2) at++;
    return at;
}

/* ---- characters ---- */

/* The bytes of the first character, 1 to 4, and these packed into a number; 0: not UTF-8. */
static size_t next_character(uint32_t *character, const char *text, size_t left) {
    static const uint32_t min[] = {0, 0, 0xc280, 0xe0a080, 0xf0908080};
    const unsigned char *at = (const unsigned char *)text;
    size_t count = *at < 0x80 ? 1 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
    if (count > left) return 0;
    *character = 0;
    for (size_t i = 0; i < count; i++) {
        if (i && at[i] >> 6 != 2) return 0;
        *character = *character << 8 | at[i];
    }
    bool surrogate = *character >= 0xeda080 && *character <= 0xedbfbf;
    return *character >= min[count] && *character <= 0xf48fbfbf && !surrogate ? count : 0;
}

static void fail_at(const passage *p, size_t at, size_t bytes, const char *what) {
    size_t line = 1;
    for (size_t i = 0; i < at; i++) line += p->bytes[i] == '\n';
    fprintf(stderr, "%s: line %zu: ", p->name, line);
    fprintf(stderr, bytes ? "'%.*s' %s\n" : "%.*s%s\n", (int)bytes, p->bytes + at, what);
    exit(1);
}

/* Where a character is, or would be inserted. */
static int64_t place_of(const vocabulary *v, uint32_t character) {
    int64_t low = 0, high = v->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (v->character[middle] < character)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds the characters of a text to the vocabulary. */
static void add_characters(vocabulary *v, const passage *p) {
    for (size_t at = 0, bytes; at < p->length; at += bytes) {
        uint32_t character;
        bytes = next_character(&character, p->bytes + at, p->length - at);
        if (!bytes || !character) fail_at(p, at, 0, "not UTF-8; --tokens bytes takes any text");
        int64_t place = place_of(v, character);
        if (place < v->count && v->character[place] == character) continue;
        v->character = realloc(v->character, (size_t)(v->count + 1) * sizeof *v->character);
        if (!v->character) quit(p->name, "out of memory");
        memmove(v->character + place + 1, v->character + place,
                (size_t)(v->count++ - place) * sizeof *v->character);
        v->character[place] = character;
    }
}

/* ---- tokens ---- */

/* The bytes of a token. */
static size_t write_token(char text[4], const vocabulary *v, int32_t id) {
    uint32_t packed = v->bytes ? (uint32_t)id : v->character[id];
    size_t count = v->bytes || packed < 0x100 ? 1
                   : packed < 0x10000         ? 2
                   : packed < 0x1000000       ? 3
                                              : 4;
    for (size_t i = 0; i < count; i++) text[i] = (char)(packed >> 8 * (count - 1 - i));
    return count;
}

/* The bytes from `first` up to `end`, as tokens. */
static tokens encode(const vocabulary *v, const passage *p, size_t first, size_t end) {
    tokens t = {.id = allocate(end - first, sizeof *t.id)};
    for (size_t at = first, bytes = 1; at < end; at += bytes) {
        uint32_t character = (unsigned char)p->bytes[at];
        int64_t place = character;
        if (!v->bytes) {
            bytes = next_character(&character, p->bytes + at, end - at);
            place = bytes ? place_of(v, character) : 0;
            if (!bytes) fail_at(p, at, 0, "not UTF-8");
            if (place == v->count || v->character[place] != character)
                fail_at(p, at, bytes, "is a character that the model does not know");
        }
        t.id[t.count++] = (int32_t)place;
    }
    return t;
}
