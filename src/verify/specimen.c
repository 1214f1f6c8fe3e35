/* Running and judging specimens of the zoo; see specimen.h. Everything is computed in double by the
 * backend ref: a rise of a small step must not be a matter of rounding. */
#include "verify/specimen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basin/random.h"

/* ---- numbers ---- */

static basin_expr from_file(basin_specimen *s, const char *name) {
    char full[100];
    snprintf(full, sizeof full, "in.%s", name);
    const basin_tensor *found = basin_bundle_find(s->bundle, full);
    if (found) return basin_constant(s->graph, found);
    return basin_graph_fail(s->graph, BASIN_BAD_FILE, "%s: no tensor %s for this model",
                            basin_bundle_path(s->bundle), full);
}

basin_expr basin_specimen_tensor(basin_specimen *s, const char *name, double deviation,
                                 basin_shape shape) {
    basin_tensor tensor;
    basin_error error;
    if (s->bundle) return from_file(s, name);
    if (basin_tensor_new(&tensor, BASIN_F64, shape, &error))
        return basin_graph_fail(s->graph, error.status, "%s", error.text);
    double *number = tensor.data;
    int64_t count = basin_shape_count(shape);
    basin_random_fill_normal_f64(number, s->seed, s->drawn++, 0, (size_t)count);
    for (int64_t i = 0; i < count; i++) number[i] *= deviation;
    basin_expr expr = basin_constant(s->graph, &tensor);
    basin_tensor_free(&tensor);
    return expr;
}

basin_expr basin_specimen_scalar(basin_specimen *s, const char *name, double value) {
    return s->bundle ? from_file(s, name) : basin_const(s->graph, value);
}

double basin_specimen_setting(const basin_specimen *s, const char *key, double value) {
    const char *text = s->bundle ? basin_bundle_meta(s->bundle, key) : NULL;
    return text ? strtod(text, NULL) : value;
}

/* ---- running ---- */

const basin_species *basin_species_find(const char *name) {
    for (const basin_species *at = basin_species_all; at->name; at++)
        if (!strcmp(at->name, name)) return at;
    return NULL;
}

/* The cosine of x's move in a tiny step and of the gradient downwards, by the activations g. */
static basin_expr cosine(const basin_specimen *s, basin_descent_spec spec) {
    basin_energy energy = s->by_x ? basin_zoo_hyperset_energy(s->by_x, NULL) : s->energy;
    basin_expr g =
        energy.activation ? basin_energy_activation(&energy, s->x) : basin_variable(s->x);
    basin_expr down = basin_neg(basin_grad(basin_sum_all(basin_energy_total(&energy, g)), g));
    spec.steps = 1;
    spec.alpha = s->alpha * 1e-6;
    basin_expr move = basin_sub(basin_descend(&s->energy, s->x, &spec, NULL), s->x);
    basin_expr dot = basin_sum_all(basin_mul(move, down));
    basin_expr squares = basin_mul(basin_sum_squares(&move, 1), basin_sum_squares(&down, 1));
    return basin_div(dot, basin_sqrt(squares));
}

static basin_expr totals(const basin_expr *trace, int terms, int steps) {
    basin_expr total[BASIN_SPECIMEN_STEPS + 1];
    for (int t = 0; t <= steps; t++) {
        total[t] = basin_sum_all(trace[t * terms]);
        for (int p = 1; p < terms; p++)
            total[t] = basin_add(total[t], basin_sum_all(trace[t * terms + p]));
    }
    return basin_stack(total, steps + 1, 0);
}

/* The energies of a descent from `from`, [steps + 1], and its end. */
static basin_expr follow(basin_expr *end, const basin_specimen *s, basin_expr from,
                         const basin_descent_spec *spec) {
    basin_expr trace[(BASIN_SPECIMEN_STEPS + 1) * 3];
    *end = basin_descend(&s->energy, from, spec, trace);
    return *end ? totals(trace, s->energy.terms, spec->steps) : NULL;
}

/* Steps that raised the energy; one that is not finite did. */
static int64_t count_rises(const basin_tensor *energy, int steps) {
    int64_t rises = 0;
    for (int t = 0; t < steps; t++) {
        double before = basin_tensor_at(energy, t), after = basin_tensor_at(energy, t + 1);
        rises += !(after <= before + 1e-13 * (1 + fabs(before)));
    }
    return rises;
}

static basin_status compute(basin_specimen_run *run, basin_engine *engine, const basin_specimen *s,
                            double scale, basin_error *error) {
    basin_expr out[4], end, last;
    basin_tensor result[4];
    basin_descent_spec spec = {.steps = run->steps,
                               .alpha = s->alpha * scale,
                               .turn = s->turns ? s->turn : NULL,
                               .turns = s->turns};
    const basin_error *found = basin_graph_error(s->graph);
    if (found) return basin_fail(error, found->status, "%s", found->text);
    out[0] = follow(&end, s, s->x, &spec);
    spec.alpha = s->alpha * 1e-3;
    out[1] = follow(&last, s, s->x, &spec);
    out[2] = follow(&last, s, end, &spec);
    out[3] = cosine(s, spec);
    basin_status status = basin_engine_compute(engine, result, out, 4, NULL, 0, error);
    if (status) return status;
    for (int t = 0; t <= run->steps; t++) run->energy[t] = basin_tensor_at(&result[0], t);
    run->rises = count_rises(&result[0], run->steps);
    run->small_rises = count_rises(&result[1], run->steps) + count_rises(&result[2], run->steps);
    run->cosine = basin_tensor_at(&result[3], 0);
    for (int i = 0; i < 4; i++) basin_tensor_free(&result[i]);
    return BASIN_OK;
}

basin_status basin_specimen_descend(basin_specimen_run *run, const basin_species *species,
                                    const basin_bundle *bundle, uint64_t seed, int steps,
                                    double scale, basin_error *error) {
    basin_engine engine;
    memset(run, 0, sizeof *run);
    if (steps < 1 || steps > BASIN_SPECIMEN_STEPS)
        return basin_fail(error, BASIN_BAD_VALUE, "%d steps; wanted 1 to %d", steps,
                          BASIN_SPECIMEN_STEPS);
    basin_status status =
        basin_engine_open(&engine, &(basin_compute){.backend = "ref", .threads = 1}, error);
    if (status) return status;
    basin_specimen s = {.graph = engine.graph, .bundle = bundle, .seed = seed};
    run->steps = steps;
    species->build(&s);
    status = compute(run, &engine, &s, scale, error);
    basin_engine_close(&engine);
    return status;
}

/* ---- judging ---- */

basin_status basin_specimen_judge(basin_specimen_verdict *verdict, const basin_species *species,
                                  const basin_bundle *bundle, int seeds, uint64_t seed, int steps,
                                  basin_error *error) {
    basin_status status = BASIN_OK;
    *verdict = (basin_specimen_verdict){.least_cosine = 1};
    if (bundle) seeds = 1;
    for (int i = 0; i < seeds && !status; i++) {
        basin_specimen_run run;
        status = basin_specimen_descend(&run, species, bundle, seed + (uint64_t)i, steps, 1, error);
        if (status) break;
        verdict->steps += steps;
        verdict->rises += run.rises;
        verdict->small_rises += run.small_rises;
        verdict->least_cosine = fmin(verdict->least_cosine, run.cosine);
        verdict->mean_cosine += run.cosine / seeds;
    }
    return status;
}

const char *basin_specimen_answer(const basin_specimen_verdict *verdict) {
    if (verdict->small_rises) return "not at all";
    return verdict->rises ? "for small steps" : "always";
}
