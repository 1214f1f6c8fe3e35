/* The published Energy Transformer weights: an npz with the keys Wk, Wq [H, Y, D], Xi [D, M], Wenc
 * [P, D], Benc, Wdec [D, P], Bdec, POS_embed [N + 1, D], CLS_token, MASK_token, LNORM_gamma and
 * LNORM_bias. They come in as a model of ours; basin_image_export lets one of ours out as them, our
 * settings along as metadata, which the published code does not look at. */
#ifndef BASIN_TASK_IMAGE_INTERCHANGE_H
#define BASIN_TASK_IMAGE_INTERCHANGE_H

#include "task/image/image.h"

/* Whether a file's tensors have these names. */
bool basin_image_is_published(const basin_bundle *bundle);

/* The same numbers under our names, in a new bundle, with the settings: those the file states (one
 * that we wrote does), else the paper's with the sizes of the tensors: self-attention, beta 1 /
 * sqrt(Y), alpha 0.1, 12 steps, ImageNet's means and deviations. Without CLS_token there is no CLS
 * token. */
basin_status basin_image_published_read(basin_image_settings *settings, basin_bundle **model,
                                        const basin_bundle *published, basin_error *error);

#endif
