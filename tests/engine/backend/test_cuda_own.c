/* Operations of the caller's own on a CUDA device against ref: values, gradients and second-order
 * gradients on odd sizes, alone, broadcast, in chains, behind products, in states and in narrow
 * storage; each plan runs three times (call by call, captured, replayed). Sources that are missing
 * or wrong. Skipped where there is no device. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/backend/kernel.h"
#include "support/cuda.h"
#include "support/lab.h"

/* ---- the operations ---- */

static double softsign_value(const double *x, const void *context) {
    (void)context;
    return x[0] / (1 + fabs(x[0]));
}

static basin_expr softsign_slope(const basin_custom_op *own, const basin_expr *x, int i) {
    (void)own, (void)i;
    return basin_power_scalar(basin_offset(basin_abs(x[0]), 1), -2);
}

static const basin_custom_op softsign = {.name = "softsign",
                                         .operands = 1,
                                         .value = softsign_value,
                                         .slope = softsign_slope,
                                         .cuda = "return x[0] / (1 + fabsf(x[0]));"};

static double asinh_value(const double *x, const void *context) {
    (void)context;
    return asinh(x[0]);
}

static double asinh_first(const double *x, const void *context) {
    (void)context;
    return 1 / sqrt(1 + x[0] * x[0]);
}

static double asinh_second(const double *x, const void *context) {
    (void)context;
    return -x[0] / pow(1 + x[0] * x[0], 1.5);
}

/* Several lines, doubles, and names that programs have, too. */
static const basin_custom_op second = {.name = "asinh''",
                                       .operands = 1,
                                       .value = asinh_second,
                                       .cuda = "double r0 = x[0], p = 1 + r0 * r0;\n"
                                               "return -r0 / (p * sqrt(p)); // the end"};
static const basin_custom_op first = {.name = "asinh\"\\'",
                                      .operands = 1,
                                      .value = asinh_first,
                                      .derivative = {&second},
                                      .cuda = "return rsqrtf(1 + x[0] * x[0]);"};
static const basin_custom_op inverse = {.name = "asinh",
                                        .operands = 1,
                                        .value = asinh_value,
                                        .derivative = {&first},
                                        .cuda = "return asinh(x[0]);"};

static double length_value(const double *x, const void *context) {
    (void)context;
    return sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
}

static basin_expr length_slope(const basin_custom_op *own, const basin_expr *x, int i) {
    return basin_div(x[i], basin_custom_apply(own, x));
}

static const basin_custom_op length = {.name = "length",
                                       .operands = 3,
                                       .value = length_value,
                                       .slope = length_slope,
                                       .cuda = "float s = 0;\n"
                                               "for (int i = 0; i < 3; i++) { s += x[i] * x[i]; }\n"
                                               "return sqrtf(s);"};

/* ---- the comparison ---- */

enum { OUTPUTS = 12 };

typedef struct outputs {
    basin_expr expr[OUTPUTS];
    int count;
} outputs;

static void compute(basin_tensor *value, check *c, const outputs *o, basin_backend *backend) {
    basin_error error = {0};
    basin_store *store = NULL;
    basin_plan *plan = NULL;
    basin_plan_spec spec = {.output = o->expr, .outputs = o->count};
    basin_status status = basin_store_new(&store, backend, &error);
    if (!status) status = basin_plan_new(&plan, store, &spec, &error);
    for (int i = 0; i < c->inputs && !status; i++)
        status = basin_plan_write(plan, c->input[i], &c->tensor[i], &error);
    for (int i = 0; i < 3 && !status; i++) status = basin_plan_run(plan, &error);
    for (int i = 0; i < o->count && !status; i++) {
        status = basin_tensor_new(&value[i], BASIN_F64, basin_expr_shape(o->expr[i]), &error);
        if (!status) status = basin_plan_read(&value[i], plan, o->expr[i], &error);
    }
    if (status) fail_msg("%s", error.text);
    basin_plan_free(plan);
    basin_store_free(store);
}

static void set_storage(basin_backend *backend, basin_dtype dtype) {
    assert_ok(basin_backend_configure(backend, &(basin_compute){.storage = dtype, .narrow_min = 1},
                                      &failure));
}

