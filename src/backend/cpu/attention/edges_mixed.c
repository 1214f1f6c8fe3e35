/* Energy attention over a CSR list of pairs with any scale and mix, pass by pass:
 *
 *     dots      r, c for every pair and head
 *     weigh     lse and gw of every query; r <- beta t, c <- beta gs; dbeta, dscale, dmix
 *     gather    dQ, gQ along rows; dK, gK along columns */
#include "backend/cpu/attention/edges.h"

#include <math.h>

#include "base/team/team.h"

enum { GATHERED = 256 }; /* pairs of a column whose weights are fetched at once */

typedef struct mixed {
    basin_cpu_edges edges;
    float *r, *c;               /* [H, plane] */
    float *most, *total, *gain; /* [slots of rows, H] */
    float *query_sum;           /* [H, slots of rows, padded] */
    float *partial;             /* [chunks, shares] of dbeta and dmix, each in lanes */
    int64_t shares;
    float *scratch; /* [threads, scratch_size] */
    int64_t scratch_size;
} mixed;

static size_t lay_out(mixed *m, int threads, void *workspace) {
    basin_cpu_edges *e = &m->edges;
    int64_t slots = e->at->pattern.queries + PAIRS_MAX_CHUNKS;
    basin_arena a = {.base = workspace};
    basin_cpu_edges_lay_out(e, &a);
    m->r = basin_arena_floats(&a, e->heads * e->plane);
    if (e->parts == 2) m->c = basin_arena_floats(&a, e->heads * e->plane);
    m->most = basin_arena_floats(&a, slots * e->heads);
    m->total = basin_arena_floats(&a, slots * e->heads);
    m->gain = basin_arena_floats(&a, slots * e->heads);
    if (e->out_query) m->query_sum = basin_arena_floats(&a, e->heads * slots * e->padded);
    m->shares = (e->heads + e->heads * e->heads) * ATTENTION_ALIGN;
    m->partial = basin_arena_floats(&a, PAIRS_MAX_CHUNKS * m->shares);
    m->scratch_size = ATTENTION_PLANES * e->heads * ATTENTION_TILE;
    m->scratch = basin_arena_floats(&a, threads * m->scratch_size);
    return a.used;
}

static void prepare_slices(const void *context, int64_t first, int64_t last, int place) {
    const mixed *m = context;
    const basin_cpu_edges *e = &m->edges;
    int64_t states = (e->rows.nodes + e->rows.chunks) * e->heads;
    (void)place;
    basin_cpu_edges_fill(m->most, states, -INFINITY, first, last);
    basin_cpu_edges_fill(m->total, states, 0, first, last);
    basin_cpu_edges_fill(m->gain, states, 0, first, last);
    if (m->query_sum) basin_cpu_edges_fill(m->query_sum, states * e->padded, 0, first, last);
    basin_cpu_edges_fill(m->partial, e->rows.chunks * m->shares, 0, first, last);
    basin_cpu_edges_pack(e, first, last);
}

static void prepare(const mixed *m) {
    basin_team_run(prepare_slices, m, BASIN_CPU_EDGES_SLICES, 0, m->edges.threads);
    basin_cpu_edges_find_runs(&m->edges);
}

static void dots_chunk(const void *context, int64_t h, int64_t block, int64_t chunk) {
    const mixed *m = context;
    const basin_cpu_edges *e = &m->edges;
    const basin_cpu_pairs *rows = &e->rows;
    int64_t stride = e->parts * e->padded;
    const float *key = e->key + h * rows->others * stride;
    for (basin_cpu_fragment f = basin_cpu_fragment_first(rows, chunk); f.begin < f.end;
         basin_cpu_fragment_next(&f, rows, chunk)) {
        basin_cpu_fragment run = basin_cpu_fragment_run(f, rows, block);
        const float *query = e->query + (h * rows->nodes + f.node) * stride;
        const int32_t *other = rows->other + run.begin;
        int64_t at = h * e->plane + run.begin, n = run.end - run.begin;
        if (e->parts == 2)
            e->kernels->dot_two(m->r + at, m->c + at, query, key, other, n, e->padded);
        else
            e->kernels->dot(m->r + at, query, key, other, n, e->padded);
    }
}

