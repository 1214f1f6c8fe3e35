/* Numbers of eight bits: every byte comes back as it was, what lies between two of them goes to the
 * nearer one, in the middle to the even one, and what is too large to the largest. */
#include <math.h>

#include "basin/tensor.h"
#include "engine/tensor/byte.h"
#include "support/test.h"

static const basin_byte_form forms[2] = {BASIN_BYTE_E4M3, BASIN_BYTE_E5M2};
static const int largest[2] = {0x7e, 0x7b};

TEST(test_known_numbers) {
    assert_true(basin_byte_to_double(0x38, BASIN_BYTE_E4M3) == 1);
    assert_true(basin_byte_to_double(0x7e, BASIN_BYTE_E4M3) == 448);
    assert_true(basin_byte_to_double(0x01, BASIN_BYTE_E4M3) == 0x1p-9);
    assert_true(basin_byte_to_double(0x88, BASIN_BYTE_E4M3) == -0x1p-6);
    assert_true(isnan(basin_byte_to_double(0x7f, BASIN_BYTE_E4M3)));
    assert_true(basin_byte_to_double(0x3c, BASIN_BYTE_E5M2) == 1);
    assert_true(basin_byte_to_double(0x7b, BASIN_BYTE_E5M2) == 57344);
    assert_true(basin_byte_to_double(0x01, BASIN_BYTE_E5M2) == 0x1p-16);
    assert_true(isinf(basin_byte_to_double(0x7c, BASIN_BYTE_E5M2)));
    assert_true(isnan(basin_byte_to_double(0x7d, BASIN_BYTE_E5M2)));
}

TEST(test_bytes_come_back) {
    for (int f = 0; f < 2; f++)
        for (int sign = 0; sign < 2; sign++)
            for (int size = 0; size <= largest[f]; size++) {
                uint8_t byte = (uint8_t)(size | sign << 7);
                double x = basin_byte_to_double(byte, forms[f]);
                assert_int_equal(basin_byte_from_double(x, forms[f]), byte);
            }
}

TEST(test_nearest_and_even) {
    for (int f = 0; f < 2; f++)
        for (int size = 0; size < largest[f]; size++) {
            double low = basin_byte_to_double((uint8_t)size, forms[f]);
            double high = basin_byte_to_double((uint8_t)(size + 1), forms[f]);
            double middle = (low + high) / 2, little = (high - low) * 1e-9;
            assert_true(low < high);
            assert_int_equal(basin_byte_from_double(middle, forms[f]), size + size % 2);
            assert_int_equal(basin_byte_from_double(middle - little, forms[f]), size);
            assert_int_equal(basin_byte_from_double(middle + little, forms[f]), size + 1);
        }
}

TEST(test_too_large) {
    for (int f = 0; f < 2; f++) {
        assert_int_equal(basin_byte_from_double(1e30, forms[f]), largest[f]);
        assert_int_equal(basin_byte_from_double(-HUGE_VAL, forms[f]), largest[f] | 0x80);
        assert_true(isnan(basin_byte_to_double(basin_byte_from_double(NAN, forms[f]), forms[f])));
    }
}

TEST(test_tensors) {
    double number[3] = {0.3, -1000, 0};
    uint8_t byte[3];
    basin_tensor from = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(3));
    basin_tensor to = basin_tensor_borrow(byte, BASIN_F8_E4M3, BASIN_SHAPE(3));
    assert_int_equal(basin_tensor_convert(&to, &from, NULL), BASIN_OK);
    assert_true(basin_tensor_at(&to, 0) == 0.3125);
    assert_true(basin_tensor_at(&to, 1) == -448);
    assert_true(basin_tensor_at(&to, 2) == 0);
    to.dtype = BASIN_F8_E5M2;
    assert_int_equal(basin_tensor_convert(&to, &from, NULL), BASIN_OK);
    assert_true(basin_tensor_at(&to, 0) == 0.3125);
    assert_true(basin_tensor_at(&to, 1) == -1024);
    byte[2] = 0x7f;
    assert_int_equal(basin_tensor_first_bad(&to), 2);
    assert_int_equal(basin_tensor_bytes(&to), 3);
}
