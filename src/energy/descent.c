/* Descent: x <- x - alpha dE/dg, unrolled into an expression or run step by step with a watch on
 * the energy (the paper's equation 6 in discrete time). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "energy/energy.h"

/* What a step needs beside the tokens: `alpha` broadcasts against them, `t` is a number. */
typedef struct pace {
    basin_expr alpha, t;
} pace;

/* x + alpha move(force), then where it lands. */
static basin_expr take_turn(const basin_energy *energy, basin_expr x, basin_expr g,
                            const basin_turn *turn, const pace *p, const basin_descent_spec *spec,
                            bool last) {
    basin_expr force = basin_energy_force_of(energy, g, turn->parts);
    if (turn->move) force = turn->move(turn->context, force, x, p->t);
    basin_expr next = basin_add(x, basin_mul(p->alpha, force));
    if (last && spec->noise > 0) {
        basin_expr draw = basin_scale(basin_normal(spec->seed, basin_expr_shape(x)), spec->noise);
        next = basin_add(next, basin_mul(basin_sqrt(p->alpha), draw));
    }
    return turn->land ? turn->land(turn->context, next, p->t) : next;
}

/* NULL, or a message, where a turn moved the tokens into another shape. */
static basin_expr check_shape(basin_expr next, basin_expr x, int turn) {
    char a[BASIN_SHAPE_TEXT], b[BASIN_SHAPE_TEXT];
    basin_shape found = basin_expr_shape(next), wanted = basin_expr_shape(x);
    if (!next)
        return basin_graph_fail(basin_expr_graph(x), BASIN_BAD_VALUE,
                                "turn %d of a descent gives NULL; wanted tokens", turn);
    if (basin_shape_equal(found, wanted)) return next;
    return basin_graph_fail(basin_expr_graph(x), BASIN_BAD_SHAPE,
                            "turn %d of a descent gives tokens %s, wanted %s", turn,
                            basin_shape_print(a, found), basin_shape_print(b, wanted));
}

/* One step from x with activations g: all its turns. */
static basin_expr step(const basin_energy *energy, basin_expr x, basin_expr g, const pace *p,
                       const basin_descent_spec *spec) {
    static const basin_turn whole = {0};
    int turns = spec->turns > 0 ? spec->turns : 1;
    for (int i = 0; i < turns && x; i++) {
        const basin_turn *turn = spec->turns > 0 ? &spec->turn[i] : &whole;
        if (i > 0) g = basin_energy_activation(energy, x);
        x = check_shape(take_turn(energy, x, g, turn, p, spec, i + 1 == turns), x, i);
    }
    return x;
}

static basin_status check_turns(const basin_descent_spec *spec, const basin_energy *energy,
                                basin_error *error) {
    if (spec->turns < 0 || (spec->turns > 0 && !spec->turn))
        return basin_fail(error, BASIN_BAD_VALUE, "a descent of %d turns without a list of them",
                          spec->turns);
    for (int i = 0; i < spec->turns; i++)
        if (spec->turn[i].parts >> energy->parts)
            return basin_fail(
                error, BASIN_BAD_VALUE,
                "turn %d of a descent takes the parts of bits 0x%x; the energy has %d "
                "parts",
                i, spec->turn[i].parts, energy->parts);
    return BASIN_OK;
}

basin_expr basin_descent_step(const basin_energy *energy, basin_expr x, basin_expr alpha,
                              basin_expr t, const basin_descent_spec *spec) {
    basin_error error = {0};
    if (check_turns(spec, energy, &error))
        return basin_graph_fail(basin_expr_graph(x), error.status, "%s", error.text);
    return step(energy, x, basin_energy_activation(energy, x), &(pace){alpha, t}, spec);
}

static void record(const basin_energy *energy, basin_expr g, basin_expr *trace) {
    for (int p = 0; trace && p < energy->parts; p++)
        trace[p] = basin_keep(basin_energy_part(energy, g, p));
}

