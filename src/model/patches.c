/* Patches to tokens and back: the affine maps, MASK, positions and CLS (section 3, Algorithm 1). */
#include "model/patches.h"

#include "model/shapes.h"

/* Algorithm 1 draws all weights from N(0, 0.02^2); the published code has LeCun's deviation for the
 * affine maps and a tenth of the paper's for tokens. */
static basin_init weight_init(const basin_patches *p, int64_t rows) {
    return p->published ? (basin_init){BASIN_INIT_LECUN, (double)rows}
                        : (basin_init){BASIN_INIT_NORMAL, 0.02};
}

void basin_patches_declare(basin_patches *p, basin_params *params, bool bias, bool cls) {
    basin_init zero = {BASIN_INIT_CONSTANT, 0}, weight = weight_init(p, p->patch);
    basin_init token = {BASIN_INIT_NORMAL, p->published ? 0.002 : 0.02};
    basin_shape vector = BASIN_SHAPE(p->dim);
    p->enc_w = basin_param_add(params, "", "enc_w", BASIN_SHAPE(p->patch, p->dim), weight);
    p->enc_b = bias ? basin_param_add(params, "", "enc_b", vector, zero) : NULL;
    p->mask = basin_param_add(params, "", "mask", vector, token);
    p->pos = basin_param_add(params, "", "pos", BASIN_SHAPE(p->tokens + cls, p->dim), token);
    p->cls = cls ? basin_param_add(params, "", "cls", vector, token) : NULL;
}

void basin_patches_declare_decoder(basin_expr *weight, basin_expr *bias, const basin_patches *p,
                                   basin_params *params, bool has_bias) {
    basin_init zero = {BASIN_INIT_CONSTANT, 0};
    *weight =
        basin_param_add(params, "", "dec_w", BASIN_SHAPE(p->dim, p->patch), weight_init(p, p->dim));
    *bias = has_bias ? basin_param_add(params, "", "dec_b", BASIN_SHAPE(p->patch), zero) : NULL;
}

basin_expr basin_patches_encode(const basin_patches *p, basin_expr patches, basin_expr replaced) {
    if (!basin_model_shape_is(patches, BASIN_SHAPE(-1, p->tokens, p->patch), "image: patches"))
        return NULL;
    int64_t B = basin_expr_shape(patches).dim[0];
    basin_expr x = basin_matmul(patches, p->enc_w);
    if (p->enc_b) x = basin_add(x, p->enc_b);
    x = basin_select(basin_reshape(replaced, BASIN_SHAPE(B, p->tokens, 1)), p->mask, x);
    if (p->cls) {
        basin_expr cls = basin_broadcast(p->cls, BASIN_SHAPE(B, 1, p->dim));
        x = basin_concat((basin_expr[]){cls, x}, 2, 1);
    }
    return basin_add(x, p->pos);
}
