/* A network on numbers: the descent of its layers by the loop of loop.c; and recall in the
 * classical way, binary neurons flipped one at a time, each flip kept where it lowers the synapses'
 * energy. */
#include <stdlib.h>

#include "base/try.h"
#include "basin/random.h"
#include "energy/network.h"

typedef struct descended {
    basin_ham *ham;
    const basin_ham_spec *spec;
} descended;

static void activate(const void *context, basin_expr *g, const basin_expr *x) {
    basin_ham_activations(((const descended *)context)->ham, g, x);
}

static void energies(const void *context, basin_expr *term, const basin_expr *x,
                     const basin_expr *g) {
    (void)g;
    basin_ham_energies(((const descended *)context)->ham, term, x);
}

static void take_step(const void *context, basin_expr *next, const basin_expr *x,
                      const basin_expr *g, const basin_pace *pace) {
    const descended *d = context;
    (void)g;
    basin_ham_step_by(d->ham, next, x, d->spec, pace->alpha);
}

basin_status basin_ham_descent_new(basin_descent **descent, basin_ham *ham, basin_store *store,
                                   int64_t batch, const basin_ham_spec *spec,
                                   const basin_stop *stop, basin_error *error) {
    int terms = basin_ham_terms(ham);
    BASIN_FREE_AT_EXIT basin_shape *shape = NULL;
    BASIN_FREE_AT_EXIT const char **name = NULL;
    *descent = NULL;
    if (batch < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "a batch of %lld samples, wanted 1 or more",
                          (long long)batch);
    if (ham->layers < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "a network without layers cannot descend");
    BASIN_TRY(BASIN_NEW(&shape, ham->layers, "a descent", error));
    BASIN_TRY(BASIN_NEW(&name, terms, "a descent", error));
    for (size_t i = 0; i < ham->layers; i++) shape[i] = basin_layer_shape(&ham->layer[i], batch);
    for (int p = 0; p < terms; p++) name[p] = basin_ham_term_name(ham, p);
    basin_dynamics dynamics = {.count = (int)ham->layers,
                               .shape = shape,
                               .terms = terms,
                               .first = spec->synapses_only ? (int)ham->layers : 0,
                               .name = name,
                               .activate = activate,
                               .energies = energies,
                               .step = take_step,
                               .context = &(descended){ham, spec}};
    return basin_loop_new(descent, store, ham->graph, &dynamics, spec->steps, spec->dt, stop,
                          error);
}

basin_status basin_ham_run(basin_ham *ham, basin_store *store, basin_descent_result *result,
                           const basin_tensor *x, const basin_ham_spec *spec,
                           const basin_stop *stop, basin_error *error) {
    basin_descent *descent;
    int64_t batch = ham->layers && x[0].shape.rank > 0 ? x[0].shape.dim[0] : 0;
    char a[BASIN_SHAPE_TEXT], b[BASIN_SHAPE_TEXT];
    *result = (basin_descent_result){0};
    for (size_t i = 0; i < ham->layers; i++) {
        basin_shape wanted = basin_layer_shape(&ham->layer[i], batch);
        if (!basin_shape_equal(x[i].shape, wanted))
            return basin_fail(
                error, BASIN_BAD_SHAPE, "states of shape %s for layer '%s', wanted %s",
                basin_shape_print(a, x[i].shape), ham->layer[i].name, basin_shape_print(b, wanted));
    }
    BASIN_TRY(basin_ham_descent_new(&descent, ham, store, batch, spec, stop, error));
    basin_status status = basin_descent_run(descent, result, x, error);
    basin_descent_free(descent);
    return status;
}

/* ---- binary recall; samples of a batch visit their neurons in the same order ---- */

typedef struct recall {
    basin_ham *ham;
    basin_plan *plan;
    basin_expr *x;      /* [layers] */
    basin_expr energy;  /* [batch] */
    basin_tensor state; /* of the layer, [batch, neurons] */
    basin_expr input;
    int64_t batch, neurons;
    double *now, *trial; /* [batch] */
    int64_t *order;      /* [neurons] */
} recall;

