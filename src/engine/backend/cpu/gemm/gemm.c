/* C = A B in blocks: a block of A [rows, k] and panels of B [k, cols] are packed to lie in the
 * second-level cache, for the tiles of kernel.h. k is cut into blocks whose sizes depend only on k
 * and whose sums are added in order. */

#include "engine/backend/gemm.h"
#include "base/sort.h"
#include "engine/backend/cpu/gemm/kernel.h"
#include "engine/backend/device.h"
#include "engine/core/team/team.h"

enum {
    K_BLOCK = 1024,      /* max steps of k between two sums, ... */
    K_LONG = 4096,       /* ... half as many where k is longer than this, ... */
    K_UNIT = 32,         /* ... and a multiple of this, which is one of every kernel's unit */
    A_ROWS = 256,        /* rows of A packed at a time, at most */
    B_GROUP = 64 * 1024, /* floats of B that a thread packs for itself at a time */
    BALANCE = 4,         /* blocks per thread, where another one costs no packing of A */
    SUM_COLS = 768,      /* columns summed at a time where k has several blocks */
    SMALLER = 4,         /* blocks in place of one where cores are not free */
    ENDS = 1024,         /* floats of tiles that go to the epilogue together */
    NEAR = 256,          /* columns of small factors, whose rows are not worth packing */
    LANES = 16,          /* multiply-adds at a time: small products are not worth a thread */
};

const basin_gemm_kernel *basin_gemm_kernel_find(basin_gemm_precision precision) {
#if defined(__x86_64__)
    if (precision == BASIN_GEMM_BF16)
        return basin_cpu_amx() ? &basin_gemm_kernel_narrow_amx : &basin_gemm_kernel_narrow_avx512;
#elif defined(__aarch64__)
    if (precision == BASIN_GEMM_BF16) return &basin_gemm_kernel_narrow_neon;
#else
    (void)precision;
#endif
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
    bool direct;                          /* A is read where it is, */
    bool columns;                         /* with its rows side by side */
    bool wide;                            /* likewise, a few rows; several panels of B at a time */
    int64_t ends;                         /* rows that go to the epilogue together */
    bool shared;                          /* all of B is packed before the product begins */
    int64_t b_group;                      /* else: panels of B that a thread packs at a time */
    int64_t a_floats, b_floats, c_floats; /* of one thread's workspace */
} plan;

static int64_t align(int64_t floats) { return (floats + 15) / 16 * 16; }

/* Floats that `lanes` lanes of k steps take when packed. */
static int64_t packed_floats(const basin_gemm_kernel *kernel, int64_t lanes, int64_t k) {
    return basin_int_ceil(k, kernel->unit) * kernel->unit * lanes * kernel->halves / 2;
}

/* Element `at` of a factor. */
static const void *number_at(const basin_gemm_kernel *kernel, const void *x, int64_t at) {
    return (const char *)x + at * (kernel->halves == 1 ? 2 : 4);
}

static int64_t b_panel(const basin_gemm_kernel *kernel, int64_t k) {
    return packed_floats(kernel, kernel->nr, k);
}

/* Rows first; columns too where the rows are too few to go round or k has several blocks. */
static void plan_blocks(plan *p, const basin_gemm *g, int threads) {
    int64_t panel = basin_int_max(1, packed_floats(p->kernel, p->kernel->mr, p->k_step));
    int64_t a_rows = p->kernel->a_rows ? p->kernel->a_rows : A_ROWS;
    int64_t max = basin_int_min(a_rows / p->kernel->mr, p->kernel->a_block / panel);
    int64_t share = basin_int_ceil(threads, g->batch);
    p->m_blocks = basin_int_ceil(basin_int_ceil(p->m_panels, basin_int_max(1, max)), share) * share;
    p->m_blocks = basin_int_min(p->m_blocks, p->m_panels);
    p->n_blocks = p->k_blocks > 1 ? basin_int_ceil(g->n, SUM_COLS) : 1;
    if (p->direct) share *= BALANCE;
    p->n_blocks = basin_int_max(p->n_blocks, basin_int_ceil(share, p->m_blocks));
    p->n_blocks = basin_int_min(p->n_blocks, p->n_panels);
}