/* The pairs of a fragment as the pointwise kernels take them; state from `slot`. */
static basin_attention_row row_of(const mixed *m, basin_cpu_fragment f, int64_t slot, int64_t chunk,
                                  int place) {
    const basin_cpu_edges *e = &m->edges;
    const basin_attention *at = e->at;
    bool reverse = e->mode == BASIN_ATTENTION_REVERSE;
    float *dscale = reverse ? at->gscale : at->dscale, *dmix = reverse ? at->gmix : at->dmix;
    float *partial = m->partial + chunk * m->shares;
    int64_t heads = e->heads;
    return (basin_attention_row){
        .heads = heads,
        .pairs = f.end - f.begin,
        .plane = e->plane,
        .scale_stride = heads,
        .self = -1,
        .beta = at->beta,
        .mix = at->mix,
        .added = at->added,
        .scale = at->scale ? at->scale + f.begin * heads : NULL,
        .w = at->w ? at->w + f.node * heads : NULL,
        .r = m->r + f.begin,
        .c = m->c ? m->c + f.begin : NULL,
        .most = m->most + slot * heads,
        .total = m->total + slot * heads,
        .gain = m->gain + slot * heads,
        .dscale = dscale ? dscale + f.begin * heads : NULL,
        .dbeta = e->out_beta ? partial : NULL,
        .dmix = dmix ? partial + heads * ATTENTION_ALIGN : NULL,
        .scratch = m->scratch + place * m->scratch_size,
    };
}

/* Folds the extra slots into the nodes they continue. */
static void merge_states(const mixed *m) {
    const basin_cpu_edges *e = &m->edges;
    for (int64_t chunk = 0; chunk < e->rows.chunks; chunk++) {
        int64_t node = basin_cpu_pairs_continued(&e->rows, chunk);
        for (int64_t h = 0; node >= 0 && h < e->heads; h++) {
            int64_t to = node * e->heads + h, from = (e->rows.nodes + chunk) * e->heads + h;
            float most = fmaxf(m->most[to], m->most[from]);
            float keep = expf(m->most[to] - most), add = expf(m->most[from] - most);
            m->total[to] = m->total[to] * keep + m->total[from] * add;
            m->gain[to] = m->gain[to] * keep + m->gain[from] * add;
            m->most[to] = most;
        }
    }
}

static bool is_split(const basin_cpu_pairs *rows, basin_cpu_fragment f) {
    return f.begin > rows->start[f.node] || f.end < rows->start[f.node + 1];
}

/* Rows that lie in one chunk are done at once; of the others, the state so far. */
static void weigh_chunk(const mixed *m, int64_t chunk, int place) {
    const basin_cpu_edges *e = &m->edges;
    for (basin_cpu_fragment f = basin_cpu_fragment_first(&e->rows, chunk); f.begin < f.end;
         basin_cpu_fragment_next(&f, &e->rows, chunk)) {
        basin_attention_row row = row_of(m, f, f.slot, chunk, place);
        bool partly = e->mode == BASIN_ATTENTION_VALUE || is_split(&e->rows, f);
        (partly ? e->kernels->measure : e->kernels->complete)(&row);
    }
}

static void finish_split(const mixed *m, int64_t chunk, int place) {
    const basin_cpu_edges *e = &m->edges;
    for (basin_cpu_fragment f = basin_cpu_fragment_first(&e->rows, chunk); f.begin < f.end;
         basin_cpu_fragment_next(&f, &e->rows, chunk)) {
        if (!is_split(&e->rows, f)) continue;
        basin_attention_row row = row_of(m, f, f.node, chunk, place);
        e->kernels->finish(&row);
    }
}

/* out[i] = the sum over chunks and lanes of number `from + i`. */
static void add_partials(float *out, const mixed *m, int64_t from, int64_t count) {
    for (int64_t i = 0; out && i < count; i++) {
        float sum = 0;
        for (int64_t chunk = 0; chunk < m->edges.rows.chunks; chunk++) {
            const float *lane = m->partial + chunk * m->shares + (from + i) * ATTENTION_ALIGN;
            for (int64_t j = 0; j < ATTENTION_ALIGN; j++) sum += lane[j];
        }
        out[i] = sum;
    }
}

static void close_rows(const void *context, int64_t first, int64_t last, int place) {
    const mixed *m = context;
    const basin_cpu_edges *e = &m->edges;
    bool reverse = e->mode == BASIN_ATTENTION_REVERSE;
    float *lse = reverse ? NULL : e->at->lse, *gw = reverse ? e->at->gw : NULL;
    (void)place;
    for (int64_t i = first; i < last; i++) {
        bool any = m->total[i] != 0;
        if (lse) lse[i] = any ? m->most[i] + logf(m->total[i]) : 0;
        if (gw) gw[i] = any ? m->gain[i] / m->total[i] : 0;
    }
}

