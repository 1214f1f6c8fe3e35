/* What all models of images share: patches become tokens and tokens patches. The affine encoder,
 * the MASK token, positions, an optional CLS token in front, the affine decoder. */
#ifndef BASIN_MODEL_PATCHES_H
#define BASIN_MODEL_PATCHES_H

#include "basin/model.h"

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

#endif
