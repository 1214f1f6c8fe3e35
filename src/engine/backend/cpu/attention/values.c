/* Softmax attention with values and its derivatives (backend/values.h), in float.
 *
 * All pairs: a tile of queries against all keys they see, through matrix products; what lies
 * between is done row by row while the tile is in cache. A task is a batch entry, a head of keys
 * with the heads of queries that share it, and a group of queries; the groups' shares of what is
 * summed over queries are added in order.
 *
 * Lists: the numbers of all pairs and heads are computed and kept query by query, then summed by
 * query and by key. */

#include "engine/backend/values.h"
#include "base/sort.h"
#include "engine/backend/cpu/attention/attention.h"
#include "engine/backend/cpu/cpu.h"
#include "engine/backend/gemm.h"

enum {
    TILE_FLOATS = 32768, /* of one of up to four tiles */
    MIN_TASKS = 16,      /* queries are split into groups until there are this many tasks */
    MIN_GROUP = 32,      /* queries */
    TILES = 4,           /* s, x, g, y of basin_values_row */
};

typedef struct dense {
    basin_values at;
    const basin_attention_kernels *kernels;
    bool used[TILES];
    int64_t groups, group; /* groups of queries, queries in one */
    int64_t tile, row;     /* queries in a tile, floats from one of its rows to the next */
    int64_t tasks;
    float *tiles; /* [threads, TILES, tile, row] */
    float *draws; /* [threads, row] of dropout */
    const basin_simd *simd;
    char *gemm; /* [threads, gemm_bytes] */
    size_t gemm_bytes;
    float *key_sum, *value_sum; /* [groups, like k or v] where there are several groups */
} dense;

static size_t gemm_bytes(const dense *d) {
    int64_t wide = basin_int_max(d->at.width, d->at.value_width);
    size_t scores = basin_gemm_serial_workspace(d->tile, d->at.keys, wide);
    size_t queries = basin_gemm_serial_workspace(d->tile, wide, d->at.keys);
    size_t keys = basin_gemm_serial_workspace(d->at.keys, wide, d->tile);
    size_t max = scores > queries ? scores : queries;
    max = max > keys ? max : keys;
    return (max + 63) / 64 * 64;
}

static int64_t key_count(const basin_values *at) { return at->batch * at->of_k.batch; }
static int64_t value_count(const basin_values *at) { return at->batch * at->of_v.batch; }

/* The tiles that the order needs; tiles that only the bias has are zeros. */
static size_t lay_out(dense *d, const basin_values *at, int threads, void *workspace) {
    basin_arena a = {.base = workspace};
    int64_t sets = basin_int_max(1, at->batch * at->shared);
    int64_t groups =
        basin_int_min(basin_int_ceil(MIN_TASKS, sets), basin_int_ceil(at->queries, MIN_GROUP));
    *d = (dense){.at = *at, .kernels = basin_attention_kernels_find()};
    d->used[0] = true, d->used[1] = at->order == 2;
    d->used[2] = at->order > 0 && at->c, d->used[3] = at->order == 2 && at->c;
    d->group = basin_int_max(1, basin_int_ceil(at->queries, basin_int_max(1, groups)));
    d->groups = basin_int_ceil(at->queries, d->group);
    d->row = basin_int_max(1, basin_int_ceil(at->keys, ATTENTION_ALIGN)) * ATTENTION_ALIGN;
    d->tile = basin_int_min(basin_int_max(8, TILE_FLOATS / d->row), d->group);
    d->tasks = at->batch * at->shared * d->groups;
    d->tiles = basin_arena_floats(&a, threads * TILES * d->tile * d->row);
    if (at->seed) d->draws = basin_arena_floats(&a, threads * d->row);
    d->gemm_bytes = gemm_bytes(d);
    d->gemm = basin_arena_take(&a, threads, d->gemm_bytes);
    bool several = d->groups > 1;
    if (several && at->out_k) d->key_sum = basin_arena_floats(&a, d->groups * key_count(at));
    if (several && at->out_v) d->value_sum = basin_arena_floats(&a, d->groups * value_count(at));
    return a.used;
}

