/* Times the matrix product of the CPU backend beside cblas_sgemm and beside the processor's own
 * peak, a loop of multiply-adds that never leaves the registers. The three take turns, so that a
 * change of clock meets them all, and each figure is a median over the rounds.
 *
 *     gemm [THREADS [ROUNDS [FIRST_SHAPE [LAST_SHAPE]]]] */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "engine/backend/device.h"
#include "engine/backend/gemm.h"
#include "engine/core/team/team.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* Other CBLAS libraries do not have it, and are then timed as they are. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));

enum { MAX_ROUNDS = 101 };

/* One thread is timed by its own clock, which other programs on the machine do not move. */
static clockid_t ticking = CLOCK_PROCESS_CPUTIME_ID;

static double now(void) {
    struct timespec t;
    clock_gettime(ticking, &t);
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

static void reach_peak(const void *context, int64_t first, int64_t last) {
    double *const *operations = context;
    float sink[16] = {0};
    for (int64_t i = first; i < last; i++) (*operations)[i] = peak_operations(sink, 400000);
}

static double peak_rate(int threads) {
    double part[256] = {0}, *operations = part, all = 0, start = now();
    if (threads > 256) threads = 256;
    basin_parallel_for(reach_peak, &operations, threads, 1, threads);
    for (int i = 0; i < threads; i++) all += part[i];
    return all / (now() - start);
}

typedef enum finish { PLAIN, RELU, ADD } finish;

typedef struct shape {
    const char *name;
    int64_t m, n, k;
    bool a_transposed, packed;
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
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525U + 1013904223U;
        x[i] = (float)(state >> 8) / (float)(1 << 23) - 1.0F;
    }
    return x;
}

enum { PRECISIONS = 1, WAYS = PRECISIONS + 1, BLAS = PRECISIONS };

/* One shape with its matrices, and what each way of computing it needs. */
typedef struct problem {
    const shape *shape;
    float *a, *b, *c;
    output out;
    basin_gemm gemm[PRECISIONS];
    void *workspace[PRECISIONS];
} problem;

static problem problem_new(const shape *s, int threads) {
    problem p = {.shape = s};
    p.a = floats_new(s->m * s->k), p.b = floats_new(s->k * s->n), p.c = floats_new(s->m * s->n);
    for (int i = 0; i < PRECISIONS; i++) {
        basin_gemm g = {.batch = 1, .m = s->m, .n = s->n, .k = s->k, .a = p.a, .b = p.b, .c = p.c};
        g.precision = (basin_gemm_precision)i;
        g.a_row = s->a_transposed ? 1 : s->k;
        g.a_col = s->a_transposed ? s->m : 1;
        g.b_row = s->n;
        g.b_col = 1;
        g.c_row = s->n;
        if (s->finish != PLAIN) g.epilogue = finish_tile;
        if (s->packed) {
            float *packed = basin_aligned_new(basin_gemm_packed_size(s->k, s->n, g.precision));
            if (!packed) abort();
            basin_gemm_pack(packed, p.b, g.b_row, g.b_col, s->k, s->n, g.precision, threads);
            g.b_packed = packed;
        }
        p.workspace[i] = basin_aligned_new(basin_gemm_workspace(&g, threads));
        if (!p.workspace[i]) abort();
        p.gemm[i] = g;
    }
    return p;
}

static void problem_free(problem *p) {
    for (int i = 0; i < PRECISIONS; i++) {
        free((void *)p->gemm[i].b_packed);
        free(p->workspace[i]);
    }
    free(p->a);
    free(p->b);
    free(p->c);
}

static void problem_run(problem *p, int way, int threads) {
    const shape *s = p->shape;
    if (way == BLAS) {
        cblas_sgemm(CblasRowMajor, s->a_transposed ? CblasTrans : CblasNoTrans, CblasNoTrans,
                    (int)s->m, (int)s->n, (int)s->k, 1.0F, p->a,
                    (int)(s->a_transposed ? s->m : s->k), p->b, (int)s->n,
                    s->finish == ADD ? 1.0F : 0.0F, p->c, (int)s->n);
        return;
    }
    p->out = (output){p->c, s->n, s->finish};
    p->gemm[way].context = &p->out;
    basin_gemm_run(&p->gemm[way], threads, p->workspace[way]);
}

