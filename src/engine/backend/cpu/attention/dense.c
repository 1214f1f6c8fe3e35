/* Energy attention over all pairs: tiles of queries against all keys, through matrix products.
 *
 *     r = Q K^T          c = A K^T + Q B^T        a tile of [queries, keys] per head
 *     r <- beta t        c <- beta gs             row by row, while the tile is in cache
 *     dQ = r K           dK += r^T Q
 *     gQ = r B + c K     gK += r^T A + c^T Q
 *
 * A task is a batch entry, a head (all heads where they mix) and a group of queries; the groups'
 * shares of dK and gK are added in order. Causal tiles end with the key of their last query: pairs
 * above the diagonal are computed only within tiles, and count as 0 there. */
#include <math.h>

#include "base/sort.h"
#include "engine/backend/cpu/attention/attention.h"
#include "engine/backend/gemm.h"
#include "engine/core/team/team.h"

enum {
    TILE_FLOATS = 65536, /* of one score tile: two of them and the operands in a cache of 1 MiB */
    MIN_TASKS = 16,      /* queries are split into groups until there are this many tasks */
    MIN_GROUP = 32,      /* queries */
};

typedef struct dense {
    const basin_attention *at;
    const basin_attention_kernels *kernels;
    basin_attention_mode mode;
    int64_t batch, queries, keys, heads, width;
    int64_t together;      /* heads in a task: 1, or all where they mix */
    int64_t groups, group; /* groups of queries, queries in one */
    int64_t tile, row;     /* queries in a tile, floats from one of its rows to the next */
    int64_t tasks;
    float *r, *c;   /* [threads, together, tile, row] */
    float *state;   /* [threads, 3, together] */
    float *scratch; /* [threads, scratch_size] */
    int64_t scratch_size;
    char *gemm; /* [threads, gemm_bytes] */
    size_t gemm_bytes;
    float *key_sum; /* [groups, batch, keys, H, Y] where there are several groups */
    float *partial; /* [tasks, parts] of dbeta and dmix, each number in ATTENTION_ALIGN lanes */
    int64_t parts;
} dense;

static dense dense_of(const basin_attention *at) {
    const basin_attention_pattern *p = &at->pattern;
    bool mixes = at->mix || at->out_mix;
    dense d = {.at = at,
               .mode = at->mode,
               .batch = p->batch,
               .queries = p->queries,
               .keys = p->keys,
               .heads = p->heads,
               .width = p->width,
               .together = mixes ? p->heads : 1};
    int64_t sets = basin_int_max(1, d.batch * basin_int_max(1, p->parts) * d.heads / d.together);
    int64_t groups =
        basin_int_min(basin_int_ceil(MIN_TASKS, sets), basin_int_ceil(d.queries, MIN_GROUP));
    d.group = basin_int_max(1, basin_int_ceil(d.queries, basin_int_max(1, groups)));
    d.groups = basin_int_ceil(d.queries, d.group);
    d.row = basin_int_max(1, basin_int_ceil(d.keys, ATTENTION_ALIGN)) * ATTENTION_ALIGN;
    d.tile = basin_int_max(8, TILE_FLOATS / (d.row * d.together));
    d.tile = basin_int_min(d.tile, d.group);
    d.tasks = d.batch * (d.heads / d.together) * d.groups;
    return d;
}

static size_t gemm_bytes(const dense *d) {
    size_t scores = basin_gemm_serial_workspace(d->tile, d->keys, d->width);
    size_t queries = basin_gemm_serial_workspace(d->tile, d->width, d->keys);
    size_t keys = basin_gemm_serial_workspace(d->keys, d->width, d->tile);
    size_t max = scores > queries ? scores : queries;
    max = max > keys ? max : keys;
    return (max + 63) / 64 * 64;
}

