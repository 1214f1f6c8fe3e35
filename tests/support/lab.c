/* Helpers of the tests of expressions, energies and models; see lab.h. */
#include "support/lab.h"
#include "base/info.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend/kernel.h"

/* Of fourth-order central differences. */
static const double stencil[4] = {1.0 / 12, -8.0 / 12, 8.0 / 12, -1.0 / 12};
static const double at[4] = {-2, -1, 1, 2};

lab lab_new(const char *backend, int threads) {
    lab l;
    lab_open(&l, backend, threads);
    return l;
}

void lab_open(lab *l, const char *backend, int threads) {
    *l = (lab){.graph = basin_graph_new()};
    assert_non_null(l->graph);
    basin_params_begin(&l->params, l->graph);
    assert_ok(basin_backend_open(
        &l->backend, &(basin_compute){.backend = backend, .threads = threads}, &failure));
    assert_ok(basin_store_new(&l->store, l->backend, &failure));
}

void lab_narrow(lab *l, basin_dtype storage) {
    basin_compute compute = {.storage = storage, .narrow_min = 1};
    assert_ok(basin_backend_configure(l->backend, &compute, &failure));
}

void lab_close(lab *l) {
    for (int i = 0; i < l->inputs; i++) basin_tensor_free(&l->tensor[i]);
    basin_store_free(l->store);
    basin_backend_close(l->backend);
    basin_params_free(&l->params);
    basin_graph_free(l->graph);
}

basin_expr lab_state(lab *l, const char *name, basin_shape shape) {
    basin_init zero = {BASIN_INIT_CONSTANT, 0};
    return basin_param_add(&l->params, "", name, shape, zero);
}

static bool ends_with(const char *name, const char *end) {
    size_t a = strlen(name), b = strlen(end);
    return a >= b && strcmp(name + a - b, end) == 0;
}

void lab_fill(lab *l, uint64_t seed, double size) {
    for (size_t i = 0; i < l->params.count; i++) {
        basin_expr state = l->params.param[i].state;
        const char *name = basin_expr_name(state);
        int64_t count = basin_shape_count(basin_expr_shape(state));
        bool positive = ends_with(name, "gamma") || ends_with(name, "beta");
        double *number = malloc((size_t)count * sizeof *number);
        uint64_t stream = 7;
        assert_non_null(number);
        for (const char *c = name; *c; c++) stream = stream * 31 + (unsigned char)*c;
        for (int64_t k = 0; k < count; k++) {
            double u = 2 * basin_random_uniform_at(seed, stream, (uint64_t)k) - 1;
            number[k] = positive ? 1 + u / 2 : size * u;
        }
        lab_set(l, state, number);
        free(number);
    }
}

void lab_set(lab *l, basin_expr state, const double *number) {
    basin_tensor view = basin_tensor_view(number, BASIN_F64, basin_expr_shape(state));
    assert_ok(basin_store_write(l->store, basin_expr_name(state), &view, &failure));
}

static basin_expr keep_input(lab *l, basin_expr input, basin_dtype dtype, const void *number) {
    const basin_error *found = basin_graph_error(l->graph);
    if (!input) fail_msg("%s", found ? found->text : "an input is NULL");
    assert_true(l->inputs < LAB_INPUTS);
    basin_tensor *tensor = &l->tensor[l->inputs];
    assert_ok(basin_tensor_new(tensor, dtype, basin_expr_shape(input), &failure));
    if (number) memcpy(tensor->data, number, basin_tensor_bytes(tensor));
    return l->input[l->inputs++] = input;
}

basin_expr lab_input(lab *l, const char *name, basin_shape shape, const double *number) {
    return keep_input(l, basin_input(l->graph, name, shape), BASIN_F64, number);
}

basin_expr lab_index(lab *l, const char *name, const int32_t *number, int64_t count) {
    return keep_input(l, basin_index(l->graph, name, BASIN_SHAPE(count)), BASIN_I32, number);
}

void lab_give(lab *l, basin_expr input, const void *number) {
    for (int i = 0; i < l->inputs; i++)
        if (l->input[i] == input) {
            memcpy(l->tensor[i].data, number, basin_tensor_bytes(&l->tensor[i]));
            return;
        }
    fail_msg("'%s' is no input of the lab", basin_expr_name(input));
}

static basin_expr list_part(lab *l, basin_expr input, const int32_t *number, int64_t count) {
    int i = l->inputs;
    keep_input(l, input, BASIN_I32, NULL);
    memcpy(l->tensor[i].data, number, (size_t)count * sizeof *number);
    return input;
}

