/* The matrix product against plain loops in double: shapes, transposes, packing, epilogues, and
 * equal bits for any number of threads. CTest runs it once per instruction set (BASIN_ISA). */
#include <math.h>

#include "base/memory.h"
#include "engine/backend/device.h"
#include "engine/backend/gemm.h"
#include "support/test.h"

static uint64_t random_state = 1;
static basin_gemm_precision precision; /* of the problems that are made */

/* Not every processor multiplies bfloat16 numbers. */
static bool has_precision(basin_gemm_precision asked) {
    return asked == BASIN_GEMM_F32 || basin_cpu_bf16();
}

#define FOR_PRECISIONS                                                                             \
    for (precision = BASIN_GEMM_F32; precision <= BASIN_GEMM_BF16; precision++)                    \
        if (has_precision(precision))

static uint32_t draw(void) {
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(random_state >> 33);
}

static float draw_float(void) { return (float)draw() / (float)(1U << 30) - 1.0F; }

static float *floats_new(int64_t count) {
    float *x = basin_aligned_new((size_t)count * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++) x[i] = draw_float();
    return x;
}

/* Factors are bfloat16 in that precision: the upper halves of the floats. */
static void *factor_new(int64_t count) {
    float *x = floats_new(count);
    uint16_t *upper = (uint16_t *)x;
    for (int64_t i = 0; i < count && precision == BASIN_GEMM_BF16; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        upper[i] = (uint16_t)(bits >> 16);
    }
    return x;
}

static double factor_at(const basin_gemm *g, const void *x, int64_t at) {
    if (g->precision != BASIN_GEMM_BF16) return ((const float *)x)[at];
    uint32_t bits = (uint32_t)((const uint16_t *)x)[at] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Where narrow, `value` loses its lower half. */
static void factor_set(const basin_gemm *g, const void *x, int64_t at, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (g->precision == BASIN_GEMM_BF16)
        ((uint16_t *)x)[at] = (uint16_t)(bits >> 16);
    else
        ((float *)x)[at] = value;
}

/* NULL where none is wanted, as plans have it. */
static void *workspace_new(const basin_gemm *g, int threads) {
    size_t bytes = basin_gemm_workspace(g, threads);
    if (bytes == 0) return NULL;
    void *memory = basin_aligned_new(bytes);
    assert_non_null(memory);
    return memory;
}

/* A problem with rows further apart than they need be, to catch a confusion of strides. */
static basin_gemm problem_new(int64_t batch, int64_t m, int64_t n, int64_t k, bool a_transposed,
                              bool b_transposed) {
    basin_gemm g = {.batch = batch, .m = m, .n = n, .k = k, .precision = precision};
    g.a_row = a_transposed ? 1 : k + 3;
    g.a_col = a_transposed ? m + 3 : 1;
    g.b_row = b_transposed ? 1 : n + 5;
    g.b_col = b_transposed ? k + 5 : 1;
    g.c_row = n + 2;
    g.a_batch = (m + 3) * (k + 3) + 7;
    g.b_batch = (n + 5) * (k + 5) + 7;
    g.c_batch = m * g.c_row + 7;
    g.a = factor_new(batch * g.a_batch);
    g.b = factor_new(batch * g.b_batch);
    g.c = floats_new(batch * g.c_batch);
    return g;
}

static void problem_free(basin_gemm *g) {
    free((void *)g->a);
    free((void *)g->b);
    free(g->c);
}

/* Compares C with the double sum, `before` being what C held where it accumulates. */
static void check(const basin_gemm *g, const float *c, const float *before) {
    for (int64_t i = 0; i < g->batch; i++)
        for (int64_t r = 0; r < g->m; r++)
            for (int64_t j = 0; j < g->n; j++) {
                int64_t at = i * g->c_batch + r * g->c_row + j;
                double sum = before ? before[at] : 0, size = fabs(sum);
                for (int64_t p = 0; p < g->k; p++) {
                    double term = factor_at(g, g->a, i * g->a_batch + r * g->a_row + p * g->a_col) *
                                  factor_at(g, g->b, i * g->b_batch + p * g->b_row + j * g->b_col);
                    sum += term;
                    size += fabs(term);
                }
                if (!(fabs(c[at] - sum) <= 3e-6 * size))
                    fail_msg(
                        "%s precision %d m %ld n %ld k %ld, C[%ld][%ld][%ld]: %.9g, expected %.9g",
                        basin_isa_name(basin_cpu_isa()), (int)g->precision, (long)g->m, (long)g->n,
                        (long)g->k, (long)i, (long)r, (long)j, (double)c[at], sum);
            }
}

/* Everything that is not C must be as it was. */
static void check_gaps(const basin_gemm *g, const float *before) {
    for (int64_t i = 0; i < g->batch * g->c_batch; i++) {
        int64_t in = i % g->c_batch;
        if (in >= g->m * g->c_row || in % g->c_row >= g->n) assert_true(g->c[i] == before[i]);
    }
}

typedef struct sink {
    float *out;
    int64_t row, batch;
} sink;

static void sink_add(void *context, const float *tile, int64_t tile_row, int64_t batch, int64_t row,
                     int64_t col, int64_t rows, int64_t cols) {
    const sink *s = context;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            s->out[batch * s->batch + (row + r) * s->row + col + j] += tile[r * tile_row + j];
}

/* One problem through every way there is to compute it; all must give the same bits. */
static void check_all(int64_t batch, int64_t m, int64_t n, int64_t k, bool a_transposed,
                      bool b_transposed) {
    static const int thread_counts[] = {1, 2, 3, 5};
    basin_gemm g = problem_new(batch, m, n, k, a_transposed, b_transposed);
    size_t bytes = (size_t)(batch * g.c_batch) * sizeof(float);
    float *before = floats_new(batch * g.c_batch), *first = floats_new(batch * g.c_batch);
    memcpy(before, g.c, bytes);
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++) {
        int threads = thread_counts[t];
        void *workspace = workspace_new(&g, threads);
        memcpy(g.c, before, bytes);
        basin_gemm_run(&g, threads, workspace);
        free(workspace);
        if (t == 0) {
            check(&g, g.c, NULL);
            check_gaps(&g, before);
            memcpy(first, g.c, bytes);
        }
        assert_memory_equal(g.c, first, bytes);

        basin_gemm with = g;
        sink s = {g.c, g.c_row, g.c_batch};
        memcpy(g.c, before, bytes);
        for (int64_t i = 0; i < batch * m; i++)
            memset(g.c + i / m * g.c_batch + i % m * g.c_row, 0, (size_t)n * sizeof(float));
        with.epilogue = sink_add;
        with.context = &s;
        if (batch == 1) {
            float *packed = basin_aligned_new(basin_gemm_packed_size(k, n, g.precision));
            assert_non_null(packed);
            basin_gemm_pack(packed, g.b, g.b_row, g.b_col, k, n, g.precision, threads);
            with.b_packed = packed;
        }
        workspace = workspace_new(&with, threads);
        basin_gemm_run(&with, threads, workspace);
        free(workspace);
        free((void *)with.b_packed);
        assert_memory_equal(g.c, first, bytes);
    }
    free(before);
    free(first);
    problem_free(&g);
}

