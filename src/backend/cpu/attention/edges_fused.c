/* Energy attention over a CSR list of pairs without scale and mix: two passes over the pairs.
 *
 *     rows      r, c, the running log-sum-exp and the sums for dQ or gQ, each key's row read once
 *     columns   dK or gK, from the r and c that were kept */
#include "backend/cpu/attention/edges.h"

#include <math.h>

#include "base/team/team.h"

enum { EXPECTED = 256 }; /* pairs of a run whose numbers are fetched ahead */

typedef struct fused {
    basin_cpu_edges edges;
    float *rc;                        /* [H, plane, parts] r, or (r, c) */
    basin_attention_state *state;     /* [H, slots of rows] */
    basin_attention_summary *summary; /* [H, queries] */
    float *query_sum;                 /* [H, slots of rows, parts * padded] */
} fused;

static size_t lay_out(fused *f, void *workspace) {
    basin_cpu_edges *e = &f->edges;
    int64_t queries = e->at->pattern.queries, slots = queries + PAIRS_MAX_CHUNKS;
    basin_arena a = {.base = workspace};
    basin_cpu_edges_lay_out(e, &a);
    f->rc = basin_arena_floats(&a, e->heads * e->plane * e->parts);
    f->state = basin_arena_take(&a, e->heads * slots, sizeof *f->state);
    f->summary = basin_arena_take(&a, e->heads * queries, sizeof *f->summary);
    f->query_sum = basin_arena_floats(&a, e->heads * slots * e->parts * e->padded);
    return a.used;
}

static void prepare_slices(const void *context, int64_t first, int64_t last, int place) {
    const fused *f = context;
    const basin_cpu_edges *e = &f->edges;
    int64_t slots = e->heads * (e->rows.nodes + e->rows.chunks);
    int64_t end = basin_cpu_edges_slice(last, slots);
    (void)place;
    basin_cpu_edges_fill(f->query_sum, slots * e->parts * e->padded, 0, first, last);
    for (int64_t i = basin_cpu_edges_slice(first, slots); i < end; i++)
        f->state[i] = (basin_attention_state){.most = -INFINITY};
    basin_cpu_edges_pack(e, first, last);
}

static void prepare(const fused *f) {
    basin_team_run(prepare_slices, f, BASIN_CPU_EDGES_SLICES, 0, f->edges.threads);
    basin_cpu_edges_find_runs(&f->edges);
}

/* Runs of one block lie far apart, out of reach of the processor's own prefetching: asks for the
 * numbers of the run after `fragment`'s. */
static void expect(const basin_cpu_pairs *pairs, basin_cpu_fragment fragment, int64_t block,
                   int64_t chunk, const int32_t *pair) {
    basin_cpu_fragment_next(&fragment, pairs, chunk);
    if (fragment.begin == fragment.end) return;
    basin_cpu_fragment run = basin_cpu_fragment_run(fragment, pairs, block);
    if (run.end - run.begin > EXPECTED) run.end = run.begin + EXPECTED;
    for (int64_t i = run.begin; i < run.end; i += 16) {
        __builtin_prefetch(pairs->other + i, 0, 2);
        if (pair) __builtin_prefetch(pair + i, 0, 2);
    }
}

static void row_chunk(const void *context, int64_t h, int64_t block, int64_t chunk) {
    const fused *f = context;
    const basin_cpu_edges *e = &f->edges;
    const basin_cpu_pairs *rows = &e->rows;
    int64_t stride = e->parts * e->padded, slots = rows->nodes + rows->chunks;
    const float *key = e->key + h * rows->others * stride;
    for (basin_cpu_fragment g = basin_cpu_fragment_first(rows, chunk); g.begin < g.end;
         basin_cpu_fragment_next(&g, rows, chunk)) {
        basin_cpu_fragment run = basin_cpu_fragment_run(g, rows, block);
        expect(rows, g, block, chunk, NULL);
        int64_t slot = h * slots + g.slot;
        const float *query = e->query + (h * rows->nodes + g.node) * stride;
        float *rc = f->rc + (h * e->plane + run.begin) * e->parts;
        (e->parts == 2 ? e->kernels->reverse_row : e->kernels->force_row)(
            f->state + slot, f->query_sum + slot * stride, rc, query, key, rows->other + run.begin,
            run.end - run.begin, e->padded, e->at->beta[h]);
    }
}

/* Takes the sums of a later part of a row into those of the row: both under the larger most, and in
 * reverse about the row's center. */
static void merge(basin_attention_state *to, float *to_sum, basin_attention_state from,
                  const float *from_sum, const basin_cpu_edges *e, float beta) {
    float most = fmaxf(to->most, from.most);
    float keep = expf(to->most - most), add = expf(from.most - most);
    float shift = from.center - to->center;
    to->most = most;
    to->total = to->total * keep + from.total * add;
    to->slope = to->slope * keep + from.slope * add;
    to->gain = to->gain * keep + (from.gain + shift * from.total) * add;
    to->gain_slope = to->gain_slope * keep + (from.gain_slope + shift * from.slope) * add;
    for (int64_t i = 0; i < e->padded; i++) {
        float more = from_sum[i];
        if (e->parts == 2) {
            more += beta * shift * from_sum[e->padded + i];
            to_sum[e->padded + i] = to_sum[e->padded + i] * keep + from_sum[e->padded + i] * add;
        }
        to_sum[i] = to_sum[i] * keep + more * add;
    }
}

