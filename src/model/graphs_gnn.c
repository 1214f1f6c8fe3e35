/* What graph models are compared with. GIN (Xu et al. 2019), in the form of the fair comparison of
 * Errica et al. 2020, with edge features added to messages as in Hu et al. 2020; GCN (Kipf and
 * Welling 2017) with one readout. They see the batches of basin_graphs: a CLS token is a row of
 * zeros that nobody hears. */
#include <math.h>
#include <stdio.h>

#include "basin/model.h"
#include "model/batchnorm.h"
#include "model/parts.h"

/* ---- parameters ---- */

/* Uniform within 1 / sqrt(inputs), weights and biases, as PyTorch begins. */
static void affine_declare(basin_expr *weight, basin_expr *bias, basin_params *params,
                           const char *prefix, const char *name, int64_t inputs, int64_t outputs) {
    char full[32];
    basin_init init = {BASIN_INIT_UNIFORM, 1 / sqrt((double)(inputs > 0 ? inputs : 1))};
    snprintf(full, sizeof full, "%s_w", name);
    *weight = basin_param_add(params, prefix, full, BASIN_SHAPE(inputs, outputs), init);
    snprintf(full, sizeof full, "%s_b", name);
    *bias = basin_param_add(params, prefix, full, BASIN_SHAPE(outputs), init);
}

/* Layer 0 of a GIN is its perceptron alone; messages come before the others. */
static void gin_declare(basin_graphs_gnn_layer *l, basin_params *params,
                        const basin_graphs_gnn_config *c, int number) {
    char prefix[32];
    int64_t D = c->dim, inputs = number ? D : c->features + c->positions;
    snprintf(prefix, sizeof prefix, "layer%d.", number);
    if (number && c->learn_epsilon)
        l->epsilon = basin_param_add(params, prefix, "epsilon", BASIN_SCALAR,
                                     (basin_init){BASIN_INIT_CONSTANT, 0});
    if (number && c->edge_features > 0)
        affine_declare(&l->edge_w, &l->edge_b, params, prefix, "edge", c->edge_features, D);
    affine_declare(&l->w1, &l->b1, params, prefix, "mlp1", inputs, D);
    l->norm1 = basin_batchnorm_declare(params, prefix, "norm1", D);
    affine_declare(&l->w2, &l->b2, params, prefix, "mlp2", D, D);
    l->norm2 = basin_batchnorm_declare(params, prefix, "norm2", D);
    affine_declare(&l->head_w, &l->head_b, params, prefix, "head", D, c->outputs);
}

/* Glorot's uniform weights and no biases at first, as Kipf and Welling have it. */
static void gcn_declare(basin_graphs_gnn_layer *l, basin_params *params,
                        const basin_graphs_gnn_config *c, int number) {
    char prefix[32];
    int64_t D = c->dim, inputs = number > 1 ? D : c->features + c->positions;
    double bound = sqrt(6 / (double)(inputs + D));
    snprintf(prefix, sizeof prefix, "layer%d.", number);
    l->w1 = basin_param_add(params, prefix, "conv_w", BASIN_SHAPE(inputs, D),
                            (basin_init){BASIN_INIT_UNIFORM, bound});
    l->b1 = basin_param_add(params, prefix, "conv_b", BASIN_SHAPE(D),
                            (basin_init){BASIN_INIT_CONSTANT, 0});
    if (number == c->layers)
        affine_declare(&l->head_w, &l->head_b, params, prefix, "head", D, c->outputs);
}

basin_status basin_graphs_gnn_declare(basin_graphs_gnn *model, basin_params *params,
                                      const basin_graphs_gnn_config *config) {
    *model = (basin_graphs_gnn){.config = *config, .params = params};
    bool gin = config->arch == BASIN_GRAPHS_GIN;
    if (config->layers < 1 || config->layers > BASIN_MAX_BLOCKS)
        basin_graph_fail(params->graph, BASIN_BAD_VALUE, "%d layers; wanted 1 to %d",
                         config->layers, BASIN_MAX_BLOCKS);
    for (int i = gin ? 0 : 1; i <= config->layers && i <= BASIN_MAX_BLOCKS; i++)
        (gin ? gin_declare : gcn_declare)(&model->layer[i], params, config, i);
    const basin_error *error = basin_graph_error(params->graph);
    return error ? error->status : BASIN_OK;
}

/* ---- one layer ---- */

/* What all layers of a batch share. */
typedef struct place {
    const basin_graphs_gnn *model;
    const basin_graphs_batch *batch;
    basin_expr mask;   /* [tokens, 1] 1 for nodes, 0 for CLS tokens and padding */
    basin_expr weight; /* [pairs, 1] of messages */
} place;

/* Sums of the neighbours' rows, by the weights of the pairs. */
static basin_expr neighbours(const place *p, basin_expr x) {
    basin_shape s = basin_expr_shape(x);
    basin_expr one = basin_reshape(x, BASIN_SHAPE(s.dim[0], 1, s.dim[1]));
    return basin_reshape(basin_pair_sum(p->weight, one, &p->batch->pattern), s);
}

/* Sums of relu(x_j + e_ij W + b) over the edges of each node. Pairs with a CLS are no edges; the
 * list by key, which names each pair's query, is what the sums run over. */