basin_expr basin_descend(const basin_energy *energy, basin_expr x, const basin_descent_spec *spec,
                         basin_expr *trace) {
    if (spec->implicit) return basin_descend_to_rest(energy, x, spec, trace);
    basin_graph *graph = basin_expr_graph(x);
    pace p = {.alpha = basin_const(graph, spec->alpha)};
    basin_error error = {0};
    if (check_turns(spec, energy, &error))
        return basin_graph_fail(graph, error.status, "%s", error.text);
    if (spec->noise > 0 && !spec->seed)
        return basin_graph_fail(graph, BASIN_BAD_VALUE, "a descent with noise wants a seed");
    for (int t = 0; t < spec->steps; t++) {
        if (spec->recompute) basin_recompute_begin(graph);
        basin_expr g = basin_energy_activation(energy, x);
        record(energy, g, trace ? trace + t * energy->parts : NULL);
        p.t = basin_const(graph, t);
        x = basin_keep(step(energy, x, g, &p, spec));
        if (spec->recompute) basin_recompute_end(graph);
    }
    if (trace)
        record(energy, basin_energy_activation(energy, x), trace + spec->steps * energy->parts);
    return x;
}

/* ---- running ---- */

struct basin_descent {
    basin_descent_spec spec;
    basin_energy energy;
    int64_t samples;
    basin_plan *plan;
    pace pace;                    /* inputs */
    basin_expr x, next;           /* tokens before and after the step */
    basin_expr g, next_g, change; /* activations, largest move of g */
    basin_expr part[BASIN_MAX_PARTS], next_part[BASIN_MAX_PARTS]; /* energies before and after */
};

/* One alpha per sample, [B, 1, 1, ..], so that the guard can halve each on its own. */
static basin_expr alpha_input(basin_graph *graph, basin_shape samples, basin_shape tokens) {
    basin_shape shape = tokens;
    for (int i = 0; i < shape.rank; i++) shape.dim[i] = i < samples.rank ? samples.dim[i] : 1;
    return basin_input(graph, "descent.alpha", shape);
}

static basin_status check_spec(const basin_descent_spec *spec, const basin_energy *energy,
                               basin_error *error) {
    if (spec->steps < 0 || !isfinite(spec->alpha) || spec->alpha < 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a descent of %d steps of size %g; wanted none below 0", spec->steps,
                          spec->alpha);
    if (!(spec->noise >= 0) || !(spec->tolerance >= 0))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a descent with noise %g and tolerance %g; wanted none below 0",
                          spec->noise, spec->tolerance);
    if (spec->guard && spec->noise > 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "noise %g together with the guard: noise may raise the energy, which the "
                          "guard forbids",
                          spec->noise);
    if (spec->accelerate && spec->noise > 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "noise %g together with momentum, which would carry it along",
                          spec->noise);
    if (energy->parts < 1 || energy->parts > BASIN_MAX_PARTS)
        return basin_fail(error, BASIN_BAD_VALUE, "an energy of %d parts; wanted 1 to %d",
                          energy->parts, BASIN_MAX_PARTS);
    return check_turns(spec, energy, error);
}

/* What a sample is must be the same for every part, or their sum would mean nothing. */
static void check_parts(const basin_descent *d) {
    char a[BASIN_SHAPE_TEXT], b[BASIN_SHAPE_TEXT];
    basin_shape first = basin_expr_shape(d->part[0]);
    for (int p = 1; p < d->energy.parts; p++) {
        basin_shape shape = basin_expr_shape(d->part[p]);
        if (!basin_shape_equal(shape, first))
            basin_graph_fail(basin_expr_graph(d->x), BASIN_BAD_SHAPE,
                             "an energy's part '%s' has shape %s, part '%s' has %s",
                             d->energy.name[p], basin_shape_print(a, shape), d->energy.name[0],
                             basin_shape_print(b, first));
    }
}

static basin_status make_plan(basin_descent *d, basin_store *store, basin_error *error) {
    basin_expr output[2 * BASIN_MAX_PARTS + 4];
    int outputs = 0;
    const basin_error *found = basin_graph_error(basin_expr_graph(d->x));
    if (found) return basin_fail(error, found->status, "%s", found->text);
    for (int p = 0; p < d->energy.parts; p++) {
        output[outputs++] = d->part[p];
        output[outputs++] = d->next_part[p];
    }
    output[outputs++] = d->next;
    output[outputs++] = d->next_g;
    output[outputs++] = d->g;
    output[outputs++] = d->change;
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    return basin_plan_new(&d->plan, store, &spec, error);
}

