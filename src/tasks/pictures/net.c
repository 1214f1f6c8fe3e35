/* The networks of masked images; see net.h. */
#include "tasks/pictures/net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "basin/expr.h"
#include "tasks/common/layers.h"

#define EPSILON 1e-5 /* of the layer norms of a ViT */

/* ---- parameters ---- */

static const basin_init paper_init = {BASIN_INIT_NORMAL, 0.02}, zero = {BASIN_INIT_CONSTANT, 0},
                        one = {BASIN_INIT_CONSTANT, 1};

static basin_init affine_init(const basin_image_net_config *c, int64_t rows) {
    return c->published_init ? (basin_init){BASIN_INIT_LECUN, (double)rows} : paper_init;
}

static void declare_encoder(basin_image_net *net, basin_params *params) {
    const basin_image_net_config *c = &net->config;
    basin_init token = {BASIN_INIT_NORMAL, c->published_init ? 0.002 : 0.02};
    int64_t D = c->block.dim;
    net->enc_w =
        basin_param_add(params, "", "enc_w", BASIN_SHAPE(c->patch, D), affine_init(c, c->patch));
    net->enc_b = basin_param_add(params, "", "enc_b", BASIN_SHAPE(D), zero);
    net->mask = basin_param_add(params, "", "mask", BASIN_SHAPE(D), token);
    net->pos = basin_param_add(params, "", "pos", BASIN_SHAPE(c->tokens + c->cls, D), token);
    if (c->cls) net->cls = basin_param_add(params, "", "cls", BASIN_SHAPE(D), token);
}

static void declare_decoder(basin_image_net *net, basin_params *params) {
    const basin_image_net_config *c = &net->config;
    net->dec_w = basin_param_add(params, "", "dec_w", BASIN_SHAPE(c->block.dim, c->patch),
                                 affine_init(c, c->block.dim));
    net->dec_b = basin_param_add(params, "", "dec_b", BASIN_SHAPE(c->patch), zero);
    if (!c->holes_apart) return;
    net->hole_w = basin_param_add(params, "", "hole_w", BASIN_SHAPE(c->block.dim, c->patch), zero);
    net->hole_b = basin_param_add(params, "", "hole_b", BASIN_SHAPE(c->patch), zero);
}

/* "layerNUMBER.NAME"; matrices have LeCun's deviation. */
static void declare_layer(basin_vit_layer *l, basin_params *params, const basin_block_config *c,
                          int number) {
    int64_t D = c->dim, W = c->heads * c->head_dim, U = c->memories;
    const struct {
        basin_expr *to;
        const char *name;
        basin_shape shape;
    } all[] = {{&l->norm1_g, "norm1_g", BASIN_SHAPE(D)},  {&l->norm1_b, "norm1_b", BASIN_SHAPE(D)},
               {&l->wq, "wq", BASIN_SHAPE(D, W)},         {&l->bq, "bq", BASIN_SHAPE(W)},
               {&l->wk, "wk", BASIN_SHAPE(D, W)},         {&l->bk, "bk", BASIN_SHAPE(W)},
               {&l->wv, "wv", BASIN_SHAPE(D, W)},         {&l->bv, "bv", BASIN_SHAPE(W)},
               {&l->wo, "wo", BASIN_SHAPE(W, D)},         {&l->bo, "bo", BASIN_SHAPE(D)},
               {&l->norm2_g, "norm2_g", BASIN_SHAPE(D)},  {&l->norm2_b, "norm2_b", BASIN_SHAPE(D)},
               {&l->mlp_w1, "mlp_w1", BASIN_SHAPE(D, U)}, {&l->mlp_b1, "mlp_b1", BASIN_SHAPE(U)},
               {&l->mlp_w2, "mlp_w2", BASIN_SHAPE(U, D)}, {&l->mlp_b2, "mlp_b2", BASIN_SHAPE(D)}};
    char prefix[32];
    snprintf(prefix, sizeof prefix, "layer%d.", number);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool matrix = all[i].shape.rank == 2, gain = strstr(all[i].name, "_g") != NULL;
        basin_init lecun = {BASIN_INIT_LECUN, (double)all[i].shape.dim[0]};
        *all[i].to = basin_param_add(params, prefix, all[i].name, all[i].shape,
                                     matrix ? lecun
                                     : gain ? one
                                            : zero);
    }
}

static int layers_of(const basin_image_net_config *c) {
    return c->arch == BASIN_IMAGE_ALBERT ? 1 : c->descent.steps;
}

static basin_status declare_layers(basin_image_net *net, basin_params *params) {
    const basin_image_net_config *c = &net->config;
    const basin_block_config *b = &c->block;
    basin_shape vector = BASIN_SHAPE(b->dim);
    for (int i = 0; i < layers_of(c); i++) declare_layer(&net->layer[i], params, b, i);
    net->norm_g = basin_param_add(params, "", "norm_g", vector, one);
    net->norm_b = basin_param_add(params, "", "norm_b", vector, zero);
    return basin_model_status(params->graph);
}

