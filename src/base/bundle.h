/* Bundles: freed at the end of a scope, arrays put in, tensors and numbers checked. */
#ifndef BASIN_BASE_BUNDLE_H
#define BASIN_BASE_BUNDLE_H

#include <math.h>

#include "base/number.h"
#include "base/shape.h"
#include "base/try.h"
#include "basin/io.h"

/* For BASIN_AT_EXIT. */
static inline void basin_bundle_free_at(basin_bundle **bundle) { basin_bundle_free(*bundle); }

/* Adds an array that the bundle borrows. */
static inline basin_status basin_bundle_put(basin_bundle *bundle, const char *name,
                                            const void *data, basin_dtype dtype, basin_shape shape,
                                            basin_error *error) {
    basin_tensor t = basin_tensor_view(data, dtype, shape);
    return basin_bundle_add(bundle, name, &t, error);
}

/* basin_bundle_get of a tensor that must have this type and shape; -1 in a shape is any size. */
static inline basin_status basin_bundle_expect(const basin_tensor **tensor,
                                               const basin_bundle *bundle, const char *name,
                                               basin_dtype dtype, basin_shape shape,
                                               basin_error *error) {
    BASIN_TRY(basin_bundle_get(tensor, bundle, name, error));
    const basin_tensor *t = *tensor;
    bool right = t->dtype == dtype && t->shape.rank == shape.rank;
    for (int i = 0; right && i < shape.rank; i++)
        right = shape.dim[i] < 0 || shape.dim[i] == t->shape.dim[i];
    if (right) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s is %s %s, expected %s %s (-1: any)",
                      basin_bundle_path(bundle), name, basin_dtype_name(t->dtype),
                      basin_shape_text(t->shape), basin_dtype_name(dtype), basin_shape_text(shape));
}

/* A number of the metadata, from `low` to `high`. */
static inline basin_status basin_bundle_number(double *value, const basin_bundle *bundle,
                                               const char *key, double low, double high,
                                               basin_error *error) {
    const char *text = basin_bundle_meta(bundle, key);
    char *end = NULL;
    *value = text ? basin_real_read(text, &end) : NAN;
    if (text && end != text && !*end && *value >= low && *value <= high) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: %s is '%.40s'; expected a number from %.12g to %.12g",
                      basin_bundle_path(bundle), key, text ? text : "absent", low, high);
}

#endif