static plan plan_make(const basin_gemm *g, int threads) {
    plan p = {.kernel = basin_gemm_kernel_find(g->precision)};
    int64_t mr = p.kernel->mr, nr = p.kernel->nr;
    p.k_blocks = basin_int_max(1, basin_int_ceil(g->k, g->k > K_LONG ? K_BLOCK / 2 : K_BLOCK));
    p.k_step = basin_int_ceil(basin_int_ceil(g->k, p.k_blocks), K_UNIT) * K_UNIT;
    p.m_panels = basin_int_ceil(g->m, mr);
    p.n_panels = basin_int_ceil(g->n, nr);
    if (g->batch == 0 || p.m_panels == 0 || p.n_panels == 0) return p;
    p.columns =
        p.kernel->tile_columns && g->a_row == 1 && g->m > 1 && basin_int_max(g->m, g->n) <= NEAR;
    bool there = p.kernel->tile_direct && (threads > 1 || !p.kernel->direct_shared);
    p.direct = p.columns || (there && g->a_col == 1 && g->k % p.kernel->unit == 0 &&
                             (!p.kernel->direct_k || g->k <= p.kernel->direct_k));
    p.wide = p.kernel->tile_wide && p.k_blocks == 1 && g->m * BASIN_GEMM_WIDE <= mr;
    plan_blocks(&p, g, threads);
    int64_t k = basin_int_min(p.k_step, g->k);
    int64_t block_rows = basin_int_ceil(p.m_panels, p.m_blocks) * mr;
    int64_t block_cols = basin_int_ceil(p.n_panels, p.n_blocks) * nr;
    p.a_floats = align(packed_floats(p.kernel, p.direct ? mr : block_rows, k));
    p.ends = basin_int_max(1, ENDS / (mr * nr)) * mr;
    if (g->epilogue) p.c_floats = align(p.k_blocks > 1 ? block_rows * block_cols : p.ends * nr);
    p.shared = !g->b_packed && g->batch == 1 && p.m_blocks > 1 && g->k > 0;
    if (!g->b_packed && !p.shared) {
        p.b_group = basin_int_max(1, B_GROUP / basin_int_max(1, b_panel(p.kernel, k)));
        p.b_group = basin_int_min(p.b_group, basin_int_ceil(p.n_panels, p.n_blocks));
        p.b_floats = align(p.b_group * b_panel(p.kernel, k));
    }
    return p;
}

/* One block of C and the memory its thread works in. */
typedef struct block {
    int64_t batch;
    int64_t m_first, m_last, n_first, n_last; /* panels */
    const void *rows;                         /* A from this block of rows and of k on */
    float *a, *b, *c;
} block;

/* Rows of the block's panel number i. */
static int rows_of(const basin_gemm *g, const plan *p, const block *at, int64_t i) {
    return (int)basin_int_min(p->kernel->mr, g->m - (at->m_first + i) * p->kernel->mr);
}

static bool is_direct(const plan *p, int rows) {
    return p->direct && (p->columns || rows % p->kernel->direct_rows == 0);
}

/* Panel i of A times a panel of B; where A is read in place, only a part of a panel is packed. */
static void tile_run(float *c, int64_t c_row, const basin_gemm *g, const plan *p, const block *at,
                     int64_t i, const float *a, const float *b, int64_t k, int rows, int cols,
                     bool accumulate, const basin_gemm_ahead *ahead) {
    const basin_gemm_kernel *kernel = p->kernel;
    if (is_direct(p, rows))
        (p->columns ? kernel->tile_columns : kernel->tile_direct)(
            c, c_row, number_at(kernel, at->rows, i * kernel->mr * g->a_row),
            p->columns ? g->a_col : g->a_row, b, k, rows, cols, accumulate, ahead);
    else
        kernel->tile(c, c_row, a, b, k, rows, cols, accumulate, ahead);
}