static basin_status check_vit(const basin_image_net_config *c, basin_graph *graph) {
    const basin_block_config *b = &c->block;
    if (c->descent.steps < 1 || c->descent.steps > BASIN_MAX_LAYERS)
        basin_graph_fail(graph, BASIN_BAD_VALUE, "a ViT of %d layers; expected 1 to %d",
                         c->descent.steps, BASIN_MAX_LAYERS);
    else if (b->dim < 1 || b->heads < 1 || b->head_dim < 1 || b->memories < 1)
        basin_graph_fail(
            graph, BASIN_BAD_VALUE,
            "a ViT with D %lld, H %lld, Y %lld, %lld hidden units; expected at least 1 of each",
            (long long)b->dim, (long long)b->heads, (long long)b->head_dim, (long long)b->memories);
    return basin_model_status(graph);
}

basin_status basin_image_net_declare(basin_image_net *net, basin_params *params,
                                     const basin_image_net_config *config) {
    bool et = config->arch == BASIN_IMAGE_ET;
    basin_status status = et ? BASIN_OK : check_vit(config, params->graph);
    *net = (basin_image_net){.config = *config};
    if (status) return status;
    if (!config->published_init) net->config.block.init_query = paper_init;
    declare_encoder(net, params);
    status = et ? basin_block_declare(&net->block, params, "", &net->config.block)
                : declare_layers(net, params);
    declare_decoder(net, params);
    return status ? status : basin_model_status(params->graph);
}

/* ---- patches to tokens and back ---- */

/* 1 where a patch is a guess, [B, N, 1]. */
static basin_expr guessed(basin_expr replaced) { return basin_relu(basin_offset(replaced, -1)); }

/* The input of the encoder, the guess included. */
static basin_expr seen(basin_expr patches, basin_expr replaced) {
    basin_expr shown = basin_sub(basin_scale(guessed(replaced), 2), replaced);
    return basin_mul(patches, basin_offset(shown, 1));
}

basin_expr basin_image_net_encode(const basin_image_net *net, basin_expr patches,
                                  basin_expr replaced) {
    int64_t N = net->config.tokens, P = net->config.patch, D = net->config.block.dim;
    if (!basin_model_shape_is(patches, BASIN_SHAPE(-1, N, P), "image: patches")) return NULL;
    int64_t B = basin_expr_shape(patches).dim[0];
    replaced = basin_reshape(replaced, BASIN_SHAPE(B, N, 1));
    if (net->hole_w) patches = seen(patches, replaced);
    basin_expr x = basin_model_affine(patches, net->enc_w, net->enc_b);
    basin_expr mask = net->hole_w ? basin_add(x, basin_sub(net->mask, net->enc_b)) : net->mask;
    x = basin_where(replaced, mask, x);
    if (net->cls) {
        basin_expr cls = basin_broadcast_to(net->cls, BASIN_SHAPE(B, 1, D));
        x = basin_concat((basin_expr[]){cls, x}, 2, 1);
    }
    return basin_add(x, net->pos);
}

static basin_expr last_norm(const basin_image_net *net, basin_expr tokens) {
    if (net->cls) tokens = basin_slice(tokens, 1, 1, net->config.tokens);
    return net->config.arch == BASIN_IMAGE_ET
               ? basin_block_norm(&net->block, tokens)
               : basin_layernorm(tokens, net->norm_g, net->norm_b, EPSILON);
}

basin_expr basin_image_net_decode(const basin_image_net *net, basin_expr tokens) {
    return basin_model_affine(last_norm(net, tokens), net->dec_w, net->dec_b);
}

/* ---- steps ---- */

static const basin_vit_layer *layer_of(const basin_image_net *net, int step) {
    return &net->layer[net->config.arch == BASIN_IMAGE_VIT ? step : 0];
}

/* Heads side by side: [B, N, HY] -> [B, N, H, Y]. */
static basin_expr split(const basin_image_net *net, basin_expr x) {
    basin_shape s = basin_expr_shape(x);
    return basin_reshape(x, BASIN_SHAPE(s.dim[0], s.dim[1], net->config.block.heads, -1));
}

static basin_expr project(const basin_image_net *net, basin_expr g, basin_expr w, basin_expr b) {
    return split(net, basin_model_affine(g, w, b));
}

/* The shares of keys in the attention of queries, [B, H, N, N]. */
static basin_expr share(const basin_image_net *net, const basin_vit_layer *l, basin_expr g) {
    basin_expr q = project(net, g, l->wq, l->bq), k = project(net, g, l->wk, l->bk);
    basin_expr score = basin_einsum("bnhy,bmhy->bhnm", q, k);
    return basin_softmax(basin_scale(score, 1 / sqrt((double)net->config.block.head_dim)), -1);
}

