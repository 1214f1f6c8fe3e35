/* A network on numbers: one step compiled into a plan and run until the steps are taken or no
 * activation moves any more, with a record of every part of the energy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "basin/random.h"
#include "energy/network.h"

/* Expressions of the step, an entry per layer or part. */
struct basin_ham_descent {
    basin_ham *ham;
    basin_ham_spec spec;
    basin_plan *plan;
    int64_t batch;
    int layers, parts;
    basin_expr dt;             /* [batch] the size of each sample's step */
    basin_expr change;         /* [] */
    basin_expr *x, *next;      /* [layers] states before and after */
    basin_expr *g, *next_g;    /* [layers] activations */
    basin_expr *part, *energy; /* [parts] energies before and after */
    basin_expr *mask, *all;    /* [layers]; the above in one block */
};

static basin_status check_spec(const basin_ham *ham, int64_t batch, const basin_ham_spec *spec,
                               basin_error *error) {
    if (spec->steps < 0 || !isfinite(spec->dt) || spec->dt < 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a descent of %d steps of size %g; wanted none below 0", spec->steps,
                          spec->dt);
    if (batch < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "a batch of %lld samples, wanted 1 or more",
                          (long long)batch);
    if (ham->layers < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "a network without layers cannot descend");
    return BASIN_OK;
}

static bool alloc_expressions(basin_ham_descent *d) {
    size_t layers = (size_t)d->layers, parts = (size_t)d->parts;
    d->all = calloc(5 * layers + 2 * parts, sizeof *d->all);
    if (!d->all) return false;
    d->x = d->all;
    d->next = d->x + layers;
    d->g = d->next + layers;
    d->next_g = d->g + layers;
    d->mask = d->next_g + layers;
    d->part = d->mask + layers;
    d->energy = d->part + parts;
    return true;
}

/* The largest change of an activation, over all layers. */
static basin_expr largest_change(const basin_ham_descent *d) {
    basin_expr most = NULL;
    for (int i = 0; i < d->layers; i++) {
        basin_expr move = basin_maximum_all(basin_abs(basin_sub(d->next_g[i], d->g[i])));
        most = i ? basin_max(most, move) : move;
    }
    return most;
}

static void build_step(basin_ham_descent *d) {
    char name[64];
    basin_ham *ham = d->ham;
    snprintf(name, sizeof name, "ham.dt[%lld]", (long long)d->batch);
    d->dt = basin_input(ham->graph, name, BASIN_SHAPE(d->batch));
    basin_ham_inputs(ham, d->x, d->batch);
    basin_ham_step_by(ham, d->next, d->x, &d->spec, d->dt);
    basin_ham_activations(ham, d->g, d->x);
    basin_ham_activations(ham, d->next_g, d->next);
    basin_ham_energies(ham, d->part, d->x);
    basin_ham_energies(ham, d->energy, d->next);
    d->change = largest_change(d);
}

static basin_status make_plan(basin_ham_descent *d, basin_store *store, basin_error *error) {
    size_t count = 2 * (size_t)d->layers + 2 * (size_t)d->parts + 1, outputs = 0;
    int energies = d->spec.guard ? 2 * d->parts : d->parts; /* only the guard wants those after */
    basin_expr *output = calloc(count, sizeof *output);
    if (!output) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a descent");
    const basin_error *wrong = basin_graph_error(d->ham->graph);
    if (wrong) {
        free(output);
        return basin_fail(error, wrong->status, "%s", wrong->text);
    }
    for (int i = 0; i < d->layers; i++) {
        output[outputs++] = d->next[i];
        output[outputs++] = d->g[i];
    }
    for (int i = 0; i < energies; i++) output[outputs++] = d->part[i];
    output[outputs++] = d->change;
    basin_plan_spec spec = {.output = output, .outputs = (int)outputs};
    basin_status status = basin_plan_new(&d->plan, store, &spec, error);
    free(output);
    return status;
}

basin_status basin_ham_descent_new(basin_ham_descent **descent, basin_ham *ham, basin_store *store,
                                   int64_t batch, const basin_ham_spec *spec, basin_error *error) {
    *descent = NULL;
    basin_status status = check_spec(ham, batch, spec, error);
    if (status) return status;
    basin_ham_descent *d = calloc(1, sizeof *d);
    if (!d) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a descent");
    d->ham = ham;
    d->spec = *spec;
    d->batch = batch;
    d->layers = basin_ham_layers(ham);
    d->parts = basin_ham_parts(ham);
    if (alloc_expressions(d)) {
        for (int i = 0; spec->mask && i < d->layers; i++) d->mask[i] = spec->mask[i];
        d->spec.mask = d->mask;
        build_step(d);
        status = make_plan(d, store, error);
    } else
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for a descent");
    if (status)
        basin_ham_descent_free(d);
    else
        *descent = d;
    return status;
}

