/* A bundle of all that can be in one, and comparing bundles. */
#ifndef TESTS_IO_BUNDLES_H
#define TESTS_IO_BUNDLES_H

#include "engine/io/bundle.h"
#include "support/test.h"

/* A tensor of each type (`brain`: of BF16 too), one without elements called `empty`, a scalar. */
static inline basin_bundle *sample_new(const char *empty, bool brain) {
    basin_bundle *bundle;
    assert_int_equal(basin_bundle_new(&bundle, NULL, NULL), BASIN_OK);
    for (int d = BASIN_BOOL; d >= BASIN_F64; d--) {
        basin_tensor tensor;
        if (d == BASIN_BF16 && !brain) continue;
        basin_tensor_new(&tensor, (basin_dtype)d, BASIN_SHAPE(1 + d, 3), NULL);
        for (size_t i = 0; i < basin_tensor_bytes(&tensor); i++)
            ((unsigned char *)tensor.data)[i] =
                (unsigned char)(d == BASIN_BOOL ? i & 1 : 7 * i + d);
        assert_ok(basin_bundle_add(bundle, basin_dtype_name((basin_dtype)d), &tensor, &failure));
    }
    basin_tensor none = basin_tensor_borrow(NULL, BASIN_F32, BASIN_SHAPE(0, 3)), scalar;
    assert_ok(basin_bundle_add(bundle, empty, &none, &failure));
    basin_tensor_new(&scalar, BASIN_F64, BASIN_SCALAR, NULL);
    *(double *)scalar.data = 2.5;
    assert_ok(basin_bundle_add(bundle, "scalar", &scalar, &failure));
    basin_bundle_meta_set(bundle, "config", "{\"D\": 768}", NULL);
    return bundle;
}

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
