/* What biases the scores of pairs: columns of edges, scaled by the ranks of training; see edges.h.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "base/team/team.h"
#include "data/network/network.h"
#include "task/nodes/edges/edges.h"

enum { FITTED = 200000 }; /* edges that are enough to learn a scale from */

static int64_t count_edges(const basin_edge_reader *reader, const basin_network *n,
                           const int64_t *node, int64_t nodes) {
    int64_t count = 0;
    for (int r = 0; r < reader->relations; r++) {
        const int64_t *row = n->relation[reader->relation[r]].row;
        for (int64_t i = 0; i < nodes; i++) count += row[node[i] + 1] - row[node[i]];
    }
    return count;
}

basin_status basin_edge_scale_fit(basin_scaler *scale, const basin_edge_reader *reader,
                                  const basin_network *network, const int64_t *node, int64_t nodes,
                                  basin_error *error) {
    const basin_facts *facts = &network->facts;
    int64_t width = basin_facts_width(facts), edges = count_edges(reader, network, node, nodes);
    int64_t step = 1 + edges / FITTED, seen = 0, kept = 0, rows = edges / step + 1;
    float *x = calloc((size_t)(rows * width), sizeof *x);
    int64_t *all = basin_array_new((size_t)rows, sizeof *all);
    basin_status status = x && all ? BASIN_OK : BASIN_NO_MEMORY;
    if (status) basin_fail(error, status, "out of memory for a scale of edges");
    for (int r = 0; r < reader->relations && !status; r++) {
        const basin_relation *relation = &network->relation[reader->relation[r]];
        for (int64_t i = 0; i < nodes; i++)
            for (int64_t e = relation->row[node[i]]; e < relation->row[node[i] + 1]; e++)
                if (seen++ % step == 0)
                    basin_facts_columns(x + kept++ * width, facts,
                                        relation->fact + e * facts->count);
    }
    if (kept == 0) kept = 1; /* training nodes without edges: all zeros */
    for (int64_t i = 0; i < kept && !status; i++) all[i] = i;
    if (!status) status = basin_scaler_fit(scale, BASIN_SCALE_QUANTILE, x, width, all, kept, error);
    free(x);
    free(all);
    return status;
}

typedef struct filling {
    float *x; /* [pairs, width] */
    const basin_edge_reader *reader;
    const basin_relation *relation;
    const basin_facts *facts;
    const basin_pairs *pairs;
} filling;

static void fill_queries(const void *context, int64_t first, int64_t last, int place) {
    const filling *f = context;
    int64_t width = basin_facts_width(f->facts);
    (void)place;
    for (int64_t q = first; q < last; q++)
        for (int64_t p = f->pairs->row[q]; p < f->pairs->row[q + 1]; p++) {
            int64_t e = basin_relation_find(f->relation, q, f->pairs->key[p]);
            float *x = f->x + p * width;
            if (e < 0 || (f->reader->add_self && f->pairs->key[p] == q)) continue;
            basin_facts_columns(x, f->facts, f->relation->fact + e * f->facts->count);
            basin_scaler_apply(x, f->reader->scale, x, 1);
        }
}

basin_status basin_edge_facts(float **result, const basin_edge_reader *reader,
                              const basin_network *network, int r, const basin_pairs *pairs,
                              basin_error *error) {
    const basin_relation *relation = &network->relation[reader->relation[r]];
    const basin_facts *facts = &network->facts;
    int64_t width = basin_facts_width(facts);
    size_t count;
    float *x = NULL;
    if (basin_size_multiply(&count, (size_t)pairs->pairs, (size_t)width))
        x = calloc(count + 1, sizeof *x);
    *result = x;
    if (!x) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for facts of edges");
    filling f = {x, reader, relation, facts, pairs};
    basin_team_run_all(fill_queries, &f, pairs->queries, 256);
    return BASIN_OK;
}

typedef struct weighing {
    float *bias; /* [edges, heads] */
    const basin_edge_reader *reader;
    const basin_relation *relation;
    const basin_facts *facts;
    const float *we; /* [width, heads] */
    int64_t heads;
} weighing;

/* Returns the first edge of those that there was no memory for. */
static int64_t weigh_edges(const void *context, int64_t first, int64_t last) {
    const weighing *w = context;
    int64_t width = basin_facts_width(w->facts);
    float *x = malloc((size_t)width * sizeof *x);
    for (int64_t e = first; x && e < last; e++) {
        basin_facts_columns(x, w->facts, w->relation->fact + e * w->facts->count);
        basin_scaler_apply(x, w->reader->scale, x, 1);
        for (int64_t h = 0; h < w->heads; h++) {
            float sum = 0;
            for (int64_t c = 0; c < width; c++) sum += x[c] * w->we[c * w->heads + h];
            w->bias[e * w->heads + h] = sum;
        }
    }
    free(x);
    return x ? last : first;
}

basin_status basin_edge_bias(float *bias, const basin_edge_reader *reader,
                             const basin_network *network, int r, const float *we, int64_t heads,
                             basin_error *error) {
    const basin_relation *relation = &network->relation[reader->relation[r]];
    weighing w = {bias, reader, relation, &network->facts, we, heads};
    bool room = basin_team_find(weigh_edges, &w, relation->edges, 0) == relation->edges;
    return room ? BASIN_OK
                : basin_fail(error, BASIN_NO_MEMORY, "out of memory for biases of edges");
}