/* The relative error ||C - AB|| / ||AB|| of one way over some elements, AB summed in double. */
static double problem_error(problem *p, int way, int threads) {
    const shape *s = p->shape;
    const basin_gemm *g = &p->gemm[0];
    double wrong = 0, size = 0;
    memset(p->c, 0, (size_t)(s->m * s->n) * sizeof *p->c);
    problem_run(p, way, threads);
    for (int64_t i = 0; i < 1000; i++) {
        int64_t r = i * 7919 % s->m, j = i * 104729 % s->n;
        double sum = 0;
        for (int64_t l = 0; l < s->k; l++)
            sum += (double)p->a[r * g->a_row + l * g->a_col] * p->b[l * g->b_row + j];
        double c = p->c[r * s->n + j];
        if (s->finish == RELU && sum <= 0) continue;
        wrong += (c - sum) * (c - sum);
        size += sum * sum;
    }
    return sqrt(wrong / size);
}

static void bench(const shape *s, int threads, int rounds) {
    problem p = problem_new(s, threads);
    double work = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    double rate[WAYS][MAX_ROUNDS], peak[MAX_ROUNDS], part[MAX_ROUNDS], ratio[WAYS][MAX_ROUNDS];
    int calls = 1 + (int)(2e8 / work);
    for (int r = 0; r < rounds; r++) {
        peak[r] = peak_rate(threads);
        for (int way = 0; way < WAYS; way++) {
            problem_run(&p, way, threads);
            double start = now();
            for (int i = 0; i < calls; i++) problem_run(&p, way, threads);
            rate[way][r] = work * calls / (now() - start);
            if (threads > 1 && way >= BLAS - 1) /* the other library's threads stop spinning */
                nanosleep(&(struct timespec){0, 20000000}, NULL);
        }
        part[r] = rate[0][r] / peak[r];
        for (int way = 0; way < WAYS; way++) ratio[way][r] = rate[way][r] / rate[BLAS][r];
    }
    printf("%-28s %5ld %4ld %5ld %7.1f %5.1f %% %7.1f", s->name, (long)s->m, (long)s->n, (long)s->k,
           median(peak, rounds) * 1e-9, 100 * median(part, rounds),
           median(rate[BLAS], rounds) * 1e-9);
    for (int way = 0; way < PRECISIONS; way++)
        printf(" %7.1f %5.2f", median(rate[way], rounds) * 1e-9, median(ratio[way], rounds));
    for (int way = 0; way < WAYS; way++) printf(" %.1e", problem_error(&p, way, threads));
    printf("\n");
    fflush(stdout);
    problem_free(&p);
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1, rounds = count > 2 ? atoi(arguments[2]) : 15;
    int first = count > 3 ? atoi(arguments[3]) : 0;
    int last = count > 4 ? atoi(arguments[4]) : (int)(sizeof shapes / sizeof *shapes) - 1;
    if (rounds < 1 || rounds > MAX_ROUNDS || threads < 1) return 2;
    if (threads > 1) ticking = CLOCK_MONOTONIC;
    if (openblas_set_num_threads) openblas_set_num_threads(threads);
    printf("%s%s, %d thread%s; GFLOP/s, ratio to BLAS, relative error\n",
           basin_isa_name(basin_cpu_isa()), basin_cpu_amx() ? " with AMX" : "", threads,
           threads > 1 ? "s" : "");
    printf("%-28s %5s %4s %5s %7s %7s %7s %13s  error: f32, blas\n", "", "m", "n", "k", "peak",
           "f32/pk", "blas", "f32");
    for (int i = first; i <= last; i++) bench(&shapes[i], threads, rounds);
    return 0;
}