static size_t lay_out(dense *d, int threads, void *workspace) {
    basin_arena a = {.base = workspace};
    int64_t tile = threads * d->together * d->tile * d->row;
    int64_t keys = d->batch * d->keys * d->heads * d->width;
    d->r = basin_arena_floats(&a, tile);
    d->c = basin_arena_floats(&a, d->mode == BASIN_ATTENTION_REVERSE ? tile : 0);
    d->state = basin_arena_floats(&a, threads * 3 * d->together);
    d->scratch_size = basin_int_max(d->row, ATTENTION_PLANES * d->together * ATTENTION_TILE);
    d->scratch = basin_arena_floats(&a, threads * d->scratch_size);
    d->gemm_bytes = gemm_bytes(d);
    d->gemm = basin_arena_take(&a, threads, d->gemm_bytes);
    if (d->at->out_key && d->groups > 1) d->key_sum = basin_arena_floats(&a, d->groups * keys);
    d->parts = (d->together + d->together * d->together) * ATTENTION_ALIGN;
    d->partial = basin_arena_floats(&a, d->tasks * d->parts);
    return a.used;
}

/* A tile of queries of one task, and where its numbers lie. */
typedef struct span {
    int64_t task, batch, head, group; /* head: the first of `together` */
    int64_t first, count;             /* queries */
    int64_t keys;                     /* that some query of the tile sees: the first ones */
    bool opens;                       /* first of its task: the sums over queries begin */
    int place;                        /* of the thread */
    float *r, *c;
    void *gemm;
} span;

/* Rows of x [batch, nodes, H, Y] for one head. */
static int64_t head_at(const dense *d, int64_t batch, int64_t nodes, int64_t node, int64_t head) {
    return ((batch * nodes + node) * d->heads + head) * d->width;
}

/* tile (+)= x y^T for one head: x rows of queries, y rows of keys. */
static void product(const dense *d, const span *s, float *tile, const float *x, const float *y,
                    int64_t head, bool accumulate) {
    int64_t step = d->heads * d->width;
    basin_gemm_serial(tile, d->row, x + head_at(d, s->batch, d->queries, s->first, head), step, 1,
                      y + head_at(d, s->batch, d->keys, 0, head), 1, step, s->count, s->keys,
                      d->width, accumulate, s->gemm);
}

static void scores(const dense *d, const span *s) {
    const basin_attention *at = d->at;
    for (int64_t i = 0; i < d->together; i++) {
        int64_t head = s->head + i;
        float *r = s->r + i * d->tile * d->row, *c = s->c + i * d->tile * d->row;
        product(d, s, r, at->q, at->k, head, false);
        if (d->mode != BASIN_ATTENTION_REVERSE) continue;
        if (at->a) product(d, s, c, at->a, at->k, head, false);
        if (at->b) product(d, s, c, at->q, at->b, head, at->a != NULL);
        if (!at->a && !at->b) memset(c, 0, (size_t)(s->count * d->row) * sizeof *c);
    }
}

static basin_attention_row row_of(const dense *d, const span *s, int64_t i) {
    const basin_attention *at = d->at;
    bool reverse = d->mode == BASIN_ATTENTION_REVERSE, value = d->mode == BASIN_ATTENTION_VALUE;
    int64_t query = s->batch * d->queries + s->first + i, node = query * d->heads + s->head;
    int64_t pair = query * d->keys * d->heads + s->head;
    float *dscale = at->out_scale, *state = d->state + s->place * 3 * d->together;
    float *partial = d->partial + s->task * d->parts;
    return (basin_attention_row){
        .heads = d->together,
        .pairs = basin_attention_keys(&d->at->pattern, s->first + i),
        .plane = d->tile * d->row,
        .scale_stride = d->heads,
        .self = at->pattern.exclude_self && !at->pattern.causal ? s->first + i : -1,
        .beta = at->beta + s->head,
        .mix = at->mix,
        .added = at->added,
        .scale = at->scale ? at->scale + pair : NULL,
        .w = value ? NULL : at->w + node,
        .r = s->r + i * d->row,
        .c = reverse ? s->c + i * d->row : NULL,
        .max = state,
        .total = state + d->together,
        .gain = state + 2 * d->together,
        .dscale = dscale ? dscale + pair : NULL,
        .dbeta = at->out_beta ? partial : NULL,
        .dmix = at->out_mix ? partial + d->together * ATTENTION_ALIGN : NULL,
        .scratch = d->scratch + s->place * d->scratch_size,
    };
}