/* A tile of queries of one head, and where its numbers lie. */
typedef struct span {
    int64_t batch, head, shared, group;
    int64_t first, count; /* queries */
    int64_t keys;         /* that some query of the tile sees: the first ones */
    bool opens;           /* first of its task: sums over queries begin */
    float *s[TILES];      /* NULL where there is none */
    void *gemm;
} span;

/* One head of the tile's queries, or of the keys: rows `of->token` apart. */
static const float *rows(const void *x, const basin_values_steps *of, const span *s, bool key) {
    return (const float *)x +
           basin_values_at(of, s->batch, key ? s->shared : s->head, key ? 0 : s->first);
}

/* tile = x y^T + z w^T, of queries x, z and keys y, w; absent ones are zeros. */
static void scores(const dense *d, const span *s, int tile, const void *x, const void *y,
                   const void *z, const void *w, const basin_values_steps *of_query,
                   const basin_values_steps *of_key, int64_t width) {
    const void *query[] = {x, z}, *key[] = {y, w};
    bool begun = false;
    if (!s->s[tile]) return;
    for (int i = 0; i < 2; i++) {
        if (!query[i] || !key[i]) continue;
        basin_gemm_serial(s->s[tile], d->row, rows(query[i], of_query, s, false), of_query->token,
                          1, rows(key[i], of_key, s, true), 1, of_key->token, s->count, s->keys,
                          width, begun, s->gemm);
        begun = true;
    }
    if (!begun) memset(s->s[tile], 0, (size_t)(s->count * d->row) * sizeof(float));
}

/* out[queries] = one y + two w, of keys y and w. */
static void row_sums(const dense *d, const span *s, void *out, const float *one, const void *y,
                     const float *two, const void *w, const basin_values_steps *of_out,
                     const basin_values_steps *of, int64_t width) {
    if (!out) return;
    float *to = (float *)(uintptr_t)rows(out, of_out, s, false);
    basin_gemm_serial(to, of_out->token, one, d->row, 1, rows(y, of, s, true), of->token, 1,
                      s->count, width, s->keys, false, s->gemm);
    if (w)
        basin_gemm_serial(to, of_out->token, two, d->row, 1, rows(w, of, s, true), of->token, 1,
                          s->count, width, s->keys, true, s->gemm);
}

/* out[keys] (+)= one^T x + two^T z, of queries x and z. */
static void column_sums(const dense *d, const span *s, float *out, const float *one, const void *x,
                        const float *two, const void *z, const basin_values_steps *of_out,
                        const basin_values_steps *of, int64_t width) {
    if (!out) return;
    out += basin_values_at(of_out, s->batch, s->shared, 0);
    basin_gemm_serial(out, of_out->token, one, 1, d->row, rows(x, of, s, false), of->token, 1,
                      s->keys, width, s->count, !s->opens, s->gemm);
    if (z)
        basin_gemm_serial(out, of_out->token, two, 1, d->row, rows(z, of, s, false), of->token, 1,
                          s->keys, width, s->count, true, s->gemm);
    for (int64_t k = s->keys; s->opens && k < d->at.keys; k++)
        memset(out + k * of_out->token, 0, (size_t)width * sizeof *out);
}

/* x and y, where they are, are multiplied by 0 or 1 / (1 - drop). */
static void drop(const dense *d, float *x, float *y, int64_t count, const float *draw) {
    float more = (float)(1 / (1 - d->at.drop));
    for (int64_t n = 0; n < count; n++) {
        float m = (double)draw[n] > d->at.drop ? more : 0;
        if (x) x[n] *= m;
        if (y) y[n] *= m;
    }
}

