/* What this machine can do, as the best of short bursts, so that other programs matter little. */
#include <time.h>

#include "base/clock.h"
#include "base/info.h"
#include "base/parallel.h"
#include "program/bench/bench.h"

enum { BURSTS = 200, ROUNDS = 200000, TRIAD = 2 << 20 /* vectors of an array: beyond caches */ };

typedef float vector __attribute__((vector_size(16)));

typedef struct burst {
    bool narrow;
    float *data;  /* [threads, BASIN_MACHINE_PEAK] */
    double *rate; /* [threads] operations per second of the thread's CPU time */
    vector *x;    /* [3, TRIAD] */
} burst;

static void multiply(const void *context, int64_t first, int64_t last) {
    const burst *b = context;
    for (int64_t i = first; i < last; i++) {
        float *data = b->data + i * BASIN_MACHINE_PEAK;
        uint16_t *word = (uint16_t *)data; /* +-(0.5 to 1) as bfloat16, and pairs as float */
        for (uint32_t n = 0, r = 1; n < 2 * BASIN_MACHINE_PEAK; n++, r = r * 1664525 + 1013904223)
            word[n] = (uint16_t)(0x3F00 | (r >> 25) | (r >> 9 & 0x8000));
        struct timespec start, end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
        double operations = basin_machine_peak(data, b->narrow, ROUNDS);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        b->rate[i] = operations / ((double)(end.tv_sec - start.tv_sec) +
                                   1e-9 * (double)(end.tv_nsec - start.tv_nsec));
    }
}

static void triad(const void *context, int64_t first, int64_t last) {
    vector *x = ((const burst *)context)->x;
    for (int64_t i = first; i < last; i++) x[i] = x[TRIAD + i] + 0.5F * x[2 * TRIAD + i];
}

static double operations(burst *b, bool narrow, int threads) {
    double best = 0;
    b->narrow = narrow;
    for (int i = 0; i < BURSTS; i++) {
        double sum = 0;
        basin_parallel_for(multiply, b, threads, 1, threads);
        for (int t = 0; t < threads; t++) sum += b->rate[t];
        best = fmax(best, sum);
    }
    return best;
}

static double bytes(const burst *b, int threads) {
    double best = INFINITY;
    for (int i = 0; i < BURSTS / 16; i++) {
        double start = basin_clock();
        basin_parallel_for(triad, b, TRIAD, TRIAD / 4 / threads, threads);
        best = fmin(best, basin_clock() - start);
    }
    return 3.0 * TRIAD * sizeof(vector) / best;
}

basin_status basin_bench_limits(basin_bench_limit limit[2], int threads, basin_error *error) {
    BASIN_SCRATCH(float, data, ((size_t)threads * BASIN_MACHINE_PEAK), "the processor's limits",
                  error);
    BASIN_SCRATCH(double, rate, threads, "the processor's limits", error);
    BASIN_SCRATCH(vector, x, (3 * (size_t)TRIAD), "the limit of memory", error);
    burst b = {.data = data, .rate = rate, .x = x};
    for (int i = 0; i < 3 * TRIAD; i++) x[i] = (vector){1, 1, 1, 1};
    for (int i = 0, used = 1; i < 2; i++, used = threads)
        limit[i] = (basin_bench_limit){
            .f32 = operations(&b, false, used),
            .bf16 = basin_machine_info_now().bf16 ? operations(&b, true, used) : 0,
            .memory = bytes(&b, used)};
    return BASIN_OK;
}
