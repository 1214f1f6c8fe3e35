/* GPT: pre-norm layers of causal softmax attention and a perceptron, first values as in GPT-2. */
#include <math.h>
#include <stdio.h>

#include "expr/graph.h"
#include "model/model.h"

/* ---- parameters ---- */

static basin_expr weight_add(basin_params *params, const char *prefix, const char *name,
                             int64_t rows, int64_t columns, double scale) {
    return basin_param_add(params, prefix, name, BASIN_SHAPE(rows, columns),
                           (basin_init){BASIN_INIT_NORMAL, scale});
}

static basin_expr bias_add(const basin_language_config *c, basin_params *params, const char *prefix,
                           const char *name, int64_t count) {
    if (!c->bias) return NULL;
    return basin_param_add(params, prefix, name, BASIN_SHAPE(count),
                           (basin_init){BASIN_INIT_CONSTANT, 0});
}

static basin_expr gain_add(const basin_language_config *c, basin_params *params, const char *prefix,
                           const char *name) {
    return basin_param_add(params, prefix, name, BASIN_SHAPE(c->dim),
                           (basin_init){BASIN_INIT_CONSTANT, 1});
}

/* What is added to the tokens is drawn smaller, so that their variance does not grow with depth. */
static void layer_declare(basin_gpt_layer *l, const basin_language_config *c, basin_params *params,
                          int number) {
    char prefix[32];
    const double first = 0.02, added = 0.02 / sqrt(2.0 * c->steps);
    int64_t D = c->dim, U = c->hidden;
    snprintf(prefix, sizeof prefix, "layer%d.", number);
    l->norm1.gain = gain_add(c, params, prefix, "norm1_w");
    l->norm1.bias = bias_add(c, params, prefix, "norm1_b", D);
    l->wq = weight_add(params, prefix, "wq", D, D, first);
    l->bq = bias_add(c, params, prefix, "bq", D);
    l->wk = weight_add(params, prefix, "wk", D, D, first);
    l->bk = bias_add(c, params, prefix, "bk", D);
    l->wv = weight_add(params, prefix, "wv", D, D, first);
    l->bv = bias_add(c, params, prefix, "bv", D);
    l->wo = weight_add(params, prefix, "wo", D, D, added);
    l->bo = bias_add(c, params, prefix, "bo", D);
    l->norm2.gain = gain_add(c, params, prefix, "norm2_w");
    l->norm2.bias = bias_add(c, params, prefix, "norm2_b", D);
    l->mlp_w1 = weight_add(params, prefix, "mlp_w1", D, U, first);
    l->mlp_b1 = bias_add(c, params, prefix, "mlp_b1", U);
    l->mlp_w2 = weight_add(params, prefix, "mlp_w2", U, D, added);
    l->mlp_b2 = bias_add(c, params, prefix, "mlp_b2", D);
}

void basin_gpt_declare(basin_language *model, basin_params *params) {
    for (int i = 0; i < model->config.steps; i++)
        layer_declare(&model->layer[i], &model->config, params, i);
}

/* ---- the forward expression ---- */

static basin_expr norm(const basin_vit_norm *n, basin_expr x) {
    return basin_model_norm(x, n->gain, n->bias, 1e-5);
}

/* Heads side by side: [B, N, D] -> [B, N, H, Y]. */
static basin_expr split(const basin_language_config *c, basin_expr x) {
    basin_shape s = basin_expr_shape(x);
    return basin_reshape(x, BASIN_SHAPE(s.dim[0], s.dim[1], c->heads, c->dim / c->heads));
}

/* Heads one after the other: [B, N, D] -> [B H, N, Y]. */
static basin_expr by_head(const basin_language_config *c, basin_expr x) {
    basin_expr heads = basin_permute(split(c, x), (int[]){0, 2, 1, 3});
    if (!heads) return NULL;
    basin_shape s = basin_expr_shape(heads);
    return basin_reshape(heads, BASIN_SHAPE(s.dim[0] * s.dim[1], s.dim[2], s.dim[3]));
}

