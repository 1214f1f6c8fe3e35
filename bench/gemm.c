/* Times the matrix product of the CPU backend beside cblas_sgemm and beside the processor's own
 * peak, a loop of multiply-adds that never leaves the registers. The three take turns, so that a
 * change of clock meets them all, and each figure is a median over the rounds.
 *
 *     gemm [THREADS [ROUNDS [FIRST_SHAPE [LAST_SHAPE]]]] */
#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/cpu/gemm.h"
#include "backend/cpu/isa.h"
#include "base/memory.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* Other CBLAS libraries do not have it, and are then timed as they are. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));

enum { MAX_ROUNDS = 101 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, int count) {
    double sorted[MAX_ROUNDS];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    return sorted[count / 2];
}

/* 16 independent chains of multiply-adds; returns the number of operations. */
#define CHAINS(SET, FMA, TYPE, WIDTH)                                                              \
    TYPE sum[16], x = SET(0.5F), y = SET(1.0F);                                                    \
    _Pragma("GCC unroll 16") for (int i = 0; i < 16; i++) sum[i] = SET((float)i);                  \
    for (long s = 0; s < steps; s++)                                                               \
        _Pragma("GCC unroll 16") for (int i = 0; i < 16; i++) sum[i] = FMA(sum[i], x, y);          \
    _Pragma("GCC unroll 16") for (int i = 1; i < 16; i++) sum[0] = FMA(sum[0], x, sum[i]);         \
    memcpy(sink, &sum[0], sizeof sum[0]);                                                          \
    return 2.0 * WIDTH * 16.0 * (double)steps;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double peak_avx512(float *sink, long steps) {
    CHAINS(_mm512_set1_ps, _mm512_fmadd_ps, __m512, 16)
}
__attribute__((target("avx2,fma"))) static double peak_avx2(float *sink, long steps) {
    CHAINS(_mm256_set1_ps, _mm256_fmadd_ps, __m256, 8)
}
#elif defined(__aarch64__)
static double peak_neon(float *sink, long steps) { CHAINS(vdupq_n_f32, vfmaq_f32, float32x4_t, 4) }
#endif

static double peak_operations(float *sink, long steps) {
    switch (basin_cpu_isa()) {
#if defined(__x86_64__)
    case BASIN_ISA_AVX512: return peak_avx512(sink, steps);
    case BASIN_ISA_AVX2: return peak_avx2(sink, steps);
#elif defined(__aarch64__)
    case BASIN_ISA_NEON: return peak_neon(sink, steps);
#endif
    default: return 0.0 * (double)steps * (double)sink[0];
    }
}

static double peak_rate(int threads) {
    double operations = 0, start = now();
#pragma omp parallel num_threads(threads) reduction(+ : operations)
    {
        float sink[16] = {0};
        operations += peak_operations(sink, 400000);
    }
    return operations / (now() - start);
}

typedef enum finish { PLAIN, RELU, ADD } finish;

typedef struct shape {
    const char *name;
    int64_t m, n, k;
    bool a_turned, packed;
    finish finish;
} shape;

static const shape shapes[] = {
    {"tokens x D x D, packed", 784, 768, 768, false, true, PLAIN},
    {"tokens x D x D", 784, 768, 768, false, false, PLAIN},
    {"Hopfield up, packed, relu", 784, 3072, 768, false, true, RELU},
    {"Hopfield down, packed, add", 784, 768, 3072, false, true, ADD},
    {"weight gradient D x D, add", 768, 768, 784, true, false, ADD},
    {"weight gradient M x D, add", 3072, 768, 784, true, false, ADD},
    {"attention scores", 196, 196, 64, false, false, PLAIN},
    {"attention values", 196, 64, 196, false, false, PLAIN},
    {"graph keys, packed", 11944, 256, 128, false, true, PLAIN},
    {"graph Hopfield, packed, relu", 11944, 640, 128, false, true, RELU},
    {"graph weight gradient", 640, 128, 11944, true, false, ADD},
    {"matrix times vector", 4096, 1, 1024, false, false, PLAIN},
    {"vector times matrix", 1, 4096, 1024, false, true, PLAIN},
};

typedef struct output {
    float *to;
    int64_t row;
    finish finish;
} output;

