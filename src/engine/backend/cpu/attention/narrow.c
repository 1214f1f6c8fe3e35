/* Attention of bfloat16 tokens, see attention.h. A task is a batch entry and a head, in blocks of
 * queries against all keys:
 *
 *     r = Q K'               c = A K' + Q B'          float, a block of [queries, keys]
 *     T <- beta t            G <- beta gs             row by row, rounded to bfloat16
 *     dQ = T K               dK += T' Q
 *     gQ = T B + G K         gK += T' A + G' Q
 *
 * Factors are packed as the matrix product's kernel reads them. Tasks are cut by shape only, so
 * that results do not depend on the number of threads. */
#include "engine/backend/cpu/attention/attention.h"

#include <math.h>

#include "base/sort.h"
#include "engine/backend/cpu/gemm/kernel.h"
#include "engine/backend/cpu/simd/simd.h"
#include "engine/backend/gemm.h"
#include "engine/core/team/team.h"

enum {
    SCORES = 65536, /* of one block of queries, at most, unless a row has more */
    NEAR = 8192,    /* of them computed at a time: they stay in the nearest cache */
};

typedef struct packing {
    float *rows;    /* rows of x as left factors: [tokens, Y] */
    float *columns; /* rows of x as columns: [Y, tokens] */
    float *sums;    /* x as a right factor: [tokens, Y] */
} packing;

/* What a thread works in. */
typedef struct room {
    packing q, k, a, b;
    float *r, *c;     /* [near, row] */
    uint16_t *t, *g;  /* [block, row] */
    float *t_panels;  /* of T or G, or of its transpose */
    float *query_sum; /* [mr, width] */
    float *key_sum;   /* [keys, width] */
    float *scratch;   /* [row] */
} room;

typedef struct job {
    const basin_attention *at;
    const uint16_t *q, *k, *a, *b; /* of `at`, bfloat16 */
    uint16_t *by_query, *by_key;   /* its out_query and out_key */
    const basin_attention_kernels *rows;
    const basin_gemm_kernel *kernel;
    const basin_simd *simd;
    basin_attention_mode mode;
    int64_t batch, queries, keys, heads, width, step;
    int64_t block;     /* queries at a time, */
    int64_t near;      /* and of these scored at a time */
    int64_t row, wide; /* keys and width, padded to whole panels */
    float *partial;    /* [tasks, ATTENTION_ALIGN] of dbeta */
} job;

