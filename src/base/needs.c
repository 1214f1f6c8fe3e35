/* Conditions on values; see needs.h. */
#include "base/needs.h"

#include <string.h>

bool basin_word_among(const char *words, size_t length, const char *value) {
    size_t expected = strlen(value);
    for (const char *end = words + length;;) {
        const char *bar = memchr(words, '|', (size_t)(end - words));
        size_t size = (size_t)((bar ? bar : end) - words);
        if (size == expected && !strncmp(words, value, size)) return true;
        if (!bar) return false;
        words = bar + 1;
    }
}

static size_t name_length(const char *condition) { return strcspn(condition, "!="); }

const char *basin_needs_words(const char *condition, size_t *length, bool *expected) {
    size_t name = name_length(condition);
    *expected = condition[name] == '=';
    const char *words = condition + name + (*expected ? 1 : 2);
    *length = strcspn(words, ", ");
    return words;
}

bool basin_needs_names(const char *condition, const char *name) {
    size_t length = name_length(condition);
    return strlen(name) == length && !strncmp(condition, name, length);
}

const char *basin_needs_next(const char *condition) {
    condition += strcspn(condition, " ");
    return condition + strspn(condition, " ");
}

static bool holds(const char *condition, const char *value) {
    size_t length;
    bool expected;
    const char *words = basin_needs_words(condition, &length, &expected);
    return basin_word_among(words, length, value) == expected;
}

/* The condition to blame where none of a clause holds: the first of a name that is there. */
static const char *blame(const char *clause, basin_needs_value *value, const void *context) {
    const char *first = NULL, *end = clause + strcspn(clause, " ");
    char text[BASIN_NEEDS_VALUE];
    for (const char *at = clause; at < end; at += strspn(at, ",")) {
        bool there = value(text, context, at, name_length(at));
        if (there && holds(at, text)) return NULL;
        if (there && !first) first = at;
        at += strcspn(at, ", ");
    }
    return first;
}

const char *basin_needs_unmet(const char *needs, basin_needs_value *value, const void *context) {
    for (; needs && *needs; needs = basin_needs_next(needs)) {
        const char *blamed = blame(needs, value, context);
        if (blamed) return blamed;
    }
    return NULL;
}