/* Where shares are dropped they are written out, softmax(Q K' / sqrt(Y)) over earlier tokens. */
static basin_expr mix_dropped(const basin_language_config *c, const basin_gpt_layer *l,
                              basin_expr g, basin_expr seed) {
    if (!g) return NULL;
    basin_shape s = basin_expr_shape(g);
    int64_t H = c->heads, N = s.dim[1], Y = c->dim / H;
    basin_expr q = by_head(c, basin_model_affine(g, l->wq, l->bq));
    basin_expr k = by_head(c, basin_model_affine(g, l->wk, l->bk));
    basin_expr v = by_head(c, basin_model_affine(g, l->wv, l->bv));
    basin_expr score = basin_axes_insert(basin_matmul_t(q, false, k, true), 3, 1);
    basin_expr share = basin_causal_softmax(score, 1 / sqrt((double)Y), false, c->dropout, seed);
    basin_expr mixed = basin_matmul(basin_reshape(share, BASIN_SHAPE(-1, N, N)), v);
    return basin_permute(basin_reshape(mixed, BASIN_SHAPE(-1, H, N, Y)), (int[]){0, 2, 1, 3});
}

/* Parameters of keys and values side by side in each head: [.., D] twice -> [.., 2 D]. */
static basin_expr pair_up(const basin_language_config *c, basin_expr k, basin_expr v) {
    if (!k || !v) return NULL;
    basin_shape s = basin_expr_shape(k), heads = s;
    heads.dim[s.rank - 1] = c->heads;
    heads.dim[heads.rank++] = c->dim / c->heads;
    basin_expr both[2] = {basin_reshape(k, heads), basin_reshape(v, heads)};
    s.dim[s.rank - 1] *= 2;
    return basin_reshape(basin_concat(both, 2, -1), s);
}

/* Else softmax(Q K') V is a slope of energy attention: with keys [K V] and queries [Q 0] the
 * gradient of log-sum-exp by the queries is softmax(Q K') [K V]. One fused kernel has it, and
 * another its reverse, which leave out the pairs above the diagonal. */
static basin_expr mix_fused(const basin_language_config *c, const basin_gpt_layer *l,
                            basin_expr g) {
    if (!g) return NULL;
    int64_t Y = c->dim / c->heads;
    basin_shape s = basin_expr_shape(g);
    basin_expr q = split(c, basin_model_affine(g, l->wq, l->bq));
    q = basin_variable(basin_pad(basin_scale(q, 1 / sqrt((double)Y)), -1, 0, Y));
    basin_expr kv = basin_model_affine(g, pair_up(c, l->wk, l->wv), pair_up(c, l->bk, l->bv));
    kv = basin_reshape(kv, BASIN_SHAPE(s.dim[0], s.dim[1], c->heads, 2 * Y));
    basin_expr one = basin_fill(basin_expr_graph(g), BASIN_SHAPE(c->heads), 1);
    basin_expr lse = basin_attention_lse(q, kv, one, NULL, NULL, &BASIN_CAUSAL_PAIRS);
    return basin_slice(basin_grad(lse, q), -1, Y, Y);
}

static basin_expr attention(const basin_language_config *c, const basin_gpt_layer *l, basin_expr g,
                            basin_expr seed) {
    bool drops = seed && c->dropout > 0;
    basin_expr mixed = drops ? mix_dropped(c, l, g, seed) : mix_fused(c, l, g);
    return basin_model_affine(basin_reshape(mixed, basin_expr_shape(g)), l->wo, l->bo);
}

static basin_expr layer(const basin_language_config *c, const basin_gpt_layer *l, basin_expr x,
                        basin_expr seed) {
    basin_expr pull = attention(c, l, norm(&l->norm1, x), seed);
    x = basin_add(x, basin_dropout(pull, c->dropout, seed));
    basin_expr h = basin_model_gelu(basin_model_affine(norm(&l->norm2, x), l->mlp_w1, l->mlp_b1));
    pull = basin_model_affine(h, l->mlp_w2, l->mlp_b2);
    return basin_add(x, basin_dropout(pull, c->dropout, seed));
}

basin_expr basin_gpt_layers(const basin_language *model, basin_expr x, basin_expr seed) {
    const basin_language_config *c = &model->config;
    basin_graph *graph = basin_expr_graph(model->tok);
    x = basin_dropout(x, c->dropout, seed);
    for (int i = 0; i < c->steps; i++) {
        if (c->recompute) basin_recompute_begin(graph);
        x = basin_keep(layer(c, &model->layer[i], x, seed));
        if (c->recompute) basin_recompute_end(graph);
    }
    return x;
}
