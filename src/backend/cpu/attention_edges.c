/* Energy attention over a CSR list of pairs: the passes, for any scale and mix.
 *
 *     dots      r, c for every pair and head         one head's keys at a time, in cache blocks
 *     measure   log-sum-exp and gw of every query
 *     finish    r <- beta t, c <- beta gs; dbeta, dscale, dmix
 *     gather    dQ, gQ along rows; dK, gK along columns
 *
 * All functions without a `chunk` argument are called by every thread of the team. */
#include "backend/cpu/attention_edges.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { GATHERED = 256 }; /* pairs of a column whose weights are fetched at once */

/* Lays out the workspace; with a NULL base it only counts. */
typedef struct arena {
    char *base;
    size_t used;
} arena;

static void *take(arena *a, int64_t count, size_t size) {
    void *block = a->base ? a->base + a->used : NULL;
    a->used += ((size_t)count * size + 63) / 64 * 64;
    return block;
}

static float *take_floats(arena *a, int64_t count) { return take(a, count, sizeof(float)); }

static bool wants_columns(const basin_edges *e) {
    return e->mode == BASIN_ATTENTION_FORCE ? e->at->dk != NULL
                                            : e->mode == BASIN_ATTENTION_REVERSE && e->at->gk;
}

static bool wants_rows(const basin_edges *e) {
    return e->mode == BASIN_ATTENTION_FORCE ? e->at->dq != NULL
                                            : e->mode == BASIN_ATTENTION_REVERSE && e->at->gq;
}

static size_t lay_out(basin_edges *e, int threads, void *workspace) {
    const basin_attention_pattern *p = &e->at->pattern;
    int64_t row_bytes = e->parts * e->padded * (int64_t)sizeof(float);
    int64_t query_slots = p->queries + PAIRS_MAX_CHUNKS, key_slots = p->keys + PAIRS_MAX_CHUNKS;
    arena a = {.base = workspace};
    e->query = take_floats(&a, e->heads * p->queries * e->parts * e->padded);
    e->key = take_floats(&a, e->heads * p->keys * e->parts * e->padded);
    e->r = take_floats(&a, e->heads * e->plane);
    if (e->parts == 2) e->c = take_floats(&a, e->heads * e->plane);
    e->most = take_floats(&a, query_slots * e->heads);
    e->total = take_floats(&a, query_slots * e->heads);
    e->gain = take_floats(&a, query_slots * e->heads);
    if (wants_rows(e)) e->query_sum = take_floats(&a, e->heads * query_slots * e->padded);
    if (wants_columns(e)) e->key_sum = take_floats(&a, e->heads * key_slots * e->padded);
    e->partial = take_floats(&a, PAIRS_MAX_CHUNKS * (e->heads + e->heads * e->heads));
    e->scratch_size = ATTENTION_PLANES * e->heads * ATTENTION_TILE;
    e->scratch = take_floats(&a, threads * e->scratch_size);
    e->rows.cut = take(&a, (int64_t)basin_pairs_cut_size(e->plane, p->queries, p->keys, row_bytes),
                       sizeof(int32_t));
    if (wants_columns(e))
        e->columns.cut =
            take(&a, (int64_t)basin_pairs_cut_size(e->plane, p->keys, p->queries, row_bytes),
                 sizeof(int32_t));
    return a.used;
}

static basin_edges edges_of(const basin_attention *at, basin_attention_mode mode) {
    int64_t align = ATTENTION_ALIGN;
    return (basin_edges){.at = at,
                         .mode = mode,
                         .heads = at->pattern.heads,
                         .width = at->pattern.width,
                         .padded = (at->pattern.width + align - 1) / align * align,
                         .parts = mode == BASIN_ATTENTION_REVERSE ? 2 : 1,
                         .plane = (at->pattern.pairs + align - 1) / align * align};
}

