/* Smoothing node by node, as basin_smooth has it as an expression: z <- a h + (1 - a) (S + S') z /
 * 2, S = D^-1/2 (A + I) D^-1/2; see settle.h. */
#include "task/nodes/stream/settle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/team/team.h"

typedef struct smoothing {
    const basin_stream_graph *graph;
    bool keep_self; /* loops of the data count beside the one that each node has */
    int64_t classes;
    double anchor;
    double *own, *next; /* [N, C] */
    double *root;       /* [N] */
} smoothing;

static void find_roots(smoothing *s) {
    const basin_stream_graph *g = s->graph;
    for (int64_t i = 0; i < g->nodes; i++) {
        int64_t count = 1;
        for (int64_t e = g->row[i]; e < g->row[i + 1]; e++) count += s->keep_self || g->key[e] != i;
        s->root[i] = 1 / sqrt((double)count);
    }
}

/* sum [C] += half of what node i hears along one of the lists. */
static void hear(double *sum, const smoothing *s, const double *z, int64_t i, const int64_t *begin,
                 const int32_t *other) {
    int64_t C = s->classes;
    for (int64_t e = begin[i]; e < begin[i + 1]; e++) {
        int64_t j = other[e];
        double part = 0.5 * s->root[j];
        if (j == i && !s->keep_self) continue;
        for (int64_t c = 0; c < C; c++) sum[c] += part * z[j * C + c];
    }
}

typedef struct stepping {
    const smoothing *smoothing;
    const double *z; /* [nodes, C] */
} stepping;

static void step_nodes(const void *context, int64_t first, int64_t last, int place) {
    const smoothing *s = ((const stepping *)context)->smoothing;
    const double *z = ((const stepping *)context)->z;
    const basin_stream_graph *g = s->graph;
    int64_t C = s->classes;
    (void)place;
    for (int64_t i = first; i < last; i++) {
        double *sum = s->next + i * C;
        for (int64_t c = 0; c < C; c++) sum[c] = s->root[i] * z[i * C + c];
        hear(sum, s, z, i, g->row, g->key);
        hear(sum, s, z, i, g->column, g->query);
        for (int64_t c = 0; c < C; c++)
            sum[c] = s->anchor * s->own[i * C + c] + (1 - s->anchor) * s->root[i] * sum[c];
    }
}

static void step(const smoothing *s, double *z) {
    int64_t nodes = s->graph->nodes;
    stepping now = {s, z};
    basin_team_run_all(step_nodes, &now, nodes, 256);
    memcpy(z, s->next, (size_t)(nodes * s->classes) * sizeof *z);
}

static basin_status smooth(double *z, const basin_stream_graph *graph,
                           const basin_nodes_settings *r, basin_error *error) {
    smoothing s = {.graph = graph,
                   .keep_self = basin_choice_is(r->self_loops, "keep"),
                   .classes = r->classes,
                   .anchor = r->anchor};
    size_t rows = (size_t)graph->nodes, row = (size_t)r->classes * sizeof(double);
    s.own = basin_array_new(rows, row);
    s.next = basin_array_new(rows, row);
    s.root = basin_array_new(rows, sizeof *s.root);
    basin_status status = s.own && s.next && s.root ? BASIN_OK : BASIN_NO_MEMORY;
    if (status) basin_fail(error, status, "out of memory to smooth %zu nodes", rows);
    if (!status) {
        memcpy(s.own, z, rows * row);
        find_roots(&s);
        for (int64_t t = 0; t < r->smoothing; t++) step(&s, z);
    }
    free(s.own), free(s.next), free(s.root);
    return status;
}

static void to_probabilities(double *z, int64_t classes) {
    double most = z[0], sum = 0;
    for (int64_t c = 1; c < classes; c++) most = fmax(most, z[c]);
    for (int64_t c = 0; c < classes; c++) sum += z[c] = exp(z[c] - most);
    for (int64_t c = 0; c < classes; c++) z[c] /= sum;
}

basin_status basin_stream_settle(double *value, const basin_stream_graph *graph,
                                 const basin_nodes_settings *settings, basin_error *error) {
    basin_status status =
        settings->smoothing > 0 ? smooth(value, graph, settings, error) : BASIN_OK;
    for (int64_t i = 0; i < graph->nodes && !status; i++)
        to_probabilities(value + i * settings->classes, settings->classes);
    return status;
}
