/* Comparing bundles. */
#ifndef TESTS_IO_BUNDLES_H
#define TESTS_IO_BUNDLES_H

#include "engine/io/bundle.h"
#include "support/test.h"

/* Tensors and metadata, in order. */
static inline void assert_same(const basin_bundle *a, const basin_bundle *b) {
    assert_int_equal(basin_bundle_count(a), basin_bundle_count(b));
    for (size_t i = 0; i < basin_bundle_count(a); i++) {
        const basin_tensor *x = basin_bundle_at(a, i), *y = basin_bundle_at(b, i);
        assert_string_equal(basin_bundle_name(a, i), basin_bundle_name(b, i));
        assert_int_equal(x->dtype, y->dtype);
        assert_true(basin_shape_equal(x->shape, y->shape));
        assert_int_equal((uintptr_t)x->data % basin_dtype_size(x->dtype), 0);
        if (basin_tensor_bytes(x)) assert_memory_equal(x->data, y->data, basin_tensor_bytes(x));
    }
    const char *key, *of_a, *of_b;
    size_t i = 0;
    for (; (key = basin_bundle_meta_at(a, i, &of_a)); i++) {
        assert_string_equal(key, basin_bundle_meta_at(b, i, &of_b));
        assert_string_equal(of_a, of_b);
    }
    assert_null(basin_bundle_meta_at(b, i, NULL));
}

#endif
