/* Recall in the classical way: binary neurons flipped one at a time, each flip kept where it lowers
 * the synapses' energy. Samples of a batch visit their neurons in the same order. */
#include <stdlib.h>

#include "base/memory.h"
#include "basin/random.h"
#include "energy/network.h"

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
    basin_status status = basin_plan_write(r->plan, r->input, &r->state, error);
    if (!status) status = basin_plan_run(r->plan, error);
    if (!status) status = basin_plan_read(r->plan, r->energy, &view, error);
    return status;
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
    r->x = calloc(r->ham->layers, sizeof *r->x);
    r->now = basin_array_new((size_t)r->batch, sizeof *r->now);
    r->trial = basin_array_new((size_t)r->batch, sizeof *r->trial);
    r->order = basin_array_new((size_t)r->neurons, sizeof *r->order);
    if (!r->x || !r->now || !r->trial || !r->order)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a recall");
    basin_ham_inputs(r->ham, r->x, r->batch);
    r->input = r->x[layer];
    r->energy = basin_ham_synapse_energy(r->ham, r->x);
    basin_plan_spec spec = {.output = &r->energy, .outputs = 1};
    const basin_error *wrong = basin_graph_error(r->ham->graph);
    if (wrong) return basin_fail(error, wrong->status, "%s", wrong->text);
    basin_status status = basin_plan_new(&r->plan, store, &spec, error);
    for (size_t i = 0; i < r->ham->layers && !status; i++)
        status = basin_plan_write(r->plan, r->x[i], &x[i], error);
    return status;
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
