/* Masked image completion: affine encoder, MASK token, positions, T steps of the block, layer norm
 * and affine decoder (section 3 of the paper, Algorithm 1); the vision transformer that the paper
 * compares with and its weight-shared form (appendix H): pre-norm blocks of softmax attention and a
 * perceptron between the same encoder and decoder; and one interface for both. */
#include <math.h>

#include "basin/expr.h"
#include "tasks/common/layers.h"

/* ---- patches to tokens and back ---- */

/* Algorithm 1 draws all weights from N(0, 0.02^2); the published code has LeCun's deviation for the
 * affine maps and a tenth of the paper's for tokens. */
typedef struct patches_config {
    int64_t tokens, patch, dim; /* N, P, D */
    bool published;             /* first values as in the published code, not as in the paper */
    bool no_bias, cls;
} patches_config;

static basin_init weight_init(const patches_config *c, int64_t rows) {
    return c->published ? (basin_init){BASIN_INIT_LECUN, (double)rows}
                        : (basin_init){BASIN_INIT_NORMAL, 0.02};
}

static basin_expr bias_add(const patches_config *c, basin_params *params, const char *name,
                           int64_t count) {
    if (c->no_bias) return NULL;
    return basin_param_add(params, "", name, BASIN_SHAPE(count),
                           (basin_init){BASIN_INIT_CONSTANT, 0});
}

static void patches_declare(basin_patches *p, basin_params *params, const patches_config *c) {
    basin_init token = {BASIN_INIT_NORMAL, c->published ? 0.002 : 0.02};
    basin_shape vector = BASIN_SHAPE(c->dim);
    p->enc_w = basin_param_add(params, "", "enc_w", BASIN_SHAPE(c->patch, c->dim),
                               weight_init(c, c->patch));
    p->enc_b = bias_add(c, params, "enc_b", c->dim);
    p->mask = basin_param_add(params, "", "mask", vector, token);
    p->pos = basin_param_add(params, "", "pos", BASIN_SHAPE(c->tokens + c->cls, c->dim), token);
    p->cls = c->cls ? basin_param_add(params, "", "cls", vector, token) : NULL;
}

static void patches_declare_decoder(basin_patches *p, basin_params *params,
                                    const patches_config *c) {
    p->dec_w =
        basin_param_add(params, "", "dec_w", BASIN_SHAPE(c->dim, c->patch), weight_init(c, c->dim));
    p->dec_b = bias_add(c, params, "dec_b", c->patch);
}

static basin_expr patches_encode(const basin_patches *p, basin_expr patches, basin_expr replaced) {
    int64_t P = basin_expr_shape(p->enc_w).dim[0], D = basin_expr_shape(p->enc_w).dim[1];
    int64_t N = basin_expr_shape(p->pos).dim[0] - (p->cls != NULL);
    if (!basin_model_shape_is(patches, BASIN_SHAPE(-1, N, P), "image: patches")) return NULL;
    int64_t B = basin_expr_shape(patches).dim[0];
    basin_expr x = basin_model_affine(patches, p->enc_w, p->enc_b);
    x = basin_where(basin_reshape(replaced, BASIN_SHAPE(B, N, 1)), p->mask, x);
    if (p->cls) {
        basin_expr cls = basin_broadcast_to(p->cls, BASIN_SHAPE(B, 1, D));
        x = basin_concat((basin_expr[]){cls, x}, 2, 1);
    }
    return basin_add(x, p->pos);
}

static basin_expr patches_tokens(const basin_patches *p, basin_expr tokens) {
    if (!p->cls) return tokens;
    return basin_slice(tokens, 1, 1, basin_expr_shape(p->pos).dim[0] - 1);
}

/* ---- the Energy Transformer ---- */

static const basin_init paper_init = {BASIN_INIT_NORMAL, 0.02};

basin_status basin_image_et_declare(basin_image_et *model, basin_params *params,
                                    const basin_image_et_config *config) {
    *model = (basin_image_et){.config = *config};
    patches_config patches = {.tokens = config->tokens,
                              .patch = config->patch,
                              .dim = config->block.dim,
                              .published = config->published_init,
                              .cls = config->cls};
    if (!config->published_init) model->config.block.init_query = paper_init;
    patches_declare(&model->patches, params, &patches);
    basin_status status = basin_block_declare(&model->block, params, "", &model->config.block);
    patches_declare_decoder(&model->patches, params, &patches);
    return status ? status : basin_model_status(params->graph);
}

basin_expr basin_image_et_encode(const basin_image_et *model, basin_expr patches,
                                 basin_expr replaced) {
    return patches_encode(&model->patches, patches, replaced);
}

basin_expr basin_image_et_decode(const basin_image_et *model, basin_expr tokens) {
    basin_expr g = basin_block_norm(&model->block, patches_tokens(&model->patches, tokens));
    return basin_model_affine(g, model->patches.dec_w, model->patches.dec_b);
}

