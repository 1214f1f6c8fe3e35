/* Gradients of pointwise functions, first and second order, against finite differences in double;
 * the third order of a few. */
#include <math.h>
#include <stdio.h>

#include "engine/expr/graph.h"
#include "support/lab.h"

typedef basin_expr function1(basin_expr a);
typedef basin_expr function2(basin_expr a, basin_expr b);

static basin_expr cube(basin_expr a) { return basin_power_scalar(a, 3); }
static basin_expr root(basin_expr a) { return basin_power_scalar(a, 0.5); }
static basin_expr to_the(basin_expr a) { return basin_power_scalar(a, -1.7); }
static basin_expr square(basin_expr a) { return basin_power_scalar(a, 2); }
static basin_expr shrunk(basin_expr a) { return basin_scale(a, -0.3); }
static basin_expr moved(basin_expr a) { return basin_offset(a, 1.5); }
static basin_expr product_with_itself(basin_expr a) { return basin_mul(a, basin_sin(a)); }
static basin_expr relu_cube(basin_expr a) { return basin_power_scalar(basin_relu(a), 3); }

static basin_expr whole(basin_expr a) {
    return basin_divmod(a, basin_scalar(basin_expr_graph(a), 1), NULL);
}
static basin_expr remainder_of(basin_expr a, basin_expr b) {
    basin_expr rest;
    basin_divmod(a, basin_offset(basin_square(b), 9), &rest); /* between 0 and 9, or -9 */
    return rest;
}

/* Kinks and poles lie outside the ranges. */
static const struct {
    const char *name;
    function1 *function;
    double low, high;
} unary[] = {
    {"neg", basin_neg, -1, 1},
    {"abs", basin_abs, 0.2, 1},
    {"abs of negatives", basin_abs, -1, -0.2},
    {"sign", basin_sign, -1, -0.1},
    {"sqrt", basin_sqrt, 0.3, 2},
    {"exp", basin_exp, -2, 2},
    {"log", basin_log, 0.3, 3},
    {"log1p", basin_log1p, -0.6, 3},
    {"expm1", basin_expm1, -2, 2},
    {"tanh", basin_tanh, -3, 3},
    {"sigmoid", basin_sigmoid, -4, 4},
    {"softplus", basin_softplus, -4, 4},
    {"lncosh", basin_lncosh, -3, 3},
    {"relu", basin_relu, 0.1, 1},
    {"relu of negatives", basin_relu, -1, -0.1},
    {"heaviside", basin_heaviside, 0.1, 1},
    {"sin", basin_sin, -3, 3},
    {"cos", basin_cos, -3, 3},
    {"erf", basin_erf, -2, 2},
    {"floor", whole, 1.1, 1.9},
    {"pow 3", cube, -1, 1},
    {"pow 0.5", root, 0.3, 2},
    {"pow -1.7", to_the, 0.4, 2},
    {"pow 2", square, -1, 1},
    {"square", basin_square, -1, 1},
    {"recip", basin_reciprocal, 0.4, 2},
    {"scale", shrunk, -1, 1},
    {"offset", moved, -1, 1},
    {"x sin x", product_with_itself, -2, 2},
    {"relu cubed", relu_cube, -1, 1},
};

TEST(test_unary) {
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++) {
        check c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 5), unary[i].low, unary[i].high);
        print_message("%s\n", unary[i].name);
        basin_expr y = unary[i].function(x);
        check_backends(&c, y, 1e-5);
        check_gradients(&c, y, 1e-6);
        check_free(&c);
    }
}

static basin_expr safe_div(basin_expr a, basin_expr b) {
    return basin_div(a, basin_offset(basin_square(b), 0.5));
}

static const struct {
    const char *name;
    function2 *function;
} binary[] = {
    {"add", basin_add},     {"sub", basin_sub},          {"mul", basin_mul},
    {"div", safe_div},      {"max", basin_maximum},      {"min", basin_minimum},
    {"atan2", basin_atan2}, {"remainder", remainder_of}, {"greater", basin_greater},
    {"equal", basin_equal},
};