/* All inputs of the check are written, so the outputs must need each of them. */
static void compare(check *c, const outputs *o, basin_dtype storage, double tolerance) {
    basin_backend *ref;
    basin_tensor wanted[OUTPUTS], found[OUTPUTS];
    if (basin_graph_error(c->graph)) fail_msg("%s", basin_graph_error(c->graph)->text);
    assert_ok(basin_backend_open(&ref, &(basin_compute){.backend = "ref"}, &failure));
    set_storage(ref, storage == BASIN_F32 ? BASIN_F64 : storage);
    set_storage(cuda, storage);
    compute(wanted, c, o, ref);
    compute(found, c, o, cuda);
    for (int i = 0; i < o->count; i++) {
        double distance = check_distance(&found[i], &wanted[i]);
        if (!(distance < tolerance)) fail_msg("output %d is %g away from ref", i, distance);
        basin_tensor_free(&wanted[i]);
        basin_tensor_free(&found[i]);
    }
    set_storage(cuda, BASIN_F32);
    basin_backend_close(ref);
}

/* y, its gradients by all inputs, and those of a function of the first of them. */
static outputs with_gradients(check *c, basin_expr y) {
    outputs o = {{y}, 1};
    for (int i = 0; i < c->inputs; i++) o.expr[o.count++] = basin_grad(basin_exp(y), c->input[i]);
    basin_expr slope = basin_sum_all(basin_square(o.expr[1]));
    for (int i = 0; i < c->inputs; i++) o.expr[o.count++] = basin_grad(slope, c->input[i]);
    return o;
}

static void compare_gradients(check *c, basin_expr y, double tolerance) {
    outputs o = with_gradients(c, y);
    compare(c, &o, BASIN_F32, tolerance);
}

/* ---- the tests ---- */

TEST(one_operand) {
    const basin_custom_op *own[] = {&softsign, &inverse};
    const basin_shape shape[] = {BASIN_SHAPE(7, 13), BASIN_SHAPE(1), BASIN_SCALAR,
                                 BASIN_SHAPE(3, 1, 64), BASIN_SHAPE(1025)};
    for (size_t i = 0; i < 10; i++) {
        check c = check_new();
        basin_expr x = check_input(&c, "x", shape[i / 2], 0.1, 3);
        compare_gradients(&c, basin_custom_apply(own[i % 2], &x), 1e-5);
        check_free(&c);
    }
}

TEST(three_operands) {
    const basin_shape shape[][3] = {
        {BASIN_SHAPE(5, 17), BASIN_SHAPE(17), BASIN_SHAPE(5, 1)},
        {BASIN_SHAPE(2, 1, 9), BASIN_SHAPE(3, 1), BASIN_SCALAR},
        {BASIN_SHAPE(33), BASIN_SHAPE(33), BASIN_SHAPE(33)},
    };
    for (size_t i = 0; i < 3; i++) {
        check c = check_new();
        basin_expr x[] = {check_input(&c, "a", shape[i][0], 0.5, 1),
                          check_input(&c, "b", shape[i][1], 0.5, 1),
                          check_input(&c, "c", shape[i][2], 0.5, 1)};
        compare_gradients(&c, basin_custom_apply(&length, x), 1e-5);
        check_free(&c);
    }
}

/* Between other operations, of each other, twice with other operands, with a constant. */
TEST(in_chains) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr a = check_input(&c, "a", BASIN_SHAPE(11, 15), 0.2, 2);
    basin_expr b = check_input(&c, "b", BASIN_SHAPE(15), 0.2, 2);
    basin_expr sum = basin_add(a, b), s = basin_custom_apply(&softsign, &sum);
    basin_expr x[] = {basin_custom_apply(&inverse, &s), basin_custom_apply(&softsign, &a),
                      basin_scalar(c.graph, 0.5)};
    compare_gradients(&c, basin_mul(basin_custom_apply(&length, x), basin_exp(basin_neg(s))), 1e-5);
}

/* In the epilogue of a product; narrow ones are large enough for narrow factors. */
TEST(behind_products) {
    const basin_dtype storage[] = {BASIN_F32, BASIN_BF16, BASIN_F8_E4M3};
    const int64_t size[][3] = {{33, 29, 17}, {256, 192, 128}, {256, 192, 128}};
    const double tolerance[] = {2e-5, 3e-2, 0.1};
    for (size_t i = 0; i < 3; i++) {
        check c = check_new();
        basin_expr a = check_input(&c, "a", BASIN_SHAPE(size[i][0], size[i][1]), -1, 1);
        basin_expr w = check_input(&c, "w", BASIN_SHAPE(size[i][1], size[i][2]), -0.2, 0.2);
        basin_expr v = check_input(&c, "v", BASIN_SHAPE(size[i][2], size[i][1]), -0.2, 0.2);
        basin_expr bias = check_input(&c, "bias", BASIN_SHAPE(size[i][2]), 1, 2);
        basin_expr z = basin_add(basin_matmul(a, w), bias);
        basin_expr y = basin_matmul(basin_custom_apply(&inverse, &z), v);
        outputs o = {{y, basin_grad(basin_mean_all(basin_square(y)), w)}, 2};
        compare(&c, &o, storage[i], tolerance[i]);
        check_free(&c);
    }
}