static void tile_row(const dense *d, const span *s, int64_t n) {
    const basin_values *at = &d->at;
    int64_t i = s->first + n, b = s->batch, h = s->head;
    const float *bias = at->bias, *tbias = at->tbias;
    if (bias) bias += basin_values_bias_at(&at->of_bias, NULL, b, h, i);
    if (tbias) tbias += basin_values_bias_at(&at->of_tbias, NULL, b, h, i);
    float *slope = at->out_bias;
    basin_values_row row = {.count = basin_values_keys(at, i),
                            .self = at->exclude_self && !at->causal ? i : -1,
                            .scale = (float)at->scale,
                            .bias = bias,
                            .tbias = tbias};
    float **part[TILES] = {&row.s, &row.x, &row.g, &row.y};
    for (int t = 0; t < TILES; t++) *part[t] = s->s[t] ? s->s[t] + n * d->row : NULL;
    if (slope) row.slope = slope + basin_values_slope_at(at, b, h, i);
    float *draw = d->draws ? d->draws + basin_parallel_place() * d->row : NULL;
    if (draw) {
        d->simd->uniform(draw, basin_seed_of(at->seed), at->stream, basin_values_draw(at, b, h, i),
                         (size_t)row.count);
        drop(d, row.g, row.y, row.count, draw);
    }
    d->kernels->values(&row);
    if (draw) drop(d, row.s, row.x, row.count, draw);
    size_t unseen = (size_t)(s->keys - row.count) * sizeof(float);
    for (int t = 0; t < TILES; t++)
        if (*part[t]) memset(*part[t] + row.count, 0, unseen);
    if (slope) memset(row.slope + row.count, 0, (size_t)(at->keys - row.count) * sizeof(float));
}

static void tile_run(const dense *d, const span *s) {
    const basin_values *at = &d->at;
    const float *p = s->s[0], *tp = s->s[1], *ds = s->s[2], *tds = s->s[3];
    bool second = at->order == 2;
    float *out_k = d->key_sum ? d->key_sum + s->group * key_count(at) : at->out_k;
    float *out_v = d->value_sum ? d->value_sum + s->group * value_count(at) : at->out_v;
    scores(d, s, 0, at->q, at->k, NULL, NULL, &at->of_q, &at->of_k, at->width);
    scores(d, s, 1, at->tq, at->k, at->q, at->tk, &at->of_q, &at->of_k, at->width);
    scores(d, s, 2, at->c, at->v, NULL, NULL, &at->of_c, &at->of_v, at->value_width);
    scores(d, s, 3, at->tc, at->v, at->c, at->tv, &at->of_c, &at->of_v, at->value_width);
    for (int64_t n = 0; n < s->count; n++) tile_row(d, s, n);
    row_sums(d, s, at->out_q, second ? tds : ds, at->k, ds, at->tk, &at->of_q, &at->of_k,
             at->width);
    row_sums(d, s, at->out_c, second ? tp : p, at->v, p, at->tv, &at->of_c, &at->of_v,
             at->value_width);
    column_sums(d, s, out_k, second ? tds : ds, at->q, ds, at->tq, &at->of_k, &at->of_q, at->width);
    column_sums(d, s, out_v, second ? tp : p, at->c, p, at->tc, &at->of_v, &at->of_c,
                at->value_width);
}

static void task_run(const dense *d, int64_t task) {
    const basin_values *at = &d->at;
    int place = basin_parallel_place();
    int64_t tile = d->tile * d->row, each = at->heads / at->shared;
    span s = {.batch = task / (at->shared * d->groups),
              .shared = task / d->groups % at->shared,
              .group = task % d->groups,
              .opens = true,
              .gemm = d->gemm + (size_t)place * d->gemm_bytes};
    if (at->causal) s.group = d->groups - 1 - s.group; /* the long ones first */
    for (int t = 0; t < TILES; t++)
        s.s[t] = d->used[t] ? d->tiles + (place * TILES + t) * tile : NULL;
    int64_t begin = s.group * d->group, end = basin_int_min(begin + d->group, at->queries);
    for (s.head = s.shared * each; s.head < (s.shared + 1) * each; s.head++)
        for (s.first = begin; s.first < end; s.first += d->tile, s.opens = false) {
            s.count = basin_int_min(d->tile, end - s.first);
            s.keys = basin_int_max(1, basin_values_keys(at, s.first + s.count - 1));
            tile_run(d, &s);
        }
}

