/* Sums of few numbers over ranks; see ranks.h. */
#include <stdlib.h>

#include "base/memory.h"
#include "ranks/inside.h"

basin_status basin_ranks_sum(basin_ranks *ranks, double *values, int64_t count,
                             basin_error *error) {
    int64_t n = basin_ranks_count(ranks);
    if (n == 1) return BASIN_OK;
    double *all = basin_array_new((size_t)(n * count), sizeof *all);
    if (!all) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a sum");
    basin_status status =
        basin_ranks_gather(ranks, all, values, (size_t)count * sizeof *all, error);
    for (int64_t i = 0; i < count && !status; i++) {
        values[i] = all[i];
        for (int64_t r = 1; r < n; r++) values[i] += all[r * count + i];
    }
    free(all);
    return status;
}

basin_status basin_ranks_sum_integers(basin_ranks *ranks, int64_t *values, int64_t count,
                                      basin_error *error) {
    int64_t n = basin_ranks_count(ranks);
    if (n == 1) return BASIN_OK;
    int64_t *all = basin_array_new((size_t)(n * count), sizeof *all);
    if (!all) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a sum");
    basin_status status =
        basin_ranks_gather(ranks, all, values, (size_t)count * sizeof *all, error);
    for (int64_t i = 0; i < count && !status; i++) {
        values[i] = all[i];
        for (int64_t r = 1; r < n; r++) values[i] += all[r * count + i];
    }
    free(all);
    return status;
}

basin_status basin_ranks_any(basin_ranks *ranks, bool *value, basin_error *error) {
    int64_t true_on = *value;
    basin_status status = basin_ranks_sum_integers(ranks, &true_on, 1, error);
    if (!status) *value = true_on > 0;
    return status;
}