static double plus_one(const double *x, const void *context) {
    (void)context;
    return x[0] + 1;
}

static double plus_two(const double *x, const void *context) {
    (void)context;
    return x[0] + 2;
}

/* Two operations of one name: in one plan, and one after the other. */
TEST(names_are_no_identity) {
    static const basin_custom_op byte_copy[] = {
        {.name = "byte_copy", .operands = 1, .value = plus_one, .cuda = "return x[0] + 1;"},
        {.name = "byte_copy", .operands = 1, .value = plus_two, .cuda = "return x[0] + 2;"}};
    for (int i = 0; i < 3; i++) {
        check c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(19), 0, 1);
        basin_expr y[] = {basin_custom_apply(&byte_copy[0], &x),
                          basin_custom_apply(&byte_copy[1], &x)};
        outputs o = i < 2 ? (outputs){{y[i]}, 1} : (outputs){{y[0], y[1]}, 2};
        compare(&c, &o, BASIN_F32, 1e-6);
        check_free(&c);
    }
}

/* What an update writes may come of such an operation. */
TEST(into_a_state) {
    basin_engine e;
    double number[] = {0.5, -1, 2}, wanted[] = {0.5, -1, 2};
    assert_ok(basin_engine_open(&e, &(basin_compute){.backend = "cuda"}, &failure));
    basin_expr s = basin_state(e.graph, "s", BASIN_SHAPE(3));
    basin_update update = {s, basin_custom_apply(&softsign, &s)};
    basin_plan *plan;
    basin_tensor result, tensor = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(3));
    assert_ok(basin_store_write(e.store, "s", &tensor, &failure));
    basin_plan_spec spec = {.update = &update, .updates = 1};
    assert_ok(basin_plan_new(&plan, e.store, &spec, &failure));
    for (int i = 0; i < 4; i++) {
        assert_ok(basin_plan_run(plan, &failure));
        for (int k = 0; k < 3; k++) wanted[k] = wanted[k] / (1 + fabs(wanted[k]));
    }
    assert_ok(basin_store_get(&result, e.store, "s", &failure));
    for (int k = 0; k < 3; k++) assert_true(fabs(basin_tensor_at(&result, k) - wanted[k]) < 1e-6);
    basin_tensor_free(&result);
    basin_plan_free(plan);
    basin_engine_close(&e);
}

/* The line that says why there is no plan, of which `words` are a part. */
static void assert_refused(const char *source, basin_status wanted, const char *words) {
    BASIN_AT_EXIT(check_free) check c;
    basin_error error = {0};
    basin_store *store;
    basin_plan *plan;
    basin_custom_op own = {.name = "mine", .operands = 1, .value = plus_one, .cuda = source};
    c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(3), 0, 1), y = basin_custom_apply(&own, &x);
    assert_ok(basin_store_new(&store, cuda, &failure));
    basin_plan_spec spec = {.output = &y, .outputs = 1};
    assert_int_equal(basin_plan_new(&plan, store, &spec, &error), wanted);
    printf("%s\n", error.text);
    if (!strstr(error.text, words) || strchr(error.text, '\n')) fail_msg("%s", error.text);
    basin_store_free(store);
}

TEST(what_does_not_compile_is_told) {
    assert_refused(NULL, BASIN_UNSUPPORTED, "cannot call 'mine'");
    assert_refused("float a = x[0];\nreturn undeclared(a);", BASIN_BAD_VALUE,
                   "the source of 'mine' does not compile: line 2: ");
    assert_refused("x[0] + 1;", BASIN_BAD_VALUE, "missing return");
    assert_refused("return p.vectors;", BASIN_BAD_VALUE, "line 1: ");
    one_operand(NULL); /* the backend goes on */
}

int main(void) {
    cuda_open();
    return cuda_close(tests_run(NULL, NULL));
}