/* Packs the block's rows of A, or the panel of them that cannot be read where it is. */
static void rows_pack(const basin_gemm *g, const plan *p, const block *at, int64_t k) {
    const basin_gemm_kernel *kernel = p->kernel;
    int64_t last = at->m_last - at->m_first - 1, first = p->direct ? last * kernel->mr : 0;
    if (p->wide || is_direct(p, rows_of(g, p, at, last))) return;
    kernel->pack(kernel, false, at->a, number_at(kernel, at->rows, first * g->a_row), g->a_row,
                 g->a_col, last * kernel->mr + rows_of(g, p, at, last) - first, k);
}

/* The result tile, prefetched while it is summed: only in its last block of k. */
static basin_gemm_ahead ahead_of(const basin_gemm *g, int64_t batch, int64_t row, int64_t col,
                                 bool ends) {
    int64_t size = g->c_narrow ? 2 : 4, at = batch * g->c_batch + row * g->c_row + col;
    return (basin_gemm_ahead){.c = ends && g->c ? (const char *)g->c + at * size : NULL,
                              .c_row = g->c_row * size,
                              .c_narrow = g->c_narrow};
}

/* The tiles under one panel of B, for one block of k. */
static void panel_run(const basin_gemm *g, const plan *p, const block *at, const float *b,
                      int64_t panel, int64_t k_block, int64_t k) {
    int64_t mr = p->kernel->mr, nr = p->kernel->nr, col = panel * nr;
    int64_t count = at->m_last - at->m_first;
    int cols = (int)basin_int_min(nr, g->n - col);
    bool last = k_block + 1 == p->k_blocks;
    int pieces = (int)basin_int_min(8, count); /* of the next panel, each fetched beside a tile */
    const float *next = b + b_panel(p->kernel, g->b_packed ? g->k : k), *a = at->a;
    bool there = g->b_packed && panel + 1 < at->n_last; /* else it is in the cache, or none */
    int64_t piece = b_panel(p->kernel, k) / pieces;
    int64_t a_panel = p->direct ? 0 : packed_floats(p->kernel, mr, k);
    float *sum = at->c; /* of the first tile that has not gone to the epilogue */
    if (p->k_blocks > 1) sum += (panel - at->n_first) * count * mr * nr;
    for (int64_t i = 0, waiting = 0; i < count; i++, a += a_panel) {
        int64_t row = (at->m_first + i) * mr;
        int rows = rows_of(g, p, at, i);
        basin_gemm_ahead ahead = ahead_of(g, at->batch, row, col, last || !g->epilogue);
        ahead.b = there && i < pieces ? next + i * piece : b;
        ahead.b_pieces = pieces;
        if (!g->epilogue) {
            float *c = g->c + at->batch * g->c_batch + row * g->c_row + col;
            tile_run(c, g->c_row, g, p, at, i, a, b, k, rows, cols, g->accumulate || k_block > 0,
                     &ahead);
            continue;
        }
        tile_run(sum + waiting * nr, nr, g, p, at, i, a, b, k, rows, cols, k_block > 0, &ahead);
        waiting += rows;
        if (waiting < p->ends && i + 1 < count) continue;
        if (last)
            g->epilogue(g->context, sum, nr, at->batch, row + rows - waiting, col, waiting, cols);
        if (p->k_blocks > 1) sum += waiting * nr;
        waiting = 0;
    }
}

/* Some of the `left` panels of B from `panel` on, which lie `apart`; returns how many. */
static int wide_run(const basin_gemm *g, const plan *p, const block *at, const float *b,
                    int64_t apart, int64_t panel, int64_t left) {
    float whole[16 * 32]; /* the largest tile of all kernels that have tile_wide */
    int panels = left >= BASIN_GEMM_WIDE ? BASIN_GEMM_WIDE : left > 1 ? 2 : 1, rows = (int)g->m;
    int64_t col = panel * p->kernel->nr, width = panels * p->kernel->nr;
    int cols = (int)basin_int_min(width, g->n - col);
    p->kernel->tile_wide(whole, at->rows, g->a_row, g->a_col, b, apart, g->k, rows, panels);
    if (g->epilogue)
        g->epilogue(g->context, whole, width, at->batch, 0, col, rows, cols);
    else
        basin_gemm_tile_copy(g->c + at->batch * g->c_batch + col, g->c_row, whole, width, rows,
                             cols, g->accumulate);
    return panels;
}

