/* The vision transformer that the paper compares with, and its weight-shared form (appendix H):
 * pre-norm blocks of softmax attention and a perceptron between the encoder and decoder of
 * model/model.h. */
#include <math.h>

#include "expr/graph.h"
#include "model/model.h"

/* ---- parameters ---- */

static basin_status check_config(const basin_vit_config *c, basin_graph *graph) {
    if (c->depth < 1 || c->depth > BASIN_MAX_LAYERS)
        basin_graph_fail(graph, BASIN_BAD_VALUE, "a ViT of %d layers; wanted 1 to %d", c->depth,
                         BASIN_MAX_LAYERS);
    else if (c->dim < 1 || c->heads < 1 || c->head_dim < 1 || c->hidden < 1)
        basin_graph_fail(graph, BASIN_BAD_VALUE,
                         "a ViT with D %lld, H %lld, Y %lld, %lld hidden units; wanted 1 or more "
                         "of each",
                         (long long)c->dim, (long long)c->heads, (long long)c->head_dim,
                         (long long)c->hidden);
    return basin_model_status(graph);
}

basin_status basin_vit_declare(basin_vit *model, basin_params *params,
                               const basin_vit_config *config) {
    *model = (basin_vit){.config = *config};
    basin_vit_config *c = &model->config;
    if (c->epsilon == 0) c->epsilon = 1e-5;
    basin_patches_config patches = {.tokens = c->tokens,
                                    .patch = c->patch,
                                    .dim = c->dim,
                                    .no_bias = c->no_bias,
                                    .cls = c->cls};
    basin_status status = check_config(c, params->graph);
    if (status) return status;
    basin_patches_declare(&model->patches, params, &patches);
    int layers = c->shared ? 1 : c->depth;
    basin_layer_config layer = {.dim = c->dim,
                                .width = c->heads * c->head_dim,
                                .hidden = c->hidden,
                                .no_bias = c->no_bias,
                                .gains = {"norm1_g", "norm2_g"}};
    for (int i = 0; i < layers; i++) basin_model_layer_declare(&model->layer[i], params, &layer, i);
    basin_shape vector = BASIN_SHAPE(c->dim);
    basin_init none = {BASIN_INIT_CONSTANT, 0}, one = {BASIN_INIT_CONSTANT, 1};
    model->norm.gain = basin_param_add(params, "", "norm_g", vector, one);
    if (!c->no_bias) model->norm.bias = basin_param_add(params, "", "norm_b", vector, none);
    basin_patches_declare_decoder(&model->patches, params, &patches);
    return basin_model_status(params->graph);
}

/* ---- the forward expression ---- */

static basin_expr norm(const basin_vit *m, const basin_vit_norm *n, basin_expr x) {
    return basin_model_norm_of(n, x, m->config.epsilon);
}

static void ask(basin_expr *query, basin_expr *key, const basin_vit *m, const basin_vit_layer *l,
                basin_expr g) {
    *query = basin_model_split(basin_model_affine(g, l->wq, l->bq), m->config.heads);
    *key = basin_model_split(basin_model_affine(g, l->wk, l->bk), m->config.heads);
}

static basin_expr attention(const basin_vit *m, const basin_vit_layer *l, basin_expr g) {
    const basin_vit_config *c = &m->config;
    basin_shape s = basin_expr_shape(g);
    basin_expr q, k;
    ask(&q, &k, m, l, g);
    basin_expr v = basin_model_split(basin_model_affine(g, l->wv, l->bv), c->heads);
    basin_expr score =
        basin_scale(basin_einsum("bnhy,bmhy->bhnm", q, k), 1 / sqrt((double)c->head_dim));
    basin_expr mixed = basin_einsum("bhnm,bmhy->bnhy", basin_softmax(score, -1), v);
    basin_shape flat = BASIN_SHAPE(s.dim[0], s.dim[1], c->heads * c->head_dim);
    return basin_model_affine(basin_reshape(mixed, flat), l->wo, l->bo);
}

void basin_vit_queries(basin_expr *query, basin_expr *key, const basin_vit *model,
                       basin_expr tokens, int layer) {
    const basin_vit_layer *l = &model->layer[model->config.shared ? 0 : layer];
    ask(query, key, model, l, norm(model, &l->norm1, tokens));
}

static basin_expr layer(const basin_vit *m, const basin_vit_layer *l, basin_expr x) {
    x = basin_add(x, attention(m, l, norm(m, &l->norm1, x)));
    return basin_add(x, basin_model_perceptron(l, x, m->config.epsilon));
}

basin_expr basin_vit_tokens(const basin_vit *model, basin_expr patches, basin_expr replaced,
                            basin_expr *trace) {
    const basin_vit_config *c = &model->config;
    basin_expr x = basin_patches_encode(&model->patches, patches, replaced);
    basin_graph *graph = basin_expr_graph(model->patches.enc_w);
    if (trace) trace[0] = x;
    for (int i = 0; i < c->depth; i++) {
        if (c->recompute) basin_recompute_begin(graph);
        x = basin_keep(layer(model, &model->layer[c->shared ? 0 : i], x));
        if (c->recompute) basin_recompute_end(graph);
        if (trace) trace[i + 1] = x;
    }
    return x;
}

basin_expr basin_vit_decode(const basin_vit *model, basin_expr tokens) {
    basin_expr g = norm(model, &model->norm, basin_patches_tokens(&model->patches, tokens));
    return basin_model_affine(g, model->patches.dec_w, model->patches.dec_b);
}

basin_expr basin_vit_forward(const basin_vit *model, basin_expr patches, basin_expr replaced) {
    return basin_vit_decode(model, basin_vit_tokens(model, patches, replaced, NULL));
}