static void check_serial(int64_t m, int64_t n, int64_t k, bool a_transposed, bool b_transposed) {
    precision = BASIN_GEMM_F32;
    BASIN_AT_EXIT(problem_free) basin_gemm g = problem_new(1, m, n, k, a_transposed, b_transposed);
    size_t bytes = (size_t)g.c_batch * sizeof(float);
    float *before = floats_new(g.c_batch);
    void *workspace = basin_aligned_new(basin_gemm_serial_workspace(m, n, k));
    assert_non_null(workspace);
    memcpy(before, g.c, bytes);
    basin_gemm_serial(g.c, g.c_row, g.a, g.a_row, g.a_col, g.b, g.b_row, g.b_col, m, n, k, true,
                      workspace);
    check(&g, g.c, before);
    check_gaps(&g, before);
    basin_gemm_serial(g.c, g.c_row, g.a, g.a_row, g.a_col, g.b, g.b_row, g.b_col, m, n, k, false,
                      workspace);
    check(&g, g.c, NULL);
    check_gaps(&g, before);
    free(workspace);
    free(before);
}

TEST(test_small_shapes) {
    for (int64_t m = 0; m <= 33; m += m < 4 ? 1 : 5)
        for (int64_t n = 0; n <= 67; n += n < 4 ? 1 : 7)
            for (int64_t k = 0; k <= 9; k++)
                FOR_PRECISIONS check_all(1 + (m + n + k) % 3, m, n, k, (m + k) % 2, (n + k) % 2);
}

TEST(test_random_shapes) {
    for (int i = 0; i < 60; i++) {
        int64_t m = 1 + draw() % 150, n = 1 + draw() % 150, k = 1 + draw() % 150;
        FOR_PRECISIONS check_all(1 + draw() % 2, m, n, k, draw() % 2, draw() % 2);
        check_serial(m, n, k, draw() % 2, draw() % 2);
    }
}

TEST(test_long_sums) {
    for (int i = 0; i < 4; i++) {
        FOR_PRECISIONS check_all(1, 30, 45, 2100, i & 1, i >> 1);
        check_serial(17, 33, 1500, i & 1, i >> 1);
    }
}

TEST(test_many_columns) { FOR_PRECISIONS check_all(1, 3, 1601, 1030, false, true); }

