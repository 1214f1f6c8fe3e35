/* Words; see words.h. Each pattern is a list of alternatives, of which the first that fits is
 * taken:
 *
 *     GPT-2    's|'t|'re|'ve|'m|'ll|'d | ?\p{L}+ | ?\p{N}+ | ?[^\s\p{L}\p{N}]+ | \s+(?!\S) | \s+
 *     others   the same endings in any case | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N}{1,3} or \p{N}
 *              | ?[^\s\p{L}\p{N}]+[\r\n]* | \s*[\r\n]+ | \s+(?!\S) | \s+ */
#include "data/text/words.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "data/text/category.h"

typedef struct cursor {
    const char *text;
    size_t at, end;
} cursor;

/* The category of the character at the cursor, and its bytes; 0 of them at the end. */
static basin_category look(size_t *bytes, const cursor *c) {
    uint32_t point;
    *bytes = 0;
    if (c->at == c->end) return BASIN_OTHER;
    *bytes = basin_text_character(&point, c->text + c->at, c->end - c->at);
    if (*bytes) return basin_category_of(point);
    *bytes = 1;
    return BASIN_OTHER;
}

/* Passes over characters of a category, at most `most` of them. */
static size_t run(cursor *c, basin_category category, size_t most) {
    size_t count = 0, bytes;
    for (; count < most && look(&bytes, c) == category && bytes; count++) c->at += bytes;
    return count;
}

/* The bytes of 's, 't, 're, 've, 'm, 'll or 'd at the start of a text; 0: none. The long s and the
 * Kelvin sign count as s and k where case does not: only the first matters here. */
static size_t ending(const char *text, size_t length, bool any_case) {
    static const char *const known[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (length < 2 || text[0] != '\'') return 0;
    if (any_case && length > 2 && text[1] == '\xc5' && text[2] == '\xbf') return 3;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = 0;
        while (known[i][n] && n + 1 < length &&
               (text[n + 1] == known[i][n] || (any_case && (text[n + 1] | 0x20) == known[i][n])))
            n++;
        if (!known[i][n]) return n + 1;
    }
    return 0;
}

/* Blanks that end before a word leave their last one to it. */
static size_t blanks(cursor c) {
    size_t last = c.at, start = c.at, bytes;
    while (look(&bytes, &c) == BASIN_SPACE && bytes) {
        last = c.at;
        c.at += bytes;
    }
    return c.at < c.end && last > start ? last : c.at;
}

static size_t next_gpt2(const char *text, size_t length) {
    cursor c = {text, 0, length};
    size_t bytes = ending(text, length, false);
    if (bytes) return bytes;
    if (*text == ' ') c.at = 1;
    basin_category category = look(&bytes, &c);
    if (bytes && category != BASIN_SPACE) {
        run(&c, category, SIZE_MAX);
        return c.at;
    }
    c.at = 0;
    return blanks(c);
}

static bool is_break(char c) { return c == '\r' || c == '\n'; }

/* Behind the last line break within the blanks at the start; 0: there is none. */
static size_t broken(const char *text, size_t length) {
    cursor c = {text, 0, length};
    run(&c, BASIN_SPACE, SIZE_MAX);
    while (c.at && !is_break(text[c.at - 1])) c.at--;
    return c.at;
}

/* Letters, with one character before them that is neither letter, number nor line break. */
static size_t letters(const char *text, size_t length) {
    cursor c = {text, 0, length};
    size_t bytes;
    basin_category first = look(&bytes, &c);
    if (first == BASIN_NUMBER || is_break(*text)) return 0;
    if (first != BASIN_LETTER) c.at += bytes;
    return run(&c, BASIN_LETTER, SIZE_MAX) ? c.at : 0;
}

static size_t next_cl100(const char *text, size_t length, size_t digits) {
    cursor c = {text, 0, length};
    size_t bytes = ending(text, length, true);
    if (!bytes) bytes = letters(text, length);
    if (!bytes && run(&c, BASIN_NUMBER, digits)) bytes = c.at;
    if (bytes) return bytes;
    if (*text == ' ') c.at = 1;
    if (run(&c, BASIN_OTHER, SIZE_MAX)) {
        while (c.at < length && is_break(text[c.at])) c.at++;
        return c.at;
    }
    bytes = broken(text, length);
    return bytes ? bytes : blanks((cursor){text, 0, length});
}

size_t basin_words_next(basin_words words, const char *text, size_t length) {
    switch (words) {
    case BASIN_WORDS_NONE: return length;
    case BASIN_WORDS_GPT2: return next_gpt2(text, length);
    case BASIN_WORDS_CL100: return next_cl100(text, length, 3);
    case BASIN_WORDS_QWEN: return next_cl100(text, length, 1);
    }
    return length;
}

#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

const char *basin_words_pattern(basin_words words) {
    switch (words) {
    case BASIN_WORDS_NONE: return NULL;
    case BASIN_WORDS_GPT2:
        return "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    case BASIN_WORDS_CL100: return ENDINGS "\\p{N}{1,3}" REST;
    case BASIN_WORDS_QWEN: return ENDINGS "\\p{N}" REST;
    }
    return NULL;
}
