/* A tensor in a few numbers, and how far two are apart: what `basin info --stats` and `basin
 * verify` show. */
#ifndef BASIN_VIEW_SUMMARY_H
#define BASIN_VIEW_SUMMARY_H

#include "basin/tensor.h"

typedef struct basin_summary {
    int64_t count;
    int64_t nan, infinite;       /* how many are */
    double mean, std, low, high; /* of the finite ones; NaN where there are none */
} basin_summary;

basin_summary basin_tensor_summary(const basin_tensor *tensor);

/* The square root of the sum of squares, and ||a - b|| / ||b||, or ||a|| where b is all zeros; NaN
 * where either holds one. The shapes must be equal. */
double basin_tensor_norm(const basin_tensor *tensor);
double basin_tensor_distance(const basin_tensor *a, const basin_tensor *b);

#endif