TEST(test_binary) {
    const basin_shape shapes[][2] = {
        {BASIN_SHAPE(2, 3), BASIN_SHAPE(2, 3)},       {BASIN_SHAPE(2, 3), BASIN_SHAPE(3)},
        {BASIN_SHAPE(3), BASIN_SHAPE(2, 3)},          {BASIN_SHAPE(2, 3), BASIN_SCALAR},
        {BASIN_SHAPE(2, 1), BASIN_SHAPE(1, 3)},       {BASIN_SHAPE(1), BASIN_SHAPE(2, 2)},
        {BASIN_SHAPE(2, 1, 3), BASIN_SHAPE(2, 2, 1)}, {BASIN_SHAPE(2, 1, 1, 2), BASIN_SHAPE(3, 1)},
        {BASIN_SHAPE(1, 1), BASIN_SHAPE(1, 1)},
    };
    for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
            check c = check_new();
            basin_expr a = check_input(&c, "a", shapes[k][0], -1, 1);
            basin_expr b = check_input(&c, "b", shapes[k][1], -1, 1);
            print_message("%s %zu\n", binary[i].name, k);
            basin_expr y = basin_sin(binary[i].function(a, b));
            check_backends(&c, y, 1e-5);
            check_gradients(&c, y, 1e-6);
            check_free(&c);
        }
}

TEST(test_select) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr where = check_input(&c, "where", BASIN_SHAPE(3, 1), -1, 1);
    basin_expr yes = check_input(&c, "yes", BASIN_SHAPE(2, 1, 4), -1, 1);
    basin_expr no = check_input(&c, "no", BASIN_SHAPE(4), -1, 1);
    basin_expr y = basin_tanh(basin_where(basin_heaviside(where), basin_square(yes), no));
    check_backends(&c, y, 1e-5);
    check_gradients(&c, y, 1e-6);
}

/* Ties: each operand of a maximum gets half of the slope, so max(x, x) has the slope of x. */
TEST(test_ties) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(3), -1, 1);
    basin_expr y = basin_maximum(x, basin_scale(basin_scale(x, 2), 0.5));
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor g = check_value(&c, basin_grad(y, x), "ref", true);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor h =
        check_value(&c, basin_grad(basin_maximum(x, basin_offset(x, 0)), x), "cpu", false);
    for (int i = 0; i < 3; i++) {
        assert_float_equal(((double *)g.data)[i], 1, 1e-15);
        assert_float_equal(((double *)h.data)[i], 1, 1e-7);
    }
}

TEST(test_stop_gradient) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(4), -1, 1);
    basin_expr y = basin_mul(basin_stop_gradient(basin_exp(x)), basin_sin(x));
    basin_expr wanted = basin_mul(basin_exp(x), basin_cos(x));
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor a = check_value(&c, basin_grad(y, x), "ref", false);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor b = check_value(&c, wanted, "ref", false);
    assert_true(check_distance(&a, &b) < 1e-14);
}

/* The value, and no overflow, far from zero. */
TEST(test_extremes) {
    const double at[] = {-1000, -100, -30, 30, 100, 1000};
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(6), -1, 1);
    for (int i = 0; i < 6; i++) ((double *)c.tensor[0].data)[i] = at[i];
    basin_expr y[] = {basin_softplus(x), basin_lncosh(x), basin_sigmoid(x), basin_tanh(x)};
    for (int k = 0; k < 4; k++) {
        check_backends(&c, y[k], 1e-6);
        check_backends(&c, basin_grad(y[k], x), 1e-6);
        check_backends(&c, basin_grad(basin_grad(y[k], x), x), 1e-5);
        basin_tensor found = check_value(&c, y[k], "cpu", false);
        assert_int_equal(basin_tensor_first_bad(&found), -1);
        for (int i = 0; i < 6; i++) {
            double a = at[i], value = ((double *)found.data)[i];
            double wanted[] = {fmax(a, 0) + log1p(exp(-fabs(a))), fabs(a) - log(2),
                               1 / (1 + exp(-a)), tanh(a)};
            assert_true(fabs(value - wanted[k]) <= 1e-6 * fabs(wanted[k]) + 1e-12);
        }
        basin_tensor_free(&found);
    }
}

