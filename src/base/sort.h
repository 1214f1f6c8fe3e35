/* Comparisons for qsort and bsearch, and the smaller and larger of two integers. */
#ifndef BASIN_BASE_SORT_H
#define BASIN_BASE_SORT_H

#include <stdint.h>
#include <string.h>

static inline int64_t basin_int_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t basin_int_max(int64_t a, int64_t b) { return a > b ? a : b; }
/* a / b, rounded up, for positive numbers. */
static inline int64_t basin_int_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* -1, 0 or 1; also for use inside comparisons of structs. */
#define BASIN_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static inline int basin_compare_int64(const void *a, const void *b) {
    return BASIN_COMPARE(*(const int64_t *)a, *(const int64_t *)b);
}
static inline int basin_compare_int32(const void *a, const void *b) {
    return BASIN_COMPARE(*(const int32_t *)a, *(const int32_t *)b);
}
static inline int basin_compare_float(const void *a, const void *b) {
    return BASIN_COMPARE(*(const float *)a, *(const float *)b);
}
static inline int basin_compare_double(const void *a, const void *b) {
    return BASIN_COMPARE(*(const double *)a, *(const double *)b);
}
/* Edges, two nodes each. */
static inline int basin_compare_ends(const void *a, const void *b) {
    const int32_t *x = a, *y = b;
    return x[0] != y[0] ? BASIN_COMPARE(x[0], y[0]) : BASIN_COMPARE(x[1], y[1]);
}
/* Places by their values; those of equal values in their order. */
typedef struct basin_ranked {
    double value;
    int64_t at;
} basin_ranked;
static inline int basin_lower_first(const void *a, const void *b) {
    const basin_ranked *x = a, *y = b;
    return x->value != y->value ? BASIN_COMPARE(x->value, y->value) : BASIN_COMPARE(x->at, y->at);
}
static inline int basin_higher_first(const void *a, const void *b) {
    const basin_ranked *x = a, *y = b;
    return x->value != y->value ? BASIN_COMPARE(y->value, x->value) : BASIN_COMPARE(x->at, y->at);
}
/* Elements are pointers to texts. */
static inline int basin_compare_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

#endif