/* Zeros for keys that the query does not see but others of its tile do, and for dscale. */
static void clear_unseen(const dense *d, const span *s, const basin_attention_row *row) {
    if (!row->w) return;
    for (int64_t h = 0; h < d->together; h++) {
        size_t bytes = (size_t)(s->keys - row->pairs) * sizeof(float);
        memset(row->r + h * row->plane + row->pairs, 0, bytes);
        if (row->c) memset(row->c + h * row->plane + row->pairs, 0, bytes);
        for (int64_t k = row->pairs; row->dscale && k < d->keys; k++)
            row->dscale[k * row->scale_stride + h] = 0;
    }
}

static void tile_row(const dense *d, const span *s, int64_t i) {
    basin_attention_row row = row_of(d, s, i);
    float *lse = d->at->lse, *gw = d->at->gw;
    int64_t node = (s->batch * d->queries + s->first + i) * d->heads + s->head;
    if (d->together == 1 && !row.mix && !row.dmix && !row.scale && !row.dscale) {
        d->kernels->whole(&row);
    } else {
        for (int64_t h = 0; h < d->together; h++) {
            row.max[h] = -INFINITY;
            row.total[h] = row.gain[h] = 0;
        }
        (d->mode == BASIN_ATTENTION_VALUE ? d->kernels->measure : d->kernels->complete)(&row);
    }
    if (d->at->pattern.causal) clear_unseen(d, s, &row);
    for (int64_t h = 0; h < d->together; h++) {
        bool any = row.total[h] != 0;
        if (lse) lse[node + h] = any ? row.max[h] + logf(row.total[h]) : 0;
        if (gw) gw[node + h] = any ? row.gain[h] / row.total[h] : 0;
    }
}

/* out[queries] (+)= tile x for one head, x rows of keys. */
static void row_sums(const dense *d, const span *s, float *out, const float *tile, const float *x,
                     int64_t head, bool accumulate) {
    int64_t step = d->heads * d->width;
    basin_gemm_serial(out + head_at(d, s->batch, d->queries, s->first, head), step, tile, d->row, 1,
                      x + head_at(d, s->batch, d->keys, 0, head), step, 1, s->count, d->width,
                      s->keys, accumulate, s->gemm);
}

/* out[keys] (+)= tile^T x for one head, x rows of queries. */
static void column_sums(const dense *d, const span *s, float *out, const float *tile,
                        const float *x, int64_t head, bool accumulate) {
    int64_t step = d->heads * d->width;
    if (d->key_sum) out = d->key_sum + s->group * d->batch * d->keys * step;
    out += head_at(d, s->batch, d->keys, 0, head);
    basin_gemm_serial(out, step, tile, 1, d->row,
                      x + head_at(d, s->batch, d->queries, s->first, head), step, 1, s->keys,
                      d->width, s->count, accumulate, s->gemm);
    for (int64_t k = s->keys; !accumulate && k < d->keys; k++)
        memset(out + k * step, 0, (size_t)d->width * sizeof *out);
}

static void sums(const dense *d, const span *s) {
    const basin_attention *at = d->at;
    for (int64_t i = 0; i < d->together; i++) {
        int64_t head = s->head + i;
        const float *r = s->r + i * d->tile * d->row, *c = s->c + i * d->tile * d->row;
        if (d->mode == BASIN_ATTENTION_FORCE) {
            if (at->out_query) row_sums(d, s, at->out_query, r, at->k, head, false);
            if (at->out_key) column_sums(d, s, at->out_key, r, at->q, head, !s->opens);
            continue;
        }
        if (at->out_query && at->b) row_sums(d, s, at->out_query, r, at->b, head, false);
        if (at->out_query) row_sums(d, s, at->out_query, c, at->k, head, at->b != NULL);
        if (at->out_key && at->a) column_sums(d, s, at->out_key, r, at->a, head, !s->opens);
        if (at->out_key) column_sums(d, s, at->out_key, c, at->q, head, at->a || !s->opens);
    }
}