/* to[h, node, part] = from[node, h], padded with zeros; zeros alone for NULL. */
static void pack(float *to, const float *from, const basin_edges *e, int64_t nodes, int64_t part) {
#pragma omp for schedule(static)
    for (int64_t node = 0; node < nodes; node++)
        for (int64_t h = 0; h < e->heads; h++) {
            float *row = to + ((h * nodes + node) * e->parts + part) * e->padded;
            int64_t filled = from ? e->width : 0;
            if (from)
                memcpy(row, from + (node * e->heads + h) * e->width,
                       (size_t)e->width * sizeof *row);
            memset(row + filled, 0, (size_t)(e->padded - filled) * sizeof *row);
        }
}

static void clear(float *x, int64_t count, float value) {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < count; i++) x[i] = value;
}

static void prepare(const basin_edges *e) {
    const basin_attention_pattern *p = &e->at->pattern;
    int64_t query_slots = p->queries + e->rows.chunks;
    pack(e->query, e->at->q, e, p->queries, 0);
    pack(e->key, e->at->k, e, p->keys, 0);
    if (e->parts == 2) {
        pack(e->query, e->at->a, e, p->queries, 1);
        pack(e->key, e->at->b, e, p->keys, 1);
    }
    clear(e->most, query_slots * e->heads, -INFINITY);
    clear(e->total, query_slots * e->heads, 0);
    clear(e->gain, query_slots * e->heads, 0);
    if (e->query_sum) clear(e->query_sum, e->heads * query_slots * e->padded, 0);
    if (e->key_sum) clear(e->key_sum, e->heads * (p->keys + e->columns.chunks) * e->padded, 0);
    clear(e->partial, e->rows.chunks * (e->heads + e->heads * e->heads), 0);
    basin_pairs_find_runs(&e->rows);
    if (wants_columns(e)) basin_pairs_find_runs(&e->columns);
}

static void dots_chunk(const basin_edges *e, int64_t h, int64_t block, int64_t chunk) {
    const basin_pairs *rows = &e->rows;
    int64_t stride = e->parts * e->padded;
    const float *key = e->key + h * rows->others * stride;
    for (basin_fragment f = basin_fragment_first(rows, chunk); f.begin < f.end;
         basin_fragment_next(&f, rows, chunk)) {
        basin_fragment run = basin_fragment_run(f, rows, block);
        const float *query = e->query + (h * rows->nodes + f.node) * stride;
        const int32_t *other = rows->other + run.begin;
        int64_t at = h * e->plane + run.begin, n = run.end - run.begin;
        if (e->parts == 2)
            e->kernels->dot_two(e->r + at, e->c + at, query, key, other, n, e->padded);
        else
            e->kernels->dot(e->r + at, query, key, other, n, e->padded);
    }
}

static void dots(const basin_edges *e) {
    for (int64_t block = 0; block < e->rows.blocks; block++) {
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < e->heads * e->rows.chunks; i++)
            dots_chunk(e, i / e->rows.chunks, block, i % e->rows.chunks);
    }
}

/* The pairs of a fragment as the pointwise kernels take them; state from `slot`. */
static basin_attention_row row_of(const basin_edges *e, basin_fragment f, int64_t slot) {
    const basin_attention *at = e->at;
    float *dscale = e->mode == BASIN_ATTENTION_REVERSE ? at->gscale : at->dscale;
    int64_t heads = e->heads;
    return (basin_attention_row){
        .heads = heads,
        .pairs = f.end - f.begin,
        .plane = e->plane,
        .scale_stride = heads,
        .self = -1,
        .beta = at->beta,
        .mix = at->mix,
        .scale = at->scale ? at->scale + f.begin * heads : NULL,
        .w = at->w ? at->w + f.node * heads : NULL,
        .r = e->r + f.begin,
        .c = e->c ? e->c + f.begin : NULL,
        .most = e->most + slot * heads,
        .total = e->total + slot * heads,
        .gain = e->gain + slot * heads,
        .dscale = dscale ? dscale + f.begin * heads : NULL,
        .scratch = e->scratch + omp_get_thread_num() * e->scratch_size,
    };
}

