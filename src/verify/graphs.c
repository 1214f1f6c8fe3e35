/* Golden cases "graph" and "graph_mixed": classification of a few graphs in one batch without
 * padding. The file lists each graph on its own; here they are laid behind one another, each
 * graph's CLS token before its nodes. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "basin/model.h"
#include "verify/verify.h"

enum { MOST_GRAPHS = 10000 };

typedef struct layout {
    int graphs;
    int64_t nodes, tokens, edges; /* edges: those of the file, and one from each CLS to each node */
    int64_t *first;               /* [graphs + 1] CLS token of each graph */
    int32_t *edge;                /* [edges, 2] */
    int64_t wide;                 /* P, numbers an edge */
} layout;

static const char *part(char name[BASIN_CASE_WORD], int graph, const char *what) {
    snprintf(name, BASIN_CASE_WORD, "graph%d.%s", graph, what);
    return name;
}

static bool measure(basin_case *c, layout *l) {
    char name[BASIN_CASE_WORD];
    double graphs = basin_case_number(c, "graphs");
    if (!(graphs >= 1 && graphs <= MOST_GRAPHS)) {
        basin_graph_fail(c->graph, BASIN_BAD_VALUE, "%s: %g graphs; wanted 1 to %d",
                         basin_bundle_path(c->bundle), graphs, MOST_GRAPHS);
        return false;
    }
    l->graphs = (int)graphs;
    l->wide = basin_case_dim(c, "adj_w", 2, 0);
    l->first = calloc((size_t)l->graphs + 1, sizeof *l->first);
    if (!l->first) return false;
    for (int i = 0; i < l->graphs; i++) {
        int64_t nodes = basin_case_dim(c, part(name, i, "features"), 2, 0);
        l->first[i + 1] = l->first[i] + nodes + 1;
        l->nodes += nodes;
        l->edges += nodes + basin_case_dim(c, part(name, i, "edges"), 2, 0);
    }
    l->tokens = l->first[l->graphs];
    l->edge = basin_array_new((size_t)l->edges, 2 * sizeof *l->edge);
    return l->edge && !basin_graph_error(c->graph);
}

/* The edges of all graphs, numbered by token, CLS edges of a graph before its own. */
static bool list_edges(basin_case *c, layout *l) {
    char name[BASIN_CASE_WORD];
    int32_t *at = l->edge;
    bool good = true;
    for (int i = 0; i < l->graphs && good; i++) {
        basin_tensor edges = basin_case_integers(c, part(name, i, "edges"), 2);
        int64_t first = l->first[i], nodes = l->first[i + 1] - first - 1;
        good = edges.data && edges.shape.dim[1] == 2;
        for (int64_t n = 1; n <= nodes && good; n++, at += 2)
            at[0] = (int32_t)first, at[1] = (int32_t)(first + n);
        const int32_t *end = edges.data;
        for (int64_t e = 0; good && e < 2 * edges.shape.dim[0]; e++) {
            good = end[e] >= 0 && end[e] < nodes;
            *at++ = good ? (int32_t)(first + 1 + end[e]) : 0;
        }
        if (!good)
            basin_graph_fail(c->graph, BASIN_BAD_VALUE,
                             "%s: in.%s; wanted [edges, 2] of nodes 0 to %lld",
                             basin_bundle_path(c->bundle), name, (long long)nodes - 1);
        basin_tensor_free(&edges);
    }
    return good;
}

/* Rows of every graph's tensor `what` behind one another, for the input. */
static void write_stacked(basin_case *c, const layout *l, basin_expr input, const char *what) {
    char name[BASIN_CASE_WORD];
    basin_tensor all;
    basin_error error;
    if (!input || basin_tensor_new(&all, BASIN_F64, basin_expr_shape(input), &error)) return;
    double *at = all.data;
    int64_t left = basin_shape_count(all.shape), wide = all.shape.dim[1];
    for (int i = 0; i < l->graphs; i++) {
        const basin_tensor *one = basin_case_tensor(c, part(name, i, what), 2);
        if (!one || one->shape.dim[1] != wide || basin_shape_count(one->shape) > left) {
            basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "%s: in.%s; wanted %lld columns",
                             basin_bundle_path(c->bundle), name, (long long)wide);
            break;
        }
        basin_tensor view = basin_tensor_borrow(at, BASIN_F64, one->shape);
        basin_tensor_convert(&view, one, &error);
        at += basin_shape_count(one->shape);
        left -= basin_shape_count(one->shape);
    }
    basin_case_write(c, input, &all);
}