basin_pattern lab_pairs(lab *l, const char *name, int64_t tokens, const int32_t *edge,
                        int64_t count, int flags, int64_t capacity) {
    basin_pairs pairs;
    assert_ok(basin_pairs_new(&pairs, tokens, tokens, edge, count, flags, &failure));
    int64_t room = pairs.pairs > capacity ? pairs.pairs : capacity;
    basin_pattern p = basin_pairs_declare(l->graph, name, tokens, tokens, room);
    list_part(l, p.row, pairs.row, tokens + 1);
    list_part(l, p.key, pairs.key, pairs.pairs);
    list_part(l, p.column, pairs.column, tokens + 1);
    list_part(l, p.query, pairs.query, pairs.pairs);
    list_part(l, p.pair, pairs.pair, pairs.pairs);
    basin_pairs_free(&pairs);
    return p;
}

void lab_write(lab *l, basin_plan *plan) {
    for (int i = 0; i < l->inputs; i++)
        assert_ok(basin_plan_write(plan, l->input[i], &l->tensor[i], &failure));
}

basin_plan *lab_plan(lab *l, const basin_expr *output, int outputs) {
    basin_plan *plan;
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    const basin_error *found = basin_graph_error(l->graph);
    if (found) fail_msg("%s", found->text);
    assert_ok(basin_plan_new(&plan, l->store, &spec, &failure));
    lab_write(l, plan);
    return plan;
}

void lab_run(basin_plan *plan) { assert_ok(basin_plan_run(plan, &failure)); }

basin_tensor lab_read(basin_plan *plan, basin_expr output) {
    basin_tensor tensor;
    assert_ok(basin_tensor_new(&tensor, BASIN_F64, basin_expr_shape(output), &failure));
    assert_ok(basin_plan_read(&tensor, plan, output, &failure));
    return tensor;
}

int lab_states(const lab *l) {
    int count = 0;
    while (basin_store_name(l->store, count)) count++;
    return count;
}

basin_expr lab_attention(basin_expr x, int64_t heads, double dropout, basin_expr seed,
                         const basin_pattern *pattern) {
    basin_shape s = basin_expr_shape(x);
    int64_t all = s.dim[2] / 3;
    basin_expr part[3];
    for (int i = 0; i < 3; i++)
        part[i] = basin_reshape(basin_slice(x, -1, i * all, all),
                                BASIN_SHAPE(s.dim[0], s.dim[1], heads, all / heads));
    return basin_softmax_attention(part[0], part[1], part[2], pattern,
                                   &(basin_softmax_options){.dropout = dropout, .seed = seed});
}

basin_tensor lab_value(lab *l, basin_expr a) {
    basin_plan *plan = lab_plan(l, &a, 1);
    lab_run(plan);
    basin_tensor value = lab_read(plan, a);
    basin_plan_free(plan);
    return value;
}

double lab_apart(const basin_tensor *a, const basin_tensor *b, double added) {
    double difference = 0, size = 0;
    int64_t count = basin_shape_count(b->shape);
    assert_int_equal(basin_shape_count(a->shape), count);
    for (int64_t i = 0; i < count; i++) {
        double x = basin_tensor_at(a, i), y = basin_tensor_at(b, i);
        difference += (x - y) * (x - y);
        size += y * y;
    }
    return sqrt(difference) / (sqrt(size) + added);
}

double lab_distance(const basin_tensor *a, const basin_tensor *b) { return lab_apart(a, b, 1e-30); }

void lab_assert_near(const basin_tensor *a, const basin_tensor *b, double tolerance,
                     const char *what) {
    double distance = lab_distance(a, b);
    if (!(distance <= tolerance)) fail_msg("%s: off by %g, wanted %g", what, distance, tolerance);
}

/* d/dp of sum(y), one element of the state at a time. */
static void differences(lab *l, basin_plan *plan, basin_expr sum, basin_expr state, double *slope) {
    const double h = 1e-4; /* small, so that the kinks of a relu are seldom met */
    basin_tensor value;
    assert_ok(basin_store_get(&value, l->store, basin_expr_name(state), &failure));
    assert_int_equal(value.dtype, BASIN_F64);
    double *number = value.data;
    int64_t count = basin_shape_count(value.shape);
    for (int64_t i = 0; i < count; i++) {
        double kept = number[i];
        slope[i] = 0;
        for (int k = 0; k < 4; k++) {
            number[i] = kept + at[k] * h;
            lab_set(l, state, number);
            lab_run(plan);
            slope[i] += stencil[k] * basin_plan_scalar(plan, sum) / h;
        }
        number[i] = kept;
    }
    lab_set(l, state, number);
    basin_tensor_free(&value);
}

