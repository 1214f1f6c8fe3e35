/* Every Lagrangian: its activation is its gradient, its energy is the Legendre transform, large
 * states stay finite, and the oracle's numbers come out. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "basin/lagrangian.h"
#include "support/lab.h"

enum { LAGRANGIANS = 11, ROWS = 3, WIDTH = 5, BATCH = 2 };

static basin_shape states(void) { return BASIN_SHAPE(BATCH, ROWS, WIDTH); }

/* The Lagrangian `i` with learnable everything. */
static basin_lagrangian make(check *c, int i) {
    basin_lagrangian l = {.name = basin_lagrangian_name(i), .power = 4};
    bool norm = strcmp(l.name, "layernorm") == 0 || strcmp(l.name, "spherical") == 0;
    bool hot = !norm && strcmp(l.name, "identity") != 0 && strcmp(l.name, "relu") != 0 &&
               strcmp(l.name, "repu") != 0;
    if (hot) l.beta = check_input(c, "beta", BASIN_SCALAR, 0.5, 2);
    if (norm) l.gamma = check_input(c, "gamma", BASIN_SCALAR, 0.5, 2);
    if (norm) l.delta = check_input(c, "delta", BASIN_SHAPE(WIDTH), -1, 1);
    if (strcmp(l.name, "sigmoid") == 0) l.scale = check_input(c, "scale", BASIN_SCALAR, 0.5, 2);
    if (strcmp(l.name, "ghostmax") == 0)
        l.weight = check_input(c, "weight", BASIN_SHAPE(WIDTH), 0.5, 2);
    return l;
}

static void assert_near(check *c, basin_expr a, basin_expr b, double tolerance, const char *what) {
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor x = check_value(c, a, "ref", false), y = check_value(c, b, "ref", false);
    assert_true(basin_shape_equal(x.shape, y.shape));
    double distance = check_distance(&x, &y);
    if (!(distance < tolerance)) fail_msg("%s: off by %g", what, distance);
}

TEST(test_activation_and_energy) {
    for (int i = 0; i < LAGRANGIANS; i++) {
        check c = check_new();
        basin_lagrangian l = make(&c, i);
        basin_expr x = check_input(&c, "x", states(), -2, 2);
        basin_expr value = basin_lagrangian_value(&l, x, 1), g = basin_lagrangian_activation(&l, x);
        basin_expr product = basin_sum(basin_mul(x, g), 1, 2);
        assert_near(&c, g, basin_grad(value, x), 1e-12, l.name);
        basin_expr energy = basin_lagrangian_energy(&l, x, 1);
        /* Rows of 5 with eps 1e-5: two norms cancel <x, g> and L almost wholly. */
        assert_near(&c, energy, basin_sub(product, value), 1e-9, l.name);
        check_backends(&c, g, 1e-5);
        check_backends(&c, energy, 1e-4);
        check_free(&c);
    }
    assert_null(basin_lagrangian_name(LAGRANGIANS));
    assert_null(basin_lagrangian_name(-1));
}

/* First and second order, with respect to states and parameters. */
TEST(test_gradients) {
    for (int i = 0; i < LAGRANGIANS; i++) {
        for (int what = 0; what < 3; what++) {
            check c = check_new();
            basin_lagrangian l = make(&c, i);
            basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, WIDTH), -1, 1);
            check_gradients(&c,
                            what == 0   ? basin_lagrangian_value(&l, x, 1)
                            : what == 1 ? basin_lagrangian_activation(&l, x)
                                        : basin_lagrangian_energy(&l, x, 1),
                            2e-6);
            check_free(&c);
        }
    }
}

/* dE/dg = x, that is, dE/dx = x d2L/dx2. */
TEST(test_energy_gradient) {
    for (int i = 0; i < LAGRANGIANS; i++) {
        check c = check_new();
        basin_lagrangian l = make(&c, i);
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(ROWS, WIDTH), -1, 1), pull;
        basin_vjp(&pull, basin_lagrangian_activation(&l, x), x, &x, 1);
        assert_near(&c, basin_grad(basin_lagrangian_energy(&l, x, 0), x), pull, 1e-9, l.name);
        check_free(&c);
    }
}