basin_status basin_descent_new(basin_descent **descent, basin_store *store,
                               const basin_energy *energy, basin_expr x,
                               const basin_descent_spec *spec, basin_error *error) {
    *descent = NULL;
    basin_status status = check_spec(spec, energy, error);
    if (!status && !x) status = basin_fail(error, BASIN_BAD_VALUE, "a descent without tokens");
    if (status) return status;
    basin_descent *d = calloc(1, sizeof *d);
    if (!d) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a descent");
    basin_graph *graph = basin_expr_graph(x);
    d->spec = *spec;
    d->energy = *energy;
    d->x = x;
    if (spec->noise > 0) d->spec.seed = basin_index(graph, "descent.seed", BASIN_SHAPE(2));
    d->g = basin_energy_activation(energy, x);
    record(energy, d->g, d->part);
    check_parts(d);
    basin_shape samples = basin_expr_shape(d->part[0]);
    d->samples = basin_shape_count(samples);
    d->pace.alpha = alpha_input(graph, samples, basin_expr_shape(x));
    d->pace.t = basin_input(graph, "descent.step", BASIN_SCALAR);
    d->next = step(energy, x, d->g, &d->pace, &d->spec);
    d->next_g = basin_energy_activation(energy, d->next);
    d->change = basin_maximum_all(basin_abs(basin_sub(d->next_g, d->g)));
    record(energy, d->next_g, d->next_part);
    status = make_plan(d, store, error);
    if (status)
        basin_descent_free(d);
    else
        *descent = d;
    return status;
}

void basin_descent_free(basin_descent *descent) {
    if (!descent) return;
    basin_plan_free(descent->plan);
    free(descent);
}

basin_plan *basin_descent_plan(basin_descent *descent) { return descent->plan; }

/* The buffers of one run. */
typedef struct run {
    basin_descent *d;
    basin_descent_result *result;
    double *alpha, *after; /* [samples], [parts, samples] */
    bool started;          /* energies before a step are those after the one before */
    double *last;          /* accelerated: [tokens] before the last step, */
    double *lead;          /* [samples] steps since a sample began anew */
    basin_tensor ahead;    /* the tokens that a step begins at */
} run;

static basin_status read_parts(basin_descent *d, double *energy, const basin_expr *part,
                               basin_error *error) {
    basin_status status = BASIN_OK;
    for (int p = 0; p < d->energy.parts && !status; p++) {
        basin_tensor view =
            basin_tensor_borrow(energy + p * d->samples, BASIN_F64, basin_expr_shape(part[p]));
        status = basin_plan_read(d->plan, part[p], &view, error);
    }
    return status;
}

static double sample_total(const basin_descent *d, const double *energy, int64_t sample) {
    double total = 0;
    for (int p = 0; p < d->energy.parts; p++) total += energy[p * d->samples + sample];
    return total;
}

static basin_status take_step(run *r, double *before, basin_error *error) {
    basin_descent *d = r->d;
    basin_tensor alpha = basin_tensor_borrow(r->alpha, BASIN_F64, basin_expr_shape(d->pace.alpha));
    basin_status status = basin_plan_write(d->plan, d->pace.alpha, &alpha, error);
    if (!status) status = basin_plan_run(d->plan, error);
    if (!status && !r->started) status = read_parts(d, before, d->part, error);
    if (!status) status = read_parts(d, r->after, d->next_part, error);
    return status;
}

/* Halves the step of every sample whose energy would rise, until none does. After 60 halvings the
 * sample stays where it is. */
