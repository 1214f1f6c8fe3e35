/* Times energy attention: all pairs at the paper's image size, and a random graph of Amazon's size.
 *
 *     build/bench/attention [dense|list|all [threads [repeats]]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "engine/backend/cpu/attention/attention.h"
#include "engine/backend/device.h"
#include "engine/core/team/team.h"

static uint64_t random_state = 1;
static uint32_t random_bits(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

static void *new_or_exit(int64_t count, size_t size) {
    void *x = basin_aligned_new((size_t)count * size);
    if (!x) {
        fprintf(stderr, "attention: out of memory\n");
        exit(1);
    }
    return x;
}

static float *random_floats(int64_t count, float low, float high) {
    float *x = new_or_exit(count, sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = low + (high - low) * (float)random_bits() / 4294967296.0f;
    return x;
}

/* Operands and outputs for a pattern; nothing is released, the program ends soon. */
static basin_attention operands(basin_attention_pattern pattern) {
    int64_t queries = pattern.batch * pattern.queries * pattern.heads;
    int64_t keys = pattern.batch * pattern.keys * pattern.heads, width = pattern.width;
    return (basin_attention){.pattern = pattern,
                             .q = random_floats(queries * width, -1, 1),
                             .k = random_floats(keys * width, -1, 1),
                             .beta = random_floats(pattern.heads, 0.1f, 0.2f),
                             .w = random_floats(queries, 0, 1),
                             .a = random_floats(queries * width, -1, 1),
                             .b = random_floats(keys * width, -1, 1),
                             .lse = random_floats(queries, 0, 0),
                             .gw = random_floats(queries, 0, 0),
                             .out_query = random_floats(queries * width, 0, 0),
                             .out_key = random_floats(keys * width, 0, 0),
                             .out_beta = random_floats(pattern.heads, 0, 0)};
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Medians over `repeats` of the force and of its reverse, run in turns. */
static void time_both(double seconds[2], const basin_attention *at, int threads, int repeats) {
    basin_attention forward = *at, backward = *at;
    forward.mode = BASIN_ATTENTION_FORCE, backward.mode = BASIN_ATTENTION_REVERSE;
    size_t force = basin_attention_workspace(&forward, threads);
    size_t reverse = basin_attention_workspace(&backward, threads);
    size_t bytes = force > reverse ? force : reverse;
    void *workspace = new_or_exit((int64_t)bytes, 1);
    double *times = new_or_exit(2 * repeats, sizeof *times);
    memset(workspace, 0, bytes);
    for (int i = -1; i < repeats; i++) {
        double start = basin_clock();
        basin_attention_run(&forward, threads, workspace);
        double middle = basin_clock();
        basin_attention_run(&backward, threads, workspace);
        double end = basin_clock();
        if (i < 0) continue;
        times[i] = middle - start;
        times[repeats + i] = end - middle;
    }
    for (int i = 0; i < 2; i++) {
        qsort(times + i * repeats, (size_t)repeats, sizeof *times, by_time);
        seconds[i] = times[i * repeats + repeats / 2];
    }
    printf("  workspace %.1f MiB (force), %.1f MiB (reverse)\n", (double)force / 1048576,
           (double)reverse / 1048576);
    free(times);
    free(workspace);
}

static void bench_dense(int64_t batch, int64_t tokens, bool causal, int threads, int repeats) {
    basin_attention at = operands((basin_attention_pattern){.batch = batch,
                                                            .queries = tokens,
                                                            .keys = tokens,
                                                            .heads = 12,
                                                            .width = 64,
                                                            .exclude_self = true,
                                                            .causal = causal});
    printf("%s pairs: batch %d, %d tokens, 12 heads of 64\n", causal ? "causal" : "all", (int)batch,
           (int)tokens);
    double seconds[2],
        product = 2e-9 * (double)(batch * tokens * tokens * 12 * 64) / (causal ? 2 : 1);
    time_both(seconds, &at, threads, repeats);
    printf("  force   %8.3f ms  %6.1f GFLOP/s\n", 1e3 * seconds[0], 3 * product / seconds[0]);
    printf("  reverse %8.3f ms  %6.1f GFLOP/s\n", 1e3 * seconds[1], 7 * product / seconds[1]);
}

static int by_number(const void *a, const void *b) {
    return *(const int32_t *)a - *(const int32_t *)b;
}

static basin_attention_pattern random_graph(int64_t nodes, int64_t pairs) {
    int32_t *row = new_or_exit(nodes + 1, sizeof *row), *key = new_or_exit(pairs, sizeof *key);
    int32_t *column = new_or_exit(nodes + 1, sizeof *column);
    int32_t *query = new_or_exit(pairs, sizeof *query), *pair = new_or_exit(pairs, sizeof *pair);
    memset(row, 0, (size_t)(nodes + 1) * sizeof *row);
    memset(column, 0, (size_t)(nodes + 1) * sizeof *column);
    for (int64_t i = 0; i < pairs; i++) {
        row[1 + random_bits() % nodes]++;
        key[i] = (int32_t)(random_bits() % nodes);
        column[1 + key[i]]++;
    }
    for (int64_t i = 0; i < nodes; i++) {
        row[i + 1] += row[i];
        column[i + 1] += column[i];
        qsort(key + row[i], (size_t)(row[i + 1] - row[i]), sizeof *key, by_number);
    }
    for (int32_t q = 0; q < nodes; q++)
        for (int32_t i = row[q]; i < row[q + 1]; i++) {
            int32_t at = column[key[i]]++;
            query[at] = q;
            pair[at] = i;
        }
    memmove(column + 1, column, (size_t)nodes * sizeof *column);
    column[0] = 0;
    return (basin_attention_pattern){.batch = 1,
                                     .queries = nodes,
                                     .keys = nodes,
                                     .pairs = pairs,
                                     .row = row,
                                     .key = key,
                                     .column = column,
                                     .query = query,
                                     .pair = pair};
}

static void bench_edges(int64_t nodes, int64_t pairs, int64_t heads, int64_t width, bool full,
                        int threads, int repeats) {
    basin_attention_pattern pattern = random_graph(nodes, pairs);
    pattern.heads = heads;
    pattern.width = width;
    basin_attention at = operands(pattern);
    if (full) {
        at.scale = random_floats(pairs * heads, 0, 1);
        at.mix = random_floats(heads * heads, -1, 1);
        at.out_scale = random_floats(pairs * heads, 0, 0);
        at.out_mix = random_floats(heads * heads, 0, 0);
    }
    printf("list: %d nodes, %d pairs, %d heads of %d%s\n", (int)nodes, (int)pairs, (int)heads,
           (int)width, full ? ", scale and mix" : "");
    double seconds[2], million = 1e-6 * (double)pairs;
    time_both(seconds, &at, threads, repeats);
    printf("  force   %8.3f ms  %6.2f M pairs/s\n", 1e3 * seconds[0], million / seconds[0]);
    printf("  reverse %8.3f ms  %6.2f M pairs/s\n", 1e3 * seconds[1], million / seconds[1]);
    printf("  both    %8.3f ms  %6.2f M pairs/s\n", 1e3 * (seconds[0] + seconds[1]),
           million / (seconds[0] + seconds[1]));
}

int main(int count, char **argument) {
    const char *what = count > 1 ? argument[1] : "all";
    int threads = count > 2 ? atoi(argument[2]) : basin_thread_count();
    int repeats = count > 3 ? atoi(argument[3]) : 5;
    bool dense = !strcmp(what, "dense") || !strcmp(what, "all");
    bool list = !strcmp(what, "list") || !strcmp(what, "all");
    if (threads < 1 || repeats < 1 || !(dense || list)) {
        fprintf(stderr, "usage: attention [dense|list|all [threads [repeats]]]\n");
        return 2;
    }
    printf("%s, %d threads\n", basin_isa_name(basin_cpu_isa()), threads);
    if (dense) {
        bench_dense(4, 196, false, threads, 4 * repeats);
        bench_dense(1, 1024, false, threads, repeats);
        bench_dense(1, 1024, true, threads, repeats);
    }
    if (list) {
        bench_edges(20, 380, 12, 64, true, threads, 20 * repeats);
        bench_edges(2000, 40000, 12, 64, true, threads, repeats);
        bench_edges(11944, 8796784, 2, 128, false, threads, repeats);
    }
    return 0;
}
