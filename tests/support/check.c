/* Helpers of the expression tests; see check.h. */
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basin/random.h"
#include "support/lab.h"

void check_fill(double *data, int64_t count, uint64_t seed) {
    for (int64_t i = 0; i < count; i++)
        data[i] = 2 * basin_random_uniform_at(seed, 1, (uint64_t)i) - 1;
}

void check_init(check *c) {
    *c = (check){.graph = basin_graph_new()};
    assert_non_null(c->graph);
}

void check_free(check *c) {
    for (int i = 0; i < c->inputs; i++) basin_tensor_free(&c->tensor[i]);
    basin_graph_free(c->graph);
}

basin_expr check_input(check *c, const char *name, basin_shape shape, double low, double high) {
    int i = c->inputs++;
    basin_error error;
    assert_true(i < CHECK_INPUTS);
    assert_int_equal(basin_tensor_new(&c->tensor[i], BASIN_F64, shape, &error), BASIN_OK);
    double *data = c->tensor[i].data;
    int64_t count = basin_shape_count(shape);
    check_fill(data, count, (uint64_t)i + 100);
    for (int64_t k = 0; k < count; k++) data[k] = low + (high - low) * (data[k] + 1) / 2;
    return c->input[i] = basin_input(c->graph, name, shape);
}

basin_expr check_index(check *c, const char *name, const int32_t *number, int64_t count) {
    int i = c->inputs++;
    basin_error error;
    assert_true(i < CHECK_INPUTS);
    assert_int_equal(basin_tensor_new(&c->tensor[i], BASIN_I32, BASIN_SHAPE(count), &error),
                     BASIN_OK);
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
    basin_error error = {0};
    basin_plan_spec spec = {
        .output = output, .outputs = outputs, .fusion = plain ? BASIN_FUSE_OFF : BASIN_FUSE_ON};
    basin_status status =
        basin_backend_open(&b.backend, &(basin_compute){.backend = backend, .threads = 2}, &error);
    if (!status) status = basin_store_new(&b.store, b.backend, &error);
    if (!status) status = basin_plan_new(&b.plan, b.store, &spec, &error);
    if (status) fail_msg("%s", error.text);
    return b;
}

static void close_bench(bench *b) {
    basin_plan_free(b->plan);
    basin_store_free(b->store);
    basin_backend_close(b->backend);
}

static void run(check *c, bench *b) {
    basin_error error = {0};
    for (int i = 0; i < c->inputs; i++)
        must(basin_plan_write(b->plan, c->input[i], &c->tensor[i], &error), &error);
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
static basin_tensor differences(check *c, bench *b, basin_expr y, int input) {
    static const double weight[4] = {1.0 / 12, -8.0 / 12, 8.0 / 12, -1.0 / 12};
    static const double at[4] = {-2, -1, 1, 2};
    const double h = 1e-3;
    basin_tensor gradient;
    basin_error error;
    basin_tensor *x = &c->tensor[input];
    assert_int_equal(basin_tensor_new(&gradient, BASIN_F64, x->shape, &error), BASIN_OK);
    int64_t count = basin_shape_count(x->shape);
    for (int64_t i = 0; i < count; i++) {
        double *element = (double *)x->data + i, kept = *element, slope = 0;
        for (int k = 0; k < 4; k++) {
            *element = kept + at[k] * h;
            run(c, b);
            slope += weight[k] * basin_plan_scalar(b->plan, y) / h;
        }
        *element = kept;
        ((double *)gradient.data)[i] = slope;
    }
    return gradient;
}

static void compare(check *c, basin_expr scalar, int input, basin_expr gradient, double tolerance,
                    const char *order) {
    bench b = open_bench(&scalar, 1, "ref", false);
    basin_tensor wanted = differences(c, &b, scalar, input);
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
