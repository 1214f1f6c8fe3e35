/* Batch norm; see batchnorm.h. */
#include "model/batchnorm.h"

#include <stdio.h>

static const double EPSILON = 1e-5, MOMENTUM = 0.1;

basin_batchnorm basin_batchnorm_declare(basin_params *params, const char *prefix, const char *name,
                                        int64_t dim) {
    static const char *const part[] = {"g", "b", "mean", "variance"};
    basin_expr state[4];
    for (int i = 0; i < 4; i++) {
        char full[64];
        basin_init init = {BASIN_INIT_CONSTANT, i == 0 || i == 3};
        snprintf(full, sizeof full, "%s_%s", name, part[i]);
        state[i] = i < 2 ? basin_param_add(params, prefix, full, BASIN_SHAPE(dim), init)
                         : basin_statistic_add(params, prefix, full, BASIN_SHAPE(dim), init);
    }
    return (basin_batchnorm){state[0], state[1], state[2], state[3]};
}

static basin_expr mix(basin_expr running, basin_expr now) {
    return basin_add(basin_scale(running, 1 - MOMENTUM), basin_scale(now, MOMENTUM));
}

basin_expr basin_batchnorm_apply(const basin_batchnorm *norm, basin_expr x, basin_expr mask,
                                 basin_params *params) {
    basin_expr mean = norm->mean, variance = norm->variance;
    if (params) {
        basin_expr one = basin_const(params->graph, 1);
        basin_expr count = basin_max(basin_sum_all(mask), one);
        mean = basin_div(basin_sum(basin_mul(mask, x), 0, 1), count);
        basin_expr away = basin_mul(mask, basin_sub(x, mean));
        basin_expr squares = basin_sum(basin_square(away), 0, 1);
        variance = basin_div(squares, count);
        basin_expr unbiased = basin_div(squares, basin_max(basin_offset(count, -1), one));
        basin_statistic_update(params, norm->mean, mix(norm->mean, mean));
        basin_statistic_update(params, norm->variance, mix(norm->variance, unbiased));
    }
    basin_expr scale = basin_div(norm->gain, basin_sqrt(basin_offset(variance, EPSILON)));
    return basin_add(basin_mul(basin_sub(x, mean), scale), norm->bias);
}
