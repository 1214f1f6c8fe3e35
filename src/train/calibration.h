/* Calibrations inside the library; see include/basin/calibration.h. */
#ifndef BASIN_TRAIN_CALIBRATION_H
#define BASIN_TRAIN_CALIBRATION_H

#include "basin/calibration.h"

/* Fits the kind whose log loss is least over five folds of the samples. */
basin_status basin_calibration_choose(basin_calibration *calibration, const double *score /* [n] */,
                                      const uint8_t *label /* [n] */, int64_t n,
                                      basin_error *error);
const char *basin_calibration_name(basin_calibration_kind kind); /* "none", "platt", .. */

/* Population stability index between two distributions over the same bins, given as counts: the
 * sum of (b - a) log(b / a) over shares. Below 0.1 little has changed, above 0.25 much has. */
double basin_stability_index(const double *a /* [bins] */, const double *b /* [bins] */,
                             int64_t bins);

#endif