/* Each edge's numbers at both of its pairs; 1 in every column at pairs with a CLS. */
static void write_edge_features(basin_case *c, const layout *l, basin_expr input) {
    char name[BASIN_CASE_WORD];
    basin_tensor all;
    basin_error error;
    if (!input || basin_tensor_new(&all, BASIN_F64, basin_expr_shape(input), &error)) return;
    double *to = all.data;
    const int32_t *edge = l->edge;
    for (int i = 0; i < l->graphs; i++) {
        const basin_tensor *own = basin_case_tensor(c, part(name, i, "edge_features"), 2);
        int64_t nodes = l->first[i + 1] - l->first[i] - 1;
        int64_t edges = basin_case_dim(c, part(name, i, "edges"), 2, 0);
        if (!own || own->shape.dim[0] != edges || own->shape.dim[1] != l->wide) {
            basin_graph_fail(c->graph, BASIN_BAD_SHAPE,
                             "%s: in.graph%d.edge_features; wanted [%lld, %lld]",
                             basin_bundle_path(c->bundle), i, (long long)edges, (long long)l->wide);
            break;
        }
        for (int64_t e = -nodes; e < edges; e++, edge += 2)
            for (int64_t p = 0; p < l->wide; p++) {
                double value = e < 0 ? 1 : basin_tensor_at(own, e * l->wide + p);
                to[basin_pairs_find(c->pairs, edge[0], edge[1]) * l->wide + p] = value;
                to[basin_pairs_find(c->pairs, edge[1], edge[0]) * l->wide + p] = value;
            }
    }
    basin_case_write(c, input, &all);
}

static void write_indices(basin_case *c, const layout *l, const basin_graphs_batch *batch) {
    basin_expr input[4] = {batch->source, batch->before, batch->after, batch->first};
    basin_tensor index[4] = {0};
    bool good = true;
    for (int k = 0; k < 4; k++)
        good = good && !basin_tensor_new(&index[k], BASIN_I32, basin_expr_shape(input[k]), NULL);
    int32_t *source = index[0].data, *before = index[1].data, *after = index[2].data;
    for (int i = 0, node = 0; i < l->graphs && good; i++) {
        ((int32_t *)index[3].data)[i] = (int32_t)l->first[i];
        for (int64_t t = l->first[i]; t < l->first[i + 1]; t++) {
            source[t] = t == l->first[i] ? -1 : node++;
            before[t] = t == l->first[i] ? -1 : (int32_t)t - 1;
            after[t] = t + 1 == l->first[i + 1] ? -1 : (int32_t)t + 1;
        }
    }
    for (int k = 0; k < 4; k++) basin_case_write(c, input[k], &index[k]);
}

/* The label's share 1 - smoothing, and smoothing spread over all classes: [graphs, C]. */
static basin_expr target(basin_case *c, const layout *l, int64_t classes) {
    double smoothing = basin_case_number(c, "smoothing");
    basin_tensor label = basin_case_integers(c, "label", 1), all = {0};
    basin_expr input = basin_input(c->graph, "target", BASIN_SHAPE(l->graphs, classes));
    bool good = input && label.data && label.shape.dim[0] == l->graphs &&
                !basin_tensor_new(&all, BASIN_F64, basin_expr_shape(input), NULL);
    for (int64_t i = 0; i < l->graphs * classes && good; i++) {
        bool hit = ((int32_t *)label.data)[i / classes] == i % classes;
        ((double *)all.data)[i] = smoothing / (double)classes + (hit ? 1 - smoothing : 0);
    }
    if (!good)
        basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "%s: in.label; wanted [%d]",
                         basin_bundle_path(c->bundle), l->graphs);
    basin_case_write(c, input, &all);
    basin_tensor_free(&label);
    return input;
}

static void add_model(basin_case *c, const layout *l) {
    basin_graphs model;
    basin_graphs_config config = {.features = basin_case_dim(c, "enc_w", 2, 0),
                                  .edge_features = l->wide,
                                  .positions = basin_case_dim(c, "pos_w", 2, 0),
                                  .outputs = basin_case_dim(c, "dec_w", 2, 1),
                                  .blocks = (int)basin_case_number(c, "blocks"),
                                  .block = basin_case_block(c, "block0."),
                                  .descent = basin_case_descent(c)};
    config.block.mix = basin_case_flag(c, "mixed");
    basin_case_pairs(c, 0, l->tokens, l->edge, l->edges, BASIN_PAIRS_BOTH_WAYS);
    if (basin_graph_error(c->graph) || basin_graphs_declare(&model, &c->params, &config)) return;
    basin_graphs_batch batch =
        basin_graphs_inputs(&model, c->graph, l->graphs, l->nodes, c->pairs[0].pairs);
    if (basin_graph_error(c->graph)) return;
    c->pattern[0] = batch.pattern;
    write_stacked(c, l, batch.nodes, "features");
    write_stacked(c, l, batch.positions, "pe");
    write_edge_features(c, l, batch.edge_features);
    write_indices(c, l, &batch);
    basin_expr logits = basin_graphs_forward(&model, &batch);
    basin_expr loss = basin_cross_entropy(logits, target(c, l, config.outputs));
    basin_case_output_add(c, logits, "out.logits");
    basin_case_output_add(c, loss, "out.loss");
    basin_case_gradients(c, loss, NULL);
}

void basin_case_build_graphs(basin_case *c) {
    layout l = {0};
    if (measure(c, &l) && list_edges(c, &l))
        add_model(c, &l);
    else
        basin_graph_fail(c->graph, BASIN_NO_MEMORY, "%s: out of memory",
                         basin_bundle_path(c->bundle));
    free(l.first);
    free(l.edge);
}
