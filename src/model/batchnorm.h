/* Batch norm over the rows of a table that count: (x - mean) / sqrt(variance + 1e-5) gain + bias,
 * with the batch's own mean and variance in training and the running ones in use. */
#ifndef BASIN_MODEL_BATCHNORM_H
#define BASIN_MODEL_BATCHNORM_H

#include "basin/model.h"

/* Parameters NAME_g, NAME_b and statistics NAME_mean, NAME_variance, each [dim]. */
basin_batchnorm basin_batchnorm_declare(basin_params *params, const char *prefix, const char *name,
                                        int64_t dim);
/* x [rows, dim], mask [rows, 1]: 1 for rows that count, 0 for others, whose results mean nothing.
 * In training (`params` not NULL, the list of the statistics) a tenth of the running ones is
 * replaced by the batch's, the variance without bias, as PyTorch does. */
basin_expr basin_batchnorm_apply(const basin_batchnorm *norm, basin_expr x, basin_expr mask,
                                 basin_params *params);

#endif