static void merge_rows(const fused *f) {
    const basin_cpu_edges *e = &f->edges;
    int64_t slots = e->rows.nodes + e->rows.chunks, stride = e->parts * e->padded;
    for (int64_t chunk = 0; chunk < e->rows.chunks; chunk++) {
        int64_t node = basin_cpu_pairs_continued(&e->rows, chunk);
        for (int64_t h = 0; node >= 0 && h < e->heads; h++) {
            int64_t to = h * slots + node, from = h * slots + e->rows.nodes + chunk;
            merge(f->state + to, f->query_sum + to * stride, f->state[from],
                  f->query_sum + from * stride, e, e->at->beta[h]);
        }
    }
}

/* Writes what a query's sums come to: lse or gw, dQ or gQ, the summary for the columns; and leaves
 * the query's share of dbeta or gbeta in its state's slope. */
static void close_row(const fused *f, int64_t node, int64_t h) {
    const basin_cpu_edges *e = &f->edges;
    int64_t slot = h * (e->rows.nodes + e->rows.chunks) + node, at = node * e->heads + h;
    basin_attention_state *s = f->state + slot;
    bool reverse = e->mode == BASIN_ATTENTION_REVERSE, any = s->total != 0;
    float beta = e->at->beta[h], w = e->at->w[at], inverse = any ? 1 / s->total : 0;
    float offset = s->gain * inverse, mean = s->center + offset, scale = beta * w * inverse;
    const float *sum = f->query_sum + slot * e->parts * e->padded;
    float *out = e->out_query ? e->out_query + at * e->width : NULL;
    f->summary[h * e->rows.nodes + node] =
        (basin_attention_summary){.most = any ? s->most : 0, .weight = scale, .mean = mean};
    if (reverse) {
        if (e->at->gw) e->at->gw[at] = beta * mean;
        s->slope = w * mean + scale * (s->gain_slope - offset * s->slope);
        for (int64_t i = 0; out && i < e->width; i++)
            out[i] = scale * (sum[i] - beta * offset * sum[e->padded + i]);
    } else {
        if (e->at->lse) e->at->lse[at] = any ? s->most + logf(s->total) : 0;
        s->slope *= w * inverse;
        for (int64_t i = 0; out && i < e->width; i++) out[i] = scale * sum[i];
    }
}

static void close_nodes(const void *context, int64_t first, int64_t last, int place) {
    const fused *f = context;
    (void)place;
    for (int64_t node = first; node < last; node++)
        for (int64_t h = 0; h < f->edges.heads; h++) close_row(f, node, h);
}

static void add_slopes(const void *context, int64_t first, int64_t last, int place) {
    const fused *f = context;
    const basin_cpu_edges *e = &f->edges;
    int64_t slots = e->rows.nodes + e->rows.chunks;
    (void)place;
    for (int64_t h = first; h < last; h++) {
        double sum = 0;
        for (int64_t node = 0; node < e->rows.nodes; node++)
            sum += f->state[h * slots + node].slope;
        e->out_beta[h] = (float)sum;
    }
}

static void close_rows(const fused *f) {
    const basin_cpu_edges *e = &f->edges;
    merge_rows(f);
    basin_team_run(close_nodes, f, e->rows.nodes, 0, e->threads);
    if (e->out_beta) basin_team_run(add_slopes, f, e->heads, 1, e->threads);
}

static void column_chunk(const void *context, int64_t h, int64_t block, int64_t chunk) {
    const fused *f = context;
    const basin_cpu_edges *e = &f->edges;
    const basin_cpu_pairs *columns = &e->columns;
    int64_t stride = e->parts * e->padded, slots = columns->nodes + columns->chunks;
    for (basin_cpu_fragment g = basin_cpu_fragment_first(columns, chunk); g.begin < g.end;
         basin_cpu_fragment_next(&g, columns, chunk)) {
        basin_cpu_fragment run = basin_cpu_fragment_run(g, columns, block);
        expect(columns, g, block, chunk, e->at->pattern.pair);
        (e->parts == 2 ? e->kernels->reverse_column : e->kernels->force_column)(
            e->key_sum + (h * slots + g.slot) * e->padded, f->rc + h * e->plane * e->parts,
            e->at->pattern.pair + run.begin, f->summary + h * columns->others,
            e->query + h * columns->others * stride, columns->other + run.begin,
            run.end - run.begin, e->padded, e->at->beta[h]);
    }
}

size_t basin_attention_fused_workspace(const basin_attention *at, basin_attention_mode mode) {
    fused f = {.edges = basin_cpu_edges_new(at, mode, 1)};
    return lay_out(&f, NULL);
}

void basin_attention_fused(const basin_attention *at, basin_attention_mode mode, int threads,
                           void *workspace) {
    fused f = {.edges = basin_cpu_edges_new(at, mode, threads)};
    basin_cpu_edges *e = &f.edges;
    basin_cpu_edges_cut(e);
    lay_out(&f, workspace);
    prepare(&f);
    basin_cpu_edges_each(&f, row_chunk, e, &e->rows);
    close_rows(&f);
    if (!e->out_key) return;
    basin_cpu_edges_each(&f, column_chunk, e, &e->columns);
    basin_cpu_edges_write(e->out_key, e->key_sum, e, &e->columns);
}