TEST(test_skinny_shapes) {
    static const int64_t shapes[][3] = {{1, 700, 300}, {700, 1, 300}, {1, 1, 5000},
                                        {900, 3, 3},   {3, 900, 1},   {2000, 31, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int turn = 0; turn < 4; turn++) {
            FOR_PRECISIONS check_all(1, shapes[i][0], shapes[i][1], shapes[i][2], turn & 1,
                                     turn >> 1);
            check_serial(shapes[i][0], shapes[i][1], shapes[i][2], turn & 1, turn >> 1);
        }
}

/* A row computed alone equals the same row computed among others: the place does not matter. */
TEST(test_row_alone) {
    precision = BASIN_GEMM_F32;
    BASIN_AT_EXIT(problem_free) basin_gemm g = problem_new(1, 50, 70, 1100, false, false);
    void *workspace = workspace_new(&g, 2);
    basin_gemm_run(&g, 2, workspace);
    float *row = floats_new(g.n);
    void *own = basin_aligned_new(basin_gemm_serial_workspace(1, g.n, g.k));
    assert_non_null(own);
    for (int64_t r = 0; r < g.m; r++) {
        basin_gemm_serial(row, g.n, (const float *)g.a + r * g.a_row, g.a_row, g.a_col, g.b,
                          g.b_row, g.b_col, 1, g.n, g.k, false, own);
        assert_memory_equal(row, g.c + r * g.c_row, (size_t)g.n * sizeof *row);
    }
    free(own);
    free(row);
    free(workspace);
}

/* Likewise a few rows, which kernels multiply by several panels at once. */
TEST(test_few_rows_alone) {
    precision = BASIN_GEMM_F32;
    for (int turn = 0; turn < 4; turn++) {
        BASIN_AT_EXIT(problem_free)
        basin_gemm g = problem_new(1, 50, 331, 300, turn & 1, turn >> 1);
        basin_gemm few = g;
        void *workspace = workspace_new(&g, 2);
        basin_gemm_run(&g, 2, workspace);
        few.c = floats_new(g.c_batch);
        for (few.m = 1; few.m <= 4; few.m++) {
            void *own = workspace_new(&few, 1);
            basin_gemm_run(&few, 1, own);
            free(own);
            for (int64_t r = 0; r < few.m; r++)
                assert_memory_equal(few.c + r * g.c_row, g.c + r * g.c_row,
                                    (size_t)g.n * sizeof(float));
        }
        free(few.c);
        free(workspace);
    }
}

/* An infinity or a NaN in a row of A shows in every element of that row of C, and nowhere else. */
TEST(test_not_finite) {
    uint32_t all_ones = UINT32_MAX;
    float bad[3] = {INFINITY, NAN, 0};
    memcpy(&bad[2], &all_ones, sizeof all_ones);
    for (int i = 0; i < 3; i++) FOR_PRECISIONS {
            basin_gemm g = problem_new(1, 40, 50, 70, i & 1, false);
            factor_set(&g, g.a, 17 * g.a_row + 33 * g.a_col, bad[i]);
            void *workspace = workspace_new(&g, 1);
            basin_gemm_run(&g, 1, workspace);
            for (int64_t r = 0; r < g.m; r++)
                for (int64_t j = 0; j < g.n; j++)
                    assert_int_equal(!isfinite(g.c[r * g.c_row + j]), r == 17);
            free(workspace);
            problem_free(&g);
        }
}

/* Accuracy is relative to the terms, whatever their size. */
TEST(test_scales) {
    static const float scales[][2] = {{1e-20F, 1e10F}, {1e-14F, 1e-15F}, {1e18F, 1e17F}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) FOR_PRECISIONS {
            basin_gemm g = problem_new(1, 33, 45, 130, true, false);
            for (int64_t l = 0; l < g.a_batch; l++)
                factor_set(&g, g.a, l, (float)factor_at(&g, g.a, l) * scales[i][0]);
            for (int64_t l = 0; l < g.b_batch; l++)
                factor_set(&g, g.b, l, (float)factor_at(&g, g.b, l) * scales[i][1]);
            void *workspace = workspace_new(&g, 2);
            basin_gemm_run(&g, 2, workspace);
            check(&g, g.c, NULL);
            free(workspace);
            problem_free(&g);
        }
}

TEST(test_isa_names) {
    const char *wanted = getenv("BASIN_ISA");
    assert_true(basin_isa_available(basin_cpu_isa()));
    for (int i = 0; i < BASIN_ISA_COUNT; i++)
        if (wanted && !strcmp(wanted, basin_isa_name((basin_isa)i)) &&
            basin_isa_available((basin_isa)i))
            assert_int_equal(basin_cpu_isa(), i);
}
