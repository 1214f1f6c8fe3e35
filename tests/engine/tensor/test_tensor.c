/* Host tensors: shapes, every conversion, and the search for NaN and infinity. */
#include <math.h>

#include "base/shape.h"
#include "basin/tensor.h"
#include "support/test.h"

TEST(shapes) {
    int64_t big = (int64_t)1 << 62;
    assert_int_equal(basin_shape_count(BASIN_SCALAR), 1);
    assert_int_equal(basin_shape_count(BASIN_SHAPE(4, 196, 768)), 4 * 196 * 768);
    assert_int_equal(basin_shape_count(BASIN_SHAPE(4, 0, 768)), 0);
    assert_int_equal(basin_shape_count(BASIN_SHAPE(big, big, 0)), -1);
    assert_int_equal(basin_shape_count(BASIN_SHAPE(big, 4)), -1);
    assert_int_equal(basin_shape_count(BASIN_SHAPE(3, -1)), -1);
    assert_int_equal(basin_shape_count(BASIN_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1)), -1);
    assert_string_equal(basin_shape_text(BASIN_SHAPE(4, 196, 768)), "[4, 196, 768]");
    assert_string_equal(basin_shape_text(BASIN_SCALAR), "[]");
    int64_t low = INT64_MIN;
    basin_shape widest = BASIN_SHAPE(low, low, low, low, low, low, low, low);
    assert_int_equal(strlen(basin_shape_text(widest)), 8 * 20 + 7 * 2 + 2);
    assert_string_equal(basin_shape_text(BASIN_SHAPE(1, 2, 3, 4, 5, 6, 7, 8, 9)),
                        "[1, 2, 3, 4, 5, 6, 7, 8, ..]");
    assert_true(basin_shape_equal(BASIN_SHAPE(2, 3), BASIN_SHAPE(2, 3)));
    assert_false(basin_shape_equal(BASIN_SHAPE(2, 3), BASIN_SHAPE(3, 2)));
    assert_false(basin_shape_equal(BASIN_SHAPE(2, 3), BASIN_SHAPE(2, 3, 1)));
}

TEST(new_is_zero_and_owned) {
    basin_tensor tensor;
    assert_ok(basin_tensor_new(&tensor, BASIN_F64, BASIN_SHAPE(3, 5), &failure));
    assert_true(tensor.owned);
    assert_int_equal(basin_tensor_bytes(&tensor), 120);
    for (int i = 0; i < 15; i++) assert_true(basin_tensor_at(&tensor, i) == 0);
    basin_tensor_free(&tensor);
    assert_null(tensor.data);
    basin_tensor_free(&tensor);
    int64_t big = (int64_t)1 << 61;
    assert_says(basin_tensor_new(&tensor, BASIN_F64, BASIN_SHAPE(big), &failure), BASIN_BAD_SHAPE,
                "a tensor of shape [2305843009213693952] has no valid size");
    basin_tensor_free(&tensor);
}

/* One number into `dtype` and back. */
static double through(basin_dtype dtype, double value) {
    uint64_t bits = 0;
    double back = -1;
    basin_tensor from = basin_tensor_borrow(&value, BASIN_F64, BASIN_SCALAR);
    basin_tensor middle = basin_tensor_borrow(&bits, dtype, BASIN_SCALAR);
    basin_tensor to = basin_tensor_borrow(&back, BASIN_F64, BASIN_SCALAR);
    assert_int_equal(basin_tensor_convert(&middle, &from, NULL), BASIN_OK);
    assert_int_equal(basin_tensor_convert(&to, &middle, NULL), BASIN_OK);
    return back;
}