void lab_check_gradients(lab *l, basin_expr y, double tolerance, const char *what) {
    int count = (int)l->params.count;
    basin_expr sum = basin_sum_all(y), state[64], gradient[64];
    assert_true(count <= 64);
    for (int i = 0; i < count; i++) state[i] = l->params.param[i].state;
    basin_vjp(gradient, y, NULL, state, count);
    basin_plan *plan = lab_plan(l, gradient, count), *forward = lab_plan(l, &sum, 1);
    lab_run(plan);
    for (int i = 0; i < count; i++) {
        basin_tensor found = lab_read(plan, gradient[i]), wanted;
        assert_int_equal(basin_tensor_new(&wanted, BASIN_F64, found.shape, NULL), BASIN_OK);
        differences(l, forward, sum, state[i], wanted.data);
        double distance = lab_apart(&found, &wanted, 1e-3); /* gradients may vanish */
        if (!(distance <= tolerance))
            fail_msg("%s: the gradient of '%s' is off by %g", what, basin_expr_name(state[i]),
                     distance);
        basin_tensor_free(&found);
        basin_tensor_free(&wanted);
    }
    basin_plan_free(plan);
    basin_plan_free(forward);
}

void check_fill(double *data, int64_t count, uint64_t seed) {
    for (int64_t i = 0; i < count; i++)
        data[i] = 2 * basin_random_uniform_at(seed, 1, (uint64_t)i) - 1;
}

check check_new(void) {
    check c = {.graph = basin_graph_new()};
    assert_non_null(c.graph);
    return c;
}

void check_free(check *c) {
    for (int i = 0; i < c->inputs; i++) basin_tensor_free(&c->tensor[i]);
    basin_graph_free(c->graph);
}

basin_expr check_input(check *c, const char *name, basin_shape shape, double low, double high) {
    int i = c->inputs++;
    assert_true(i < CHECK_INPUTS);
    assert_ok(basin_tensor_new(&c->tensor[i], BASIN_F64, shape, &failure));
    double *data = c->tensor[i].data;
    int64_t count = basin_shape_count(shape);
    check_fill(data, count, (uint64_t)i + 100);
    for (int64_t k = 0; k < count; k++) data[k] = low + (high - low) * (data[k] + 1) / 2;
    return c->input[i] = basin_input(c->graph, name, shape);
}

basin_expr check_index(check *c, const char *name, const int32_t *number, int64_t count) {
    int i = c->inputs++;
    assert_true(i < CHECK_INPUTS);
    assert_ok(basin_tensor_new(&c->tensor[i], BASIN_I32, BASIN_SHAPE(count), &failure));
    memcpy(c->tensor[i].data, number, (size_t)count * sizeof *number);
    return c->input[i] = basin_index(c->graph, name, BASIN_SHAPE(count));
}

typedef struct bench {
    basin_backend *backend;
    basin_store *store;
    basin_plan *plan;
} bench;

static bench open_bench(const basin_expr *output, int outputs, const char *backend, bool plain) {
    bench b = {0};
    basin_plan_spec spec = {
        .output = output, .outputs = outputs, .fusion = plain ? BASIN_FUSE_OFF : BASIN_FUSE_ON};
    assert_ok(basin_backend_open(&b.backend, &(basin_compute){.backend = backend, .threads = 2},
                                 &failure));
    assert_ok(basin_store_new(&b.store, b.backend, &failure));
    assert_ok(basin_plan_new(&b.plan, b.store, &spec, &failure));
    return b;
}

static void close_bench(bench *b) {
    basin_plan_free(b->plan);
    basin_store_free(b->store);
    basin_backend_close(b->backend);
}

static void run(check *c, bench *b) {
    for (int i = 0; i < c->inputs; i++)
        assert_ok(basin_plan_write(b->plan, c->input[i], &c->tensor[i], &failure));
    lab_run(b->plan);
}

basin_tensor check_value(check *c, basin_expr a, const char *backend, bool plain) {
    const basin_error *error = basin_graph_error(c->graph);
    if (error) fail_msg("%s", error->text);
    bench b = open_bench(&a, 1, backend, plain);
    run(c, &b);
    basin_tensor value = lab_read(b.plan, a);
    close_bench(&b);
    return value;
}

double check_distance(const basin_tensor *a, const basin_tensor *b) {
    double difference = 0, size = 0;
    int64_t count = basin_shape_count(b->shape);
    for (int64_t i = 0; i < count; i++) {
        double x = basin_tensor_at(a, i), y = basin_tensor_at(b, i);
        difference += (x - y) * (x - y);
        size += y * y;
    }
    return sqrt(difference) / fmax(sqrt(size), 1e-3);
}

