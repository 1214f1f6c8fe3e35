/* For tests of what a run writes: whole files, compared; logs without their times. */
#ifndef BASIN_TESTS_SUPPORT_FILES_H
#define BASIN_TESTS_SUPPORT_FILES_H

#include "support/test.h"

/* The whole file with a 0 behind it; free it. */
static inline char *slurp(size_t *size, const char *path) {
    enum { MOST = 1 << 23 };
    char *text = malloc(MOST);
    FILE *file = fopen(path, "rb");
    assert_true(text && file);
    *size = fread(text, 1, MOST - 1, file);
    fclose(file);
    assert_true(*size < MOST - 1);
    text[*size] = 0;
    return text;
}

static inline void same_file(const char *a, const char *b) {
    size_t one, two;
    char *x = slurp(&one, a), *y = slurp(&two, b);
    assert_int_equal(one, two);
    assert_memory_equal(x, y, one);
    free(x);
    free(y);
}

/* A log whose lines end before the times; free it. */
static inline char *timeless(const char *path) {
    static const char *const times[] = {",\"items_per_second\":", ",\"seconds\":"};
    size_t size;
    char *text = slurp(&size, path);
    for (int i = 0; i < 2; i++)
        for (char *at; (at = strstr(text, times[i]));) {
            char *end = at + strcspn(at, "}");
            memmove(at, end, strlen(end) + 1);
        }
    return text;
}

#endif
