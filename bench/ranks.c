/* Times what ranks pay to meet, for the cost model of docs/scale.md: the latency of a question to
 * all, and the bytes a second at which gradients of P numbers are summed over ranks.
 *
 *     mpirun -n 4 ranks [NUMBERS [ROUNDS]]
 *
 * Rank 0 prints two lines of CSV: what, ranks, median seconds, best seconds, and for sums the bytes
 * a second that a rank sends. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "tasks/common/ranks/ranks.h"

enum { USUAL_NUMBERS = 5000000, USUAL_ROUNDS = 21 };

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Whether anyone wants to stop, as a step asks it. */
static basin_status time_questions(double *seconds, basin_ranks *ranks, int rounds,
                                   basin_error *error) {
    enum { AT_ONCE = 50 };
    basin_status status = BASIN_OK;
    for (int i = 0; i < rounds && !status; i++) {
        double began = basin_clock();
        for (int k = 0; k < AT_ONCE && !status; k++) {
            bool stop = false;
            status = basin_ranks_any(ranks, &stop, error);
        }
        seconds[i] = (basin_clock() - began) / AT_ONCE;
    }
    return status;
}

/* A shard a rank; all begin at the same time. */
static basin_status time_sums(double *seconds, basin_ranks *ranks, int64_t numbers, int rounds,
                              basin_error *error) {
    basin_ranks_tree *tree;
    basin_status status =
        basin_ranks_tree_new(&tree, ranks, basin_ranks_count(ranks), numbers, NULL, NULL, error);
    for (int i = 0; i < rounds && !status; i++) {
        float *sum, *to = basin_ranks_tree_next(tree);
        for (int64_t k = 0; k < numbers; k++) to[k] = (float)k;
        status = basin_ranks_barrier(ranks, error);
        double began = basin_clock();
        if (!status) basin_ranks_tree_push(tree);
        if (!status) status = basin_ranks_tree_sum(&sum, tree, error);
        seconds[i] = basin_clock() - began;
    }
    basin_ranks_tree_free(tree);
    return status;
}

/* The first round, which warms up, is left out. */
static void print_times(const char *what, int64_t ranks, double *seconds, int rounds,
                        double bytes) {
    qsort(seconds + 1, (size_t)rounds - 1, sizeof *seconds, compare);
    double median = seconds[1 + (rounds - 1) / 2];
    printf("%s,%lld,%.3g,%.3g", what, (long long)ranks, median, seconds[1]);
    if (bytes > 0) printf(",%.3g", bytes / median);
    printf("\n");
}

static basin_status measure(basin_ranks *ranks, int64_t numbers, int rounds, basin_error *error) {
    int64_t count = basin_ranks_count(ranks);
    double *seconds = basin_array_new((size_t)rounds, sizeof *seconds);
    if (!seconds) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %d rounds", rounds);
    bool first = basin_ranks_rank(ranks) == 0;
    basin_status status = time_questions(seconds, ranks, rounds, error);
    if (!status && first) print_times("question", count, seconds, rounds, 0);
    if (!status) status = time_sums(seconds, ranks, numbers, rounds, error);
    double bytes = 2.0 * (double)(count - 1) / (double)count * 4 * (double)numbers;
    if (!status && first) print_times("sum", count, seconds, rounds, bytes);
    free(seconds);
    return status;
}

int main(int count, char **argument) {
    basin_ranks *ranks;
    basin_error error = {0};
    int64_t numbers = count > 1 ? strtoll(argument[1], NULL, 10) : USUAL_NUMBERS;
    int rounds = count > 2 ? (int)strtol(argument[2], NULL, 10) : USUAL_ROUNDS;
    basin_status status =
        numbers > 0 && rounds > 2
            ? basin_ranks_open(&ranks, &error)
            : basin_fail(&error, BASIN_BAD_VALUE, "wanted some NUMBERS, and more than two ROUNDS");
    if (!status) {
        status = measure(ranks, numbers, rounds, &error);
        if (status) fprintf(stderr, "ranks: %s\n", error.text), basin_ranks_abort(ranks, 1);
        basin_ranks_close(ranks);
    } else {
        fprintf(stderr, "ranks: %s\n", error.text);
    }
    return status ? 1 : 0;
}
