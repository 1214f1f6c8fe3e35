/* Calibrations inside the library; see include/basin/tasks/calibration.h. */
#ifndef BASIN_TRAIN_CALIBRATION_H
#define BASIN_TRAIN_CALIBRATION_H

#include "basin/tasks/calibration.h"

/* Fits the kind with the lowest log loss over five folds of the samples. */
basin_status basin_calibration_choose(basin_calibration *calibration, const double *score /* [n] */,
                                      const uint8_t *label /* [n] */, int64_t n,
                                      basin_error *error);
const char *basin_calibration_name(basin_calibration_kind kind); /* "none", "platt", .. */

/* Scores with their labels, sorted; free them. Equal scores stay in their order. */
typedef struct basin_sample {
    double score;
    uint8_t label; /* 0 or 1 */
} basin_sample;
basin_status basin_samples_sort(basin_sample **sorted, const double *score /* [n] */,
                                const uint8_t *label /* [n] */, int64_t n, bool falling,
                                basin_error *error);

double basin_probability_of(double logit);
double basin_logit(double probability); /* of 1e-9 to 1 - 1e-9 */

/* Population stability index between two distributions over the same bins, given as counts: the
 * sum of (b - a) log(b / a) over shares. Below 0.1 little has changed, above 0.25 much has. */
double basin_stability_index(const double *a /* [bins] */, const double *b /* [bins] */,
                             int64_t bins);

#endif
