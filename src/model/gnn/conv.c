/* Layers of the three classic graph networks:
 *     GCN    relu(D^-1/2 A D^-1/2 h W + b)
 *     SAGE   relu(h W + mean over neighbours of h W' + b)
 *     GAT    elu(sum over j of a_ij z_j + b),  z = h W,
 *            a_ij = softmax over j of leaky(target . z_i + source . z_j), in each head */
#include "model/gnn/gnn.h"
#include "model/parts.h"

static const double leak = 0.2;

void basin_gnn_conv_declare(basin_gnn_layer *l, const basin_gnn_config *config,
                            basin_params *params, const char *prefix, int64_t in) {
    int64_t D = config->dim, H = config->heads;
    basin_init init = basin_gnn_glorot(in, D);
    l->w = basin_param_add(params, prefix, "w", BASIN_SHAPE(in, D), init);
    if (config->arch == BASIN_GNN_SAGE)
        l->neighbour_w = basin_param_add(params, prefix, "neighbour_w", BASIN_SHAPE(in, D), init);
    if (config->arch == BASIN_GNN_GAT) {
        basin_init score = basin_gnn_glorot(D / H, 1);
        l->source = basin_param_add(params, prefix, "source", BASIN_SHAPE(H, D / H), score);
        l->target = basin_param_add(params, prefix, "target", BASIN_SHAPE(H, D / H), score);
    }
    l->b =
        basin_param_add(params, prefix, "b", BASIN_SHAPE(D), (basin_init){BASIN_INIT_CONSTANT, 0});
}

/* Averages on the narrower side of the weights. */
static basin_expr gcn(const basin_gnn_layer *l, basin_expr h, const basin_pattern *pattern) {
    basin_shape shape = basin_expr_shape(l->w);
    bool before = shape.dim[0] < shape.dim[1];
    if (before) h = basin_neighbour_smooth(h, pattern);
    h = basin_matmul(h, l->w);
    if (!before) h = basin_neighbour_smooth(h, pattern);
    return basin_relu(basin_add(h, l->b));
}

static basin_expr sage(const basin_gnn_layer *l, basin_expr h, const basin_pattern *pattern) {
    basin_expr share = basin_neighbour_counts(h, pattern, -1);
    basin_expr mean = basin_mul(basin_neighbour_sum(h, pattern), share);
    basin_expr own = basin_model_affine(h, l->w, l->b);
    return basin_relu(basin_add(own, basin_matmul(mean, l->neighbour_w)));
}

static basin_expr leaky(basin_expr a) { return basin_max(a, basin_scale(a, leak)); }

static basin_expr elu(basin_expr a) {
    if (!a) return NULL;
    basin_expr zero = basin_const(basin_expr_graph(a), 0);
    return basin_add(basin_relu(a), basin_expm1(basin_min(a, zero)));
}

/* Each head's score of a node as a neighbour, or as the one who looks: [N, H, 1]. */
static basin_expr node_score(basin_expr z, basin_expr vector) {
    basin_shape shape = basin_expr_shape(z);
    basin_expr score = basin_sum(basin_mul(z, vector), 2, 1);
    return basin_reshape(score, BASIN_SHAPE(shape.dim[0], shape.dim[1], 1));
}

/* leaky(target_i + source_j), less a number that is at least a node's highest and at most the
 * logarithm of its degree above it: leaky rises, and a log-sum-exp lies so above a maximum. The sum
 * is a product of pairs, (target_i, 1) . (1, source_j). */
static basin_expr gat_scores(basin_expr target, basin_expr source, const basin_pattern *pattern) {
    basin_graph *graph = basin_expr_graph(source);
    basin_shape shape = basin_expr_shape(source); /* [N, H, 1] */
    basin_expr ones = basin_fill(graph, shape, 1);
    basin_expr beta = basin_fill(graph, BASIN_SHAPE(shape.dim[1]), 1);
    basin_expr most = basin_attention_lse(ones, source, beta, NULL, NULL, pattern);
    basin_expr level = leaky(basin_add(target, basin_reshape(most, shape)));
    basin_expr query[] = {target, ones}, key[] = {ones, source};
    basin_expr score = basin_pair_dot(basin_concat(query, 2, 2), basin_concat(key, 2, 2), pattern);
    return basin_sub(leaky(score), basin_pair_dot(basin_stop_gradient(level), ones, pattern));
}

static basin_expr gat(const basin_gnn_layer *l, const basin_gnn_config *c, basin_expr h,
                      const basin_pattern *pattern) {
    basin_expr z = basin_matmul(h, l->w);
    if (!z) return NULL;
    basin_shape shape = basin_expr_shape(z);
    z = basin_reshape(z, BASIN_SHAPE(shape.dim[0], c->heads, c->dim / c->heads));
    basin_expr lowered = gat_scores(node_score(z, l->target), node_score(z, l->source), pattern);
    basin_expr mean = basin_neighbour_softmax(lowered, z, pattern);
    return elu(basin_add(basin_reshape(mean, shape), l->b));
}

basin_expr basin_gnn_conv_forward(const basin_gnn_layer *layer, const basin_gnn_config *config,
                                  basin_expr h, const basin_pattern *pattern) {
    if (config->arch == BASIN_GNN_GCN) return gcn(layer, h, pattern);
    if (config->arch == BASIN_GNN_SAGE) return sage(layer, h, pattern);
    return gat(layer, config, h, pattern);
}
