/* Energy attention over a CSR list: packing, cutting and summing, for both of its forms. */
#include "backend/cpu/attention/edges.h"

#include <string.h>

#include "base/team/team.h"

static int64_t row_bytes(const basin_cpu_edges *e) {
    return e->parts * e->padded * (int64_t)sizeof(float);
}

basin_cpu_edges basin_cpu_edges_new(const basin_attention *at, basin_attention_mode mode,
                                    int threads) {
    int64_t align = ATTENTION_ALIGN;
    bool force = mode == BASIN_ATTENTION_FORCE, reverse = mode == BASIN_ATTENTION_REVERSE;
    return (basin_cpu_edges){.at = at,
                             .kernels = basin_attention_kernels_find(),
                             .mode = mode,
                             .threads = threads,
                             .heads = at->pattern.heads,
                             .width = at->pattern.width,
                             .padded = (at->pattern.width + align - 1) / align * align,
                             .parts = reverse ? 2 : 1,
                             .plane = (at->pattern.pairs + align - 1) / align * align,
                             .out_query = reverse ? at->gq
                                          : force ? at->dq
                                                  : NULL,
                             .out_key = reverse ? at->gk
                                        : force ? at->dk
                                                : NULL,
                             .out_beta = reverse ? at->gbeta
                                         : force ? at->dbeta
                                                 : NULL};
}

void basin_cpu_edges_lay_out(basin_cpu_edges *e, basin_arena *arena) {
    const basin_attention_pattern *p = &e->at->pattern;
    int64_t stride = e->parts * e->padded, key_slots = p->keys + PAIRS_MAX_CHUNKS;
    size_t cuts = basin_cpu_pairs_cut_size(e->plane, p->queries, p->keys, row_bytes(e));
    e->query = basin_arena_floats(arena, e->heads * p->queries * stride);
    e->key = basin_arena_floats(arena, e->heads * p->keys * stride);
    e->rows.cut = basin_arena_take(arena, (int64_t)cuts, sizeof(int32_t));
    if (!e->out_key) return;
    e->key_sum = basin_arena_floats(arena, e->heads * key_slots * e->padded);
    cuts = basin_cpu_pairs_cut_size(e->plane, p->keys, p->queries, row_bytes(e));
    e->columns.cut = basin_arena_take(arena, (int64_t)cuts, sizeof(int32_t));
}

void basin_cpu_edges_cut(basin_cpu_edges *e) {
    const basin_attention_pattern *p = &e->at->pattern;
    e->rows = basin_cpu_pairs_cut(p->row, p->key, p->queries, p->keys, row_bytes(e));
    if (e->out_key)
        e->columns = basin_cpu_pairs_cut(p->column, p->query, p->keys, p->queries, row_bytes(e));
}

/* to[h, node, part] = from[node, h], padded with zeros; zeros alone for NULL. */
static void pack(float *to, const float *from, const basin_cpu_edges *e, int64_t nodes,
                 int64_t part, int64_t first, int64_t last) {
    int64_t end = basin_cpu_edges_slice(last, nodes);
    for (int64_t node = basin_cpu_edges_slice(first, nodes); node < end; node++)
        for (int64_t h = 0; h < e->heads; h++) {
            float *row = to + ((h * nodes + node) * e->parts + part) * e->padded;
            int64_t filled = from ? e->width : 0;
            if (from)
                memcpy(row, from + (node * e->heads + h) * e->width,
                       (size_t)e->width * sizeof *row);
            memset(row + filled, 0, (size_t)(e->padded - filled) * sizeof *row);
        }
}

void basin_cpu_edges_fill(float *x, int64_t count, float value, int64_t first, int64_t last) {
    int64_t end = basin_cpu_edges_slice(last, count);
    for (int64_t i = basin_cpu_edges_slice(first, count); i < end; i++) x[i] = value;
}

void basin_cpu_edges_pack(const basin_cpu_edges *e, int64_t first, int64_t last) {
    const basin_attention_pattern *p = &e->at->pattern;
    int64_t sums = e->heads * (p->keys + e->columns.chunks) * e->padded;
    pack(e->query, e->at->q, e, p->queries, 0, first, last);
    pack(e->key, e->at->k, e, p->keys, 0, first, last);
    if (e->parts == 2) {
        pack(e->query, e->at->a, e, p->queries, 1, first, last);
        pack(e->key, e->at->b, e, p->keys, 1, first, last);
    }
    if (e->key_sum) basin_cpu_edges_fill(e->key_sum, sums, 0, first, last);
}

void basin_cpu_edges_find_runs(const basin_cpu_edges *e) {
    basin_cpu_pairs_find_runs(&e->rows, e->threads);
    if (e->out_key) basin_cpu_pairs_find_runs(&e->columns, e->threads);
}

/* One block of what basin_cpu_edges_each does. */
typedef struct pass {
    const void *context;
    basin_cpu_edges_chunk chunk;
    int64_t chunks, block;
} pass;

static void run_pass(const void *context, int64_t first, int64_t last, int place) {
    const pass *p = context;
    (void)place;
    for (int64_t i = first; i < last; i++)
        p->chunk(p->context, i / p->chunks, p->block, i % p->chunks);
}

void basin_cpu_edges_each(const void *context, basin_cpu_edges_chunk chunk,
                          const basin_cpu_edges *e, const basin_cpu_pairs *pairs) {
    for (int64_t block = 0; block < pairs->blocks; block++) {
        pass p = {context, chunk, pairs->chunks, block};
        basin_team_run(run_pass, &p, e->heads * pairs->chunks, 1, e->threads);
    }
}

/* sums[h, node] += sums[h, extra slot] for the nodes that are cut by chunks. */
static void fold_slots(float *sums, const basin_cpu_edges *e, const basin_cpu_pairs *pairs) {
    int64_t slots = pairs->nodes + pairs->chunks;
    for (int64_t chunk = 0; chunk < pairs->chunks; chunk++) {
        int64_t node = basin_cpu_pairs_continued(pairs, chunk);
        for (int64_t h = 0; node >= 0 && h < e->heads; h++) {
            float *to = sums + (h * slots + node) * e->padded;
            const float *from = sums + (h * slots + pairs->nodes + chunk) * e->padded;
            for (int64_t i = 0; i < e->padded; i++) to[i] += from[i];
        }
    }
}

typedef struct writing {
    float *out;
    const float *sums;
    const basin_cpu_edges *edges;
    int64_t slots;
} writing;

static void write_nodes(const void *context, int64_t first, int64_t last, int place) {
    const writing *w = context;
    const basin_cpu_edges *e = w->edges;
    (void)place;
    for (int64_t node = first; node < last; node++)
        for (int64_t h = 0; h < e->heads; h++)
            memcpy(w->out + (node * e->heads + h) * e->width,
                   w->sums + (h * w->slots + node) * e->padded, (size_t)e->width * sizeof *w->out);
}

void basin_cpu_edges_write(float *out, float *sums, const basin_cpu_edges *e,
                           const basin_cpu_pairs *pairs) {
    writing w = {out, sums, e, pairs->nodes + pairs->chunks};
    fold_slots(sums, e, pairs);
    basin_team_run(write_nodes, &w, pairs->nodes, 0, e->threads);
}