static basin_status measure(recall *r, double *energy, basin_error *error) {
    basin_tensor view = basin_tensor_borrow(energy, BASIN_F64, BASIN_SHAPE(r->batch));
    BASIN_TRY(basin_plan_write(r->plan, r->input, &r->state, error));
    BASIN_TRY(basin_plan_run(r->plan, error));
    return basin_plan_read(r->plan, r->energy, &view, error);
}

static void flip(recall *r, int64_t sample, int64_t neuron) {
    double *x = (double *)r->state.data + sample * r->neurons + neuron;
    *x = -*x;
}

static basin_status sweep(recall *r, int64_t *flips, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < r->neurons && !status; k++) {
        for (int64_t b = 0; b < r->batch; b++) flip(r, b, r->order[k]);
        status = measure(r, r->trial, error);
        for (int64_t b = 0; b < r->batch && !status; b++) {
            if (r->trial[b] < r->now[b]) {
                r->now[b] = r->trial[b];
                ++*flips;
            } else
                flip(r, b, r->order[k]);
        }
    }
    return status;
}

static basin_status prepare(recall *r, basin_store *store, const basin_tensor *x, int layer,
                            basin_error *error) {
    BASIN_TRY(BASIN_NEW(&r->x, r->ham->layers, "a recall", error));
    BASIN_TRY(BASIN_NEW(&r->now, r->batch, "a recall", error));
    BASIN_TRY(BASIN_NEW(&r->trial, r->batch, "a recall", error));
    BASIN_TRY(BASIN_NEW(&r->order, r->neurons, "a recall", error));
    basin_ham_inputs(r->ham, r->x, r->batch);
    r->input = r->x[layer];
    r->energy = basin_ham_energy(r->ham, r->x, true);
    basin_plan_spec spec = {.output = &r->energy, .outputs = 1};
    const basin_error *wrong = basin_graph_error(r->ham->graph);
    if (wrong) return basin_fail(error, wrong->status, "%s", wrong->text);
    BASIN_TRY(basin_plan_new(&r->plan, store, &spec, error));
    for (size_t i = 0; i < r->ham->layers; i++)
        BASIN_TRY(basin_plan_write(r->plan, r->x[i], &x[i], error));
    return BASIN_OK;
}

static basin_status check_states(const basin_tensor *x, const basin_layer *layer,
                                 basin_error *error) {
    if (x->dtype != BASIN_F64)
        return basin_fail(error, BASIN_BAD_VALUE, "recall of layer '%s': states are %s, wanted F64",
                          layer->name, basin_dtype_name(x->dtype));
    for (int64_t i = 0; i < basin_shape_count(x->shape); i++) {
        double value = ((const double *)x->data)[i];
        if (value != 1 && value != -1)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "recall of layer '%s': a state is %g, wanted -1 or 1", layer->name,
                              value);
    }
    return BASIN_OK;
}

basin_status basin_ham_recall(basin_ham *ham, basin_store *store, basin_tensor *x, int layer,
                              int sweeps, uint64_t seed, int64_t *flips, basin_error *error) {
    int64_t total = 0, last = -1;
    if (layer < 0 || (size_t)layer >= ham->layers)
        return basin_fail(error, BASIN_BAD_VALUE, "recall of layer %d, there are %zu", layer,
                          ham->layers);
    basin_status status = check_states(&x[layer], &ham->layer[layer], error);
    if (status) return status;
    recall r = {.ham = ham,
                .state = x[layer],
                .batch = x[layer].shape.dim[0],
                .neurons = basin_shape_count(ham->layer[layer].shape)};
    status = prepare(&r, store, x, layer, error);
    if (!status) status = measure(&r, r.now, error);
    for (int s = 0; s < sweeps && !status && total != last; s++) {
        last = total;
        basin_random_permutation(r.order, (size_t)r.neurons, seed, (uint64_t)s);
        status = sweep(&r, &total, error);
    }
    if (flips) *flips = total;
    basin_plan_free(r.plan);
    free(r.x);
    free(r.now);
    free(r.trial);
    free(r.order);
    return status;
}
