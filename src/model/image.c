/* Masked image completion: affine encoder, MASK token, positions, T steps of the block, layer norm
 * and affine decoder (section 3 of the paper, Algorithm 1). */
#include "basin/model.h"
#include "model/patches.h"
#include "model/shapes.h"

static const basin_init paper_init = {BASIN_INIT_NORMAL, 0.02};

basin_status basin_image_declare(basin_image *model, basin_params *params,
                                 const basin_image_config *config) {
    *model = (basin_image){.config = *config};
    basin_patches p = {.tokens = config->tokens,
                       .patch = config->patch,
                       .dim = config->block.dim,
                       .published = config->published_init};
    if (!config->published_init) model->config.block.init_query = paper_init;
    basin_patches_declare(&p, params, true, config->cls);
    model->enc_w = p.enc_w, model->enc_b = p.enc_b;
    model->mask = p.mask, model->cls = p.cls, model->pos = p.pos;
    basin_status status = basin_block_declare(&model->block, params, "", &model->config.block);
    basin_patches_declare_decoder(&model->dec_w, &model->dec_b, &p, params, true);
    const basin_error *error = basin_graph_error(params->graph);
    return status ? status : error ? error->status : BASIN_OK;
}

basin_expr basin_image_encode(const basin_image *model, basin_expr patches, basin_expr replaced) {
    basin_patches p = {.tokens = model->config.tokens,
                       .patch = model->config.patch,
                       .dim = model->config.block.dim,
                       .enc_w = model->enc_w,
                       .enc_b = model->enc_b,
                       .mask = model->mask,
                       .cls = model->cls,
                       .pos = model->pos};
    return basin_patches_encode(&p, patches, replaced);
}

basin_expr basin_image_decode(const basin_image *model, basin_expr tokens) {
    if (model->cls) tokens = basin_slice(tokens, 1, 1, model->config.tokens);
    basin_expr g = basin_block_norm(&model->block, tokens);
    return basin_add(basin_matmul(g, model->dec_w), model->dec_b);
}

basin_expr basin_image_forward(const basin_image *model, basin_expr patches, basin_expr replaced,
                               basin_expr *trace) {
    basin_pattern pattern = {.exclude_self = !model->config.self_attention};
    basin_block_bound bound = {.block = &model->block, .pattern = &pattern};
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