static void block_run(const basin_gemm *g, const plan *p, block *at) {
    const basin_gemm_kernel *kernel = p->kernel;
    int64_t nr = kernel->nr, top = at->m_first * kernel->mr;
    const void *a = number_at(kernel, g->a, at->batch * g->a_batch + top * g->a_row);
    const void *b = number_at(kernel, g->b, at->batch * g->b_batch);
    for (int64_t kb = 0; kb < p->k_blocks; kb++) {
        int64_t first = kb * p->k_step,
                k = basin_int_max(0, basin_int_min(p->k_step, g->k - first));
        at->rows = number_at(kernel, a, first * g->a_col);
        rows_pack(g, p, at, k);
        for (int64_t j = at->n_first, panels = 1; j < at->n_last; j += panels) {
            const float *panel = at->b;
            int64_t left = at->n_last - j;
            if (g->b_packed) {
                panel = g->b_packed + j * b_panel(kernel, g->k) + b_panel(kernel, first);
            } else {
                int64_t in_group = (j - at->n_first) % p->b_group;
                left = basin_int_min(left, p->b_group - in_group);
                if (in_group == 0)
                    kernel->pack(kernel, true, at->b,
                                 number_at(kernel, b, first * g->b_row + j * nr * g->b_col),
                                 g->b_col, g->b_row, basin_int_min((j + left) * nr, g->n) - j * nr,
                                 k);
                panel += in_group * b_panel(kernel, k);
            }
            if (p->wide)
                panels = wide_run(g, p, at, panel, b_panel(kernel, k), j, left);
            else
                panel_run(g, p, at, panel, j, kb, k);
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

static int64_t all_b_floats(const basin_gemm_kernel *kernel, int64_t k, int64_t n) {
    return basin_int_ceil(n, kernel->nr) * b_panel(kernel, k);
}

size_t basin_gemm_workspace(const basin_gemm *gemm, int threads) {
    plan p = plan_make(gemm, threads);
    int64_t floats = own_floats(&p) * threads;
    if (p.shared) floats += all_b_floats(p.kernel, gemm->k, gemm->n);
    return (size_t)floats * sizeof(float);
}

/* Part `index` of `parts` of B. */
static void part_pack(float *packed, const basin_gemm_kernel *kernel, const void *b, int64_t b_row,
                      int64_t b_col, int64_t k, int64_t n, int64_t index, int64_t parts) {
    int64_t nr = kernel->nr, panels = basin_int_ceil(n, nr);
    int64_t first = index * panels / parts, last = (index + 1) * panels / parts;
    kernel->pack(kernel, true, packed + first * b_panel(kernel, k),
                 number_at(kernel, b, first * nr * b_col), b_col, b_row,
                 basin_int_min(last * nr, n) - first * nr, k);
}

/* Parts of some hundred columns, which lie side by side in a page or so. */
static int64_t part_count(const basin_gemm_kernel *kernel, int64_t n, int threads) {
    int64_t panels = basin_int_ceil(n, kernel->nr), whole = basin_int_ceil(n, 512);
    return basin_int_min(panels, basin_int_ceil(whole, threads) * threads);
}

/* A factor B that is being packed, in parts. */
typedef struct packing {
    const basin_gemm_kernel *kernel;
    float *packed;
    const float *b;
    int64_t b_row, b_col, k, n;
    int64_t parts;
} packing;

static void pack_parts(const void *context, int64_t first, int64_t last) {
    const packing *p = context;
    for (int64_t i = first; i < last; i++)
        part_pack(p->packed, p->kernel, p->b, p->b_row, p->b_col, p->k, p->n, i, p->parts);
}

static void pack_all(packing p, int threads) {
    p.parts = part_count(p.kernel, p.n, threads);
    basin_parallel_for(pack_parts, &p, p.parts, 1, threads);
}

/* A product that is being computed, in blocks. */
typedef struct product {
    basin_gemm gemm;
    plan plan;
    float *own; /* [threads, own_floats] */
} product;

static void run_blocks(const void *context, int64_t first, int64_t last) {
    int place = basin_parallel_place();
    const product *p = context;
    const basin_gemm_kernel *kernel = p->plan.kernel;
    if (kernel->begin) kernel->begin();
    for (int64_t i = first; i < last; i++) {
        block at = block_at(&p->plan, i, p->own + own_floats(&p->plan) * place);
        block_run(&p->gemm, &p->plan, &at);
    }
    if (kernel->end) kernel->end();
}

/* Fewer rows at a time than the workspace has room for. */
static void cut_smaller(plan *p) {
    if (p->m_blocks > 1) p->m_blocks = basin_int_min(p->m_blocks * SMALLER, p->m_panels);
}

void basin_gemm_run(const basin_gemm *gemm, int threads, void *workspace) {
    product p = {*gemm, plan_make(gemm, threads), workspace};
    if (threads > 1 && basin_team_contended()) cut_smaller(&p.plan);
    const basin_gemm *g = gemm;
    int64_t blocks = g->batch * p.plan.m_blocks * p.plan.n_blocks;
    int used = (int)basin_int_min(threads, blocks);
    float *shared = p.own + own_floats(&p.plan) * used;
    int team = basin_parallel_size(used, g->batch * g->m * g->n * g->k / LANES);
    if (used == 0) return;
    if (p.plan.shared) {
        packing b = {p.plan.kernel, shared, g->b, g->b_row, g->b_col, g->k, g->n, 0};
        pack_all(b, team);
        p.gemm.b_packed = shared;
    }
    basin_parallel_for(run_blocks, &p, blocks, 1, team);
}

size_t basin_gemm_packed_size(int64_t k, int64_t n, basin_gemm_precision precision) {
    return (size_t)all_b_floats(basin_gemm_kernel_find(precision), k, n) * sizeof(float);
}

void basin_gemm_pack(float *packed, const void *b, int64_t b_row, int64_t b_col, int64_t k,
                     int64_t n, basin_gemm_precision precision, int threads) {
    packing p = {basin_gemm_kernel_find(precision), packed, b, b_row, b_col, k, n, 0};
    pack_all(p, threads);
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
    basin_gemm_run(&g, 1, workspace);
}

/* Packing of panels: a copy where lanes are neighbours in memory, a transpose where steps are. */

#define INLINE static inline __attribute__((always_inline))

typedef float vector __attribute__((vector_size(16)));

INLINE vector load(const float *from) {
    vector value;
    memcpy(&value, from, sizeof value);
    return value;
}

INLINE void store(float *to, vector value) { memcpy(to, &value, sizeof value); }

/* to[i * width + j] = from[j * lane + i] for i, j < 4. */
INLINE void transpose(float *to, const float *from, int64_t lane, int width) {
    vector r0 = load(from), r1 = load(from + lane);
    vector r2 = load(from + 2 * lane), r3 = load(from + 3 * lane);
    vector low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
    vector low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
    vector high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
    vector high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    store(to, __builtin_shufflevector(low01, low23, 0, 1, 4, 5));
    store(to + width, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
    store(to + 2 * width, __builtin_shufflevector(high01, high23, 0, 1, 4, 5));
    store(to + 3 * width, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
}

void basin_gemm_panel_turn(float *panel, const float *x, int64_t lane, int width, int64_t k) {
    int64_t p = 0;
    for (; p + 4 <= k; p += 4)
        for (int l = 0; l < width; l += 4)
            transpose(panel + p * width + l, x + p + l * lane, lane, width);
    for (; p < k; p++)
        for (int l = 0; l < width; l++) panel[p * width + l] = x[l * lane + p];
}

/* Eight steps of all panels, then the next eight: few pages. `width` is a constant inlined. */
INLINE void copy_fixed(float *panels, const float *x, int64_t step, int64_t count, int width,
                       int64_t k) {
    for (int64_t first = 0; first < k; first += 8)
        for (int64_t i = 0; i < count; i++)
            for (int64_t p = first; p < first + 8 && p < k; p++)
                memcpy(panels + (i * k + p) * width, x + p * step + i * width,
                       (size_t)width * sizeof *x);
}

static void copy(float *panels, const float *x, int64_t step, int64_t count, int width, int64_t k) {
    switch (width) {
    case 4: copy_fixed(panels, x, step, count, 4, k); break;
    case 6: copy_fixed(panels, x, step, count, 6, k); break;
    case 8: copy_fixed(panels, x, step, count, 8, k); break;
    case 12: copy_fixed(panels, x, step, count, 12, k); break;
    case 16: copy_fixed(panels, x, step, count, 16, k); break;
    case 14: copy_fixed(panels, x, step, count, 14, k); break;
    case 32: copy_fixed(panels, x, step, count, 32, k); break;
    default: copy_fixed(panels, x, step, count, width, k); break;
    }
}

static void pack_any(float *panel, const float *x, int64_t lane, int64_t step, int64_t lanes,
                     int width, int64_t k) {
    for (int64_t p = 0; p < k; p++, panel += width) {
        for (int64_t l = 0; l < lanes; l++) panel[l] = x[l * lane + p * step];
        for (int64_t l = lanes; l < width; l++) panel[l] = 0.0F;
    }
}

void basin_gemm_panels_pack(const basin_gemm_kernel *kernel, bool right, float *panels,
                            const void *numbers, int64_t lane, int64_t step, int64_t lanes,
                            int64_t k) {
    const float *x = numbers;
    int width = right ? kernel->nr : kernel->mr;
    int64_t full = lane == 1 || step == 1 ? lanes / width : 0;
    if (lane == 1)
        copy(panels, x, step, full, width, k);
    else
        for (int64_t i = 0; i < full; i++)
            kernel->turn(panels + i * width * k, x + i * width * lane, lane, width, k);
    for (int64_t i = full; i * width < lanes; i++) {
        int64_t left = lanes - i * width;
        pack_any(panels + i * width * k, x + i * width * lane, lane, step,
                 left < width ? left : width, width, k);
    }
}

/* Packing of bfloat16 panels for kernels that multiply a few neighbouring steps of k at once:
 * panel[(u * width + l) * unit + i] is step u * unit + i of lane l, zero where there is none. */

/* A full panel of lanes whose steps lie side by side, whole units of them. `unit` is a constant
 * inlined. Two lanes by two units of eight bytes at a time: four loads and stores of sixteen. */
INLINE void pack_along(uint16_t *panel, const uint16_t *x, int64_t lane, int width, int unit,
                       int64_t k) {
    typedef uint64_t pair __attribute__((vector_size(16)));
    int64_t p = 0;
    for (; unit == 4 && width % 2 == 0 && p + 8 <= k; p += 8, panel += 8 * width)
        for (int l = 0; l < width; l += 2) {
            pair one, two;
            memcpy(&one, x + l * lane + p, sizeof one);
            memcpy(&two, x + (l + 1) * lane + p, sizeof two);
            pair low = __builtin_shufflevector(one, two, 0, 2);
            pair high = __builtin_shufflevector(one, two, 1, 3);
            memcpy(panel + 4 * l, &low, sizeof low);
            memcpy(panel + 4 * (width + l), &high, sizeof high);
        }
    for (; p < k; p += unit)
        for (int l = 0; l < width; l++, panel += unit)
            memcpy(panel, x + l * lane + p, (size_t)unit * sizeof *x);
}

/* Eight lanes side by side, four steps. */
INLINE void pack_square(uint16_t *panel, const uint16_t *x, int64_t step) {
    typedef uint16_t halves __attribute__((vector_size(16)));
    typedef uint32_t words __attribute__((vector_size(16)));
    halves r[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) memcpy(&r[i], x + i * step, sizeof *r);
    words low01 = (words)__builtin_shufflevector(r[0], r[1], 0, 8, 1, 9, 2, 10, 3, 11);
    words low23 = (words)__builtin_shufflevector(r[2], r[3], 0, 8, 1, 9, 2, 10, 3, 11);
    words high01 = (words)__builtin_shufflevector(r[0], r[1], 4, 12, 5, 13, 6, 14, 7, 15);
    words high23 = (words)__builtin_shufflevector(r[2], r[3], 4, 12, 5, 13, 6, 14, 7, 15);
    words out[4] = {__builtin_shufflevector(low01, low23, 0, 4, 1, 5),
                    __builtin_shufflevector(low01, low23, 2, 6, 3, 7),
                    __builtin_shufflevector(high01, high23, 0, 4, 1, 5),
                    __builtin_shufflevector(high01, high23, 2, 6, 3, 7)};
    memcpy(panel, out, sizeof out);
}

/* A full panel of lanes that lie side by side. */
static void pack_beside(uint16_t *panel, const uint16_t *x, int64_t step, int width, int unit,
                        int64_t k) {
    int64_t p = 0;
    for (; width >= 8 && unit == 4 && p + 4 <= k; p += 4, panel += 4 * width)
        for (int l = 0; l < width; l += 8) { /* the last eight may overlap those before */
            int at = l + 8 <= width ? l : width - 8;
            pack_square(panel + 4 * at, x + p * step + at, step);
        }
    for (; p < k; p += unit, panel += width * unit)
        for (int i = 0; i < unit; i++) {
            const uint16_t *from = x + (p + i) * step;
            bool there = p + i < k;
            for (int l = 0; l < width; l++) panel[l * unit + i] = there ? from[l] : 0;
        }
}

static void pack_narrow_pack_any(uint16_t *panel, const uint16_t *x, int64_t lane, int64_t step,
                                 int64_t lanes, int width, int unit, int64_t k) {
    for (int64_t p = 0; p < k; p += unit)
        for (int64_t l = 0; l < width; l++, panel += unit)
            for (int i = 0; i < unit; i++)
                panel[i] = l < lanes && p + i < k ? x[l * lane + (p + i) * step] : 0;
}

void basin_gemm_narrow_pack(const basin_gemm_kernel *kernel, bool right, float *panels,
                            const void *numbers, int64_t lane, int64_t step, int64_t lanes,
                            int64_t k) {
    const uint16_t *x = numbers;
    int width = right ? kernel->nr : kernel->mr, unit = kernel->unit;
    uint16_t *panel = (uint16_t *)panels;
    int64_t size = (k + unit - 1) / unit * unit * width;
    for (int64_t first = 0; first < lanes; first += width, panel += size) {
        if (lane == 1 && lanes - first >= width)
            pack_beside(panel, x + first, step, width, unit, k);
        else if (step == 1 && lanes - first >= width && unit == 4 && k % 4 == 0)
            pack_along(panel, x + first * lane, lane, width, 4, k);
        else if (step == 1 && lanes - first >= width && unit == 2 && k % 2 == 0)
            pack_along(panel, x + first * lane, lane, width, 2, k);
        else
            pack_narrow_pack_any(panel, x + first * lane, lane, step, lanes - first, width, unit,
                                 k);
    }
}

/* ---- The 4 x 8 tile of the matrix product in the compiler's vectors, for any processor ---- */

enum { MR = 4, NR = 8 };

static void tile(float *c, int64_t c_row, const float *a, const float *b, int64_t k, int rows,
                 int cols, bool accumulate, const basin_gemm_ahead *ahead) {
    (void)ahead;
    vector sum[MR][2] = {{{0}}};
    for (int64_t p = 0; p < k; p++, a += MR, b += NR) {
        vector b0 = load(b), b1 = load(b + 4);
#pragma GCC unroll 4
        for (int r = 0; r < MR; r++) {
            sum[r][0] += a[r] * b0;
            sum[r][1] += a[r] * b1;
        }
    }
    float whole[MR * NR];
    memcpy(whole, sum, sizeof whole);
    basin_gemm_tile_copy(c, c_row, whole, NR, rows, cols, accumulate);
}

const basin_gemm_kernel basin_gemm_kernel_portable =
    BASIN_GEMM_KERNEL(1, 2, 48, basin_gemm_panels_pack, .turn = basin_gemm_panel_turn);
