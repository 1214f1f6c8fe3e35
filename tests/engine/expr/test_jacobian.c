/* Derivatives along directions and as matrices, against those by cotangents and finite
 * differences. */
#include <math.h>

#include "support/lab.h"

TEST(test_jvp) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(3, 2), -1, 1);
    basin_expr tx = check_input(&c, "tx", BASIN_SHAPE(2, 3), -1, 1);
    basin_expr tw = check_input(&c, "tw", BASIN_SHAPE(3, 2), -1, 1);
    basin_expr step = check_input(&c, "step", BASIN_SCALAR, 0, 0);
    basin_expr moved_x = basin_add(x, basin_mul(step, tx));
    basin_expr moved_w = basin_add(w, basin_mul(step, tw));
    basin_expr y = basin_softmax(basin_matmul(basin_tanh(x), w), -1);
    basin_expr moved = basin_softmax(basin_matmul(basin_tanh(moved_x), moved_w), -1);
    basin_expr found = basin_jvp(y, (basin_expr[]){x, w}, (basin_expr[]){tx, tw}, 2);
    assert_true(basin_shape_equal(basin_expr_shape(found), BASIN_SHAPE(2, 2)));
    for (int64_t i = 0; i < 4; i++) { /* by the step, element by element */
        basin_expr one = basin_slice(basin_reshape(moved, BASIN_SHAPE(4)), 0, i, 1);
        basin_tensor slope = check_value(&c, basin_grad(one, step), "ref", true);
        basin_tensor value = check_value(&c, found, "ref", true);
        assert_float_equal(((double *)value.data)[i], ((double *)slope.data)[0], 1e-14);
        basin_tensor_free(&slope);
        basin_tensor_free(&value);
    }
    check_backends(&c, found, 1e-5);
    check_gradients(&c, basin_sin(found), 1e-6);
}

TEST(test_jacobian) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 2), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(2, 3), -1, 1);
    basin_expr j = basin_jacobian(basin_matmul(x, w), x); /* [6, 4] */
    assert_true(basin_shape_equal(basin_expr_shape(j), BASIN_SHAPE(6, 4)));
    basin_tensor value = check_value(&c, j, "ref", true);
    const double *number = c.tensor[1].data;
    for (int row = 0; row < 2; row++)
        for (int k = 0; k < 3; k++)
            for (int from = 0; from < 2; from++)
                for (int d = 0; d < 2; d++)
                    assert_float_equal(((double *)value.data)[(row * 3 + k) * 4 + from * 2 + d],
                                       row == from ? number[d * 3 + k] : 0, 1e-15);
    basin_tensor_free(&value);
    check_gradients(&c, basin_sin(basin_jacobian(basin_exp(basin_matmul(x, w)), x)), 1e-6);
}

TEST(test_errors) {
    check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3), -1, 1);
    basin_expr wrong = basin_transpose(x), none = NULL;
    assert_null(basin_jvp(none, &x, &x, 1));
    assert_null(basin_jacobian(x, none));
    assert_null(basin_graph_error(c.graph));
    assert_null(basin_jvp(basin_exp(x), &x, &wrong, 1));
    assert_string_equal(
        basin_graph_error(c.graph)->text,
        "jvp: the tangent permute('x') [3, 2] of 'x' [2, 3]; expected equal shapes");
    check_free(&c);
    c = check_new();
    x = check_input(&c, "x", BASIN_SHAPE(257), -1, 1);
    assert_null(basin_jacobian(x, x));
    assert_string_equal(basin_graph_error(c.graph)->text,
                        "jacobian: 'x' [257] has 257 elements, expected 1 to 256");
    check_free(&c);
}
