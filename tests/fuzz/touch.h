/* Uses every tensor of a bundle, so that a wrong pointer or size shows, and checks what a reader
 * must guarantee. */
#ifndef TESTS_FUZZ_TOUCH_H
#define TESTS_FUZZ_TOUCH_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "basin/io.h"

static inline void bundle_touch(const basin_bundle *bundle) {
    for (size_t i = 0; i < basin_bundle_count(bundle); i++) {
        const basin_tensor *tensor = basin_bundle_at(bundle, i);
        int64_t count = basin_shape_count(tensor->shape);
        if (count < 0 || basin_bundle_find(bundle, basin_bundle_name(bundle, i)) != tensor) abort();
        if ((uintptr_t)tensor->data % basin_dtype_size(tensor->dtype) != 0) abort();
        int64_t bad = -1;
        for (int64_t k = count - 1; k >= 0; k--)
            if (!isfinite(basin_tensor_at(tensor, k))) bad = k;
        if (basin_tensor_first_bad(tensor) != bad) abort();
    }
    const char *key;
    for (size_t i = 0; (key = basin_bundle_meta_at(bundle, i, NULL)); i++)
        if (!basin_bundle_meta(bundle, key)) abort();
}

/* An outcome is a bundle and no error, or no bundle and one line that says why. */
static inline void outcome_check(const basin_bundle *bundle, basin_status status,
                                 const basin_error *error) {
    if ((status == BASIN_OK) != (bundle != NULL)) abort();
    if (status == BASIN_OK)
        bundle_touch(bundle);
    else if (error->status != status || strncmp(error->text, "fuzz: ", 6) != 0)
        abort();
    if (status != BASIN_OK && strchr(error->text, '\n')) abort();
}

#endif