static basin_expr edge_messages(const place *p, const basin_graphs_gnn_layer *l, basin_expr x) {
    const basin_pattern *pairs = &p->batch->pattern;
    int64_t tokens = basin_expr_shape(x).dim[0];
    basin_expr one = basin_reshape(p->mask, BASIN_SHAPE(tokens, 1, 1));
    basin_expr is_edge = basin_mul(p->weight, basin_pair_dot(one, one, pairs));
    basin_expr edge = basin_model_affine(p->batch->edge_features, l->edge_w, l->edge_b);
    basin_expr message = basin_relu(basin_add(basin_gather(x, pairs->key), edge));
    message = basin_mul(is_edge, message);
    return basin_scatter(basin_gather(message, pairs->pair), pairs->query, tokens);
}

static basin_expr gin_layer(const place *p, const basin_graphs_gnn_layer *l, int number,
                            basin_expr x) {
    basin_params *training = p->model->config.seed ? p->model->params : NULL;
    if (number) {
        basin_expr heard = l->edge_w ? edge_messages(p, l, x) : neighbours(p, x);
        basin_expr own = l->epsilon ? basin_mul(x, basin_offset(l->epsilon, 1)) : x;
        x = basin_add(own, heard);
    }
    x = basin_model_affine(x, l->w1, l->b1);
    x = basin_relu(basin_batchnorm_apply(&l->norm1, x, p->mask, training));
    x = basin_model_affine(x, l->w2, l->b2);
    x = basin_relu(basin_batchnorm_apply(&l->norm2, x, p->mask, training));
    return basin_mul(p->mask, x);
}

/* relu(S A' S x W + b) with A' = A + 1 and S one over the root of its row sums. */
static basin_expr gcn_layer(const place *p, const basin_graphs_gnn_layer *l, basin_expr x) {
    const basin_graphs_gnn_config *c = &p->model->config;
    basin_expr root = basin_sqrt(basin_recip(basin_offset(neighbours(p, p->mask), 1)));
    x = basin_mul(root, basin_matmul(basin_dropout(x, c->drop, c->seed), l->w1));
    x = basin_mul(root, basin_add(x, neighbours(p, x)));
    return basin_mul(p->mask, basin_relu(basin_add(x, l->b1)));
}

/* ---- the forward expression ---- */

/* The rows of nodes: their features and positions. */
static basin_expr first_rows(const place *p) {
    const basin_graphs_batch *batch = p->batch;
    basin_expr part[2] = {basin_gather(batch->nodes, batch->source), NULL};
    if (!batch->positions) return part[0];
    part[1] = basin_mul(p->mask, batch->positions);
    return basin_concat(part, 2, 1);
}

/* Of each graph's nodes the sum or mean; the rows themselves where nodes have classes. */
static basin_expr read_rows(const place *p, basin_expr x) {
    int64_t graphs = basin_expr_shape(p->batch->first).dim[0];
    int read = p->model->config.read;
    if (read == BASIN_READ_NODES) return x;
    x = basin_scatter(x, p->batch->owner, graphs);
    if (read != BASIN_READ_MEAN) return x;
    return basin_mul(x, basin_reshape(p->batch->share, BASIN_SHAPE(graphs, 1)));
}

static place place_of(const basin_graphs_gnn *model, const basin_graphs_batch *batch,
                      basin_expr weight) {
    basin_graph *graph = basin_expr_graph(batch->nodes);
    int64_t graphs = basin_expr_shape(batch->first).dim[0];
    int64_t pairs = basin_expr_shape(batch->pattern.key).dim[0];
    basin_expr ones = basin_fill(graph, BASIN_SHAPE(graphs, 1), 1);
    place p = {model, batch, basin_gather(ones, batch->owner), weight};
    if (!weight) p.weight = basin_fill(graph, BASIN_SHAPE(pairs, 1), 1);
    return p;
}

static basin_expr gin_forward(const place *p, basin_expr *last) {
    const basin_graphs_gnn_config *c = &p->model->config;
    basin_expr x = first_rows(p), sum = NULL;
    for (int i = 0; i <= c->layers; i++) {
        const basin_graphs_gnn_layer *l = &p->model->layer[i];
        x = gin_layer(p, l, i, x);
        basin_expr part = basin_model_affine(read_rows(p, x), l->head_w, l->head_b);
        part = basin_dropout(part, c->drop, c->seed);
        sum = sum ? basin_add(sum, part) : part;
    }
    *last = x;
    return sum;
}

static basin_expr gcn_forward(const place *p, basin_expr *last) {
    const basin_graphs_gnn_config *c = &p->model->config;
    const basin_graphs_gnn_layer *top = &p->model->layer[c->layers];
    basin_expr x = first_rows(p);
    for (int i = 1; i <= c->layers; i++) x = gcn_layer(p, &p->model->layer[i], x);
    *last = x;
    x = basin_dropout(read_rows(p, x), c->drop, c->seed);
    return basin_model_affine(x, top->head_w, top->head_b);
}

basin_expr basin_graphs_gnn_forward(const basin_graphs_gnn *model, const basin_graphs_batch *batch,
                                    basin_expr weight, basin_expr *embedding) {
    basin_expr last;
    if (!batch->nodes) return NULL;
    place p = place_of(model, batch, weight);
    basin_expr output =
        model->config.arch == BASIN_GRAPHS_GIN ? gin_forward(&p, &last) : gcn_forward(&p, &last);
    if (embedding) *embedding = read_rows(&p, last);
    return output;
}