static void finish_tile(void *context, const float *tile, int64_t tile_row, int64_t batch,
                        int64_t row, int64_t col, int64_t rows, int64_t cols) {
    const output *out = context;
    (void)batch;
    for (int64_t r = 0; r < rows; r++) {
        float *to = out->to + (row + r) * out->row + col;
        const float *from = tile + r * tile_row;
        if (out->finish == RELU)
            for (int64_t j = 0; j < cols; j++) to[j] = from[j] > 0 ? from[j] : 0;
        else
            for (int64_t j = 0; j < cols; j++) to[j] += from[j];
    }
}

static float *floats_new(int64_t count) {
    float *x = basin_aligned_new((size_t)count * sizeof *x);
    if (!x) abort();
    for (int64_t i = 0; i < count; i++) x[i] = (float)((i * 7919) % 1009) / 1009.0F - 0.5F;
    return x;
}

static void bench(const shape *s, int threads, int rounds) {
    float *a = floats_new(s->m * s->k), *b = floats_new(s->k * s->n), *c = floats_new(s->m * s->n);
    output out = {c, s->n, s->finish};
    basin_gemm g = {.batch = 1, .m = s->m, .n = s->n, .k = s->k, .a = a, .b = b, .c = c};
    g.a_row = s->a_turned ? 1 : s->k;
    g.a_col = s->a_turned ? s->m : 1;
    g.b_row = s->n;
    g.b_col = 1;
    g.c_row = s->n;
    if (s->finish != PLAIN) g.epilogue = finish_tile, g.context = &out;
    float *packed = basin_aligned_new(basin_gemm_packed_size(s->k, s->n));
    if (!packed) abort();
    basin_gemm_pack(packed, b, g.b_row, g.b_col, s->k, s->n, threads);
    if (s->packed) g.b_packed = packed;
    void *workspace = basin_aligned_new(basin_gemm_workspace(&g, threads));
    if (!workspace) abort();
    double work = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    int calls = 1 + (int)(2e8 / work);
    double own[MAX_ROUNDS], blas[MAX_ROUNDS], peak[MAX_ROUNDS], ratio[MAX_ROUNDS], part[MAX_ROUNDS];
    for (int r = 0; r < rounds; r++) {
        peak[r] = peak_rate(threads);
        for (int warm = 0; warm < 2; warm++) {
            double start = now();
            for (int i = 0; i < calls; i++) basin_gemm_run(&g, threads, workspace);
            own[r] = work * calls / (now() - start);
        }
        if (threads > 1) nanosleep(&(struct timespec){0, 20000000}, NULL); /* spinning ends */
        for (int warm = 0; warm < 2; warm++) {
            double start = now();
            for (int i = 0; i < calls; i++)
                cblas_sgemm(CblasRowMajor, s->a_turned ? CblasTrans : CblasNoTrans, CblasNoTrans,
                            (int)s->m, (int)s->n, (int)s->k, 1.0F, a,
                            (int)(s->a_turned ? s->m : s->k), b, (int)s->n,
                            s->finish == ADD ? 1.0F : 0.0F, c, (int)s->n);
            blas[r] = work * calls / (now() - start);
        }
        if (threads > 1) nanosleep(&(struct timespec){0, 20000000}, NULL);
        ratio[r] = own[r] / blas[r];
        part[r] = own[r] / peak[r];
    }
    printf("%-30s %6ld %5ld %6ld %9.1f %9.1f %6.2f %9.1f %6.1f %%\n", s->name, (long)s->m,
           (long)s->n, (long)s->k, median(own, rounds) * 1e-9, median(blas, rounds) * 1e-9,
           median(ratio, rounds), median(peak, rounds) * 1e-9, 100 * median(part, rounds));
    fflush(stdout);
    free(workspace);
    free(packed);
    free(a);
    free(b);
    free(c);
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1, rounds = count > 2 ? atoi(arguments[2]) : 15;
    int first = count > 3 ? atoi(arguments[3]) : 0;
    int last = count > 4 ? atoi(arguments[4]) : (int)(sizeof shapes / sizeof *shapes) - 1;
    if (rounds < 1 || rounds > MAX_ROUNDS || threads < 1) return 2;
    if (openblas_set_num_threads) openblas_set_num_threads(threads);
    printf("%s, %d thread%s; GFLOP/s\n", basin_isa_name(basin_cpu_isa()), threads,
           threads > 1 ? "s" : "");
    printf("%-30s %6s %5s %6s %9s %9s %6s %9s %8s\n", "", "m", "n", "k", "basin", "blas", "ratio",
           "peak", "of peak");
    for (int i = first; i <= last; i++) bench(&shapes[i], threads, rounds);
    return 0;
}
