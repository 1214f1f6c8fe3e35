/* What `basin descend` reads: a block's weights, tokens and pairs, from safetensors or npz.
 * Errors name file, tensor and shapes. */
#ifndef BASIN_VERIFY_WEIGHTS_H
#define BASIN_VERIFY_WEIGHTS_H

#include "basin/energy.h"
#include "basin/pairs.h"

typedef struct basin_weights {
    basin_block_config config;
    basin_tensor wk, wq,
        xi; /* [H, Y, D] [H, Y, D] [M, D]; no data where the configuration has none */
    basin_tensor gamma, delta, beta, mix; /* [] [D] [H] [H, H] */
} basin_weights;

/* `config` says what is wanted (the kind of energy, ablations); sizes are filled in from the file.
 * Names may stand under `prefix`. Without gamma, delta or beta: 1, 0 and 1 / sqrt(Y). */
basin_status basin_weights_read(basin_weights *weights, const basin_bundle *bundle,
                                const char *prefix, const basin_block_config *config,
                                basin_error *error);
void basin_weights_free(basin_weights *weights);
/* Gives the states of a block declared with weights->config their numbers. */
basin_status basin_weights_store(const basin_weights *weights, basin_store *store,
                                 basin_error *error);

/* The tokens [N, D] or [B, N, D]: x, x0, or the only tensor of two or three axes. */
basin_status basin_tokens_find(const basin_tensor **tokens, const basin_bundle *bundle,
                               const char *prefix, basin_error *error);

#endif