/* Folds the extra slots into the nodes they continue. */
static void merge_states(const basin_edges *e) {
    for (int64_t chunk = 0; chunk < e->rows.chunks; chunk++) {
        int64_t node = basin_pairs_continued(&e->rows, chunk);
        for (int64_t h = 0; node >= 0 && h < e->heads; h++) {
            int64_t to = node * e->heads + h, from = (e->rows.nodes + chunk) * e->heads + h;
            float most = fmaxf(e->most[to], e->most[from]);
            float keep = expf(e->most[to] - most), add = expf(e->most[from] - most);
            e->total[to] = e->total[to] * keep + e->total[from] * add;
            e->gain[to] = e->gain[to] * keep + e->gain[from] * add;
            e->most[to] = most;
        }
    }
}

static void measure(const basin_edges *e) {
#pragma omp for schedule(dynamic)
    for (int64_t chunk = 0; chunk < e->rows.chunks; chunk++)
        for (basin_fragment f = basin_fragment_first(&e->rows, chunk); f.begin < f.end;
             basin_fragment_next(&f, &e->rows, chunk)) {
            basin_attention_row row = row_of(e, f, f.slot);
            e->kernels->measure(&row);
        }
#pragma omp single
    merge_states(e);
    float *lse = e->mode == BASIN_ATTENTION_REVERSE ? NULL : e->at->lse;
    float *gw = e->mode == BASIN_ATTENTION_REVERSE ? e->at->gw : NULL;
#pragma omp for schedule(static)
    for (int64_t i = 0; i < e->rows.nodes * e->heads; i++) {
        bool any = e->total[i] != 0;
        if (lse) lse[i] = any ? e->most[i] + logf(e->total[i]) : 0;
        if (gw) gw[i] = any ? e->gain[i] / e->total[i] : 0;
    }
}

/* out[i] = the sum over chunks of partial[chunk, from + i]. */
static void add_partials(float *out, const basin_edges *e, int64_t from, int64_t count) {
    int64_t stride = e->heads + e->heads * e->heads;
    for (int64_t i = 0; out && i < count; i++) {
        float sum = 0;
        for (int64_t chunk = 0; chunk < e->rows.chunks; chunk++)
            sum += e->partial[chunk * stride + from + i];
        out[i] = sum;
    }
}

static void finish(const basin_edges *e) {
    bool reverse = e->mode == BASIN_ATTENTION_REVERSE;
    float *dbeta = reverse ? e->at->gbeta : e->at->dbeta;
    float *dmix = reverse ? e->at->gmix : e->at->dmix;
#pragma omp for schedule(dynamic)
    for (int64_t chunk = 0; chunk < e->rows.chunks; chunk++) {
        float *partial = e->partial + chunk * (e->heads + e->heads * e->heads);
        for (basin_fragment f = basin_fragment_first(&e->rows, chunk); f.begin < f.end;
             basin_fragment_next(&f, &e->rows, chunk)) {
            basin_attention_row row = row_of(e, f, f.node);
            row.dbeta = dbeta ? partial : NULL;
            row.dmix = dmix ? partial + e->heads : NULL;
            e->kernels->finish(&row);
        }
    }
#pragma omp single
    {
        add_partials(dbeta, e, 0, e->heads);
        add_partials(dmix, e, e->heads, e->heads * e->heads);
    }
}

static void row_chunk(const basin_edges *e, int64_t h, int64_t block, int64_t chunk) {
    const basin_pairs *rows = &e->rows;
    const float *key = e->key + h * rows->others * e->parts * e->padded;
    float *sums = e->query_sum + h * (rows->nodes + rows->chunks) * e->padded;
    for (basin_fragment f = basin_fragment_first(rows, chunk); f.begin < f.end;
         basin_fragment_next(&f, rows, chunk)) {
        basin_fragment run = basin_fragment_run(f, rows, block);
        float *sum = sums + f.slot * e->padded;
        const int32_t *other = rows->other + run.begin;
        int64_t at = h * e->plane + run.begin, n = run.end - run.begin;
        if (e->parts == 2)
            e->kernels->gather_two(sum, e->c + at, e->r + at, key, other, n, e->padded);
        else
            e->kernels->gather(sum, e->r + at, key, other, n, e->padded);
    }
}

