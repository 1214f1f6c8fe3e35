/* A layer of the graph transformer: attention among neighbours, a perceptron, each followed by
 * residual and norm,
 *     a = h + Wo [sum over j of softmax_j(Q_i . K_j / sqrt Y) V_j, all heads] + bo,   h' = LN(a)
 *     h <- LN(h' + W2 relu(W1 h' + b1) + b2)
 * Its paper leaves the kind of norm open; layer norm does not depend on what else is in a batch. */
#include <math.h>

#include "model/gnn/gnn.h"
#include "model/parts.h"

static const double epsilon = 1e-5;

static void norm_add(basin_expr *gain, basin_expr *bias, basin_params *params, const char *prefix,
                     const char *gain_name, const char *bias_name, int64_t dim) {
    *gain = basin_param_add(params, prefix, gain_name, BASIN_SHAPE(dim),
                            (basin_init){BASIN_INIT_CONSTANT, 1});
    *bias = basin_param_add(params, prefix, bias_name, BASIN_SHAPE(dim),
                            (basin_init){BASIN_INIT_CONSTANT, 0});
}

void basin_gt_declare(basin_gnn_layer *l, const basin_gnn_config *config, basin_params *params,
                      const char *prefix) {
    int64_t D = config->dim;
    basin_init init = basin_gnn_uniform(D);
    l->wq = basin_param_add(params, prefix, "wq", BASIN_SHAPE(D, D), init);
    l->wk = basin_param_add(params, prefix, "wk", BASIN_SHAPE(D, D), init);
    l->wv = basin_param_add(params, prefix, "wv", BASIN_SHAPE(D, D), init);
    l->wo = basin_param_add(params, prefix, "wo", BASIN_SHAPE(D, D), init);
    l->bo = basin_param_add(params, prefix, "bo", BASIN_SHAPE(D), init);
    norm_add(&l->norm1_g, &l->norm1_b, params, prefix, "norm1_g", "norm1_b", D);
    l->mlp_w1 = basin_param_add(params, prefix, "mlp_w1", BASIN_SHAPE(D, 2 * D), init);
    l->mlp_b1 = basin_param_add(params, prefix, "mlp_b1", BASIN_SHAPE(2 * D), init);
    init = basin_gnn_uniform(2 * D);
    l->mlp_w2 = basin_param_add(params, prefix, "mlp_w2", BASIN_SHAPE(2 * D, D), init);
    l->mlp_b2 = basin_param_add(params, prefix, "mlp_b2", BASIN_SHAPE(D), init);
    norm_add(&l->norm2_g, &l->norm2_b, params, prefix, "norm2_g", "norm2_b", D);
}

/* Scores less their log-sum-exp, which is (scale q, -lse) . (k, 1). */
static basin_expr scores(basin_expr q, basin_expr k, double scale, const basin_pattern *pattern) {
    if (!q || !k) return NULL;
    basin_graph *graph = basin_expr_graph(q);
    basin_shape shape = basin_expr_shape(q);
    int64_t N = shape.dim[0], H = shape.dim[1];
    basin_expr beta = basin_fill(graph, BASIN_SHAPE(H), scale);
    basin_expr lse = basin_attention_lse(q, k, beta, NULL, NULL, pattern);
    basin_expr level = basin_stop_gradient(basin_reshape(lse, BASIN_SHAPE(N, H, 1)));
    basin_expr ones = basin_fill(graph, BASIN_SHAPE(N, H, 1), 1);
    basin_expr query[] = {basin_scale(q, scale), basin_neg(level)}, key[] = {k, ones};
    return basin_pair_dot(basin_concat(query, 2, 2), basin_concat(key, 2, 2), pattern);
}

static basin_expr attention(const basin_gnn_layer *l, const basin_gnn_config *c, basin_expr h,
                            const basin_pattern *pattern) {
    if (!h) return NULL;
    basin_shape shape = basin_expr_shape(h);
    int64_t H = c->heads, Y = c->dim / H;
    basin_shape heads = BASIN_SHAPE(shape.dim[0], H, Y);
    basin_expr q = basin_reshape(basin_matmul(h, l->wq), heads);
    basin_expr k = basin_reshape(basin_matmul(h, l->wk), heads);
    basin_expr v = basin_reshape(basin_matmul(h, l->wv), heads);
    basin_expr lowered = scores(q, k, 1 / sqrt((double)Y), pattern);
    basin_expr mean = basin_neighbour_softmax(lowered, v, pattern);
    return basin_model_affine(basin_reshape(mean, shape), l->wo, l->bo);
}

basin_expr basin_gt_forward(const basin_gnn_layer *l, const basin_gnn_config *config, basin_expr h,
                            const basin_pattern *pattern) {
    h = basin_add(h, attention(l, config, h, pattern));
    h = basin_model_norm(h, l->norm1_g, l->norm1_b, epsilon);
    basin_expr inner = basin_relu(basin_model_affine(h, l->mlp_w1, l->mlp_b1));
    h = basin_add(h, basin_model_affine(inner, l->mlp_w2, l->mlp_b2));
    return basin_model_norm(h, l->norm2_g, l->norm2_b, epsilon);
}
