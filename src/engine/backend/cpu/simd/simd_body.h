/* The table of simd.h; the including file defines SIMD_TABLE, SIMD_NORMAL, SIMD_UNIFORM. */
#include "engine/backend/cpu/simd/simd.h"

#include "engine/backend/cpu/simd/pointwise_body.h"
#include "engine/backend/cpu/simd/rows_body.h"

const basin_simd SIMD_TABLE = {
    .map = map,
    .fill = fill,
    .widen = widen,
    .narrow = narrow,
    .finish = finish,
    .sum = row_sum,
    .max = row_max,
    .sums = row_sums,
    .maxima = row_maxima,
    .dot = row_dot,
    .sum_rows = sum_rows,
    .max_rows = max_rows,
    .axpy = axpy,
    .logsumexp = row_logsumexp,
    .softmax = row_softmax,
    .norm = row_norm,
    .norm_narrow = row_norm_narrow,
    .norm_reverse = row_norm_reverse,
    .pair_dot = pair_dot,
    .pair_sum = pair_sum,
    .normal = SIMD_NORMAL,
    .uniform = SIMD_UNIFORM,
};