/* Differentiation applied to its own result again: y', y'' and y''' of sums have closed forms. */
TEST(test_third_order) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(5), 0.2, 1);
    const struct {
        basin_expr y, third;
    } cases[] = {
        {basin_sin(x), basin_neg(basin_cos(x))},
        {basin_exp(basin_scale(x, 2)), basin_scale(basin_exp(basin_scale(x, 2)), 8)},
        {basin_power_scalar(x, 4), basin_scale(x, 24)},
        {basin_log(x), basin_scale(basin_power_scalar(x, -3), 2)},
        {basin_reciprocal(x), basin_scale(basin_power_scalar(x, -4), -6)},
        {basin_mul(x, basin_square(x)), basin_full(c.graph, BASIN_SHAPE(5), 6)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        basin_expr third = basin_grad(basin_grad(basin_grad(cases[i].y, x), x), x);
        basin_tensor a = check_value(&c, third, "ref", false);
        basin_tensor b = check_value(&c, cases[i].third, "ref", false);
        assert_true(check_distance(&a, &b) < 1e-12);
        basin_tensor_free(&a);
        basin_tensor_free(&b);
    }
    basin_expr t = basin_tanh(x); /* third order from the second by differences */
    check_gradients(&c, basin_grad(basin_mul(t, basin_sigmoid(x)), x), 1e-6);
}

/* A gradient with respect to a result, to something not there, and to two places at once. */
static void assert_same_value(check *c, basin_expr a, basin_expr b) {
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor x = check_value(c, a, "ref", true), y = check_value(c, b, "ref", true);
    assert_true(check_distance(&x, &y) < 1e-14);
}

/* Whatever an expression is built on can be differentiated by, also where a plan would compute past
 * it: multiples, signs, views, repeats. */
TEST(test_intermediates) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(3, 3), -1, 1);
    basin_expr row = check_input(&c, "row", BASIN_SHAPE(3), -1, 1);
    basin_expr part[] = {basin_scale(x, 2), basin_neg(x),
                         basin_reshape(basin_reshape(x, BASIN_SHAPE(6)), BASIN_SHAPE(2, 3)),
                         basin_broadcast_to(row, BASIN_SHAPE(2, 3)), basin_variable(x)};
    for (int i = 0; i < 5; i++) {
        basin_expr h = basin_reshape(part[i], BASIN_SHAPE(3, 2));
        basin_expr y = basin_sum_all(basin_matmul(basin_scale(basin_neg(part[i]), 3), w));
        y = basin_add(y, basin_sum_all(basin_square(h)));
        basin_expr ones = basin_full(c.graph, BASIN_SHAPE(2, 3), 1);
        basin_expr wanted = basin_add(basin_scale(basin_matmul_t(ones, false, w, true), -3),
                                      basin_scale(part[i], 2));
        assert_same_value(&c, basin_grad(y, part[i]), wanted);
    }
}

/* More tensors than an operation takes operands, one of them twice, and a constant. */
TEST(test_squares) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr a = check_input(&c, "a", BASIN_SHAPE(2, 3), -1, 1), part[20], wanted = NULL;
    basin_expr b = check_input(&c, "b", BASIN_SHAPE(4), -1, 1);
    for (int i = 0; i < 20; i++) part[i] = basin_scale(i % 2 ? a : basin_sin(b), 0.1 * i + 0.1);
    part[7] = a, part[8] = basin_scalar(c.graph, 3);
    basin_expr y = basin_sum_squares(part, 20);
    for (int i = 0; i < 20; i++) {
        basin_expr square = basin_sum_all(basin_square(part[i]));
        wanted = wanted ? basin_add(wanted, square) : square;
    }
    assert_same_value(&c, y, wanted);
    check_gradients(&c, basin_sin(y), 1e-6);
    part[3] = NULL;
    assert_null(basin_sum_squares(part, 20));
}

TEST(test_variables) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(3), -1, 1);
    basin_expr z = check_input(&c, "z", BASIN_SHAPE(2), -1, 1);
    basin_expr g = basin_tanh(x), y = basin_sum_all(basin_mul(g, basin_square(x)));
    basin_expr at[4] = {g, x, z, g}, slope[4];
    basin_vjp(slope, y, NULL, at, 4);
    assert_ptr_equal(slope[0], slope[3]);
    assert_same_value(&c, slope[0], basin_square(x));
    assert_ptr_equal(slope[2], basin_full(c.graph, BASIN_SHAPE(2), 0));
    assert_same_value(&c, slope[1], basin_grad(y, x));
    assert_null(basin_graph_error(c.graph));
    check_gradients(&c, y, 1e-6);
}

TEST(test_vjp) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(2, 3), -1, 1);
    basin_expr by_vjp;
    basin_vjp(&by_vjp, basin_sin(x), w, &x, 1);
    basin_expr by_grad = basin_grad(basin_mul(basin_sin(x), w), x);
    assert_same_value(&c, by_vjp, by_grad);
}