static basin_status guarded_step(run *r, double *before, basin_error *error) {
    basin_descent *d = r->d;
    enum { MOST = 60 };
    for (int64_t i = 0; i < d->samples; i++) r->alpha[i] = d->spec.alpha;
    basin_status status = take_step(r, before, error);
    for (int round = 0; d->spec.guard && !status && round <= MOST; round++) {
        bool risen = false;
        for (int64_t i = 0; i < d->samples; i++) {
            bool fine = sample_total(d, r->after, i) <= sample_total(d, before, i);
            if (fine || r->alpha[i] == 0) continue;
            risen = true;
            r->alpha[i] = round < MOST ? r->alpha[i] / 2 : 0;
            r->result->halvings++;
        }
        if (!risen) break;
        status = take_step(r, before, error);
    }
    /* A sample that stays keeps its energy, which two ways of computing it may round apart. */
    for (int64_t i = 0; i < d->samples; i++)
        for (int p = 0; p < d->energy.parts && r->alpha[i] == 0; p++)
            r->after[p * d->samples + i] = before[p * d->samples + i];
    return status;
}

/* ---- momentum ---- */

static bool has_risen(const run *r, const double *before, int64_t sample) {
    return !(sample_total(r->d, r->after, sample) <= sample_total(r->d, before, sample));
}

/* Writes the tokens, ahead by a part of their last move. Samples are leading axes. */
static basin_status write_ahead(run *r, basin_error *error) {
    const double *x = r->result->x.data;
    double *ahead = r->ahead.data;
    int64_t samples = r->d->samples;
    int64_t width = samples ? basin_shape_count(r->ahead.shape) / samples : 0;
    for (int64_t i = 0; i < samples * width; i++) {
        double lead = r->lead[i / width];
        ahead[i] = x[i] + (lead > 0 ? lead / (lead + 3) * (x[i] - r->last[i]) : 0);
    }
    return basin_plan_write(r->d->plan, r->d->x, &r->ahead, error);
}

/* A step with momentum; where the energy of a sample would rise, again from where it is. */
static basin_status accelerated_step(run *r, double *before, basin_error *error) {
    bool risen = false;
    int64_t samples = r->d->samples;
    for (int64_t i = 0; i < samples; i++) r->alpha[i] = r->d->spec.alpha;
    basin_status status = write_ahead(r, error);
    if (!status) status = take_step(r, before, error);
    for (int64_t i = 0; i < samples && !status; i++) {
        if (!has_risen(r, before, i)) continue;
        risen = true;
        r->lead[i] = 0;
    }
    if (!status && risen) status = write_ahead(r, error);
    if (!status && risen) status = guarded_step(r, before, error);
    for (int64_t i = 0; i < samples && !status; i++) r->lead[i]++;
    if (!status) memcpy(r->last, r->result->x.data, basin_tensor_bytes(&r->result->x));
    return status;
}

static basin_status alloc_momentum(run *r, basin_error *error) {
    if (!r->d->spec.accelerate) return BASIN_OK;
    size_t count = (size_t)basin_shape_count(basin_expr_shape(r->d->x));
    r->last = calloc(count + 1, sizeof *r->last);
    r->lead = calloc((size_t)r->d->samples + 1, sizeof *r->lead);
    if (!r->last || !r->lead)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the momentum of a descent");
    return basin_tensor_new(&r->ahead, BASIN_F64, basin_expr_shape(r->d->x), error);
}

/* The number of the step, and what its noise is drawn from. */
static basin_status write_step(basin_descent *d, int t, basin_error *error) {
    double number = t;
    basin_tensor step = basin_tensor_borrow(&number, BASIN_F64, BASIN_SCALAR);
    basin_status status = basin_plan_write(d->plan, d->pace.t, &step, error);
    if (status || d->spec.noise <= 0) return status;
    uint64_t mixed = d->spec.noise_seed + (uint64_t)t * 0x9e3779b97f4a7c15u;
    uint32_t word[2] = {(uint32_t)mixed, (uint32_t)(mixed >> 32)};
    basin_tensor seed = basin_tensor_borrow(word, BASIN_I32, BASIN_SHAPE(2));
    return basin_plan_write(d->plan, d->spec.seed, &seed, error);
}