static void task_run(const dense *d, int64_t task) {
    int place = basin_parallel_place();
    int64_t tile = d->together * d->tile * d->row;
    int64_t sets = d->heads / d->together;
    span s = {.task = task,
              .batch = task / (sets * d->groups),
              .head = task / d->groups % sets * d->together,
              .group = task % d->groups,
              .place = place,
              .r = d->r + place * tile,
              .c = d->c + place * tile,
              .gemm = d->gemm + (size_t)place * d->gemm_bytes};
    if (d->at->pattern.causal) s.group = d->groups - 1 - s.group; /* the long ones first */
    memset(d->partial + task * d->parts, 0, (size_t)d->parts * sizeof *d->partial);
    int64_t begin = s.group * d->group, end = basin_int_min(begin + d->group, d->queries);
    for (s.first = begin; s.first < end; s.first += d->tile) {
        s.count = basin_int_min(d->tile, end - s.first);
        s.keys = basin_int_max(1, basin_attention_keys(&d->at->pattern, s.first + s.count - 1));
        s.opens = s.first == begin;
        scores(d, &s);
        for (int64_t i = 0; i < s.count; i++) tile_row(d, &s, i);
        if (d->mode != BASIN_ATTENTION_VALUE) sums(d, &s);
    }
}

static float lane_sum(const float *partial, int64_t number) {
    float sum = 0;
    for (int64_t i = 0; i < ATTENTION_ALIGN; i++) sum += partial[number * ATTENTION_ALIGN + i];
    return sum;
}

/* dbeta, dmix: the tasks' shares in order. */
static void add_partials(const dense *d) {
    float *dbeta = d->at->out_beta, *dmix = d->at->out_mix;
    int64_t sets = d->heads / d->together;
    if (dbeta) memset(dbeta, 0, (size_t)d->heads * sizeof *dbeta);
    if (dmix) memset(dmix, 0, (size_t)(d->heads * d->heads) * sizeof *dmix);
    for (int64_t task = 0; task < d->tasks; task++) {
        const float *partial = d->partial + task * d->parts;
        int64_t head = task / d->groups % sets * d->together;
        for (int64_t i = 0; dbeta && i < d->together; i++) dbeta[head + i] += lane_sum(partial, i);
        for (int64_t i = 0; dmix && i < d->heads * d->heads; i++)
            dmix[i] += lane_sum(partial, d->together + i);
    }
}

static void run_tasks(const void *context, int64_t first, int64_t last) {
    for (int64_t task = first; task < last; task++) task_run(context, task);
}

/* dk or gk: the groups' shares in order. */
static void add_groups(const void *context, int64_t first, int64_t last) {
    const dense *d = context;
    float *out = d->at->out_key;
    int64_t count = d->batch * d->keys * d->heads * d->width;
    for (int64_t i = first; i < last; i++) {
        float sum = 0;
        for (int64_t g = 0; g < d->groups; g++) sum += d->key_sum[g * count + i];
        out[i] = sum;
    }
}

static void clear(float *x, int64_t count) {
    if (x) memset(x, 0, (size_t)count * sizeof *x);
}

/* What is left where there is no pair at all. */
static void clear_outputs(const dense *d) {
    const basin_attention *at = d->at;
    int64_t queries = d->batch * d->queries * d->heads, keys = d->batch * d->keys * d->heads;
    clear(at->lse, queries);
    clear(at->gw, queries);
    clear(at->out_query, queries * d->width);
    clear(at->out_key, keys * d->width);
    clear(at->out_beta, d->heads);
    clear(at->out_mix, d->heads * d->heads);
}

size_t basin_attention_dense(const basin_attention *at, int threads, void *workspace) {
    dense d = dense_of(at);
    size_t bytes = lay_out(&d, threads, workspace);
    d.kernels = basin_attention_kernels_find();
    if (!workspace) return bytes;
    if (d.queries == 0 || d.keys == 0) {
        clear_outputs(&d);
        return bytes;
    }
    basin_parallel_for(run_tasks, &d, d.tasks, 1, threads);
    int64_t sums = d.batch * d.keys * d.heads * d.width;
    if (d.key_sum) basin_parallel_for(add_groups, &d, sums, 0, threads);
    add_partials(&d);
    return bytes;
}