/* Whether every number of the expression is finite, on both backends. */
static void assert_finite(check *c, basin_expr a, const char *name, const char *what) {
    static const char *const backend[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        basin_tensor value = check_value(c, a, backend[i], false);
        if (basin_tensor_first_bad(&value) >= 0)
            fail_msg("%s of '%s' is not finite on %s", what, name, backend[i]);
        basin_tensor_free(&value);
    }
}

TEST(test_large_states) {
    for (int i = 0; i < LAGRANGIANS; i++) {
        const char *name = basin_lagrangian_name(i);
        bool explodes = strcmp(name, "exp") == 0 || strcmp(name, "rexp") == 0;
        check c = check_new();
        basin_lagrangian l = make(&c, i);
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(ROWS, WIDTH), -1e4, explodes ? -1e3 : 1e4);
        double *data = c.tensor[c.inputs - 1].data;
        data[0] = -1e4, data[1] = explodes ? 0 : 1e4, data[2] = 0;
        basin_expr g = basin_lagrangian_activation(&l, x), r;
        assert_finite(&c, basin_lagrangian_value(&l, x, 1), name, "L");
        assert_finite(&c, g, name, "g");
        assert_finite(&c, basin_lagrangian_energy(&l, x, 1), name, "E");
        assert_finite(&c, basin_grad(basin_lagrangian_energy(&l, x, 1), x), name, "dE/dx");
        basin_vjp(&r, g, x, &x, 1);
        assert_finite(&c, r, name, "dg/dx");
        check_free(&c);
    }
}

/* Saturated neurons have the energy of the limit: 0 for tanh's ln 2 less its entropy, ... */
TEST(test_saturation) {
    static const struct {
        const char *name;
        double x, energy;
    } limit[] = {{"tanh", 1e4, 0.69314718055994530942},
                 {"tanh", -1e4, 0.69314718055994530942},
                 {"sigmoid", 1e4, 0},
                 {"sigmoid", -1e4, 0},
                 {"exp", -1e4, 0},
                 {"rexp", -1e4, -1}};
    for (size_t i = 0; i < sizeof limit / sizeof *limit; i++) {
        check c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(1), limit[i].x, limit[i].x);
        basin_lagrangian l = {.name = limit[i].name};
        basin_tensor e = check_value(&c, basin_lagrangian_energy(&l, x, 0), "cpu", false);
        assert_true(fabs(basin_tensor_at(&e, 0) - limit[i].energy) < 1e-6);
        basin_tensor_free(&e);
        check_free(&c);
    }
}

/* Rows along another axis, or along several: the same as moving the axes by hand. */
TEST(test_axes) {
    for (int i = 0; i < LAGRANGIANS; i++) {
        check c = check_new();
        basin_lagrangian l = {.name = basin_lagrangian_name(i), .axis = -2};
        basin_lagrangian last = {.name = l.name}, both = {.name = l.name, .axis = -2, .axes = 2};
        basin_expr x = check_input(&c, "x", states(), -1, 1), y = basin_transpose(x);
        basin_expr flat = basin_reshape(x, BASIN_SHAPE(BATCH, ROWS * WIDTH));
        assert_near(&c, basin_lagrangian_activation(&l, x),
                    basin_transpose(basin_lagrangian_activation(&last, y)), 1e-14, l.name);
        assert_near(&c, basin_lagrangian_value(&l, x, 1), basin_lagrangian_value(&last, y, 1),
                    1e-12, l.name);
        assert_near(&c, basin_lagrangian_energy(&both, x, 1),
                    basin_lagrangian_energy(&last, flat, 1), 1e-12, l.name);
        assert_near(&c,
                    basin_reshape(basin_lagrangian_activation(&both, x), basin_expr_shape(flat)),
                    basin_lagrangian_activation(&last, flat), 1e-14, l.name);
        check_free(&c);
    }
}

