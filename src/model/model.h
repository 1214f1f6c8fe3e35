/* What the models are made of: checks of shapes, affine maps, norms, heads; patches of pictures. */
#ifndef BASIN_MODEL_MODEL_H
#define BASIN_MODEL_MODEL_H

#include "basin/language.h"
#include "basin/model.h"
#include "energy/energy.h"

/* ---- shapes, beyond what broadcasting would let pass ---- */

/* Whether a and b have one shape; otherwise the graph gets an error that names both. */
bool basin_model_shapes_agree(basin_expr a, basin_expr b, const char *what);
/* Whether the shape of a is the one wanted, -1 standing for any size. */
bool basin_model_shape_is(basin_expr a, basin_shape wanted, const char *what);

/* ---- maps and heads ---- */

/* x W + b; a bias of NULL is left out. */
basin_expr basin_model_affine(basin_expr x, basin_expr weight, basin_expr bias);
/* Layer norm with a gain and a bias per dimension [D]; a bias of NULL is left out. */
basin_expr basin_model_norm(basin_expr x, basin_expr gain, basin_expr bias, double epsilon);
/* z (1 + erf(z / sqrt 2)) / 2 */
basin_expr basin_model_gelu(basin_expr z);
/* The results of several relations, each [N, D], as one: [N, D], or [N, relations D]. */
basin_expr basin_model_merge(const basin_expr *result, int relations, basin_merge merge);
/* The head's weights for `outputs` numbers per row: [W] and [] for one (or 0), else [W, C] and [C].
 */
void basin_model_head_add(basin_expr *weight, basin_expr *bias, basin_params *params,
                          const char *prefix, int64_t width, int64_t outputs, basin_init weights,
                          basin_init biases);
/* h [N, W] by such weights: one logit per row, [N], or [N, C]. */
basin_expr basin_model_logits(basin_expr h, basin_expr weight, basin_expr bias);

/* ---- patches become tokens and tokens patches: the affine encoder, the MASK token, positions, an
 * optional CLS token in front, the affine decoder ---- */

typedef struct basin_patches {
    int64_t tokens, patch, dim; /* N, P, D */
    bool published;             /* first values as in the published code, not as in the paper */
    basin_expr enc_w, enc_b;    /* [P, D] [D]; enc_b may be NULL */
    basin_expr mask, cls, pos;  /* [D] [D] [N (+ 1), D]; cls may be NULL */
} basin_patches;

/* Declares "enc_w", "enc_b" (where `bias`), "mask", "pos" and "cls" (where `cls`), in this order.
 */
void basin_patches_declare(basin_patches *p, basin_params *params, bool bias, bool cls);
/* Declares "dec_w" [D, P] and "dec_b" [P] (else NULL). */
void basin_patches_declare_decoder(basin_expr *weight, basin_expr *bias, const basin_patches *p,
                                   basin_params *params, bool has_bias);
/* Patches [B, N, P], replaced [B, N] -> tokens [B, N (+ 1), D]. */
basin_expr basin_patches_encode(const basin_patches *p, basin_expr patches, basin_expr replaced);

/* ---- models that others choose among ---- */

basin_status basin_vit_declare(basin_vit *model, basin_params *params,
                               const basin_vit_config *config);
/* Patches [B, N, P], replaced [B, N] -> completed patches [B, N, P]. */
basin_expr basin_vit_forward(const basin_vit *model, basin_expr patches, basin_expr replaced);

void basin_gpt_declare(basin_language *model, basin_params *params);
basin_expr basin_gpt_layers(const basin_language *model, basin_expr x, basin_expr seed);

#endif