static void run_tasks(const void *context, int64_t first, int64_t last) {
    for (int64_t task = first; task < last; task++) task_run(context, task);
}

enum { STRIPE = 1024 }; /* numbers that are summed over groups at a time */

/* The groups' shares in order: those of keys, then those of values; stripes from first to last. */
static void add_groups(const void *context, int64_t first, int64_t last) {
    const dense *d = context;
    int64_t keys = d->key_sum ? basin_int_ceil(key_count(&d->at), STRIPE) : 0;
    for (int64_t n = first; n < last; n++) {
        int64_t count = n < keys ? key_count(&d->at) : value_count(&d->at);
        int64_t i = (n < keys ? n : n - keys) * STRIPE, some = basin_int_min(STRIPE, count - i);
        const float *part = (n < keys ? d->key_sum : d->value_sum) + i;
        float *out = (float *)(n < keys ? d->at.out_k : d->at.out_v) + i;
        for (int64_t j = 0; j < some; j++) out[j] = part[j] + part[count + j];
        for (int64_t g = 2; g < d->groups; g++)
            for (int64_t j = 0; j < some; j++) out[j] += part[g * count + j];
    }
}

static void run_dense(const basin_values *at, const basin_frame *frame, int threads,
                      void *workspace) {
    dense d;
    lay_out(&d, at, threads, workspace);
    d.simd = frame->simd;
    basin_parallel_for(run_tasks, &d, d.tasks, 1, threads);
    int64_t sums = (d.key_sum ? basin_int_ceil(key_count(at), STRIPE) : 0) +
                   (d.value_sum ? basin_int_ceil(value_count(at), STRIPE) : 0);
    if (sums) basin_parallel_for(add_groups, &d, sums, 0, threads);
}

/* ---- lists ---- */

typedef struct listed {
    basin_values at;
    const basin_attention_kernels *kernels;
    const basin_simd *simd;
    float *w[TILES]; /* [batch, H, pairs]: p, tp, ds, tds; NULL where there is none */
} listed;

static size_t lay_out_list(listed *l, const basin_values *at, void *workspace) {
    basin_arena a = {.base = workspace};
    const bool used[TILES] = {true, at->order == 2, at->c, at->order == 2 && at->c};
    *l = (listed){.at = *at, .kernels = basin_attention_kernels_find()};
    for (int t = 0; t < TILES; t++)
        if (used[t]) l->w[t] = basin_arena_floats(&a, at->batch * at->heads * at->pairs);
    return a.used;
}

/* One head of a token, NULL where the tensor is absent. */
static float *row_of(const void *x, const basin_values_steps *of, int64_t b, int64_t h,
                     int64_t token) {
    return x ? (float *)(uintptr_t)x + basin_values_at(of, b, h, token) : NULL;
}

static float dot(const listed *l, const float *x, const float *y, int64_t n) {
    return x && y ? l->simd->dot(x, y, n) : 0;
}

static void add(const listed *l, float *to, float a, const float *x, int64_t n) {
    if (to && x) l->simd->axpy(to, a, x, n);
}

static void clear(float *x, int64_t count) {
    if (x) memset(x, 0, (size_t)count * sizeof *x);
}

/* Where a query, or a key, is; `plane` is where the numbers of the head's pairs begin. */
typedef struct place {
    int64_t b, h, shared, node, plane;
} place;

static place place_of(const basin_values *at, int64_t item, int64_t nodes) {
    place w = {.b = item / (at->heads * nodes), .h = item / nodes % at->heads};
    w.shared = w.h / (at->heads / at->shared), w.node = item % nodes;
    w.plane = (w.b * at->heads + w.h) * at->pairs;
    return w;
}

