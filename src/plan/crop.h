/* Crops of pictures written straight into a plan's input, without a copy by the host. */
#ifndef BASIN_PLAN_CROP_H
#define BASIN_PLAN_CROP_H

#include "backend/crop.h"
#include "basin/plan.h"

/* For backends that have basin_backend_crops. The input is [count, ...] of
 * channels * size * size values each. */
basin_status basin_plan_crop(basin_plan *plan, basin_expr input, const basin_crop_batch *batch,
                             basin_error *error);

#endif
