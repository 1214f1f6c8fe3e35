/* Mean, spread and range of a tensor, by Welford's running update, which does not cancel where the
 * mean is large. */
#include "view/summary.h"

#include <math.h>

basin_summary basin_tensor_summary(const basin_tensor *tensor) {
    basin_summary s = {.count = basin_shape_count(tensor->shape), .low = NAN, .high = NAN};
    int64_t finite = 0;
    double spread = 0;
    for (int64_t i = 0; i < s.count; i++) {
        double value = basin_tensor_at(tensor, i);
        if (isnan(value)) {
            s.nan++;
        } else if (isinf(value)) {
            s.infinite++;
        } else {
            double away = value - s.mean;
            finite++;
            s.mean += away / (double)finite;
            spread += away * (value - s.mean);
            if (finite == 1 || value < s.low) s.low = value;
            if (finite == 1 || value > s.high) s.high = value;
        }
    }
    s.std = finite ? sqrt(spread / (double)finite) : NAN;
    if (!finite) s.mean = NAN;
    return s;
}

double basin_tensor_norm(const basin_tensor *tensor) {
    int64_t count = basin_shape_count(tensor->shape);
    double size = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = basin_tensor_at(tensor, i);
        size += value * value;
    }
    return sqrt(size);
}

double basin_tensor_distance(const basin_tensor *a, const basin_tensor *b) {
    int64_t count = basin_shape_count(b->shape);
    double away = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        double want = basin_tensor_at(b, i), off = basin_tensor_at(a, i) - want;
        away += off * off;
        size += want * want;
    }
    return size > 0 ? sqrt(away / size) : sqrt(away);
}
