/* Every operation's gradient, first and second order, against finite differences in double. */
#include "support/check.h"

static void test_matmul_relu(void **state) {
    (void)state;
    check c;
    check_init(&c);
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(3, 5), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(4, 5), -1, 1);
    basin_expr y = basin_tanh(basin_matmul_t(x, false, w, true));
    check_backends(&c, y, 1e-5);
    check_gradients(&c, y, 1e-6);
    check_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matmul_relu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
