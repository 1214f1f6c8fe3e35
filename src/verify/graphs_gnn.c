/* Golden cases "gin", "gin_edges" and "gcn": GIN and GCN on a few graphs, laid out as the graph
 * task lays them out. The file has nodes and edges of all graphs in a row. Compared are the outputs
 * in use, and in training the loss, its gradients and the statistics after a step. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "basin/model.h"
#include "basin/tasks/graphset.h"
#include "verify/verify.h"

/* What a case is laid out with; all of it is freed by layout_free. */
typedef struct layout {
    basin_tensor nodes_of, edges, label; /* whole numbers [G], [E, 2], [G] */
    basin_tensor feature, edge_feature;  /* float32 */
    int64_t *nodes, *from, *to;          /* [G] [E] [E] */
    basin_graphset set;
    basin_graphset_encoding encoding;
    basin_positions positions; /* owns `value` */
    basin_graphset_batch batch;
} layout;

static void layout_free(layout *l) {
    basin_tensor_free(&l->nodes_of);
    basin_tensor_free(&l->edges);
    basin_tensor_free(&l->label);
    basin_tensor_free(&l->feature);
    basin_tensor_free(&l->edge_feature);
    free(l->nodes);
    free(l->from);
    free(l->to);
    free(l->positions.value);
    basin_graphset_encoding_free(&l->encoding);
    basin_graphset_batch_free(&l->batch);
    basin_graphset_free(&l->set);
}

static basin_status wrong(basin_case *c, const char *what) {
    basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "%s: %s", basin_bundle_path(c->bundle), what);
    return BASIN_BAD_SHAPE;
}

static basin_tensor reals(basin_case *c, const char *name) {
    const basin_tensor *from = basin_case_tensor(c, name, 2);
    basin_tensor to = {0};
    if (!from || basin_tensor_new(&to, BASIN_F32, from->shape, NULL)) return to;
    basin_tensor_convert(&to, from, NULL);
    return to;
}

static int64_t *widen(const basin_tensor *from, int64_t first, int64_t step, int64_t count) {
    int64_t *to = basin_array_new((size_t)count, sizeof *to);
    const int32_t *number = from->data;
    for (int64_t i = 0; to && i < count; i++) to[i] = number[first + i * step];
    return to;
}

static basin_status read_arrays(basin_case *c, layout *l) {
    l->nodes_of = basin_case_integers(c, "nodes_of", 1);
    l->edges = basin_case_integers(c, "edges", 2);
    l->label = basin_case_integers(c, "label", 1);
    l->feature = reals(c, "features");
    if (basin_bundle_find(c->bundle, "in.edge_features"))
        l->edge_feature = reals(c, "edge_features");
    if (!l->nodes_of.data || !l->edges.data || !l->label.data || !l->feature.data ||
        l->edges.shape.dim[1] != 2 || l->label.shape.dim[0] != l->nodes_of.shape.dim[0])
        return wrong(c, "wanted in.nodes_of [G], in.label [G], in.edges [E, 2], in.features");
    if (l->edge_feature.data && l->edge_feature.shape.dim[0] != l->edges.shape.dim[0])
        return wrong(c, "wanted a row of in.edge_features for each of in.edges");
    l->nodes = widen(&l->nodes_of, 0, 1, l->nodes_of.shape.dim[0]);
    l->from = widen(&l->edges, 0, 2, l->edges.shape.dim[0]);
    l->to = widen(&l->edges, 1, 2, l->edges.shape.dim[0]);
    return l->nodes && l->from && l->to ? BASIN_OK : wrong(c, "out of memory for a set");
}

static basin_status make_set(basin_case *c, layout *l) {
    basin_error error;
    basin_graphset_arrays arrays = {.size = sizeof arrays,
                                    .graphs = l->nodes_of.shape.dim[0],
                                    .nodes = l->nodes,
                                    .edges = l->edges.shape.dim[0],
                                    .from = l->from,
                                    .to = l->to,
                                    .node_attributes = l->feature.shape.dim[1],
                                    .node_attribute = l->feature.data,
                                    .edge_attribute = l->edge_feature.data};
    if (l->edge_feature.data) arrays.edge_attributes = l->edge_feature.shape.dim[1];
    int64_t nodes = 0;
    for (int64_t g = 0; g < arrays.graphs; g++) nodes += l->nodes[g];
    if (nodes != l->feature.shape.dim[0]) return wrong(c, "wanted a row of in.features a node");
    basin_status status = basin_graphset_from_arrays(&l->set, &arrays, &error);
    if (status) basin_graph_fail(c->graph, status, "%s", error.text);
    return status;
}

/* Rows of nodes from the file; those of CLS tokens hold a number that nobody may see. */
static basin_status make_positions(basin_case *c, layout *l) {
    const basin_tensor *own = basin_bundle_find(c->bundle, "in.positions");
    if (!own) return BASIN_OK;
    int64_t tokens = l->set.nodes + l->set.graphs, k = own->shape.dim[1], node = 0;
    if (own->shape.rank != 2 || own->shape.dim[0] != l->set.nodes)
        return wrong(c, "wanted in.positions [nodes, k]");
    l->positions = (basin_positions){.tokens = tokens, .width = k, .spec = {.walks = k}};
    l->positions.value = basin_array_new((size_t)(tokens * k), sizeof *l->positions.value);
    if (!l->positions.value) return wrong(c, "out of memory for positions");
    float *to = l->positions.value;
    for (int64_t g = 0; g < l->set.graphs; g++)
        for (int64_t n = -1; n < l->nodes[g]; n++) {
            for (int64_t i = 0; i < k; i++)
                *to++ = n < 0 ? 7 : (float)basin_tensor_at(own, node * k + i);
            node += n >= 0;
        }
    return BASIN_OK;
}