/* s, ts, g, tg of a query's pairs, then p, tp, ds, tds. */
static void row_weights(const listed *l, place w) {
    const basin_values *at = &l->at;
    const float *q = row_of(at->q, &at->of_q, w.b, w.h, w.node);
    const float *tq = row_of(at->tq, &at->of_q, w.b, w.h, w.node);
    const float *c = row_of(at->c, &at->of_c, w.b, w.h, w.node);
    const float *tc = row_of(at->tc, &at->of_c, w.b, w.h, w.node);
    const float *bias = at->bias, *tbias = at->tbias;
    float scale = (float)at->scale;
    if (bias) bias += w.b * at->of_bias.batch + w.h;
    if (tbias) tbias += w.b * at->of_tbias.batch + w.h;
    for (int64_t n = at->row[w.node]; n < at->row[w.node + 1]; n++) {
        int64_t j = at->key[n], to = w.plane + n;
        const float *k = row_of(at->k, &at->of_k, w.b, w.shared, j);
        const float *v = row_of(at->v, &at->of_v, w.b, w.shared, j);
        l->w[0][to] = scale * dot(l, q, k, at->width) + (bias ? bias[n * at->heads] : 0);
        if (l->w[1]) {
            const float *tk = row_of(at->tk, &at->of_k, w.b, w.shared, j);
            float x = dot(l, tq, k, at->width) + dot(l, q, tk, at->width);
            l->w[1][to] = scale * x + (tbias ? tbias[n * at->heads] : 0);
        }
        if (l->w[2]) l->w[2][to] = dot(l, c, v, at->value_width);
        if (l->w[3])
            l->w[3][to] = dot(l, tc, v, at->value_width) +
                          dot(l, c, row_of(at->tv, &at->of_v, w.b, w.shared, j), at->value_width);
    }
    basin_values_row row = {.count = basin_values_keys(at, w.node), .self = -1, .scale = 1};
    float **part[TILES] = {&row.s, &row.x, &row.g, &row.y};
    for (int t = 0; t < TILES; t++) *part[t] = l->w[t] ? l->w[t] + w.plane + at->row[w.node] : NULL;
    l->kernels->values(&row);
}

/* A pair's numbers as the sums use them: those of the reverse, or of the second order. */
typedef struct weights {
    float p, tp, ds, tds;
} weights;

static weights weights_at(const listed *l, int64_t at) {
    float x[TILES] = {0}, scale = (float)l->at.scale;
    for (int t = 0; t < TILES; t++)
        if (l->w[t]) x[t] = l->w[t][at];
    bool second = l->at.order == 2;
    return (weights){x[0], second ? x[1] : x[0], scale * x[2], scale * (second ? x[3] : x[2])};
}

static void row_run(const void *context, int64_t first, int64_t last) {
    const listed *l = context;
    const basin_values *at = &l->at;
    for (int64_t item = first; item < last; item++) {
        place w = place_of(at, item, at->queries);
        float *out_q = row_of(at->out_q, &at->of_q, w.b, w.h, w.node), *slope = at->out_bias;
        float *out_c = row_of(at->out_c, &at->of_c, w.b, w.h, w.node);
        row_weights(l, w);
        clear(out_q, at->width), clear(out_c, at->value_width);
        for (int64_t n = at->row[w.node]; n < at->row[w.node + 1]; n++) {
            weights x = weights_at(l, w.plane + n);
            int64_t j = at->key[n];
            add(l, out_q, x.tds, row_of(at->k, &at->of_k, w.b, w.shared, j), at->width);
            add(l, out_q, x.ds, row_of(at->tk, &at->of_k, w.b, w.shared, j), at->width);
            add(l, out_c, x.tp, row_of(at->v, &at->of_v, w.b, w.shared, j), at->value_width);
            add(l, out_c, x.p, row_of(at->tv, &at->of_v, w.b, w.shared, j), at->value_width);
            const float *tds = l->w[3] ? l->w[3] : l->w[2];
            if (slope) slope[(w.b * at->pairs + n) * at->heads + w.h] = tds[w.plane + n];
        }
    }
}

