/* A network with a store on a backend, and gradients compared with finite differences, parameters
 * included. */
#ifndef BASIN_TESTS_ENERGY_RIG_H
#define BASIN_TESTS_ENERGY_RIG_H

#include <math.h>

#include "base/info.h"
#include "basin/random.h"
#include "engine/energy/network.h"
#include "support/test.h"

enum { RIG_LAYERS = 8 };

typedef struct rig {
    basin_graph *graph;
    basin_ham *ham;
    basin_backend *backend;
    basin_store *store;
    basin_expr x[RIG_LAYERS]; /* inputs, with their numbers: */
    basin_tensor number[RIG_LAYERS];
    int layers;
} rig;

static inline void rig_open(rig *r, const char *backend) {
    *r = (rig){.graph = basin_graph_new()};
    assert_non_null(r->graph);
    r->ham = basin_ham_new(r->graph);
    assert_non_null(r->ham);
    assert_ok(basin_backend_open(&r->backend, &(basin_compute){.backend = backend, .threads = 1},
                                 &failure));
    assert_ok(basin_store_new(&r->store, r->backend, &failure));
}

static inline void rig_close(rig *r) {
    for (int i = 0; i < r->layers; i++) basin_tensor_free(&r->number[i]);
    basin_store_free(r->store);
    basin_backend_close(r->backend);
    basin_ham_free(r->ham);
    basin_graph_free(r->graph);
}

/* An input [batch, shape] for the states of each layer. */
static inline void rig_inputs(rig *r, int64_t batch) {
    for (int i = 0; i < r->layers; i++) {
        basin_shape shape = r->ham->layer[i].shape;
        for (int k = shape.rank++; k > 0; k--) shape.dim[k] = shape.dim[k - 1];
        shape.dim[0] = batch;
        r->x[i] = basin_input(r->graph, r->ham->layer[i].name, shape);
    }
}

/* Draws parameters and states, once the network stands. */
static inline void rig_start(rig *r, int64_t batch, uint64_t seed) {
    const basin_error *wrong = basin_graph_error(r->graph);
    if (wrong) fail_msg("%s", wrong->text);
    r->layers = (int)r->ham->layers;
    assert_true(r->layers <= RIG_LAYERS);
    assert_ok(basin_params_init(basin_ham_params(r->ham), r->store, seed, &failure));
    rig_inputs(r, batch);
    for (int i = 0; i < r->layers; i++) {
        basin_shape shape = basin_expr_shape(r->x[i]);
        assert_ok(basin_tensor_new(&r->number[i], BASIN_F64, shape, &failure));
        basin_random_fill_normal_f64(r->number[i].data, seed + 1, (uint64_t)i, 0,
                                     (size_t)basin_shape_count(shape));
    }
}

static inline basin_plan *rig_plan(rig *r, const basin_expr *output, int outputs) {
    basin_plan *plan;
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    const basin_error *wrong = basin_graph_error(r->graph);
    if (wrong) fail_msg("%s", wrong->text);
    assert_ok(basin_plan_new(&plan, r->store, &spec, &failure));
    return plan;
}

static inline void rig_run(rig *r, basin_plan *plan) {
    for (int i = 0; i < r->layers; i++)
        assert_ok(basin_plan_write(plan, r->x[i], &r->number[i], &failure));
    assert_ok(basin_plan_run(plan, &failure));
}

/* The value of an expression, F64. */
static inline basin_tensor rig_value(rig *r, basin_expr a) {
    basin_tensor value;
    basin_plan *plan = rig_plan(r, &a, 1);
    rig_run(r, plan);
    assert_ok(basin_tensor_new(&value, BASIN_F64, basin_expr_shape(a), &failure));
    assert_ok(basin_plan_read(&value, plan, a, &failure));
    basin_plan_free(plan);
    return value;
}

/* d loss / d element by fourth-order central differences. With a state, its tensor is written to
 * the store after each change. */
static inline double rig_slope(rig *r, basin_plan *plan, basin_expr loss, double *element,
                               const char *state, const basin_tensor *tensor) {
    static const double weight[4] = {1.0 / 12, -8.0 / 12, 8.0 / 12, -1.0 / 12};
    static const double at[4] = {-2, -1, 1, 2};
    const double h = 1e-4, kept = *element;
    double slope = 0;
    for (int k = 0; k < 5; k++) {
        *element = k < 4 ? kept + at[k] * h : kept;
        if (state) assert_ok(basin_store_write(r->store, state, tensor, &failure));
        if (k == 4) break;
        rig_run(r, plan);
        slope += weight[k] * basin_plan_scalar(plan, loss) / h;
    }
    return slope;
}

static inline void rig_compare(rig *r, basin_expr loss, basin_expr gradient, basin_tensor *tensor,
                               const char *state, const char *what, double tolerance) {
    basin_tensor found = rig_value(r, gradient);
    basin_plan *plan = rig_plan(r, &loss, 1);
    double off = 0, norm = 0;
    for (int64_t i = 0; i < basin_shape_count(tensor->shape); i++) {
        double slope = rig_slope(r, plan, loss, (double *)tensor->data + i, state, tensor);
        off += pow(slope - ((double *)found.data)[i], 2);
        norm += slope * slope;
    }
    if (!(sqrt(off) <= tolerance * (1e-3 + sqrt(norm))))
        fail_msg("%s: the gradient is off by %g of %g", what, sqrt(off), sqrt(norm));
    basin_plan_free(plan);
    basin_tensor_free(&found);
}

/* The gradients of a scalar loss with respect to all states x and all parameters. */
static inline void rig_check_loss(rig *r, basin_expr loss, const char *what, double tolerance) {
    const basin_params *params = basin_ham_params(r->ham);
    for (int i = 0; i < r->layers; i++)
        rig_compare(r, loss, basin_grad(loss, r->x[i]), &r->number[i], NULL, what, tolerance);
    for (size_t i = 0; i < params->count; i++) {
        basin_tensor number;
        basin_expr state = params->param[i].state;
        const char *name = basin_expr_name(state);
        assert_ok(basin_store_get(&number, r->store, name, &failure));
        assert_int_equal(number.dtype, BASIN_F64);
        rig_compare(r, loss, basin_grad(loss, state), &number, name, what, tolerance);
        basin_tensor_free(&number);
    }
}

#endif