TEST(converts_floats) {
    static const struct {
        basin_dtype dtype;
        double from, to;
    } cases[] = {
        {BASIN_F32, 0.1, (double)0.1f},
        {BASIN_F16, 1.0, 1.0},
        {BASIN_F16, -2.5, -2.5},
        {BASIN_F16, 0.1, 0.0999755859375},
        {BASIN_F16, 65504, 65504},
        {BASIN_F16, 65519.9, 65504},
        {BASIN_F16, 65520, INFINITY},
        {BASIN_F16, -1e30, -INFINITY},
        {BASIN_F16, 0x1p-24, 0x1p-24},               /* the smallest */
        {BASIN_F16, 0x1p-25, 0},                     /* a tie: to the even one, 0 */
        {BASIN_F16, 0x1.000001p-25, 0x1p-24},        /* just above it */
        {BASIN_F16, 0x1.ff4p-15, 0x1.ff0p-15},       /* a tie among the subnormals */
        {BASIN_F16, 0x1.fffp-15, 0x1p-14},           /* carries into the normal numbers */
        {BASIN_F16, 0x1.002p0, 1.0},                 /* tie to even, down */
        {BASIN_F16, 0x1.006p0, 0x1.008p0},           /* tie to even, up */
        {BASIN_F16, 0x1.0020000000001p0, 0x1.004p0}, /* not a tie: a float would make it one */
        {BASIN_F16, 2047.9, 2048},                   /* carries into the exponent */
        {BASIN_BF16, 1.0, 1.0},
        {BASIN_BF16, 0x1.01p0, 1.0},
        {BASIN_BF16, 0x1.03p0, 0x1.04p0},
        {BASIN_BF16, 0x1.0100000000001p0, 0x1.02p0},
        {BASIN_BF16, 0x1.00fffffffffffp0, 1.0},
        {BASIN_BF16, 1e300, INFINITY},
        {BASIN_BF16, -INFINITY, -INFINITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(through(cases[i].dtype, cases[i].from) == cases[i].to);
    assert_true(isnan(through(BASIN_F16, NAN)) && isnan(through(BASIN_BF16, NAN)));
    assert_true(signbit(through(BASIN_F16, -0.0)) && signbit(through(BASIN_BF16, -0.0)));
}

TEST(every_half_survives) {
    for (int dtype = BASIN_F16; dtype <= BASIN_BF16; dtype++)
        for (uint32_t bits = 0; bits < 65536; bits++) {
            uint16_t start = (uint16_t)bits, back;
            double wide;
            basin_tensor a = basin_tensor_borrow(&start, (basin_dtype)dtype, BASIN_SCALAR);
            basin_tensor b = basin_tensor_borrow(&wide, BASIN_F64, BASIN_SCALAR);
            basin_tensor c = basin_tensor_borrow(&back, (basin_dtype)dtype, BASIN_SCALAR);
            basin_tensor_convert(&b, &a, NULL);
            basin_tensor_convert(&c, &b, NULL);
            if (isnan(wide)) continue;
            if (back != start) fail_msg("dtype %d: 0x%04x came back as 0x%04x", dtype, bits, back);
        }
}

TEST(converts_integers) {
    static const struct {
        basin_dtype dtype;
        double from, to;
    } cases[] = {
        {BASIN_I64, -3.9, -3},
        {BASIN_I64, 1e300, 0x1p63},
        {BASIN_I64, -1e300, -0x1p63},
        {BASIN_I64, NAN, 0},
        {BASIN_I32, 2147483648.0, 2147483647},
        {BASIN_I32, -INFINITY, -2147483648.0},
        {BASIN_I16, 32768, 32767},
        {BASIN_I16, -32768, -32768},
        {BASIN_I8, 200, 127},
        {BASIN_I8, -129, -128},
        {BASIN_U8, 255.9, 255},
        {BASIN_U8, -1, 0},
        {BASIN_BOOL, 0.5, 1},
        {BASIN_BOOL, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(through(cases[i].dtype, cases[i].from) == cases[i].to);
}

TEST(converts_arrays_and_checks_counts) {
    float from[6] = {1, 2, 3, 4, 5, 6};
    double to[6] = {0};
    basin_tensor a = basin_tensor_borrow(from, BASIN_F32, BASIN_SHAPE(2, 3));
    basin_tensor b = basin_tensor_borrow(to, BASIN_F64, BASIN_SHAPE(6));
    assert_ok(basin_tensor_convert(&b, &a, &failure));
    for (int i = 0; i < 6; i++) assert_true(to[i] == i + 1);
    b.shape = BASIN_SHAPE(5);
    assert_says(basin_tensor_convert(&b, &a, &failure), BASIN_BAD_SHAPE,
                "cannot convert a tensor of shape [2, 3] into [5]");
    b = basin_tensor_borrow(NULL, BASIN_F32, BASIN_SHAPE(0));
    assert_ok(basin_tensor_convert(&b, &b, &failure));
}

TEST(finds_the_first_bad_number) {
    double wide[4] = {1, 2, NAN, INFINITY};
    float single[4] = {1, -INFINITY, 3, 4};
    uint16_t half[3] = {0x7bff, 0xfc00, 0}, brain[3] = {0x7f7f, 0, 0x7fc0};
    int64_t whole[2] = {INT64_MAX, -1};
    basin_tensor t = basin_tensor_borrow(wide, BASIN_F64, BASIN_SHAPE(2, 2));
    assert_int_equal(basin_tensor_first_bad(&t), 2);
    t.shape = BASIN_SHAPE(2);
    assert_int_equal(basin_tensor_first_bad(&t), -1);
    t = basin_tensor_borrow(single, BASIN_F32, BASIN_SHAPE(4));
    assert_int_equal(basin_tensor_first_bad(&t), 1);
    t = basin_tensor_borrow(half, BASIN_F16, BASIN_SHAPE(3));
    assert_int_equal(basin_tensor_first_bad(&t), 1);
    t = basin_tensor_borrow(brain, BASIN_BF16, BASIN_SHAPE(3));
    assert_int_equal(basin_tensor_first_bad(&t), 2);
    t = basin_tensor_borrow(whole, BASIN_I64, BASIN_SHAPE(2));
    assert_int_equal(basin_tensor_first_bad(&t), -1);
}
