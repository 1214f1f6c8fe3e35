/* A tensor in a few numbers: what `basin info --stats` shows of it. */
#ifndef BASIN_VIEW_SUMMARY_H
#define BASIN_VIEW_SUMMARY_H

#include "basin/tensor.h"

typedef struct basin_summary {
    int64_t count;
    int64_t nan, infinite;       /* how many are */
    double mean, std, low, high; /* of the finite ones; NaN where there are none */
} basin_summary;

basin_summary basin_tensor_summary(const basin_tensor *tensor);

#endif