static basin_status fill_batch(basin_case *c, layout *l) {
    basin_error error;
    basin_encoding_spec plain = {0};
    int64_t *all = basin_array_new((size_t)l->set.graphs, sizeof *all);
    if (!all) return wrong(c, "out of memory for a batch");
    for (int64_t g = 0; g < l->set.graphs; g++) all[g] = g;
    basin_status status =
        basin_graphset_encoding_new(&l->encoding, &l->set, all, l->set.graphs, &plain, &error);
    if (!status)
        status = basin_graphset_batch_fill(&l->batch, &l->set, &l->encoding, &l->positions, all,
                                           l->set.graphs, false, 0, 0, &error);
    if (status) basin_graph_fail(c->graph, status, "%s", error.text);
    free(all);
    return status;
}

/* ---- inputs ---- */

static void put(basin_case *c, basin_expr input, const void *data, basin_dtype dtype) {
    basin_tensor tensor;
    if (!input || basin_tensor_new(&tensor, dtype, basin_expr_shape(input), NULL)) return;
    memcpy(tensor.data, data, (size_t)basin_shape_count(tensor.shape) * 4);
    basin_case_write(c, input, &tensor);
}

static void write_batch(basin_case *c, layout *l, const basin_graphs_batch *to) {
    const basin_graphset_batch *b = &l->batch;
    put(c, to->nodes, b->feature, BASIN_F32);
    put(c, to->positions, b->position, BASIN_F32);
    put(c, to->edge_features, b->edge_feature, BASIN_F32);
    put(c, to->share, b->share, BASIN_F32);
    put(c, to->source, b->source, BASIN_I32);
    put(c, to->owner, b->owner, BASIN_I32);
    put(c, to->first, b->first, BASIN_I32);
    c->pairs[0] = b->pairs;
    c->pattern[0] = to->pattern;
    l->batch.pairs = (basin_pairs){0};
}

/* ---- the model ---- */

static basin_graphs_gnn_config read_config(basin_case *c, const layout *l) {
    char word[BASIN_CASE_WORD];
    basin_graphs_gnn_config config = {.arch = BASIN_GRAPHS_GCN,
                                      .features = l->feature.shape.dim[1],
                                      .positions = l->positions.width,
                                      .layers = (int)basin_case_number(c, "layers")};
    if (l->edge_feature.data) config.edge_features = l->edge_feature.shape.dim[1];
    if (!strcmp(basin_case_word(c, "arch", word), "gin")) config.arch = BASIN_GRAPHS_GIN;
    bool gin = config.arch == BASIN_GRAPHS_GIN;
    config.read =
        !strcmp(basin_case_word(c, "read", word), "mean") ? BASIN_READ_MEAN : BASIN_READ_SUM;
    config.learn_epsilon = basin_case_flag(c, "learn_epsilon");
    config.dim = basin_case_dim(c, gin ? "layer1.mlp1_w" : "layer1.conv_w", 2, 1);
    return config;
}

/* The label's class has 1: [G, C]. */
static basin_expr target(basin_case *c, const layout *l, int64_t classes) {
    int64_t graphs = l->set.graphs;
    basin_tensor all;
    basin_expr input = basin_input(c->graph, "target", BASIN_SHAPE(graphs, classes));
    if (!input || basin_tensor_new(&all, BASIN_F64, basin_expr_shape(input), NULL)) return NULL;
    for (int64_t i = 0; i < graphs * classes; i++)
        ((double *)all.data)[i] = ((int32_t *)l->label.data)[i / classes] == i % classes;
    basin_case_write(c, input, &all);
    return input;
}

static void add_training(basin_case *c, const layout *l, basin_graphs_gnn model,
                         const basin_graphs_batch *batch) {
    model.config.seed = basin_index(c->graph, "seed", BASIN_SHAPE(2)); /* nothing is dropped */
    basin_expr logits = basin_graphs_gnn_forward(&model, batch, NULL, NULL);
    basin_expr loss = basin_cross_entropy(logits, target(c, l, model.config.outputs));
    basin_case_output_add(c, logits, "out.training_logits");
    basin_case_output_add(c, loss, "out.loss");
    basin_case_gradients(c, loss, NULL);
    for (size_t i = 0; i < c->params.count; i++)
        if (c->params.param[i].next)
            basin_case_output_add(c, c->params.param[i].next, "out.next.%s",
                                  basin_expr_name(c->params.param[i].state));
}

static void add_model(basin_case *c, layout *l) {
    basin_graphs_net net = {0};
    basin_graphs_net_config config = {.gnn = read_config(c, l)};
    const basin_tensor *logits = basin_bundle_find(c->bundle, "out.logits");
    config.arch = config.gnn.arch;
    config.gnn.outputs = logits && logits->shape.rank == 2 ? logits->shape.dim[1] : 1;
    if (basin_graph_error(c->graph) || basin_graphs_net_declare(&net, &c->params, &config)) return;
    basin_graphs_batch batch = basin_graphs_net_inputs(&net, c->graph, l->batch.graphs,
                                                       l->batch.nodes, l->batch.pairs.pairs);
    if (basin_graph_error(c->graph)) return;
    write_batch(c, l, &batch);
    basin_case_output_add(c, basin_graphs_net_forward(&net, &batch), "out.logits");
    add_training(c, l, net.gnn, &batch);
}

void basin_case_build_graphs_gnn(basin_case *c) {
    layout l = {0};
    basin_status status = read_arrays(c, &l);
    if (!status) status = make_set(c, &l);
    if (!status) status = make_positions(c, &l);
    if (!status) status = fill_batch(c, &l);
    if (!status) add_model(c, &l);
    layout_free(&l);
}
