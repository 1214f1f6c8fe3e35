/* C = A B in blocks: a block of A [rows, k] and panels of B [k, cols] are packed to lie in the
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
    A_BLOCK = 160 * 1024, /* floats of A packed at a time, ... */
    A_PANELS = 16,        /* ... in so many panels at most */
    B_GROUP = 64 * 1024,  /* floats of B that a thread packs for itself at a time */
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
    int64_t b_group;                      /* panels of B packed at a time by one thread */
    int64_t a_floats, b_floats, c_floats; /* of one thread's workspace */
    int64_t shared_floats; /* all of B, packed by all threads before the product begins */
} plan;

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t minimum(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t maximum(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t align(int64_t floats) { return (floats + 15) / 16 * 16; }

/* Rows first; columns too where the rows are too few to go round or k has several blocks. */
static void plan_blocks(plan *p, const basin_gemm *g, int threads) {
    int64_t panel = maximum(p->k_step, 1) * p->kernel->mr;
    int64_t rows = maximum(1, minimum(A_PANELS, A_BLOCK / panel));
    int64_t share = divide_up(threads, g->batch);
    p->m_blocks = divide_up(divide_up(p->m_panels, rows), share) * share;
    p->m_blocks = minimum(p->m_blocks, p->m_panels);
    p->n_blocks = p->k_blocks > 1 ? divide_up(g->n, SUM_COLS) : 1;
    p->n_blocks = maximum(p->n_blocks, divide_up(share, p->m_blocks));
    p->n_blocks = minimum(p->n_blocks, p->n_panels);
}

static plan plan_make(const basin_gemm *g, int threads) {
    plan p = {.kernel = kernel_find()};
    int64_t mr = p.kernel->mr, nr = p.kernel->nr;
    p.k_blocks = maximum(1, divide_up(g->k, K_BLOCK));
    p.k_step = divide_up(g->k, p.k_blocks);
    p.m_panels = divide_up(g->m, mr);
    p.n_panels = divide_up(g->n, nr);
    if (g->batch == 0 || p.m_panels == 0 || p.n_panels == 0) return p;
    plan_blocks(&p, g, threads);
    int64_t block_rows = divide_up(p.m_panels, p.m_blocks) * mr;
    int64_t block_cols = divide_up(p.n_panels, p.n_blocks) * nr;
    p.a_floats = align(block_rows * p.k_step);
    if (g->epilogue) p.c_floats = align(p.k_blocks > 1 ? block_rows * block_cols : mr * nr);
    if (!g->b_packed && g->batch == 1 && p.m_blocks > 1 && g->k > 0) {
        p.shared_floats = align(p.n_panels * nr * g->k);
    } else if (!g->b_packed) {
        p.b_group = maximum(1, B_GROUP / maximum(1, p.k_step * nr));
        p.b_group = minimum(p.b_group, divide_up(p.n_panels, p.n_blocks));
        p.b_floats = align(p.b_group * nr * p.k_step);
    }
    return p;
}

/* One block of C and the memory its thread works in. */
typedef struct block {
    int64_t batch;
    int64_t m_first, m_last, n_first, n_last; /* panels */
    float *a, *b, *c;
} block;

/* The tiles under one panel of B, for one block of k. */
static void panel_run(const basin_gemm *g, const plan *p, const block *at, const float *b,
                      int64_t panel, int64_t k_block, int64_t k) {
    int64_t mr = p->kernel->mr, nr = p->kernel->nr, col = panel * nr;
    int cols = (int)minimum(nr, g->n - col);
    bool last = k_block + 1 == p->k_blocks;
    const float *next = b + nr * (g->b_packed ? g->k : k);
    for (int64_t i = at->m_first; i < at->m_last; i++) {
        const float *a = at->a + (i - at->m_first) * mr * k;
        int64_t row = i * mr;
        int rows = (int)minimum(mr, g->m - row);
        float *c = g->c ? g->c + at->batch * g->c_batch + row * g->c_row + col : at->c;
        basin_gemm_ahead ahead = {c, g->c_row, next + (i - at->m_first) * 4 * k};
        if (!g->epilogue) {
            p->kernel->tile(c, g->c_row, a, b, k, rows, cols, g->accumulate || k_block > 0, &ahead);
            continue;
        }
        float *sum = at->c;
        if (p->k_blocks > 1)
            sum += ((panel - at->n_first) * (at->m_last - at->m_first) + i - at->m_first) * mr * nr;
        p->kernel->tile(sum, nr, a, b, k, rows, cols, k_block > 0, &ahead);
        if (last) g->epilogue(g->context, sum, nr, at->batch, row, col, rows, cols);
    }
}

static void block_run(const basin_gemm *g, const plan *p, const block *at) {
    int64_t mr = p->kernel->mr, nr = p->kernel->nr, top = at->m_first * mr;
    const float *a = g->a + at->batch * g->a_batch + top * g->a_row;
    const float *b = g->b + at->batch * g->b_batch;
    int64_t rows = minimum(at->m_last * mr, g->m) - top;
    for (int64_t kb = 0; kb < p->k_blocks; kb++) {
        int64_t first = kb * p->k_step, k = minimum(p->k_step, g->k - first);
        basin_gemm_pack_panels(p->kernel, at->a, a + first * g->a_col, g->a_row, g->a_col, rows,
                               (int)mr, k);
        for (int64_t j = at->n_first; j < at->n_last; j++) {
            if (g->b_packed) {
                panel_run(g, p, at, g->b_packed + (j * g->k + first) * nr, j, kb, k);
                continue;
            }
            int64_t in_group = (j - at->n_first) % p->b_group;
            int64_t cols = minimum(minimum(j + p->b_group, at->n_last) * nr, g->n) - j * nr;
            if (in_group == 0)
                basin_gemm_pack_panels(p->kernel, at->b, b + first * g->b_row + j * nr * g->b_col,
                                       g->b_col, g->b_row, cols, (int)nr, k);
            panel_run(g, p, at, at->b + in_group * nr * k, j, kb, k);
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

static int64_t own_floats(const plan *p) { return p->a_floats + p->b_floats + p->c_floats; }

size_t basin_gemm_workspace(const basin_gemm *gemm, int threads) {
    plan p = plan_make(gemm, threads);
    return (size_t)(own_floats(&p) * threads + p.shared_floats) * sizeof(float);
}

/* Packs as many panels of B as lie side by side in a page or so: part `index` of `parts`. */
static void part_pack(float *packed, const basin_gemm_kernel *kernel, const float *b, int64_t b_row,
                      int64_t b_col, int64_t k, int64_t n, int64_t index, int64_t parts) {
    int64_t nr = kernel->nr, panels = divide_up(n, nr);
    int64_t first = index * panels / parts, last = (index + 1) * panels / parts;
    basin_gemm_pack_panels(kernel, packed + first * nr * k, b + first * nr * b_col, b_col, b_row,
                           minimum(last * nr, n) - first * nr, (int)nr, k);
}

static int64_t part_count(const basin_gemm_kernel *kernel, int64_t n, int threads) {
    int64_t panels = divide_up(n, kernel->nr), whole = divide_up(n, 512);
    return minimum(panels, divide_up(whole, threads) * threads);
}

void basin_gemm_run(const basin_gemm *gemm, int threads, void *workspace) {
    plan p = plan_make(gemm, threads);
    int64_t blocks = gemm->batch * p.m_blocks * p.n_blocks, floats = own_floats(&p);
    int64_t parts = part_count(p.kernel, gemm->n, threads);
    if (blocks == 0) return;
    int used = (int)minimum(threads, blocks);
    float *shared = (float *)workspace + floats * used;
    basin_gemm g = *gemm;
    if (p.shared_floats > 0) g.b_packed = shared;
#pragma omp parallel num_threads(used) if (used > 1)
    {
        float *own = (float *)workspace + floats * omp_get_thread_num();
        if (p.shared_floats > 0) {
#pragma omp for schedule(dynamic, 1)
            for (int64_t i = 0; i < parts; i++)
                part_pack(shared, p.kernel, g.b, g.b_row, g.b_col, g.k, g.n, i, parts);
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < blocks; i++) {
            block at = block_at(&p, i, own);
            block_run(&g, &p, &at);
        }
    }
}

size_t basin_gemm_packed_size(int64_t k, int64_t n) {
    int64_t nr = kernel_find()->nr;
    return (size_t)(divide_up(n, nr) * nr * k) * sizeof(float);
}

void basin_gemm_pack(float *packed, const float *b, int64_t b_row, int64_t b_col, int64_t k,
                     int64_t n, int threads) {
    const basin_gemm_kernel *kernel = kernel_find();
    int64_t parts = part_count(kernel, n, threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < parts; i++) part_pack(packed, kernel, b, b_row, b_col, k, n, i, parts);
}

size_t basin_gemm_serial_workspace(int64_t m, int64_t n, int64_t k) {
    basin_gemm g = {.batch = 1, .m = m, .n = n, .k = k};
    return basin_gemm_workspace(&g, 1);
}

void basin_gemm_serial(float *c, int64_t c_row, const float *a, int64_t a_row, int64_t a_col,
                       const float *b, int64_t b_row, int64_t b_col, int64_t m, int64_t n,
                       int64_t k, bool accumulate, void *workspace) {
    basin_gemm g = {.batch = 1, .m = m, .n = n, .k = k, .c = c, .c_row = c_row};
    g.a = a, g.a_row = a_row, g.a_col = a_col;
    g.b = b, g.b_row = b_row, g.b_col = b_col;
    g.accumulate = accumulate;
    plan p = plan_make(&g, 1);
    if (p.shared_floats > 0) {
        float *shared = (float *)workspace + own_floats(&p);
        part_pack(shared, p.kernel, b, b_row, b_col, k, n, 0, 1);
        g.b_packed = shared;
    }
    for (int64_t i = 0; i < p.m_blocks * p.n_blocks; i++) {
        block at = block_at(&p, i, workspace);
        block_run(&g, &p, &at);
    }
}