static basin_status run_steps(run *r, basin_error *error) {
    basin_descent *d = r->d;
    basin_descent_result *result = r->result;
    size_t row = (size_t)d->energy.parts * (size_t)d->samples;
    basin_status status = BASIN_OK;
    for (int t = 0; t < d->spec.steps && !status && !result->converged; t++) {
        double *before = result->energy + (size_t)t * row;
        status = basin_plan_write(d->plan, d->x, &result->x, error);
        if (!status) status = write_step(d, t, error);
        if (!status)
            status = d->spec.accelerate ? accelerated_step(r, before, error)
                                        : guarded_step(r, before, error);
        if (!status) status = basin_plan_read(d->plan, d->next, &result->x, error);
        basin_tensor change = basin_tensor_borrow(result->change + t, BASIN_F64, BASIN_SCALAR);
        if (!status) status = basin_plan_read(d->plan, d->change, &change, error);
        if (status) break;
        memcpy(before + row, r->after, row * sizeof *before);
        result->steps = t + 1;
        r->started = true;
        result->converged = d->spec.tolerance > 0 && result->change[t] <= d->spec.tolerance;
    }
    return status;
}

/* The activations (and, without any step, the energies) of the tokens as they are. */
static basin_status read_end(run *r, basin_error *error) {
    basin_descent *d = r->d;
    if (r->result->steps > 0) return basin_plan_read(d->plan, d->next_g, &r->result->g, error);
    memset(r->alpha, 0, (size_t)d->samples * sizeof *r->alpha);
    basin_status status = basin_plan_write(d->plan, d->x, &r->result->x, error);
    if (!status) status = write_step(d, 0, error);
    if (!status) status = take_step(r, r->result->energy, error);
    if (!status) status = basin_plan_read(d->plan, d->g, &r->result->g, error);
    return status;
}

static basin_status alloc_result(run *r, const basin_tensor *x, basin_error *error) {
    basin_descent *d = r->d;
    basin_descent_result *result = r->result;
    size_t row = (size_t)d->energy.parts * (size_t)d->samples, steps = (size_t)d->spec.steps;
    *result = (basin_descent_result){.parts = d->energy.parts, .samples = d->samples};
    result->energy = calloc((steps + 1) * row + 1, sizeof *result->energy);
    result->change = calloc(steps + 1, sizeof *result->change);
    r->alpha = calloc((size_t)d->samples + 1, sizeof *r->alpha);
    r->after = calloc(row + 1, sizeof *r->after);
    if (!result->energy || !result->change || !r->alpha || !r->after)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the trace of a descent");
    basin_status status = basin_tensor_new(&result->x, BASIN_F64, basin_expr_shape(d->x), error);
    if (!status) status = basin_tensor_new(&result->g, BASIN_F64, basin_expr_shape(d->g), error);
    if (!status) status = basin_tensor_convert(&result->x, x, error);
    return status ? status : alloc_momentum(r, error);
}

basin_status basin_descent_run(basin_descent *descent, basin_descent_result *result,
                               const basin_tensor *x, basin_error *error) {
    char a[BASIN_SHAPE_TEXT], b[BASIN_SHAPE_TEXT];
    run r = {.d = descent, .result = result};
    *result = (basin_descent_result){0};
    if (!basin_shape_equal(x->shape, basin_expr_shape(descent->x)))
        return basin_fail(error, BASIN_BAD_SHAPE, "a descent of tokens %s was given %s",
                          basin_shape_print(a, basin_expr_shape(descent->x)),
                          basin_shape_print(b, x->shape));
    basin_status status = alloc_result(&r, x, error);
    if (!status) status = run_steps(&r, error);
    if (!status) status = read_end(&r, error);
    free(r.alpha);
    free(r.after);
    free(r.last);
    free(r.lead);
    basin_tensor_free(&r.ahead);
    if (status) basin_descent_result_free(result);
    return status;
}

void basin_descent_result_free(basin_descent_result *result) {
    free(result->energy);
    free(result->change);
    basin_tensor_free(&result->x);
    basin_tensor_free(&result->g);
    *result = (basin_descent_result){0};
}

double basin_descent_total(const basin_descent_result *result, int step) {
    double total = 0;
    int64_t row = result->parts * result->samples;
    for (int64_t i = 0; i < row; i++) total += result->energy[step * row + i];
    return total;
}