static basin_expr mix(const basin_image_net *net, const basin_vit_layer *l, basin_expr g) {
    const basin_block_config *c = &net->config.block;
    basin_shape s = basin_expr_shape(g);
    basin_expr given = share(net, l, g), v = project(net, g, l->wv, l->bv);
    basin_expr mixed = basin_einsum("bhnm,bmhy->bnhy", given, v);
    basin_shape flat = BASIN_SHAPE(s.dim[0], s.dim[1], c->heads * c->head_dim);
    return basin_model_affine(basin_reshape(mixed, flat), l->wo, l->bo);
}

/* z (1 + erf(z / sqrt 2)) / 2 */
static basin_expr gelu(basin_expr z) {
    basin_expr gate = basin_offset(basin_erf(basin_scale(z, sqrt(0.5))), 1);
    return basin_scale(basin_mul(z, gate), 0.5);
}

static basin_expr run_layer(const basin_image_net *net, const basin_vit_layer *l, basin_expr x) {
    x = basin_add(x, mix(net, l, basin_layernorm(x, l->norm1_g, l->norm1_b, EPSILON)));
    basin_expr g = basin_layernorm(x, l->norm2_g, l->norm2_b, EPSILON);
    basin_expr h = gelu(basin_model_affine(g, l->mlp_w1, l->mlp_b1));
    return basin_add(x, basin_model_affine(h, l->mlp_w2, l->mlp_b2));
}

basin_energy basin_image_net_energy(basin_block_bound *bound, basin_pattern *pattern,
                                    const basin_image_net *net) {
    *pattern = (basin_pattern){.exclude_self = !net->config.self_attention};
    *bound = (basin_block_bound){.block = &net->block, .pattern = pattern};
    return basin_block_energy(bound);
}

static basin_expr descend(const basin_image_net *net, basin_expr x, int steps, basin_expr *trace) {
    basin_pattern pattern;
    basin_block_bound bound;
    basin_energy energy = basin_image_net_energy(&bound, &pattern, net);
    basin_descent_spec spec = net->config.descent;
    spec.steps = steps;
    return basin_descend(&energy, x, &spec, trace);
}

basin_expr basin_image_net_step(const basin_image_net *net, basin_expr tokens, int step) {
    basin_graph *graph = basin_expr_graph(net->enc_w);
    bool again = net->config.descent.recompute;
    if (net->config.arch == BASIN_IMAGE_ET) return descend(net, tokens, 1, NULL);
    if (again) basin_recompute_begin(graph);
    basin_expr x = basin_keep(run_layer(net, layer_of(net, step), tokens));
    if (again) basin_recompute_end(graph);
    return x;
}

basin_expr basin_image_net_forward(const basin_image_net *net, basin_expr patches,
                                   basin_expr replaced, basin_expr *energy) {
    bool et = net->config.arch == BASIN_IMAGE_ET;
    int steps = net->config.descent.steps;
    basin_expr x = basin_image_net_encode(net, patches, replaced);
    if (et) x = descend(net, x, steps, energy);
    for (int i = 0; !et && i < steps; i++) x = basin_image_net_step(net, x, i);
    basin_expr output = basin_image_net_decode(net, x);
    if (!net->hole_w) return output;
    basin_shape s = basin_expr_shape(replaced);
    basin_expr change = basin_model_affine(last_norm(net, x), net->hole_w, net->hole_b);
    replaced = basin_reshape(replaced, BASIN_SHAPE(s.dim[0], s.dim[1], 1));
    return basin_where(guessed(replaced), basin_add(patches, change), output);
}

basin_expr basin_image_net_attention(const basin_image_net *net, basin_expr tokens, int step) {
    const basin_block *b = &net->block;
    const basin_vit_layer *l = layer_of(net, step);
    basin_graph *graph = basin_expr_graph(net->enc_w);
    if (net->config.arch != BASIN_IMAGE_ET)
        return share(net, l, basin_layernorm(tokens, l->norm1_g, l->norm1_b, EPSILON));
    basin_expr g = basin_block_norm(b, tokens);
    basin_expr q = basin_einsum("bnd,hyd->bnhy", g, b->wq);
    basin_expr k = basin_einsum("bnd,hyd->bnhy", g, b->wk);
    basin_expr beta = basin_reshape(b->beta, BASIN_SHAPE(net->config.block.heads, 1, 1));
    basin_expr score = basin_mul(basin_einsum("bnhy,bmhy->bhnm", q, k), beta);
    if (!net->config.self_attention) /* far below all others: its share is 0 */
        score =
            basin_add(score, basin_scale(basin_eye(graph, basin_expr_shape(tokens).dim[1]), -1e9));
    return basin_softmax(score, -1);
}

/* ---- the loss ---- */

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