void basin_ham_descent_free(basin_ham_descent *descent) {
    if (!descent) return;
    basin_plan_free(descent->plan);
    free(descent->all);
    free(descent);
}

basin_plan *basin_ham_descent_plan(basin_ham_descent *descent) { return descent->plan; }

/* ---- a run ---- */

typedef struct run {
    basin_ham_descent *d;
    basin_ham_result *result;
    double *dt; /* [batch] */
} run;

static basin_status alloc_tensors(run *r, const basin_tensor *x, basin_error *error) {
    basin_ham_descent *d = r->d;
    basin_status status = BASIN_OK;
    for (int i = 0; i < d->layers && !status; i++) {
        char a[BASIN_SHAPE_TEXT], b[BASIN_SHAPE_TEXT];
        basin_shape shape = basin_expr_shape(d->x[i]);
        if (!basin_shape_equal(shape, x[i].shape))
            return basin_fail(error, BASIN_BAD_SHAPE,
                              "states of shape %s for layer '%s', wanted %s",
                              basin_shape_print(a, x[i].shape), d->ham->layer[i].name,
                              basin_shape_print(b, shape));
        status = basin_tensor_new(&r->result->x[i], BASIN_F64, shape, error);
        if (!status) status = basin_tensor_new(&r->result->g[i], BASIN_F64, shape, error);
        if (!status) status = basin_tensor_convert(&r->result->x[i], &x[i], error);
    }
    return status;
}

static basin_status alloc_result(run *r, const basin_tensor *x, basin_error *error) {
    basin_ham_descent *d = r->d;
    size_t row, numbers, layers = (size_t)d->layers, steps = (size_t)d->spec.steps;
    basin_ham_result *result = r->result;
    *result = (basin_ham_result){.layers = d->layers,
                                 .parts = d->parts,
                                 .samples = d->batch,
                                 .synapses_only = d->spec.synapses_only};
    if (basin_size_multiply(&row, (size_t)d->parts, (size_t)d->batch) &&
        basin_size_multiply(&numbers, row, steps + 1)) {
        result->energy = calloc(numbers, sizeof *result->energy);
        result->change = calloc(steps + 1, sizeof *result->change);
        result->x = calloc(layers, sizeof *result->x);
        result->g = calloc(layers, sizeof *result->g);
        r->dt = calloc((size_t)d->batch, sizeof *r->dt);
    }
    if (!result->energy || !result->change || !result->x || !result->g || !r->dt)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the trace of a descent");
    return alloc_tensors(r, x, error);
}

static basin_status read_energies(basin_ham_descent *d, double *energy, const basin_expr *part,
                                  basin_error *error) {
    basin_status status = BASIN_OK;
    for (int p = 0; p < d->parts && !status; p++) {
        basin_tensor view =
            basin_tensor_borrow(energy + p * d->batch, BASIN_F64, BASIN_SHAPE(d->batch));
        status = basin_plan_read(d->plan, part[p], &view, error);
    }
    return status;
}

/* The energy that is descended, of one sample; [parts, samples]. */
static double sample_total(const basin_ham_result *result, const double *energy, int64_t sample) {
    double total = 0;
    for (int p = result->synapses_only ? result->layers : 0; p < result->parts; p++)
        total += energy[p * result->samples + sample];
    return total;
}

static basin_status run_plan(run *r, basin_error *error) {
    basin_ham_descent *d = r->d;
    basin_tensor dt = basin_tensor_borrow(r->dt, BASIN_F64, BASIN_SHAPE(d->batch));
    basin_status status = basin_plan_write(d->plan, d->dt, &dt, error);
    return status ? status : basin_plan_run(d->plan, error);
}

/* Halves the step of every sample whose energy rose; false if there is none. */
static bool halve_steps(run *r, const double *before, const double *after, bool give_up) {
    bool risen = false;
    for (int64_t i = 0; i < r->d->batch; i++) {
        double total = sample_total(r->result, after, i);
        if (isfinite(total) && total <= sample_total(r->result, before, i)) continue;
        if (r->dt[i] == 0) continue;
        risen = true;
        r->dt[i] = give_up ? 0 : r->dt[i] / 2;
        r->result->halvings++;
    }
    return risen;
}

/* A sample that stays where it is keeps its energy, which two ways of computing it may round apart.
 */
static void keep_energies(run *r, const double *before, double *after) {
    for (int64_t i = 0; i < r->d->batch; i++)
        for (int p = 0; p < r->d->parts && r->dt[i] == 0; p++)
            after[p * r->d->batch + i] = before[p * r->d->batch + i];
}

/* One step from the states in the plan. The energies before are written in the first step, those
 * after by the guard, which repeats the step with smaller sizes until none has risen; after 60
 * halvings a sample stays where it is. */