/* The weights of a column's pairs lie apart in r and c: fetch some, use them, go on. */
static void column_run(const basin_edges *e, float *sum, int64_t h, basin_fragment run) {
    const float *query = e->query + h * e->columns.others * e->parts * e->padded;
    const float *r = e->r + h * e->plane, *c = e->c ? e->c + h * e->plane : NULL;
    float t[GATHERED], gs[GATHERED];
    for (int64_t begin = run.begin; begin < run.end; begin += GATHERED) {
        int64_t n = run.end - begin < GATHERED ? run.end - begin : GATHERED;
        const int32_t *pair = e->at->pattern.pair + begin, *other = e->columns.other + begin;
        for (int64_t i = 0; i < n; i++) t[i] = r[pair[i]];
        if (e->parts == 2) {
            for (int64_t i = 0; i < n; i++) gs[i] = c[pair[i]];
            e->kernels->gather_two(sum, gs, t, query, other, n, e->padded);
        } else {
            e->kernels->gather(sum, t, query, other, n, e->padded);
        }
    }
}

static void column_chunk(const basin_edges *e, int64_t h, int64_t block, int64_t chunk) {
    const basin_pairs *columns = &e->columns;
    float *sums = e->key_sum + h * (columns->nodes + columns->chunks) * e->padded;
    for (basin_fragment f = basin_fragment_first(columns, chunk); f.begin < f.end;
         basin_fragment_next(&f, columns, chunk))
        column_run(e, sums + f.slot * e->padded, h, basin_fragment_run(f, columns, block));
}

/* out[node, h] = sums[h, node], the extra slots folded in. */
static void write_sums(float *out, float *sums, const basin_edges *e, const basin_pairs *pairs) {
    int64_t slots = pairs->nodes + pairs->chunks;
#pragma omp for schedule(static)
    for (int64_t h = 0; h < e->heads; h++)
        for (int64_t chunk = 0; chunk < pairs->chunks; chunk++) {
            int64_t node = basin_pairs_continued(pairs, chunk);
            float *to = sums + (h * slots + node) * e->padded;
            const float *from = sums + (h * slots + pairs->nodes + chunk) * e->padded;
            for (int64_t i = 0; node >= 0 && i < e->padded; i++) to[i] += from[i];
        }
#pragma omp for schedule(static)
    for (int64_t node = 0; node < pairs->nodes; node++)
        for (int64_t h = 0; h < e->heads; h++) {
            const float *from = sums + (h * slots + node) * e->padded;
            memcpy(out + (node * e->heads + h) * e->width, from, (size_t)e->width * sizeof *from);
        }
}

static void gather(const basin_edges *e, const basin_pairs *pairs, float *out, float *sums,
                   void (*chunk)(const basin_edges *, int64_t, int64_t, int64_t)) {
    for (int64_t block = 0; block < pairs->blocks; block++) {
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < e->heads * pairs->chunks; i++)
            chunk(e, i / pairs->chunks, block, i % pairs->chunks);
    }
    write_sums(out, sums, e, pairs);
}

size_t basin_attention_edges_workspace(const basin_attention *at, basin_attention_mode mode,
                                       int threads) {
    basin_edges e = edges_of(at, mode);
    return lay_out(&e, threads, NULL);
}

void basin_attention_edges(const basin_attention *at, basin_attention_mode mode, int threads,
                           void *workspace) {
    const basin_attention_pattern *p = &at->pattern;
    basin_edges e = edges_of(at, mode);
    int64_t row_bytes = e.parts * e.padded * (int64_t)sizeof(float);
    e.kernels = basin_attention_kernels_find();
    e.rows = basin_pairs_cut(p->row, p->key, p->queries, p->keys, row_bytes);
    if (wants_columns(&e))
        e.columns = basin_pairs_cut(p->column, p->query, p->keys, p->queries, row_bytes);
    lay_out(&e, threads, workspace);
    bool reverse = mode == BASIN_ATTENTION_REVERSE;
#pragma omp parallel num_threads(threads)
    {
        prepare(&e);
        dots(&e);
        measure(&e);
        if (mode != BASIN_ATTENTION_VALUE) finish(&e);
        if (wants_rows(&e)) gather(&e, &e.rows, reverse ? at->gq : at->dq, e.query_sum, row_chunk);
        if (wants_columns(&e))
            gather(&e, &e.columns, reverse ? at->gk : at->dk, e.key_sum, column_chunk);
    }
}
