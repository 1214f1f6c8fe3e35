/* Masked image completion: affine encoder, MASK token, positions, T steps of the block, layer norm
 * and affine decoder (section 3 of the paper, Algorithm 1); and one interface for it and ViT. */
#include "model/model.h"

/* ---- patches to tokens and back ---- */

/* Algorithm 1 draws all weights from N(0, 0.02^2); the published code has LeCun's deviation for the
 * affine maps and a tenth of the paper's for tokens. */
static basin_init weight_init(const basin_patches_config *c, int64_t rows) {
    return c->published ? (basin_init){BASIN_INIT_LECUN, (double)rows}
                        : (basin_init){BASIN_INIT_NORMAL, 0.02};
}

static basin_expr bias_add(const basin_patches_config *c, basin_params *params, const char *name,
                           int64_t count) {
    if (c->no_bias) return NULL;
    return basin_param_add(params, "", name, BASIN_SHAPE(count),
                           (basin_init){BASIN_INIT_CONSTANT, 0});
}

void basin_patches_declare(basin_patches *p, basin_params *params, const basin_patches_config *c) {
    basin_init token = {BASIN_INIT_NORMAL, c->published ? 0.002 : 0.02};
    basin_shape vector = BASIN_SHAPE(c->dim);
    p->enc_w = basin_param_add(params, "", "enc_w", BASIN_SHAPE(c->patch, c->dim),
                               weight_init(c, c->patch));
    p->enc_b = bias_add(c, params, "enc_b", c->dim);
    p->mask = basin_param_add(params, "", "mask", vector, token);
    p->pos = basin_param_add(params, "", "pos", BASIN_SHAPE(c->tokens + c->cls, c->dim), token);
    p->cls = c->cls ? basin_param_add(params, "", "cls", vector, token) : NULL;
}

void basin_patches_declare_decoder(basin_patches *p, basin_params *params,
                                   const basin_patches_config *c) {
    p->dec_w =
        basin_param_add(params, "", "dec_w", BASIN_SHAPE(c->dim, c->patch), weight_init(c, c->dim));
    p->dec_b = bias_add(c, params, "dec_b", c->patch);
}

basin_expr basin_patches_encode(const basin_patches *p, basin_expr patches, basin_expr replaced) {
    int64_t P = basin_expr_shape(p->enc_w).dim[0], D = basin_expr_shape(p->enc_w).dim[1];
    int64_t N = basin_expr_shape(p->pos).dim[0] - (p->cls != NULL);
    if (!basin_model_shape_is(patches, BASIN_SHAPE(-1, N, P), "image: patches")) return NULL;
    int64_t B = basin_expr_shape(patches).dim[0];
    basin_expr x = basin_model_affine(patches, p->enc_w, p->enc_b);
    x = basin_select(basin_reshape(replaced, BASIN_SHAPE(B, N, 1)), p->mask, x);
    if (p->cls) {
        basin_expr cls = basin_broadcast(p->cls, BASIN_SHAPE(B, 1, D));
        x = basin_concat((basin_expr[]){cls, x}, 2, 1);
    }
    return basin_add(x, p->pos);
}

basin_expr basin_patches_tokens(const basin_patches *p, basin_expr tokens) {
    if (!p->cls) return tokens;
    return basin_slice(tokens, 1, 1, basin_expr_shape(p->pos).dim[0] - 1);
}

/* ---- the Energy Transformer ---- */

static const basin_init paper_init = {BASIN_INIT_NORMAL, 0.02};

basin_status basin_image_et_declare(basin_image_et *model, basin_params *params,
                                    const basin_image_et_config *config) {
    *model = (basin_image_et){.config = *config};
    basin_patches_config patches = {.tokens = config->tokens,
                                    .patch = config->patch,
                                    .dim = config->block.dim,
                                    .published = config->published_init,
                                    .cls = config->cls};
    if (!config->published_init) model->config.block.init_query = paper_init;
    basin_patches_declare(&model->patches, params, &patches);
    basin_status status = basin_block_declare(&model->block, params, "", &model->config.block);
    basin_patches_declare_decoder(&model->patches, params, &patches);
    return status ? status : basin_model_status(params->graph);
}

basin_expr basin_image_et_encode(const basin_image_et *model, basin_expr patches,
                                 basin_expr replaced) {
    return basin_patches_encode(&model->patches, patches, replaced);
}

basin_expr basin_image_et_decode(const basin_image_et *model, basin_expr tokens) {
    basin_expr g = basin_block_norm(&model->block, basin_patches_tokens(&model->patches, tokens));
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