static void weigh_chunks(const void *context, int64_t first, int64_t last, int place) {
    for (int64_t chunk = first; chunk < last; chunk++) weigh_chunk(context, chunk, place);
}

static void finish_chunks(const void *context, int64_t first, int64_t last, int place) {
    for (int64_t chunk = first; chunk < last; chunk++) finish_split(context, chunk, place);
}

static void weigh(const mixed *m) {
    const basin_cpu_edges *e = &m->edges;
    bool reverse = e->mode == BASIN_ATTENTION_REVERSE;
    basin_team_run(weigh_chunks, m, e->rows.chunks, 1, e->threads);
    merge_states(m);
    basin_team_run(close_rows, m, e->rows.nodes * e->heads, 0, e->threads);
    if (e->mode == BASIN_ATTENTION_VALUE) return;
    basin_team_run(finish_chunks, m, e->rows.chunks, 1, e->threads);
    add_partials(e->out_beta, m, 0, e->heads);
    add_partials(reverse ? e->at->gmix : e->at->dmix, m, e->heads, e->heads * e->heads);
}

static void row_chunk(const void *context, int64_t h, int64_t block, int64_t chunk) {
    const mixed *m = context;
    const basin_cpu_edges *e = &m->edges;
    const basin_cpu_pairs *rows = &e->rows;
    const float *key = e->key + h * rows->others * e->parts * e->padded;
    float *sums = m->query_sum + h * (rows->nodes + rows->chunks) * e->padded;
    for (basin_cpu_fragment f = basin_cpu_fragment_first(rows, chunk); f.begin < f.end;
         basin_cpu_fragment_next(&f, rows, chunk)) {
        basin_cpu_fragment run = basin_cpu_fragment_run(f, rows, block);
        float *sum = sums + f.slot * e->padded;
        const int32_t *other = rows->other + run.begin;
        int64_t at = h * e->plane + run.begin, n = run.end - run.begin;
        if (e->parts == 2)
            e->kernels->gather_two(sum, m->c + at, m->r + at, key, other, n, e->padded);
        else
            e->kernels->gather(sum, m->r + at, key, other, n, e->padded);
    }
}

/* The weights of a column's pairs lie apart in r and c: fetch some, use them, go on. */
static void column_run(const mixed *m, float *sum, int64_t h, basin_cpu_fragment run) {
    const basin_cpu_edges *e = &m->edges;
    const float *query = e->query + h * e->columns.others * e->parts * e->padded;
    const float *r = m->r + h * e->plane, *c = m->c ? m->c + h * e->plane : NULL;
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

static void column_chunk(const void *context, int64_t h, int64_t block, int64_t chunk) {
    const mixed *m = context;
    const basin_cpu_edges *e = &m->edges;
    const basin_cpu_pairs *columns = &e->columns;
    float *sums = e->key_sum + h * (columns->nodes + columns->chunks) * e->padded;
    for (basin_cpu_fragment f = basin_cpu_fragment_first(columns, chunk); f.begin < f.end;
         basin_cpu_fragment_next(&f, columns, chunk))
        column_run(m, sums + f.slot * e->padded, h, basin_cpu_fragment_run(f, columns, block));
}

size_t basin_attention_mixed_workspace(const basin_attention *at, basin_attention_mode mode,
                                       int threads) {
    mixed m = {.edges = basin_cpu_edges_new(at, mode, threads)};
    return lay_out(&m, threads, NULL);
}

void basin_attention_mixed(const basin_attention *at, basin_attention_mode mode, int threads,
                           void *workspace) {
    mixed m = {.edges = basin_cpu_edges_new(at, mode, threads)};
    basin_cpu_edges *e = &m.edges;
    basin_cpu_edges_cut(e);
    lay_out(&m, threads, workspace);
    prepare(&m);
    basin_cpu_edges_each(&m, dots_chunk, e, &e->rows);
    weigh(&m);
    if (e->out_query) {
        basin_cpu_edges_each(&m, row_chunk, e, &e->rows);
        basin_cpu_edges_write(e->out_query, m.query_sum, e, &e->rows);
    }
    if (e->out_key) {
        basin_cpu_edges_each(&m, column_chunk, e, &e->columns);
        basin_cpu_edges_write(e->out_key, e->key_sum, e, &e->columns);
    }
}