/* d/dx of sum(y) by fourth-order central differences, one element of x at a time. */
static basin_tensor input_differences(check *c, bench *b, basin_expr y, int input) {
    const double h = 1e-3;
    basin_tensor gradient;
    basin_tensor *x = &c->tensor[input];
    assert_ok(basin_tensor_new(&gradient, BASIN_F64, x->shape, &failure));
    int64_t count = basin_shape_count(x->shape);
    for (int64_t i = 0; i < count; i++) {
        double *element = (double *)x->data + i, kept = *element, slope = 0;
        for (int k = 0; k < 4; k++) {
            *element = kept + at[k] * h;
            run(c, b);
            slope += stencil[k] * basin_plan_scalar(b->plan, y) / h;
        }
        *element = kept;
        ((double *)gradient.data)[i] = slope;
    }
    return gradient;
}

static void compare(check *c, basin_expr scalar, int input, basin_expr gradient, double tolerance,
                    const char *order) {
    bench b = open_bench(&scalar, 1, "ref", false);
    basin_tensor wanted = input_differences(c, &b, scalar, input);
    close_bench(&b);
    basin_tensor found = check_value(c, gradient, "ref", false);
    double distance = lab_apart(&found, &wanted, 1e-3);
    if (!(distance < tolerance))
        fail_msg("%s-order gradient with respect to '%s' is off by %g", order,
                 basin_expr_name(c->input[input]), distance);
    basin_tensor_free(&wanted);
    basin_tensor_free(&found);
}

/* sum(a * r) with fixed random r, which sees every element of a. */
static basin_expr projection(check *c, basin_expr a, const char *name) {
    basin_expr r = check_input(c, name, basin_expr_shape(a), -1, 1);
    return basin_sum_all(basin_mul(a, r));
}

void check_gradients(check *c, basin_expr y, double tolerance) {
    int inputs = c->inputs;
    basin_expr scalar = projection(c, y, "projection of y");
    basin_expr gradient[CHECK_INPUTS], second = NULL;
    for (int i = 0; i < inputs; i++) {
        if (c->tensor[i].dtype != BASIN_F64) continue;
        gradient[i] = basin_grad(scalar, c->input[i]);
        compare(c, scalar, i, gradient[i], tolerance, "first");
        check_backends(c, gradient[i], 1e-4);
    }
    for (int i = 0; i < inputs; i++) {
        if (c->tensor[i].dtype != BASIN_F64 || c->first_only[i]) continue;
        char name[64];
        snprintf(name, sizeof name, "projection %d", i);
        basin_expr part = projection(c, gradient[i], name);
        second = second ? basin_add(second, part) : part;
    }
    for (int i = 0; second && i < inputs; i++) {
        if (c->tensor[i].dtype != BASIN_F64) continue;
        basin_expr twice = basin_grad(second, c->input[i]);
        compare(c, second, i, twice, tolerance, "second");
        check_backends(c, twice, 1e-4);
    }
}

void check_backends(check *c, basin_expr a, double tolerance) {
    basin_tensor plain = check_value(c, a, "ref", true);
    basin_tensor fused = check_value(c, a, "ref", false);
    basin_tensor fast = check_value(c, a, "cpu", false);
    basin_tensor slow = check_value(c, a, "cpu", true);
    double d1 = check_distance(&fused, &plain), d2 = check_distance(&fast, &plain),
           d3 = check_distance(&slow, &plain);
    if (!(d1 < 1e-12)) fail_msg("ref fused is off by %g", d1);
    if (!(d2 < tolerance)) fail_msg("cpu is off by %g", d2);
    if (!(d3 < tolerance)) fail_msg("cpu without fusion is off by %g", d3);
    basin_tensor_free(&plain);
    basin_tensor_free(&fused);
    basin_tensor_free(&fast);
    basin_tensor_free(&slow);
}

void check_sine(check *c, basin_expr y) {
    if (basin_graph_error(c->graph)) fail_msg("%s", basin_graph_error(c->graph)->text);
    y = basin_sin(y);
    check_backends(c, y, 1e-5);
    check_gradients(c, y, 1e-6);
    check_free(c);
}

void assert_misbuilt(const basin_graph *graph, const char *part) {
    const basin_error *error = basin_graph_error(graph);
    if (!error || !strstr(error->text, part))
        fail_msg("'%s' lacks '%s'", error ? error->text : "", part);
}
