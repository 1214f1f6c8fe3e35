/* Sums of few numbers over ranks; see ranks.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ranks/inside.h"

/* to [count] += from [count]. */
typedef void add_numbers(void *to, const void *from, int64_t count);

static void add_doubles(void *to, const void *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) ((double *)to)[i] += ((const double *)from)[i];
}

static void add_integers(void *to, const void *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) ((int64_t *)to)[i] += ((const int64_t *)from)[i];
}

static basin_status sum(basin_ranks *ranks, void *values, int64_t count, size_t width,
                        add_numbers *add, basin_error *error) {
    int64_t n = basin_ranks_count(ranks);
    size_t bytes = (size_t)count * width;
    if (n == 1) return BASIN_OK;
    char *all = basin_array_new((size_t)n, bytes);
    if (!all) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a sum");
    basin_status status = basin_ranks_gather(ranks, all, values, bytes, error);
    if (!status) memcpy(values, all, bytes);
    for (int64_t r = 1; r < n && !status; r++) add(values, all + (size_t)r * bytes, count);
    free(all);
    return status;
}

basin_status basin_ranks_sum(basin_ranks *ranks, double *values, int64_t count,
                             basin_error *error) {
    return sum(ranks, values, count, sizeof *values, add_doubles, error);
}

basin_status basin_ranks_sum_integers(basin_ranks *ranks, int64_t *values, int64_t count,
                                      basin_error *error) {
    return sum(ranks, values, count, sizeof *values, add_integers, error);
}

basin_status basin_ranks_any(basin_ranks *ranks, bool *value, basin_error *error) {
    int64_t true_on = *value;
    basin_status status = basin_ranks_sum_integers(ranks, &true_on, 1, error);
    if (!status) *value = true_on > 0;
    return status;
}