/* delta belongs to each row once: the Lagrangian of two rows is the sum of the rows'. */
TEST(test_rows_add_up) {
    for (int i = 0; i < LAGRANGIANS; i++) {
        check c = check_new();
        basin_lagrangian l = make(&c, i);
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(ROWS, WIDTH), -1, 1);
        assert_near(&c, basin_lagrangian_value(&l, x, 0),
                    basin_sum_all(basin_lagrangian_value(&l, x, 1)), 1e-13, l.name);
        check_free(&c);
    }
}

/* ---- a Lagrangian of one's own ---- */

/* sum of sqrt(1 + (s x)^2), whose activation s^2 x / sqrt(..) is soft and bounded */
static basin_expr hyperbola(basin_expr x, void *context) {
    basin_expr s = *(basin_expr *)context;
    return basin_sqrt(basin_offset(basin_square(basin_mul(s, x)), 1));
}

TEST(test_own) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr s = check_input(&c, "s", BASIN_SCALAR, 0.5, 2);
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(ROWS, WIDTH), -1, 1);
    basin_lagrangian l = {.custom = hyperbola, .context = &s};
    basin_expr g = basin_lagrangian_activation(&l, x), root = hyperbola(x, &s);
    assert_near(&c, g, basin_div(basin_mul(basin_square(s), x), root), 1e-14, "own g");
    assert_near(&c, basin_lagrangian_energy(&l, x, 1),
                basin_neg(basin_sum(basin_reciprocal(root), 1, 1)), 1e-13, "own E");
    check_gradients(&c, g, 1e-6);
    /* The activation of a constant, or of a reshaped state, is no constant. */
    basin_expr two = basin_full(c.graph, BASIN_SHAPE(3), 2);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor at = check_value(&c, basin_lagrangian_activation(&l, two), "ref", false);
    double scale = basin_tensor_at(&c.tensor[0], 0);
    assert_true(fabs(basin_tensor_at(&at, 1) - scale * scale * 2 / sqrt(1 + 4 * scale * scale)) <
                1e-14);
}

static basin_expr scalar_only(basin_expr x, void *context) {
    (void)context;
    return basin_sum_all(x);
}

static void assert_error(basin_lagrangian l, int batch, const char *part) {
    BASIN_AT_EXIT(free_graph) basin_graph *graph = basin_graph_new();
    basin_expr x = basin_input(graph, "x", BASIN_SHAPE(2, 3));
    if (l.beta) l.beta = basin_scalar(graph, -1);
    assert_null(basin_lagrangian_value(&l, x, batch));
    assert_misbuilt(graph, part);
}

TEST(test_errors) {
    BASIN_AT_EXIT(free_graph) basin_graph *graph = basin_graph_new();
    assert_error((basin_lagrangian){.name = "rellu"}, 1, "'rellu'");
    assert_error((basin_lagrangian){.name = "softmax3"}, 1, "'softmax3'");
    assert_error((basin_lagrangian){.name = "repu", .power = 1}, 1, "power 1");
    assert_error((basin_lagrangian){.name = "tanh", .beta = basin_scalar(graph, 1)}, 1, "beta -1");
    assert_error((basin_lagrangian){.name = "layernorm", .epsilon = -1}, 1, "epsilon -1");
    assert_error((basin_lagrangian){.name = "softmax"}, 2, "[2, 3]");
    assert_error((basin_lagrangian){.name = "softmax"}, 3, "[2, 3]");
    assert_error((basin_lagrangian){.custom = scalar_only}, 1, "[2, 3]");
    assert_error((basin_lagrangian){.name = "repux"}, 1, "'repux'");
    assert_null(basin_lagrangian_activation(&(basin_lagrangian){.name = "relu"}, NULL));
}

/* ---- the oracle ---- */
