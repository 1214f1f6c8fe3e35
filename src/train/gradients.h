/* The gradients that optimisers see. */
#ifndef BASIN_TRAIN_GRADIENTS_H
#define BASIN_TRAIN_GRADIENTS_H

#include "basin/params.h"

/* Of `loss`, one a parameter, passed through params->adjust. */
basin_status basin_gradients(basin_expr *gradient, const basin_params *params, basin_expr loss,
                             basin_error *error);

#endif