basin_expr basin_image_et_forward(const basin_image_et *model, basin_expr patches,
                                  basin_expr replaced, basin_expr *trace) {
    basin_pattern pattern = {.exclude_self = !model->config.self_attention};
    basin_block_bound bound = {.block = &model->block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_expr x = basin_image_et_encode(model, patches, replaced);
    return basin_image_et_decode(model, basin_descend(&energy, x, &model->config.descent, trace));
}

basin_expr basin_image_net_loss(basin_expr output, basin_expr patches, basin_expr occluded) {
    basin_shape shape = basin_expr_shape(patches);
    if (!basin_model_shape_is(patches, BASIN_SHAPE(-1, -1, -1), "image loss: patches") ||
        !basin_model_shapes_agree(output, patches, "image loss"))
        return NULL;
    basin_expr where = basin_reshape(occluded, BASIN_SHAPE(shape.dim[0], shape.dim[1], 1));
    basin_expr error = basin_mul(basin_square(basin_sub(output, patches)), where);
    basin_expr count = basin_scale(basin_sum_all(occluded), (double)shape.dim[2]);
    return basin_div(basin_sum_all(error), count);
}

/* ---- the vision transformer: parameters ---- */

static basin_status check_config(const basin_vit_config *c, basin_graph *graph) {
    if (c->depth < 1 || c->depth > BASIN_MAX_LAYERS)
        basin_graph_fail(graph, BASIN_BAD_VALUE, "a ViT of %d layers; expected 1 to %d", c->depth,
                         BASIN_MAX_LAYERS);
    else if (c->dim < 1 || c->heads < 1 || c->head_dim < 1 || c->hidden < 1)
        basin_graph_fail(
            graph, BASIN_BAD_VALUE,
            "a ViT with D %lld, H %lld, Y %lld, %lld hidden units; expected at least 1 of each",
            (long long)c->dim, (long long)c->heads, (long long)c->head_dim, (long long)c->hidden);
    return basin_model_status(graph);
}

basin_status basin_vit_declare(basin_vit *model, basin_params *params,
                               const basin_vit_config *config) {
    *model = (basin_vit){.config = *config};
    basin_vit_config *c = &model->config;
    if (c->epsilon == 0) c->epsilon = 1e-5;
    patches_config patches = {.tokens = c->tokens,
                              .patch = c->patch,
                              .dim = c->dim,
                              .no_bias = c->no_bias,
                              .cls = c->cls};
    basin_status status = check_config(c, params->graph);
    if (status) return status;
    patches_declare(&model->patches, params, &patches);
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
    patches_declare_decoder(&model->patches, params, &patches);
    return basin_model_status(params->graph);
}

/* ---- the forward expression ---- */

static basin_expr norm(const basin_vit *m, const basin_vit_norm *n, basin_expr x) {
    return basin_model_norm_of(n, x, m->config.epsilon);
}

static void project(basin_expr *query, basin_expr *key, const basin_vit *m,
                    const basin_vit_layer *l, basin_expr g) {
    *query = basin_model_split(basin_model_affine(g, l->wq, l->bq), m->config.heads);
    *key = basin_model_split(basin_model_affine(g, l->wk, l->bk), m->config.heads);
}

static basin_expr attention(const basin_vit *m, const basin_vit_layer *l, basin_expr g) {
    const basin_vit_config *c = &m->config;
    basin_shape s = basin_expr_shape(g);
    basin_expr q, k;
    project(&q, &k, m, l, g);
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
    project(query, key, model, l, norm(model, &l->norm1, tokens));
}

static basin_expr layer(const basin_vit *m, const basin_vit_layer *l, basin_expr x) {
    x = basin_add(x, attention(m, l, norm(m, &l->norm1, x)));
    return basin_add(x, basin_model_perceptron(l, x, m->config.epsilon));
}

basin_expr basin_vit_tokens(const basin_vit *model, basin_expr patches, basin_expr replaced,
                            basin_expr *trace) {
    const basin_vit_config *c = &model->config;
    basin_expr x = patches_encode(&model->patches, patches, replaced);
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
    basin_expr g = norm(model, &model->norm, patches_tokens(&model->patches, tokens));
    return basin_model_affine(g, model->patches.dec_w, model->patches.dec_b);
}

basin_expr basin_vit_forward(const basin_vit *model, basin_expr patches, basin_expr replaced) {
    return basin_vit_decode(model, basin_vit_tokens(model, patches, replaced, NULL));
}

/* ---- any model of images ---- */

basin_status basin_image_net_declare(basin_image_net *net, basin_params *params,
                                     const basin_image_net_config *config) {
    net->arch = config->arch;
    if (config->arch == BASIN_IMAGE_ET)
        return basin_image_et_declare(&net->et, params, &config->et);
    basin_vit_config vit = config->vit;
    vit.shared = config->arch == BASIN_IMAGE_ALBERT;
    return basin_vit_declare(&net->vit, params, &vit);
}

basin_expr basin_image_net_forward(const basin_image_net *net, basin_expr patches,
                                   basin_expr replaced) {
    return net->arch == BASIN_IMAGE_ET ? basin_image_et_forward(&net->et, patches, replaced, NULL)
                                       : basin_vit_forward(&net->vit, patches, replaced);
}