static basin_status take_step(run *r, double *before, double *after, bool first,
                              basin_error *error) {
    basin_ham_descent *d = r->d;
    enum { MOST = 60 };
    for (int64_t i = 0; i < d->batch; i++) r->dt[i] = d->spec.dt;
    basin_status status = run_plan(r, error);
    if (!status && (first || !d->spec.guard)) status = read_energies(d, before, d->part, error);
    if (status || !d->spec.guard) return status;
    for (int round = 0; round <= MOST + 1; round++) {
        status = read_energies(d, after, d->energy, error);
        if (status || !halve_steps(r, before, after, round == MOST)) break;
        status = run_plan(r, error);
        if (status) break;
    }
    keep_energies(r, before, after);
    return status;
}

static basin_status write_states(run *r, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int i = 0; i < r->d->layers && !status; i++)
        status = basin_plan_write(r->d->plan, r->d->x[i], &r->result->x[i], error);
    return status;
}

static basin_status read_layers(run *r, basin_tensor *to, const basin_expr *from,
                                basin_error *error) {
    basin_status status = BASIN_OK;
    for (int i = 0; i < r->d->layers && !status; i++)
        status = basin_plan_read(r->d->plan, from[i], &to[i], error);
    return status;
}

static basin_status run_steps(run *r, basin_error *error) {
    basin_ham_descent *d = r->d;
    basin_ham_result *result = r->result;
    size_t row = (size_t)d->parts * (size_t)d->batch;
    basin_status status = BASIN_OK;
    for (int t = 0; t < d->spec.steps && !status && !result->converged; t++) {
        double *before = result->energy + (size_t)t * row;
        status = write_states(r, error);
        if (!status) status = take_step(r, before, before + row, t == 0, error);
        if (!status) status = read_layers(r, result->x, d->next, error);
        if (status) break;
        result->change[t] = basin_plan_scalar(d->plan, d->change);
        result->steps = t + 1;
        result->converged = d->spec.tolerance > 0 && result->change[t] <= d->spec.tolerance;
    }
    return status;
}

/* The activations of the last states, and their energies where no guard has read them. */
static basin_status read_end(run *r, basin_error *error) {
    basin_ham_descent *d = r->d;
    int steps = r->result->steps;
    double *last = r->result->energy + (int64_t)steps * d->parts * d->batch;
    basin_status status = write_states(r, error);
    if (!status) status = run_plan(r, error);
    if (!status && (steps == 0 || !d->spec.guard)) status = read_energies(d, last, d->part, error);
    if (!status) status = read_layers(r, r->result->g, d->g, error);
    return status;
}

basin_status basin_ham_descent_run(basin_ham_descent *descent, basin_ham_result *result,
                                   const basin_tensor *x, basin_error *error) {
    run r = {.d = descent, .result = result};
    basin_status status = alloc_result(&r, x, error);
    if (!status) status = run_steps(&r, error);
    if (!status) status = read_end(&r, error);
    free(r.dt);
    if (status) basin_ham_result_free(result);
    return status;
}

basin_status basin_ham_run(basin_ham *ham, basin_store *store, basin_ham_result *result,
                           const basin_tensor *x, const basin_ham_spec *spec, basin_error *error) {
    basin_ham_descent *descent;
    int64_t batch = ham->layers && x[0].shape.rank > 0 ? x[0].shape.dim[0] : 0;
    *result = (basin_ham_result){0};
    basin_status status = basin_ham_descent_new(&descent, ham, store, batch, spec, error);
    if (!status) status = basin_ham_descent_run(descent, result, x, error);
    basin_ham_descent_free(descent);
    return status;
}

void basin_ham_result_free(basin_ham_result *result) {
    for (int i = 0; i < result->layers; i++) {
        if (result->x) basin_tensor_free(&result->x[i]);
        if (result->g) basin_tensor_free(&result->g[i]);
    }
    free(result->x);
    free(result->g);
    free(result->energy);
    free(result->change);
    *result = (basin_ham_result){0};
}

double basin_ham_total(const basin_ham_result *result, int step) {
    double total = 0;
    const double *row = result->energy + (int64_t)step * result->parts * result->samples;
    for (int64_t i = 0; i < result->samples; i++) total += sample_total(result, row, i);
    return total;
}

basin_status basin_ham_states(const basin_ham *ham, basin_tensor *x, int64_t batch,
                              double deviation, uint64_t seed, basin_error *error) {
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < ham->layers; i++) x[i] = (basin_tensor){0};
    for (size_t i = 0; i < ham->layers && !status; i++) {
        status =
            basin_tensor_new(&x[i], BASIN_F64, basin_layer_shape(&ham->layer[i], batch), error);
        int64_t count = status ? 0 : basin_shape_count(x[i].shape);
        for (int64_t k = 0; k < count && deviation != 0; k++)
            ((double *)x[i].data)[k] =
                deviation * basin_random_normal_at(seed, (uint64_t)i, (uint64_t)k);
    }
    for (size_t i = 0; i < ham->layers && status; i++) basin_tensor_free(&x[i]);
    return status;
}