/* One key of all heads that share it, in their order. */
static void column_run(const void *context, int64_t first, int64_t last) {
    const listed *l = context;
    const basin_values *at = &l->at;
    int64_t each = at->heads / at->shared;
    for (int64_t item = first; item < last; item++) {
        int64_t j = item % at->keys, shared = item / at->keys % at->shared;
        place w = {.b = item / (at->keys * at->shared)};
        float *out_k = row_of(at->out_k, &at->of_k, w.b, shared, j);
        float *out_v = row_of(at->out_v, &at->of_v, w.b, shared, j);
        clear(out_k, at->width), clear(out_v, at->value_width);
        for (w.h = shared * each; w.h < (shared + 1) * each; w.h++)
            for (int64_t n = at->column[j]; n < at->column[j + 1]; n++) {
                weights x = weights_at(l, (w.b * at->heads + w.h) * at->pairs + at->pair[n]);
                int64_t i = at->query[n];
                add(l, out_k, x.tds, row_of(at->q, &at->of_q, w.b, w.h, i), at->width);
                add(l, out_k, x.ds, row_of(at->tq, &at->of_q, w.b, w.h, i), at->width);
                add(l, out_v, x.tp, row_of(at->c, &at->of_c, w.b, w.h, i), at->value_width);
                add(l, out_v, x.p, row_of(at->tc, &at->of_c, w.b, w.h, i), at->value_width);
            }
    }
}

static void run_list(const basin_values *at, const basin_frame *frame, int threads,
                     void *workspace) {
    listed l;
    lay_out_list(&l, at, workspace);
    l.simd = frame->simd;
    clear(at->out_bias, at->batch * at->pairs * at->heads); /* pairs after the last: padding */
    basin_parallel_for(row_run, &l, at->batch * at->heads * at->queries, 0, threads);
    if (at->out_k || at->out_v)
        basin_parallel_for(column_run, &l, at->batch * at->shared * at->keys, 0, threads);
}

/* ---- the calls of a plan ---- */

size_t basin_cpu_values_workspace(const basin_call *call, int threads) {
    float there; /* the size depends on which operands there are, not on where they lie */
    const void *in[BASIN_MAX_IN] = {0};
    void *out[BASIN_MAX_OUT] = {0};
    dense d;
    listed l;
    for (int i = 0; i < call->ins; i++)
        if (call->in[i].block >= 0) in[i] = &there;
    for (int i = 0; i < call->outs; i++)
        if (call->out[i].block >= 0) out[i] = &there;
    basin_values at = basin_values_of(call, in, out);
    return basin_cpu_widened_bytes(call) +
           (at.row ? lay_out_list(&l, &at, NULL) : lay_out(&d, &at, threads, NULL));
}

void basin_cpu_values(const basin_frame *frame) {
    const void *in[BASIN_MAX_IN];
    void *out[BASIN_MAX_OUT];
    void *workspace = basin_cpu_widen(in, out, frame);
    basin_values at = basin_values_of(frame->call, in, out);
    int64_t pairs = at.row ? at.row[at.queries] : at.queries * at.keys;
    int threads = basin_cpu_team(frame, at.batch * at.heads * pairs * at.width);
    if (at.batch * at.heads > 0 && at.row) {
        run_list(&at, frame, threads, workspace);
    } else if (at.batch * at.heads > 0 && at.queries > 0 && at.keys > 0) {
        run_dense(&at, frame, threads, workspace);
    } else { /* no pair at all */
        clear(at.out_q, at.batch * at.of_q.batch), clear(at.out_k, key_count(&at));
        clear(at.out_c, at.batch * at.of_c.batch), clear(at.out_v, value_count(&at));
    }
    basin_cpu_narrow(frame, out);
}
