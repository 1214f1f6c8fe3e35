/* C = A B in blocks: a block of A [rows, k] and a strip of B [k, cols] are packed to lie in the
 * second-level cache, and the tiles of gemm_kernel.h are taken from them. k is cut into blocks
 * whose sums are added in order; the cut depends on k alone, so the numbers do not depend on the
 * rest. */
#include "backend/cpu/gemm.h"

#include <omp.h>

#include "backend/cpu/gemm_kernel.h"
#include "backend/cpu/gemm_pack.h"
#include "backend/cpu/isa.h"

enum {
    K_BLOCK = 1024,       /* at most so many steps of k between two sums */
    A_BLOCK = 160 * 1024, /* floats of A packed at a time */
    SUM_COLS = 768,       /* columns summed at a time where k has several blocks */
};

static const basin_gemm_kernel *kernel_find(void) {
    switch (basin_cpu_isa()) {
#if defined(__x86_64__)
    case BASIN_ISA_AVX2: return &basin_gemm_kernel_avx2;
    case BASIN_ISA_AVX512: return &basin_gemm_kernel_avx512;
#elif defined(__aarch64__)
    case BASIN_ISA_NEON: return &basin_gemm_kernel_neon;
#endif
    default: return &basin_gemm_kernel_portable;
    }
}

/* How a product is cut. Blocks are counted in panels: mr rows of A, nr columns of B. */
typedef struct plan {
    const basin_gemm_kernel *kernel;
    int64_t k_blocks, k_step;
    int64_t m_panels, n_panels;
    int64_t m_blocks, n_blocks;
    int64_t a_floats, b_floats, c_floats; /* of one thread's workspace */
} plan;

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t minimum(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t align(int64_t floats) { return (floats + 15) / 16 * 16; }

static int64_t blocks_round(int64_t blocks, int64_t panels, int64_t threads) {
    return minimum(divide_up(blocks, threads) * threads, panels);
}

static plan plan_make(const basin_gemm *g, int threads) {
    plan p = {.kernel = kernel_find()};
    int64_t mr = p.kernel->mr, nr = p.kernel->nr;
    p.k_blocks = g->k > 0 ? divide_up(g->k, K_BLOCK) : 1;
    p.k_step = divide_up(g->k, p.k_blocks);
    p.m_panels = divide_up(g->m, mr);
    p.n_panels = divide_up(g->n, nr);
    if (g->batch == 0 || p.m_panels == 0 || p.n_panels == 0) return p;
    int64_t rows = p.k_step > 0 ? A_BLOCK / (p.k_step * mr) : p.m_panels;
    int64_t split = g->batch >= threads ? 1 : divide_up(threads, g->batch);
    p.m_blocks = blocks_round(divide_up(p.m_panels, rows > 0 ? rows : 1), p.m_panels, split);
    p.n_blocks = p.k_blocks > 1 ? divide_up(g->n, SUM_COLS) : 1;
    if (p.m_blocks * p.n_blocks < split)
        p.n_blocks = minimum(divide_up(split, p.m_blocks), p.n_panels);
    int64_t block_rows = divide_up(p.m_panels, p.m_blocks) * mr;
    int64_t block_cols = divide_up(p.n_panels, p.n_blocks) * nr;
    p.a_floats = align(block_rows * p.k_step);
    p.b_floats = g->b_packed ? 0 : align(nr * p.k_step);
    if (g->epilogue) p.c_floats = align(p.k_blocks > 1 ? block_rows * block_cols : mr * nr);
    return p;
}

/* One block of C and the memory its thread works in. */
typedef struct block {
    int64_t batch;
    int64_t m_first, m_last, n_first, n_last; /* panels */
    float *a, *b, *c;
} block;

/* The tiles of one strip of B, for one block of k. */
static void strip_run(const basin_gemm *g, const plan *p, const block *at, const float *b,
                      int64_t panel, int64_t k_block, int64_t k) {
    int64_t mr = p->kernel->mr, nr = p->kernel->nr, col = panel * nr;
    int cols = (int)minimum(nr, g->n - col);
    bool last = k_block + 1 == p->k_blocks;
    for (int64_t i = at->m_first; i < at->m_last; i++) {
        const float *a = at->a + (i - at->m_first) * mr * k;
        int64_t row = i * mr;
        int rows = (int)minimum(mr, g->m - row);
        if (!g->epilogue) {
            float *c = g->c + at->batch * g->c_batch + row * g->c_row + col;
            p->kernel->tile(c, g->c_row, a, b, k, rows, cols, g->accumulate || k_block > 0);
            continue;
        }
        float *c = at->c;
        if (p->k_blocks > 1)
            c += ((panel - at->n_first) * (at->m_last - at->m_first) + i - at->m_first) * mr * nr;
        p->kernel->tile(c, nr, a, b, k, rows, cols, k_block > 0);
        if (last) g->epilogue(g->context, c, nr, at->batch, row, col, rows, cols);
    }
}

static void block_run(const basin_gemm *g, const plan *p, const block *at) {
    int64_t mr = p->kernel->mr, nr = p->kernel->nr;
    const float *a = g->a + at->batch * g->a_batch, *b = g->b + at->batch * g->b_batch;
    for (int64_t kb = 0; kb < p->k_blocks; kb++) {
        int64_t first = kb * p->k_step, k = minimum(p->k_step, g->k - first);
        for (int64_t i = at->m_first; i < at->m_last; i++)
            basin_gemm_pack_panel(at->a + (i - at->m_first) * mr * k,
                                  a + i * mr * g->a_row + first * g->a_col, g->a_row, g->a_col,
                                  (int)minimum(mr, g->m - i * mr), (int)mr, k);
        for (int64_t j = at->n_first; j < at->n_last; j++) {
            const float *strip = at->b;
            if (g->b_packed)
                strip = g->b_packed + (j * g->k + first) * nr;
            else
                basin_gemm_pack_panel(at->b, b + first * g->b_row + j * nr * g->b_col, g->b_col,
                                      g->b_row, (int)minimum(nr, g->n - j * nr), (int)nr, k);
            strip_run(g, p, at, strip, j, kb, k);
        }
    }
}

/* Block number `index`, with the columns of one row block following each other. */
static block block_at(const plan *p, int64_t index, float *workspace) {
    int64_t n = index % p->n_blocks, m = index / p->n_blocks % p->m_blocks;
    block at = {.batch = index / p->n_blocks / p->m_blocks, .a = workspace};
    at.b = at.a + p->a_floats;
    at.c = at.b + p->b_floats;
    at.m_first = m * p->m_panels / p->m_blocks;
    at.m_last = (m + 1) * p->m_panels / p->m_blocks;
    at.n_first = n * p->n_panels / p->n_blocks;
    at.n_last = (n + 1) * p->n_panels / p->n_blocks;
    return at;
}

static int64_t plan_floats(const plan *p) { return p->a_floats + p->b_floats + p->c_floats; }

size_t basin_gemm_workspace(const basin_gemm *gemm, int threads) {
    plan p = plan_make(gemm, threads);
    return (size_t)plan_floats(&p) * sizeof(float) * (size_t)threads;
}

void basin_gemm_run(const basin_gemm *gemm, int threads, void *workspace) {
    plan p = plan_make(gemm, threads);
    int64_t blocks = gemm->batch * p.m_blocks * p.n_blocks, floats = plan_floats(&p);
    int used = (int)minimum(threads, blocks);
    if (blocks == 0) return;
#pragma omp parallel num_threads(used) if (used > 1)
    {
        float *own = (float *)workspace + floats * omp_get_thread_num();
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < blocks; i++) {
            block at = block_at(&p, i, own);
            block_run(gemm, &p, &at);
        }
    }
}

