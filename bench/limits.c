/* Measures what this machine can do, as the best of short bursts, so that other programs matter
 * little: multiply-adds in registers, in float and, where the processor multiplies it, in bfloat16;
 * and memory, x = y + a z of arrays that no cache holds, three passes. The figures of `basin bench`
 * over these are the share of the limit that it reaches.
 *
 *     limits [THREADS] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/info.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "engine/backend/cpu/gemm/kernel.h"

enum {
    PEAK = 16384 /* floats */,
    BURSTS = 200,
    ROUNDS = 200000,
    TRIAD = 2 << 20 /* vectors of an array: beyond caches */
};

typedef float vector __attribute__((vector_size(16)));

typedef struct burst {
    bool narrow;
    float *data;  /* [threads, PEAK] */
    double *rate; /* [threads] operations per second of the thread's CPU time */
    vector *x;    /* [3, TRIAD] */
} burst;

/* Multiplies and adds numbers of `data` as fast as one thread can; returns how many operations. */
static double peak(float *data, bool narrow, int64_t rounds) {
    const basin_gemm_kernel *kernel =
        basin_gemm_kernel_find(narrow ? BASIN_GEMM_BF16 : BASIN_GEMM_F32);
    enum { K = 256 }; /* a panel of A, one of B and a tile are data, in the nearest cache */
    if (kernel->peak) return kernel->peak(data, rounds);
    int64_t lane = K * kernel->halves / 2;
    float *b = data + lane * kernel->mr, *c = b + lane * kernel->nr;
    if (kernel->begin) kernel->begin();
    for (int64_t i = 0; i < rounds / K; i++)
        kernel->tile(c, kernel->nr, data, b, K, kernel->mr, kernel->nr, i > 0,
                     &(basin_gemm_ahead){.b = b});
    if (kernel->end) kernel->end();
    return 2.0 * kernel->mr * kernel->nr * K * (double)(rounds / K);
}

static void multiply(const void *context, int64_t first, int64_t last) {
    const burst *b = context;
    for (int64_t i = first; i < last; i++) {
        float *data = b->data + i * PEAK;
        uint16_t *word = (uint16_t *)data; /* +-(0.5 to 1) as bfloat16, and pairs as float */
        for (uint32_t n = 0, r = 1; n < 2 * PEAK; n++, r = r * 1664525 + 1013904223)
            word[n] = (uint16_t)(0x3F00 | (r >> 25) | (r >> 9 & 0x8000));
        struct timespec start, end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
        double operations = peak(data, b->narrow, ROUNDS);
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
        best = sum > best ? sum : best;
    }
    return best;
}

static double bytes(const burst *b, int threads) {
    double best = 1e9;
    for (int i = 0; i < BURSTS / 16; i++) {
        double start = basin_clock();
        basin_parallel_for(triad, b, TRIAD, TRIAD / 4 / threads, threads);
        double seconds = basin_clock() - start;
        best = seconds < best ? seconds : best;
    }
    return 3.0 * TRIAD * sizeof(vector) / best;
}

int main(int count, char **argument) {
    basin_machine_info machine = basin_machine_info_now();
    int threads = count > 1 ? atoi(argument[1]) : (int)machine.processors;
    if (threads < 1) threads = 1;
    burst b = {.data = basin_array_new((size_t)threads * PEAK, sizeof *b.data),
               .rate = basin_array_new((size_t)threads, sizeof *b.rate),
               .x = basin_array_new(3 * (size_t)TRIAD, sizeof *b.x)};
    if (!b.data || !b.rate || !b.x) return EXIT_FAILURE;
    for (int i = 0; i < 3 * TRIAD; i++) b.x[i] = (vector){1, 1, 1, 1};
    printf("threads  float32 GFLOP/s  bfloat16 GFLOP/s  memory GB/s\n");
    for (int i = 0, used = 1; i < (threads > 1 ? 2 : 1); i++, used = threads)
        printf("%7d  %15.1f  %16.1f  %11.1f\n", used, 1e-9 * operations(&b, false, used),
               machine.bf16 ? 1e-9 * operations(&b, true, used) : 0, 1e-9 * bytes(&b, used));
    BASIN_FREE(b.data, b.rate, b.x);
    return EXIT_SUCCESS;
}