static int64_t padded(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

bool basin_attention_narrow_fits(const basin_attention *at) {
    const basin_attention_pattern *p = &at->pattern;
    return !p->row && !at->scale && !at->mix && !at->out_scale && !at->out_mix && p->queries > 0 &&
           p->keys > 0;
}

static job job_of(const basin_attention *at) {
    const basin_attention_pattern *p = &at->pattern;
    const basin_gemm_kernel *kernel = basin_gemm_kernel_find(BASIN_GEMM_BF16);
    job j = {.at = at,
             .q = (const uint16_t *)at->q,
             .k = (const uint16_t *)at->k,
             .a = (const uint16_t *)at->a,
             .b = (const uint16_t *)at->b,
             .by_query = (uint16_t *)at->out_query,
             .by_key = (uint16_t *)at->out_key,
             .rows = basin_attention_kernels_find(),
             .kernel = kernel,
             .simd = basin_simd_select(),
             .mode = at->mode,
             .batch = p->batch,
             .queries = p->queries,
             .keys = p->keys,
             .heads = p->heads,
             .width = p->width,
             .step = p->heads * p->width};
    j.row = basin_int_max(padded(p->keys, kernel->nr), padded(p->keys, ATTENTION_ALIGN));
    j.row = padded(j.row, ATTENTION_ALIGN);
    j.wide = padded(p->width, kernel->nr);
    j.block = basin_int_max(kernel->mr, SCORES / basin_int_max(1, j.row) / kernel->mr * kernel->mr);
    j.block = basin_int_min(j.block, padded(p->queries, kernel->mr));
    j.near = basin_int_min(j.block, padded(basin_int_max(1, NEAR / j.row), kernel->mr));
    return j;
}

/* Floats of packed panels, whole ones. */
static int64_t panel_floats(const job *j, bool right, int64_t lanes, int64_t k) {
    return padded(lanes, right ? j->kernel->nr : j->kernel->mr) * padded(k, j->kernel->unit) / 2 +
           ATTENTION_ALIGN;
}

static void lay_out_queries(const job *j, packing *x, basin_arena *a, bool there) {
    x->rows = basin_arena_floats(a, there ? panel_floats(j, false, j->block, j->width) : 0);
    x->sums = basin_arena_floats(a, there ? panel_floats(j, true, j->width, j->block) : 0);
}

static void lay_out_keys(const job *j, packing *x, basin_arena *a, bool there) {
    x->columns = basin_arena_floats(a, there ? panel_floats(j, true, j->keys, j->width) : 0);
    x->sums = basin_arena_floats(a, there ? panel_floats(j, true, j->width, j->keys) : 0);
}

static room lay_out_room(const job *j, basin_arena *a) {
    bool reverse = j->mode == BASIN_ATTENTION_REVERSE;
    int64_t scores = j->near * j->row, rounded = (j->block * j->row + 1) / 2;
    room own;
    lay_out_queries(j, &own.q, a, true);
    lay_out_queries(j, &own.a, a, reverse);
    lay_out_keys(j, &own.k, a, true);
    lay_out_keys(j, &own.b, a, reverse);
    own.r = basin_arena_floats(a, scores);
    own.c = basin_arena_floats(a, reverse ? scores : 0);
    own.t = (uint16_t *)basin_arena_floats(a, rounded);
    own.g = (uint16_t *)basin_arena_floats(a, reverse ? rounded : 0);
    own.t_panels = basin_arena_floats(a, basin_int_max(panel_floats(j, false, j->block, j->keys),
                                                       panel_floats(j, false, j->keys, j->block)));
    own.query_sum = basin_arena_floats(a, j->kernel->mr * j->wide);
    own.key_sum = basin_arena_floats(a, padded(j->keys, j->kernel->mr) * j->wide);
    own.scratch = basin_arena_floats(a, j->row);
    return own;
}

/* C (+)= A B in whole tiles: rows x cols of C, as many steps of k. */
static void product(const job *j, float *c, int64_t c_row, const float *a, const float *b,
                    int64_t rows, int64_t cols, int64_t k, bool accumulate) {
    const basin_gemm_kernel *kernel = j->kernel;
    int64_t steps = padded(k, kernel->unit);
    basin_gemm_ahead ahead = {.b = b}; /* all is near */
    for (int64_t col = 0; col < cols; col += kernel->nr)
        for (int64_t row = 0; row < rows; row += kernel->mr) {
            float *to = c + row * c_row + col;
            kernel->tile(to, c_row, a + row * steps / 2, b + col * steps / 2, k, kernel->mr,
                         kernel->nr, accumulate, &ahead);
        }
}

/* A block of queries of one task. */
typedef struct span {
    int64_t task, batch, head, first, count;
} span;

/* Where a head of a token begins in [batch, tokens, H, Y]. */
static int64_t token(const job *j, int64_t batch, int64_t tokens, int64_t at, int64_t head) {
    return ((batch * tokens + at) * j->heads + head) * j->width;
}

static void pack(const job *j, bool right, float *to, const uint16_t *x, int64_t lane, int64_t step,
                 int64_t lanes, int64_t k) {
    j->kernel->pack(j->kernel, right, to, x, lane, step, lanes, k);
}

/* What a task's queries read of the keys. */
static void pack_keys(const job *j, const packing *to, const uint16_t *x, const span *s) {
    const uint16_t *from = x + token(j, s->batch, j->keys, 0, s->head);
    pack(j, true, to->columns, from, j->step, 1, j->keys, j->width);
    if (j->by_query) pack(j, true, to->sums, from, 1, j->step, j->width, j->keys);
}

static void pack_queries(const job *j, const packing *to, const uint16_t *x, const span *s) {
    const uint16_t *from = x + token(j, s->batch, j->queries, s->first, s->head);
    pack(j, false, to->rows, from, j->step, 1, s->count, j->width);
    if (j->by_key) pack(j, true, to->sums, from, 1, j->step, j->width, s->count);
}

/* r and c of `count` queries of the block, from number `first` on, a multiple of mr. */
static void scores(const job *j, const room *own, int64_t first, int64_t count) {
    int64_t at = first * padded(j->width, j->kernel->unit) / 2, keys = j->keys;
    product(j, own->r, j->row, own->q.rows + at, own->k.columns, count, keys, j->width, false);
    if (j->mode != BASIN_ATTENTION_REVERSE) return;
    if (j->a)
        product(j, own->c, j->row, own->a.rows + at, own->k.columns, count, keys, j->width, false);
    if (j->b)
        product(j, own->c, j->row, own->q.rows + at, own->b.columns, count, keys, j->width,
                j->a != NULL);
    if (!j->a && !j->b) memset(own->c, 0, (size_t)(count * j->row) * sizeof *own->c);
}

/* Query number i of the block, which is number `near` of the rows of r. */
static void score_row(const job *j, const room *own, const span *s, int64_t i, int64_t near) {
    const basin_attention *at = j->at;
    bool reverse = j->mode == BASIN_ATTENTION_REVERSE, value = j->mode == BASIN_ATTENTION_VALUE;
    int64_t node = (s->batch * j->queries + s->first + i) * j->heads + s->head;
    float state[3] = {0};
    basin_attention_row row = {
        .heads = 1,
        .pairs = basin_attention_keys(&j->at->pattern, s->first + i),
        .self = at->pattern.exclude_self && !at->pattern.causal ? s->first + i : -1,
        .beta = at->beta + s->head,
        .w = value ? NULL : at->w + node,
        .r = own->r + near * j->row,
        .c = reverse ? own->c + near * j->row : NULL,
        .t = own->t + i * j->row,
        .gs = own->g + i * j->row,
        .max = state,
        .total = state + 1,
        .gain = state + 2,
        .dbeta = at->out_beta ? j->partial + s->task * ATTENTION_ALIGN : NULL,
        .scratch = own->scratch,
    };
    j->rows->whole(&row);
    bool any = state[1] != 0;
    if (at->lse) at->lse[node] = any ? state[0] + logf(state[1]) : 0;
    if (at->gw) at->gw[node] = any ? state[2] / state[1] : 0;
    if (value) return;
    size_t unseen = (size_t)(j->keys - row.pairs) * sizeof *row.t;
    memset(row.t + row.pairs, 0, unseen);
    if (reverse) memset(row.gs + row.pairs, 0, unseen);
}

/* Rows of float sums into bfloat16 tokens. */
static void store_rows(const job *j, uint16_t *to, const float *sum, int64_t rows) {
    for (int64_t i = 0; i < rows; i++)
        j->simd->narrow(to + i * j->step, sum + i * j->wide, j->width);
}

/* by_query: T K, or T B + G K; panel by panel of queries. */
static void query_sums(const job *j, const room *own, const span *s) {
    int64_t mr = j->kernel->mr;
    bool reverse = j->mode == BASIN_ATTENTION_REVERSE;
    for (int64_t first = 0; first < s->count; first += mr) {
        int64_t count = basin_int_min(mr, s->count - first);
        bool begun = false;
        if (!reverse || j->b) {
            pack(j, false, own->t_panels, own->t + first * j->row, j->row, 1, count, j->keys);
            product(j, own->query_sum, j->wide, own->t_panels, reverse ? own->b.sums : own->k.sums,
                    count, j->width, j->keys, false);
            begun = true;
        }
        if (reverse) {
            pack(j, false, own->t_panels, own->g + first * j->row, j->row, 1, count, j->keys);
            product(j, own->query_sum, j->wide, own->t_panels, own->k.sums, count, j->width,
                    j->keys, begun);
        }
        int64_t at = token(j, s->batch, j->queries, s->first + first, s->head);
        store_rows(j, j->by_query + at, own->query_sum, count);
    }
}

/* by_key += T' Q, or T' A + G' Q. */
static void key_sums(const job *j, const room *own, const span *s) {
    bool reverse = j->mode == BASIN_ATTENTION_REVERSE, begun = s->first > 0;
    if (!reverse || j->a) {
        pack(j, false, own->t_panels, own->t, 1, j->row, j->keys, s->count);
        product(j, own->key_sum, j->wide, own->t_panels, reverse ? own->a.sums : own->q.sums,
                j->keys, j->width, s->count, begun);
        begun = true;
    }
    if (!reverse) return;
    pack(j, false, own->t_panels, own->g, 1, j->row, j->keys, s->count);
    product(j, own->key_sum, j->wide, own->t_panels, own->q.sums, j->keys, j->width, s->count,
            begun);
}

static void task_run(const job *j, const room *own, int64_t task) {
    span s = {.task = task, .batch = task / j->heads, .head = task % j->heads};
    memset(j->partial + task * ATTENTION_ALIGN, 0, ATTENTION_ALIGN * sizeof *j->partial);
    pack_keys(j, &own->k, j->k, &s);
    if (j->b) pack_keys(j, &own->b, j->b, &s);
    for (; s.first < j->queries; s.first += j->block) {
        s.count = basin_int_min(j->block, j->queries - s.first);
        pack_queries(j, &own->q, j->q, &s);
        if (j->a) pack_queries(j, &own->a, j->a, &s);
        for (int64_t first = 0; first < s.count; first += j->near) {
            int64_t count = basin_int_min(j->near, s.count - first);
            scores(j, own, first, count);
            for (int64_t i = 0; i < count; i++) score_row(j, own, &s, first + i, i);
        }
        if (j->by_query) query_sums(j, own, &s);
        if (j->by_key) key_sums(j, own, &s);
    }
    if (j->by_key)
        store_rows(j, j->by_key + token(j, s.batch, j->keys, 0, s.head), own->key_sum, j->keys);
}

/* dbeta: the tasks' shares in order. */
static void add_partials(const job *j) {
    float *dbeta = j->at->out_beta;
    if (!dbeta) return;
    memset(dbeta, 0, (size_t)j->heads * sizeof *dbeta);
    for (int64_t task = 0; task < j->batch * j->heads; task++)
        dbeta[task % j->heads] +=
            j->simd->sum(j->partial + task * ATTENTION_ALIGN, ATTENTION_ALIGN);
}

typedef struct sharing {
    const job *j;
    char *workspace;
    size_t begin, each; /* where rooms of threads lie */
} sharing;

static void tasks_run(const void *context, int64_t first, int64_t last) {
    int place = basin_parallel_place();
    const sharing *s = context;
    basin_arena own = {.base = s->workspace, .used = s->begin + s->each * (size_t)place};
    room mine = lay_out_room(s->j, &own);
    if (s->j->kernel->begin) s->j->kernel->begin();
    for (int64_t task = first; task < last; task++) task_run(s->j, &mine, task);
    if (s->j->kernel->end) s->j->kernel->end();
}

size_t basin_attention_narrow(const basin_attention *at, int threads, void *workspace) {
    job j = job_of(at);
    basin_arena a = {.base = workspace};
    j.partial = basin_arena_floats(&a, j.batch * j.heads * ATTENTION_ALIGN);
    sharing s = {&j, workspace, a.used, 0};
    lay_out_room(&j, &a);
    s.each = a.used - s.begin;
    if (workspace) {
        basin_parallel_for(tasks_run, &s, j.batch * j.heads, 1,
                           basin_attention_threads(at, threads));
        add_partials(&j);
    }
    return s.begin + s.each * (size_t)threads;
}