size_t basin_gemm_packed_size(int64_t k, int64_t n) {
    int64_t nr = kernel_find()->nr;
    return (size_t)(divide_up(n, nr) * nr * k) * sizeof(float);
}

void basin_gemm_pack(float *packed, const float *b, int64_t b_row, int64_t b_col, int64_t k,
                     int64_t n, int threads) {
    int64_t nr = kernel_find()->nr, panels = divide_up(n, nr);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t j = 0; j < panels; j++)
        basin_gemm_pack_panel(packed + j * nr * k, b + j * nr * b_col, b_col, b_row,
                              (int)minimum(nr, n - j * nr), (int)nr, k);
}

size_t basin_gemm_serial_workspace(int64_t m, int64_t n, int64_t k) {
    basin_gemm g = {.batch = 1, .m = m, .n = n, .k = k};
    return basin_gemm_workspace(&g, 1);
}

void basin_gemm_serial(float *c, int64_t c_row, const float *a, int64_t a_row, int64_t a_col,
                       const float *b, int64_t b_row, int64_t b_col, int64_t m, int64_t n,
                       int64_t k, bool accumulate, void *workspace) {
    basin_gemm g = {.batch = 1,
                    .m = m,
                    .n = n,
                    .k = k,
                    .a = a,
                    .a_row = a_row,
                    .a_col = a_col,
                    .b = b,
                    .b_row = b_row,
                    .b_col = b_col,
                    .c = c,
                    .c_row = c_row,
                    .accumulate = accumulate};
    plan p = plan_make(&g, 1);
    for (int64_t i = 0; i < p.m_blocks * p.n_blocks; i++) {
        block at = block_at(&p, i, workspace);
        block_run(&g, &p, &at);
    }
}
