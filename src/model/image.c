/* Masked image completion: affine encoder, MASK token, positions, T steps of the block, layer norm
 * and affine decoder (section 3 of the paper, Algorithm 1). */
#include "basin/model.h"
#include "model/shapes.h"

basin_status basin_image_declare(basin_image *model, basin_params *params,
                                 const basin_image_config *config) {
    *model = (basin_image){.config = *config};
    int64_t P = config->patch, D = config->block.dim, N = config->tokens + config->cls;
    basin_init zero = {BASIN_INIT_CONSTANT, 0}, token = {BASIN_INIT_NORMAL, 0.002};
    model->enc_w = basin_param_add(params, "", "enc_w", BASIN_SHAPE(P, D),
                                   (basin_init){BASIN_INIT_LECUN, (double)P});
    model->enc_b = basin_param_add(params, "", "enc_b", BASIN_SHAPE(D), zero);
    model->mask = basin_param_add(params, "", "mask", BASIN_SHAPE(D), token);
    model->pos = basin_param_add(params, "", "pos", BASIN_SHAPE(N, D), token);
    if (config->cls) model->cls = basin_param_add(params, "", "cls", BASIN_SHAPE(D), token);
    basin_status status = basin_block_declare(&model->block, params, "", &config->block);
    model->dec_w = basin_param_add(params, "", "dec_w", BASIN_SHAPE(D, P),
                                   (basin_init){BASIN_INIT_LECUN, (double)D});
    model->dec_b = basin_param_add(params, "", "dec_b", BASIN_SHAPE(P), zero);
    const basin_error *error = basin_graph_error(params->graph);
    return status ? status : error ? error->status : BASIN_OK;
}

basin_expr basin_image_encode(const basin_image *model, basin_expr patches, basin_expr replaced) {
    const basin_image_config *c = &model->config;
    if (!basin_model_shape_is(patches, BASIN_SHAPE(-1, c->tokens, c->patch), "image: patches"))
        return NULL;
    int64_t B = basin_expr_shape(patches).dim[0], N = c->tokens, D = c->block.dim;
    basin_expr x = basin_add(basin_matmul(patches, model->enc_w), model->enc_b);
    x = basin_select(basin_reshape(replaced, BASIN_SHAPE(B, N, 1)), model->mask, x);
    if (model->cls) {
        basin_expr cls = basin_broadcast(model->cls, BASIN_SHAPE(B, 1, D));
        x = basin_concat((basin_expr[]){cls, x}, 2, 1);
    }
    return basin_add(x, model->pos);
}

basin_expr basin_image_decode(const basin_image *model, basin_expr tokens) {
    if (model->cls) tokens = basin_slice(tokens, 1, 1, model->config.tokens);
    basin_expr g = basin_block_norm(&model->block, tokens);
    return basin_add(basin_matmul(g, model->dec_w), model->dec_b);
}

basin_expr basin_image_forward(const basin_image *model, basin_expr patches, basin_expr replaced,
                               basin_expr *trace) {
    basin_pattern pattern = {.exclude_self = !model->config.self_attention};
    basin_block_bound bound = {&model->block, &pattern, NULL};
    basin_energy energy = basin_block_energy(&bound);
    basin_expr x = basin_image_encode(model, patches, replaced);
    return basin_image_decode(model, basin_descend(&energy, x, &model->config.descent, trace));
}

basin_expr basin_image_loss(basin_expr output, basin_expr patches, basin_expr occluded) {
    basin_shape shape = basin_expr_shape(patches);
    if (!basin_model_shape_is(patches, BASIN_SHAPE(-1, -1, -1), "image loss: patches") ||
        !basin_model_shapes_agree(output, patches, "image loss"))
        return NULL;
    basin_expr where = basin_reshape(occluded, BASIN_SHAPE(shape.dim[0], shape.dim[1], 1));
    basin_expr error = basin_mul(basin_square(basin_sub(output, patches)), where);
    basin_expr count = basin_scale(basin_sum_all(occluded), (double)shape.dim[2]);
    return basin_div(basin_sum_all(error), count);
}
