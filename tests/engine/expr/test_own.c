/* Operations of the caller's own: values, derivatives given as expressions and as functions,
 * broadcasting, and what is refused. */
#include <math.h>
#include <string.h>

#include "base/info.h"
#include "engine/backend/device.h"
#include "engine/backend/kernel.h"
#include "support/lab.h"

/* ---- with the derivative as an expression ---- */

static double softsign_value(const double *x, const void *context) {
    (void)context;
    return x[0] / (1 + fabs(x[0]));
}

static basin_expr softsign_slope(const basin_custom_op *own, const basin_expr *x, int i) {
    (void)own, (void)i;
    return basin_power_scalar(basin_offset(basin_abs(x[0]), 1), -2);
}

static const basin_custom_op softsign = {
    .name = "softsign", .operands = 1, .value = softsign_value, .slope = softsign_slope};

TEST(an_expression_is_the_derivative) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 5), 0.1, 2);
    basin_expr y = basin_mul(basin_custom_apply(&softsign, &x), x);
    check_backends(&c, y, 1e-5);
    check_gradients(&c, y, 1e-6);
}

/* ---- with functions for all derivatives ---- */

static double scaled_cosh(const double *x, const void *context) {
    return cosh(*(const double *)context * x[0]) / *(const double *)context;
}

static double scaled_sinh(const double *x, const void *context) {
    return sinh(*(const double *)context * x[0]);
}

static double slope_of_sinh(const double *x, const void *context) {
    return *(const double *)context * cosh(*(const double *)context * x[0]);
}

static const double pace = 0.7;
static const basin_custom_op second = {
    .name = "slope of sinh", .operands = 1, .value = slope_of_sinh, .context = &pace};
static const basin_custom_op first = {
    .name = "sinh", .operands = 1, .value = scaled_sinh, .derivative = {&second}, .context = &pace};
static const basin_custom_op function = {
    .name = "cosh", .operands = 1, .value = scaled_cosh, .derivative = {&first}, .context = &pace};

TEST(functions_are_the_derivatives) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(7), -1, 1);
    basin_expr y = basin_custom_apply(&function, &x);
    check_backends(&c, y, 1e-5);
    check_gradients(&c, y, 1e-6);
}

/* ---- several operands ---- */

static double length_value(const double *x, const void *context) {
    (void)context;
    return hypot(x[0], x[1]);
}

static basin_expr length_slope(const basin_custom_op *own, const basin_expr *x, int i) {
    return basin_div(x[i], basin_custom_apply(own, x));
}

static const basin_custom_op length = {
    .name = "length", .operands = 2, .value = length_value, .slope = length_slope};

TEST(operands_are_broadcast) {
    const basin_shape shapes[][2] = {
        {BASIN_SHAPE(2, 3), BASIN_SHAPE(3)},
        {BASIN_SHAPE(2, 1), BASIN_SHAPE(1, 3)},
        {BASIN_SCALAR, BASIN_SHAPE(2, 2)},
        {BASIN_SCALAR, BASIN_SCALAR},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check c = check_new();
        basin_expr x[] = {check_input(&c, "a", shapes[i][0], 0.5, 1),
                          check_input(&c, "b", shapes[i][1], 0.5, 1)};
        basin_expr y = basin_custom_apply(&length, x);
        check_backends(&c, y, 1e-5);
        check_gradients(&c, y, 1e-6);
        check_free(&c);
    }
}

/* A constant has no storage of its own; it gets some. */
TEST(an_operand_may_be_constant) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x[] = {basin_scalar(c.graph, 3), check_input(&c, "b", BASIN_SHAPE(4), 0.5, 1)};
    check_backends(&c, basin_custom_apply(&length, x), 1e-5);
}

/* ---- what is refused ---- */

static void assert_told(check *c, const char *words) {
    assert_misbuilt(c->graph, words);
    check_free(c);
}

TEST(what_does_not_fit_is_told) {
    check c = check_new();
    basin_expr x[] = {check_input(&c, "a", BASIN_SHAPE(3), 0, 1),
                      check_input(&c, "b", BASIN_SHAPE(4), 0, 1)};
    assert_null(basin_custom_apply(&length, x));
    assert_told(&c, "length: 'b' [4] does not broadcast with 'a' [3]");
    c = check_new();
    basin_expr index = check_index(&c, "i", (int32_t[]){1, 2}, 2);
    assert_null(basin_custom_apply(&softsign, &index));
    assert_told(&c, "'softsign' of an index tensor");
    c = check_new();
    basin_expr one = check_input(&c, "a", BASIN_SHAPE(3), 0, 1);
    assert_null(basin_custom_apply(&(basin_custom_op){.name = "bare", .operands = 1}, &one));
    assert_told(&c, "'bare' lacks");
    c = check_new();
    one = check_input(&c, "a", BASIN_SHAPE(3), 0, 1);
    basin_grad(basin_custom_apply(&second, &one), one);
    assert_told(&c, "'slope of sinh' has no derivative by operand 0");
    assert_null(basin_custom_apply(&length, (basin_expr[]){NULL, NULL}));
}

static basin_status nothing_failed(basin_backend *backend, basin_error *error) {
    (void)backend, (void)error;
    return BASIN_OK;
}

static basin_status compiles(basin_backend *backend, const basin_custom_code *code,
                             basin_error *error) {
    (void)backend;
    if (!strstr(code->source, "wrong")) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "'%s' does not compile", code->name);
}

static const basin_custom_table compiler = {compiles};

/* A backend that looks like a device, which computes later, and may have a compiler. */
typedef struct device {
    basin_engine engine;
    const basin_backend_table *kept;
    basin_backend_table table;
    basin_expr x;
} device;

static void device_open(device *d, bool has_compiler) {
    assert_ok(basin_engine_open(&d->engine, &(basin_compute){.threads = 1}, &failure));
    d->kept = d->engine.backend->table;
    d->table = *d->kept;
    d->table.name = "device";
    d->table.check = nothing_failed;
    d->table.own = has_compiler ? &compiler : NULL;
    d->engine.backend->table = &d->table;
    d->x = basin_input(d->engine.graph, "x", BASIN_SHAPE(3));
}

static void device_close(device *d) {
    d->engine.backend->table = d->kept;
    basin_engine_close(&d->engine);
}

static void assert_no_plan(device *d, const basin_custom_op *own, basin_status wanted,
                           const char *words) {
    basin_expr y = basin_custom_apply(own, &d->x);
    basin_plan *plan;
    basin_plan_spec spec = {.output = &y, .outputs = 1};
    assert_failure(basin_plan_new(&plan, d->engine.store, &spec, &failure), wanted, words);
}

TEST(a_device_wants_a_source) {
    device d;
    basin_custom_op mine = {.name = "mine", .operands = 1, .value = softsign_value};
    device_open(&d, false);
    assert_no_plan(&d, &mine, BASIN_UNSUPPORTED, "backend device cannot call 'mine'");
    device_close(&d);
    device_open(&d, true);
    assert_no_plan(&d, &mine, BASIN_UNSUPPORTED, "expected its source in CUDA C (.cuda), the");
    device_close(&d);
    device_open(&d, true);
    mine.cuda = "return wrong;";
    assert_no_plan(&d, &mine, BASIN_BAD_VALUE, "'mine' does not compile");
    device_close(&d);
}

/* With a source it is one program with what is around it, on devices alone. */
TEST(a_device_fuses_it) {
    device d;
    char text[400];
    basin_plan *plan;
    basin_custom_op mine = length;
    mine.cuda = "return hypotf(x[0], x[1]);";
    device_open(&d, true);
    basin_expr x[] = {basin_neg(d.x), basin_exp(d.x)};
    basin_expr y = basin_scale(basin_custom_apply(&mine, x), 3);
    basin_plan_spec spec = {.output = &y, .outputs = 1};
    assert_ok(basin_plan_new(&plan, d.engine.store, &spec, &failure));
    assert_int_equal(basin_plan_stats_of(plan).calls, 1);
    basin_plan_describe(plan, 0, text, sizeof text);
    if (!strstr(text, "(3 * length(neg(a), exp(a)))")) fail_msg("%s", text);
    basin_plan_free(plan);
    device_close(&d);
}

/* A source stands inside a function, among others. */
TEST(a_source_is_a_body) {
    const char *bad[][2] = {
        {"", "has an empty source"},
        {" \n", "has an empty source"},
        {"#define y 1\nreturn y;", "has a directive"},
        {"return x[0]; } int more() { return 1;", "has a } without its {"},
        {"if (x[0] > 0) { return 1;", "has a { without its }"},
        {"return x[0]; /* so on", "has a comment without an end"},
    };
    const char *good[] = {"return x[0]; // a } here", "/* # { */ return x[0];",
                          "if (x[0] > 0) { return 1; } return '}' - \"\\\"#\"[0];"};
    check c;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        basin_custom_op own = {
            .name = "mine", .operands = 1, .value = softsign_value, .cuda = bad[i][0]};
        c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(3), 0, 1);
        assert_null(basin_custom_apply(&own, &x));
        assert_told(&c, bad[i][1]);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        basin_custom_op own = {
            .name = "mine", .operands = 1, .value = softsign_value, .cuda = good[i]};
        c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(3), 0, 1);
        assert_non_null(basin_custom_apply(&own, &x));
        check_free(&c);
    }
}
