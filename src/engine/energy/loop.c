/* The one loop of descents, over tokens or the layers of a network. A run of its plan moves the
 * tokens of those samples whose last step was accepted to where it led, measures them there, and
 * proposes the next step:
 *
 *     x <- accept ? candidate : x;   candidate <- step(x);   energies at x, change of g
 *
 * so that a step can be tried again from the same tokens with another size, samples can stay where
 * they are, and nothing but energies leaves the backend. Where nobody asks between two steps, and
 * every step is taken, a second plan takes several at once, which agree to rounding. */

#include "base/shape.h"
#include "base/sort.h"
#include "base/try.h"
#include "engine/energy/energy.h"
#include "engine/expr/graph.h"

/* Steps of the second plan: where samples are the first axis of everything, energies of all steps
 * are computed at once, as those of more samples, and more steps pay: as many as leave few over. */
enum { STRIDE = 4, STRIDE_STACKED = 15, STACKED_SAMPLES = 4 };

/* Several steps in one plan: energies before each, and its change of g. */
typedef struct stride {
    basin_plan *plan; /* NULL: there is none */
    int steps;
    bool stacked;
    basin_pace pace[STRIDE_STACKED]; /* inputs */
    double alpha[STRIDE_STACKED];    /* what was written there last, */
    bool written;                    /* if it was */
    basin_expr change[STRIDE];       /* stacked: one for all, [steps] */
    basin_expr *term; /* [steps, terms]; stacked: [terms], each [steps + 1, samples] */
    double *read;     /* [steps + 1, samples] of a stacked one */
} stride;

struct basin_descent {
    basin_store *store;
    basin_plan *plan;
    basin_stop stop;
    int steps, count, terms, first;
    double alpha;
    double *schedule; /* [steps] the size of each step; NULL: alpha for all */
    stride stride;
    bool tries; /* energies of candidates are known: for the guard and momentum */
    bool noise;
    int64_t samples;
    basin_shape sample;        /* the shape of an energy */
    basin_pace pace;           /* inputs */
    basin_expr accept, lead;   /* inputs [samples]; lead: share of the last move, or NULL */
    basin_expr change, move;   /* [], [samples]; move NULL without `until` */
    basin_expr *x, *candidate; /* [count] states */
    basin_expr *last;          /* [count] states: tokens before the last step; for momentum */
    basin_expr *g;             /* [count] at x */
    basin_expr *term, *after;  /* [terms] at x, of candidates */
    basin_expr *all;           /* the above in one block */
};

/* ---- making ---- */

basin_expr basin_per_sample(basin_expr numbers, basin_shape tokens) {
    basin_shape shape = basin_expr_shape(numbers);
    if (!shape.rank) return numbers;
    for (; shape.rank < tokens.rank; shape.rank++) shape.dim[shape.rank] = 1;
    return basin_reshape(numbers, shape);
}

/* "descent.WHAT3[2, 4]": of one shape there is one, for all descents on a store. */
static basin_expr state(basin_graph *graph, const char *what, int i, basin_shape shape) {
    char name[BASIN_SHAPE_TEXT + 64];
    snprintf(name, sizeof name, "descent.%s%d%s", what, i, basin_shape_text(shape));
    return basin_state(graph, name, shape);
}

static basin_expr input(basin_graph *graph, const char *what, basin_shape shape) {
    char name[BASIN_SHAPE_TEXT + 64];
    snprintf(name, sizeof name, "descent.%s%s", what, basin_shape_text(shape));
    return basin_input(graph, name, shape);
}

/* What a sample is must be the same for every term, or their sum would mean nothing. */
static void check_terms(const basin_descent *d, const basin_dynamics *dynamics) {
    for (int p = 1; p < d->terms && d->term[p]; p++)
        if (!basin_shape_equal(basin_expr_shape(d->term[p]), d->sample))
            basin_graph_fail(basin_expr_graph(d->x[0]), BASIN_BAD_SHAPE,
                             "an energy's term '%s' has shape %s, term '%s' has %s",
                             dynamics->name[p], basin_shape_text(basin_expr_shape(d->term[p])),
                             dynamics->name[0], basin_shape_text(d->sample));
}

/* The largest move of a token of each sample, in shares of its length, squared. */
static basin_expr relative_move(basin_expr next, basin_expr from, int samples) {
    basin_expr moved = basin_sum(basin_square(basin_sub(next, from)), -1, 1);
    basin_expr length = basin_offset(basin_sum(basin_square(next), -1, 1), 1e-30);
    basin_expr share = basin_div(moved, length);
    int rest = basin_expr_shape(share).rank - samples;
    return rest > 0 ? basin_max(share, samples, rest) : share;
}

static basin_expr larger(basin_expr a, basin_expr b) { return a ? basin_maximum(a, b) : b; }

/* Tokens of one run: `now` at its start, `from` at the start of the step, `next` at its end; each
 * [count]. */
typedef struct ways {
    basin_expr *now, *from, *next, *g, *next_g;
} ways;

static void build_tokens(basin_descent *d, ways *w) {
    for (int i = 0; i < d->count; i++) {
        basin_shape shape = basin_expr_shape(d->x[i]);
        basin_expr accept = basin_broadcast_to(basin_per_sample(d->accept, shape), shape);
        w->from[i] = w->now[i] = basin_where(accept, d->candidate[i], d->x[i]);
        if (!d->lead) continue;
        basin_expr last = basin_where(accept, d->x[i], d->last[i]);
        basin_expr ahead = basin_mul(basin_per_sample(d->lead, shape), basin_sub(w->now[i], last));
        w->from[i] = basin_add(w->now[i], ahead);
    }
}

/* The largest change of an element of g. */
static basin_expr change_of(const basin_descent *d, const ways *w) {
    basin_expr change = NULL;
    for (int i = 0; i < d->count; i++)
        change = larger(change, basin_max_all(basin_abs(basin_sub(w->next_g[i], w->g[i]))));
    return change;
}

static void build(basin_descent *d, ways *w, const basin_dynamics *m) {
    build_tokens(d, w);
    m->activate(m->context, d->g, w->now);
    m->energies(m->context, d->term, w->now, d->g);
    if (d->lead) m->activate(m->context, w->g, w->from);
    for (int i = 0; i < d->count && !d->lead; i++) w->g[i] = d->g[i];
    m->step(m->context, w->next, w->from, w->g, &d->pace);
    m->activate(m->context, w->next_g, w->next);
    if (d->tries) m->energies(m->context, d->after, w->next, w->next_g);
    d->change = change_of(d, w);
    for (int i = 0; i < d->count && d->stop.until > 0; i++)
        d->move = larger(d->move, relative_move(w->next[i], w->from[i], d->sample.rank));
}

static basin_status make_plan(basin_descent *d, const ways *w, basin_error *error) {
    int outputs = 0, updates = 0;
    BASIN_TRY(basin_graph_check(basin_expr_graph(d->x[0]), error));
    BASIN_SCRATCH(basin_expr, output, d->count + 2 * d->terms + 2, "a descent", error);
    BASIN_SCRATCH(basin_update, update, 3 * d->count, "a descent", error);
    for (int p = 0; p < d->terms; p++) {
        output[outputs++] = d->term[p];
        if (d->tries) output[outputs++] = d->after[p];
    }
    for (int i = 0; i < d->count; i++) {
        output[outputs++] = d->g[i];
        update[updates++] = (basin_update){d->x[i], w->now[i]};
        update[updates++] = (basin_update){d->candidate[i], w->next[i]};
        if (d->lead) {
            basin_shape shape = basin_expr_shape(d->x[i]);
            basin_expr accept = basin_broadcast_to(basin_per_sample(d->accept, shape), shape);
            update[updates++] =
                (basin_update){d->last[i], basin_where(accept, d->x[i], d->last[i])};
        }
    }
    output[outputs++] = d->change;
    if (d->move) output[outputs++] = d->move;
    basin_plan_spec spec = {
        .output = output, .outputs = outputs, .update = update, .updates = updates};
    return basin_plan_new(&d->plan, d->store, &spec, error);
}

/* ---- several steps at once ---- */

/* Whether the second plan reads only what the loop writes: callers write only to the first. */
static bool reads_no_other(const basin_graph *graph) {
    for (size_t i = 0; i < graph->nodes; i++)
        if (graph->node[i]->op == BASIN_OP_INPUT &&
            strncmp(graph->node[i]->name, "descent.", strlen("descent.")) != 0)
            return false;
    return true;
}

/* The pace of step k of a stride. */
static basin_pace pace_of(basin_graph *graph, int k, bool noise) {
    char alpha[32], t[32], seed[32];
    snprintf(alpha, sizeof alpha, "descent.alpha.%d", k);
    snprintf(t, sizeof t, "descent.step.%d", k);
    snprintf(seed, sizeof seed, "descent.seed.%d", k);
    return (basin_pace){.alpha = basin_input(graph, alpha, BASIN_SCALAR),
                        .t = basin_input(graph, t, BASIN_SCALAR),
                        .seed = noise ? basin_index(graph, seed, BASIN_SHAPE(2)) : NULL};
}

/* x, g, next_g [count] go from step to step. Draws: the streams after `streams`. */
static void build_stride(basin_descent *d, ways *w, uint32_t streams, const basin_dynamics *m) {
    basin_graph *graph = basin_expr_graph(d->x[0]);
    memcpy(w->now, d->x, (size_t)d->count * sizeof *w->now);
    m->activate(m->context, w->g, w->now);
    for (int k = 0; k < d->stride.steps; k++) {
        d->stride.pace[k] = pace_of(graph, k, d->noise);
        m->energies(m->context, d->stride.term + k * d->terms, w->now, w->g);
        graph->streams = streams;
        m->step(m->context, w->next, w->now, w->g, &d->stride.pace[k]);
        m->activate(m->context, w->next_g, w->next);
        d->stride.change[k] = change_of(d, w);
        memcpy(w->now, w->next, (size_t)d->count * sizeof *w->now);
        memcpy(w->g, w->next_g, (size_t)d->count * sizeof *w->g);
    }
}

/* The largest change of an element of g [steps + 1, samples, ..] in each step. */
static basin_expr stacked_change(const basin_descent *d, const ways *w) {
    basin_expr change = NULL;
    int steps = d->stride.steps;
    for (int i = 0; i < d->count; i++) {
        basin_expr g = w->g[i];
        int64_t length = d->samples * steps, row = g ? basin_shape_count(basin_expr_shape(g)) : 0;
        basin_expr moved = basin_abs(
            basin_sub(basin_slice(g, 0, d->samples, length), basin_slice(g, 0, 0, length)));
        moved = basin_reshape(moved, BASIN_SHAPE(steps, row / (steps + 1)));
        change = larger(change, basin_max(moved, 1, 1));
    }
    return change;
}

/* The same with x [steps + 1, samples, ..] of all steps, whose energies are then computed at once.
 * `at` has room for (steps + 1) * count expressions. */
static void build_stacked(basin_descent *d, ways *w, basin_expr *at, uint32_t streams,
                          const basin_dynamics *m) {
    basin_graph *graph = basin_expr_graph(d->x[0]);
    int steps = d->stride.steps;
    memcpy(w->now, d->x, (size_t)d->count * sizeof *w->now);
    for (int k = 0; k <= steps; k++) {
        for (int i = 0; i < d->count; i++) at[i * (steps + 1) + k] = w->now[i];
        if (k == steps) break;
        d->stride.pace[k] = pace_of(graph, k, d->noise);
        m->activate(m->context, w->g, w->now);
        graph->streams = streams;
        m->step(m->context, w->next, w->now, w->g, &d->stride.pace[k]);
        memcpy(w->now, w->next, (size_t)d->count * sizeof *w->now);
    }
    for (int i = 0; i < d->count; i++)
        w->from[i] = basin_concat(at + i * (steps + 1), steps + 1, 0);
    m->activate(m->context, w->g, w->from);
    m->energies(m->context, d->stride.term, w->from, w->g);
    d->stride.change[0] = stacked_change(d, w);
}

static basin_status make_stride(basin_descent *d, ways *w, uint32_t streams,
                                const basin_dynamics *m, basin_error *error) {
    basin_graph *graph = basin_expr_graph(d->x[0]);
    const basin_stop *stop = &d->stop;
    stride *s = &d->stride;
    if (d->steps < 2 * STRIDE || d->tries || stop->until > 0 || stop->tolerance > 0 ||
        stop->observe || !reads_no_other(graph))
        return BASIN_OK;
    s->stacked = m->independent && d->samples <= STACKED_SAMPLES;
    s->steps = s->stacked ? d->steps / (int)basin_int_ceil(d->steps, STRIDE_STACKED) : STRIDE;
    int terms = s->stacked ? d->terms : s->steps * d->terms, changes = s->stacked ? 1 : s->steps;
    BASIN_TRY(BASIN_NEW(&s->term, terms, "a descent", error));
    BASIN_TRY(BASIN_NEW(&s->read, (size_t)(s->steps + 1) * (size_t)d->samples, "a descent", error));
    BASIN_SCRATCH(basin_expr, output, terms + changes, "a descent", error);
    BASIN_SCRATCH(basin_expr, at, (s->steps + 1) * d->count, "a descent", error);
    BASIN_SCRATCH(basin_update, update, d->count, "a descent", error);
    if (s->stacked)
        build_stacked(d, w, at, streams, m);
    else
        build_stride(d, w, streams, m);
    BASIN_TRY(basin_graph_check(graph, error));
    memcpy(output, s->term, (size_t)terms * sizeof *output);
    memcpy(output + terms, s->change, (size_t)changes * sizeof *output);
    for (int i = 0; i < d->count; i++) update[i] = (basin_update){d->x[i], w->now[i]};
    basin_plan_spec spec = {
        .output = output, .outputs = terms + changes, .update = update, .updates = d->count};
    return basin_plan_new(&s->plan, d->store, &spec, error);
}

/* ---- all of it ---- */

/* How a descent runs: what basin_descent_set may change. */
static basin_status set(basin_descent *d, int steps, double alpha, const double *schedule,
                        const basin_stop *stop, basin_error *error) {
    BASIN_FREE_AT_EXIT double *copy = NULL;
    if (schedule) BASIN_TRY(BASIN_NEW(&copy, steps > 0 ? steps : 0, "a descent", error));
    for (int t = -1; t < (schedule ? steps : 0); t++) {
        double size = t < 0 ? alpha : (copy[t] = schedule[t]);
        if (steps < 0 || !isfinite(size) || size < 0)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "a descent of %d steps of size %g; expected 0 or more, finite", steps,
                              size);
    }
    if (!(stop->tolerance >= 0) || !(stop->until >= 0))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a descent with tolerance %g and until %g; expected none below 0",
                          stop->tolerance, stop->until);
    free(d->schedule);
    d->schedule = copy, copy = NULL;
    d->steps = steps, d->alpha = alpha, d->stop = *stop;
    return BASIN_OK;
}

static const basin_stop plain = {0};

basin_status basin_descent_set(basin_descent *descent, const basin_descent_spec *spec,
                               const basin_stop *stop, basin_error *error) {
    const basin_stop *was = &descent->stop;
    if (!stop) stop = &plain;
    if (stop->guard != was->guard || stop->accelerate != was->accelerate ||
        (stop->until > 0) != (was->until > 0))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a descent made %s guard, %s momentum and %s until cannot change that",
                          was->guard ? "with" : "without", was->accelerate ? "with" : "without",
                          was->until > 0 ? "with" : "without");
    return set(descent, spec->steps, spec->alpha, spec->schedule, stop, error);
}

static basin_status check(const basin_stop *stop, const basin_dynamics *dynamics,
                          basin_error *error) {
    if (stop->guard && dynamics->noise > 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "noise %g together with the guard: noise may raise the energy, which the "
                          "guard forbids",
                          dynamics->noise);
    if (stop->accelerate && dynamics->noise > 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "noise %g together with momentum, which would carry it along",
                          dynamics->noise);
    if (dynamics->terms < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "an energy of %d terms; expected 1 or more",
                          dynamics->terms);
    return BASIN_OK;
}

/* Inputs are [samples], a shape that is taken from the energies. */
static basin_status declare(basin_descent *d, basin_graph *graph, const basin_dynamics *m,
                            basin_error *error) {
    for (int i = 0; i < d->count; i++) {
        d->x[i] = state(graph, "x", i, m->shape[i]);
        d->candidate[i] = state(graph, "candidate", i, m->shape[i]);
        if (d->stop.accelerate) d->last[i] = state(graph, "last", i, m->shape[i]);
    }
    m->activate(m->context, d->g, d->x);
    m->energies(m->context, d->term, d->x, d->g);
    BASIN_TRY(basin_graph_check(graph, error));
    d->sample = basin_expr_shape(d->term[0]);
    d->samples = basin_shape_count(d->sample);
    check_terms(d, m);
    if (d->stop.until > 0 && d->sample.rank >= m->shape[0].rank)
        basin_graph_fail(graph, BASIN_BAD_SHAPE,
                         "a descent until tokens stay needs energies of fewer axes than tokens");
    d->accept = input(graph, "accept", d->sample);
    d->pace.alpha = input(graph, "alpha", d->sample);
    d->pace.t = basin_input(graph, "descent.step", BASIN_SCALAR);
    if (d->stop.accelerate) d->lead = input(graph, "lead", d->sample);
    if (d->noise) d->pace.seed = basin_index(graph, "descent.seed", BASIN_SHAPE(2));
    return BASIN_OK;
}

static basin_status fill(basin_descent *d, basin_graph *graph, const basin_dynamics *dynamics,
                         basin_error *error) {
    size_t count = (size_t)d->count, terms = (size_t)d->terms;
    BASIN_TRY(BASIN_NEW(&d->all, 4 * count + 2 * terms, "a descent", error));
    BASIN_SCRATCH(basin_expr, work, 5 * count, "a descent", error);
    d->x = d->all, d->candidate = d->x + count, d->last = d->candidate + count;
    d->g = d->last + count, d->term = d->g + count, d->after = d->term + terms;
    ways w = {work, work + count, work + 2 * count, work + 3 * count, work + 4 * count};
    BASIN_TRY(declare(d, graph, dynamics, error));
    uint32_t streams = graph->streams;
    build(d, &w, dynamics);
    BASIN_TRY(make_plan(d, &w, error));
    return make_stride(d, &w, streams, dynamics, error);
}

basin_status basin_loop_new(basin_descent **descent, basin_store *store, basin_graph *graph,
                            const basin_dynamics *dynamics, int steps, double alpha,
                            const basin_stop *stop, basin_error *error) {
    if (!stop) stop = &plain;
    *descent = NULL;
    BASIN_TRY(check(stop, dynamics, error));
    basin_descent *d;
    BASIN_TRY(BASIN_NEW(&d, 1, "a descent", error));
    d->store = store;
    d->count = dynamics->count, d->terms = dynamics->terms, d->first = dynamics->first;
    d->noise = dynamics->noise > 0, d->tries = stop->guard || stop->accelerate;
    BASIN_TRY_OR(set(d, steps, alpha, dynamics->schedule, stop, error), basin_descent_free(d));
    BASIN_TRY_OR(fill(d, graph, dynamics, error), basin_descent_free(d));
    *descent = d;
    return BASIN_OK;
}

void basin_descent_free(basin_descent *descent) {
    if (!descent) return;
    basin_plan_free(descent->stride.plan);
    basin_plan_free(descent->plan);
    BASIN_FREE(descent->stride.term, descent->stride.read, descent->schedule, descent->all,
               descent);
}

basin_plan *basin_descent_plan(basin_descent *descent) { return descent->plan; }
basin_expr basin_descent_tokens(const basin_descent *descent, int i) {
    return i >= 0 && i < descent->count ? descent->x[i] : NULL;
}

/* ---- running ---- */

/* One run: numbers per sample. */
typedef struct run {
    basin_descent *d;
    basin_descent_result *result;
    double *alpha, *accept, *lead; /* inputs of the next run of the plan */
    double *age;                   /* steps since a sample's momentum began anew */
    double *move;                  /* relative, squared */
    double *after;                 /* [terms, samples] of candidates */
    bool *done;                    /* converged by `until` */
} run;

static basin_status write_numbers(basin_plan *plan, basin_expr to, double *number,
                                  basin_error *error) {
    basin_tensor view = basin_tensor_borrow(number, BASIN_F64, basin_expr_shape(to));
    return basin_plan_write(plan, to, &view, error);
}

static basin_status read_numbers(basin_plan *plan, double *number, basin_expr from,
                                 basin_error *error) {
    basin_tensor view = basin_tensor_borrow(number, BASIN_F64, basin_expr_shape(from));
    return basin_plan_read(&view, plan, from, error);
}

/* energy [terms, samples] */
static basin_status read_terms(run *r, basin_plan *plan, double *energy, const basin_expr *term,
                               basin_error *error) {
    for (int p = 0; p < r->d->terms; p++)
        BASIN_TRY(read_numbers(plan, energy + p * r->d->samples, term[p], error));
    return BASIN_OK;
}

/* Runs the plan: accepted candidates become tokens, and the next ones are made. */
static basin_status propose(run *r, basin_error *error) {
    basin_descent *d = r->d;
    BASIN_TRY(write_numbers(d->plan, d->pace.alpha, r->alpha, error));
    BASIN_TRY(write_numbers(d->plan, d->accept, r->accept, error));
    for (int64_t i = 0; i < d->samples; i++)
        r->lead[i] = r->age[i] > 0 ? r->age[i] / (r->age[i] + 3) : 0;
    if (d->lead) BASIN_TRY(write_numbers(d->plan, d->lead, r->lead, error));
    BASIN_TRY(basin_plan_run(d->plan, error));
    memset(r->accept, 0, (size_t)d->samples * sizeof *r->accept);
    if (d->move) BASIN_TRY(read_numbers(d->plan, r->move, d->move, error));
    return d->tries ? read_terms(r, d->plan, r->after, d->after, error) : BASIN_OK;
}

static double sample_total(const basin_descent *d, const double *energy, int64_t sample) {
    double total = 0;
    for (int p = d->first; p < d->terms; p++) total += energy[p * d->samples + sample];
    return total;
}

static bool has_risen(const run *r, const double *before, int64_t sample) {
    double after = sample_total(r->d, r->after, sample);
    return !isfinite(after) || !(after <= sample_total(r->d, before, sample));
}

/* Where a sample's energy would rise, a step without momentum in its place. */
static basin_status drop_momentum(run *r, const double *before, basin_error *error) {
    bool risen = false;
    for (int64_t i = 0; i < r->d->samples; i++) {
        if (r->done[i] || !has_risen(r, before, i) || r->age[i] == 0) continue;
        risen = true;
        r->age[i] = 0;
    }
    return risen ? propose(r, error) : BASIN_OK;
}

/* Halves steps of samples whose energy would rise; after 60 halvings the sample stays. */
static basin_status guard(run *r, const double *before, basin_error *error) {
    enum { MAX_HALVINGS = 60 };
    for (int round = 0; round <= MAX_HALVINGS; round++) {
        bool risen = false;
        for (int64_t i = 0; i < r->d->samples; i++) {
            if (r->done[i] || r->alpha[i] == 0 || !has_risen(r, before, i)) continue;
            risen = true;
            r->alpha[i] = round < MAX_HALVINGS ? r->alpha[i] / 2 : 0;
            r->result->halvings++;
        }
        if (!risen) break;
        BASIN_TRY(propose(r, error));
    }
    return BASIN_OK;
}

/* Whether the sample takes the step that is proposed. */
static bool accepts(const run *r, const double *before, int64_t sample) {
    const basin_stop *stop = &r->d->stop;
    if (r->done[sample] || (stop->guard && r->alpha[sample] == 0)) return false;
    return !(stop->accelerate && stop->until > 0 && has_risen(r, before, sample));
}

/* Step t from the candidates. Energies of a sample that stays are kept: same rounding. */
static basin_status take_step(run *r, int t, double *before, basin_error *error) {
    basin_descent *d = r->d;
    const basin_stop *stop = &d->stop;
    bool moving = false;
    if (stop->accelerate) BASIN_TRY(drop_momentum(r, before, error));
    if (stop->guard) BASIN_TRY(guard(r, before, error));
    BASIN_TRY(read_numbers(d->plan, r->result->change + t, d->change, error));
    for (int64_t i = 0; i < d->samples; i++) {
        bool taken = accepts(r, before, i);
        r->accept[i] = taken;
        r->result->taken[i] += taken;
        r->age[i]++;
        for (int p = 0; p < d->terms && d->tries; p++)
            before[(d->terms + p) * d->samples + i] =
                (taken ? r->after : before)[p * d->samples + i];
        if (stop->until > 0 && (!taken || r->move[i] <= stop->until * stop->until))
            r->done[i] = true;
        moving = moving || !r->done[i];
    }
    r->result->converged = (stop->tolerance > 0 && r->result->change[t] <= stop->tolerance) ||
                           (stop->until > 0 && !moving);
    r->result->steps = t + 1;
    return BASIN_OK;
}

/* The number of the step, and what its noise is drawn from. */
static basin_status write_step(const basin_descent *d, basin_plan *plan, const basin_pace *pace,
                               int t, basin_error *error) {
    double number = t;
    BASIN_TRY(write_numbers(plan, pace->t, &number, error));
    if (!d->noise) return BASIN_OK;
    uint64_t mixed = d->stop.seed + (uint64_t)t * 0x9e3779b97f4a7c15u;
    uint32_t word[2] = {(uint32_t)mixed, (uint32_t)(mixed >> 32)};
    basin_tensor seed = basin_tensor_borrow(word, BASIN_I32, BASIN_SHAPE(2));
    return basin_plan_write(plan, pace->seed, &seed, error);
}

static double alpha_at(const basin_descent *d, int t) {
    return d->schedule && d->steps > 0 ? d->schedule[basin_int_min(t, d->steps - 1)] : d->alpha;
}

/* Energies and changes of the steps from t on. */
static basin_status read_stride(run *r, int t, basin_error *error) {
    const basin_descent *d = r->d;
    const stride *s = &d->stride;
    size_t samples = (size_t)d->samples, row = (size_t)d->terms * samples;
    double *before = r->result->energy + (size_t)t * row, *change = r->result->change + t;
    for (int k = 0; k < s->steps && !s->stacked; k++) {
        BASIN_TRY(read_terms(r, s->plan, before + (size_t)k * row, s->term + k * d->terms, error));
        BASIN_TRY(read_numbers(s->plan, change + k, s->change[k], error));
    }
    if (!s->stacked) return BASIN_OK;
    for (int p = 0; p < d->terms; p++) {
        BASIN_TRY(read_numbers(s->plan, s->read, s->term[p], error));
        for (size_t k = 0; k < (size_t)s->steps; k++)
            memcpy(before + k * row + (size_t)p * samples, s->read + k * samples,
                   samples * sizeof *before);
    }
    return read_numbers(s->plan, change, s->change[0], error);
}

/* Steps from t on, all of which are taken. */
static basin_status take_stride(run *r, int t, basin_error *error) {
    basin_descent *d = r->d;
    basin_plan *plan = d->stride.plan;
    for (int k = 0; k < d->stride.steps; k++) {
        double alpha = alpha_at(d, t + k), *last = &d->stride.alpha[k];
        if (!d->stride.written || alpha != *last)
            BASIN_TRY(write_numbers(plan, d->stride.pace[k].alpha, &alpha, error));
        *last = alpha;
        BASIN_TRY(write_step(d, plan, &d->stride.pace[k], t + k, error));
    }
    d->stride.written = true;
    BASIN_TRY(basin_plan_run(plan, error));
    BASIN_TRY(read_stride(r, t, error));
    for (int64_t i = 0; i < d->samples; i++) r->result->taken[i] += d->stride.steps;
    r->result->steps = t + d->stride.steps;
    return BASIN_OK;
}

static basin_status observe(run *r, int t, const double *energy, bool *stop, basin_error *error) {
    basin_descent *d = r->d;
    basin_descent_state now = {.descent = d,
                               .step = t,
                               .terms = d->terms,
                               .samples = d->samples,
                               .energy = energy,
                               .change = t > 0 ? r->result->change[t - 1] : 0,
                               .stop = stop};
    return d->stop.observe ? d->stop.observe(d->stop.context, &now, error) : BASIN_OK;
}

static basin_status run_steps(run *r, basin_error *error) {
    basin_descent *d = r->d;
    size_t row = (size_t)d->terms * (size_t)d->samples;
    bool stop = false, asks = d->stop.observe || d->stop.tolerance > 0;
    int t = 0;
    for (; d->stride.plan && !asks && t + d->stride.steps <= d->steps; t += d->stride.steps)
        BASIN_TRY(take_stride(r, t, error));
    for (;; t++) {
        double *before = r->result->energy + (size_t)t * row;
        for (int64_t i = 0; i < d->samples; i++) r->alpha[i] = alpha_at(d, t);
        BASIN_TRY(write_step(d, d->plan, &d->pace, t, error));
        BASIN_TRY(propose(r, error));
        if (t == 0 || !d->tries) BASIN_TRY(read_terms(r, d->plan, before, d->term, error));
        BASIN_TRY(observe(r, t, before, &stop, error));
        if (stop || r->result->converged || t == d->steps) return BASIN_OK;
        BASIN_TRY(take_step(r, t, before, error));
    }
}

static basin_status read_end(run *r, basin_error *error) {
    basin_descent *d = r->d;
    for (int i = 0; i < d->count; i++) {
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor x = {0};
        BASIN_TRY(basin_store_get(&x, d->store, basin_expr_name(d->x[i]), error));
        BASIN_TRY(basin_tensor_convert(&r->result->x[i], &x, error));
        BASIN_TRY(basin_plan_read(&r->result->g[i], d->plan, d->g[i], error));
    }
    return BASIN_OK;
}

static basin_status alloc_result(run *r, basin_error *error) {
    basin_descent *d = r->d;
    basin_descent_result *result = r->result;
    size_t row, numbers, count = (size_t)d->samples;
    if (!basin_size_multiply(&row, (size_t)d->terms, count) ||
        !basin_size_multiply(&numbers, row, (size_t)d->steps + 1))
        return basin_fail_memory(error, "the trace of a descent");
    BASIN_TRY(BASIN_NEW(&result->energy, numbers, "the trace of a descent", error));
    BASIN_TRY(BASIN_NEW(&result->change, d->steps, "the trace of a descent", error));
    BASIN_TRY(BASIN_NEW(&result->taken, count, "the trace of a descent", error));
    BASIN_TRY(BASIN_NEW(&result->x, d->count, "the end of a descent", error));
    BASIN_TRY(BASIN_NEW(&result->g, d->count, "the end of a descent", error));
    result->count = d->count;
    for (int i = 0; i < d->count; i++) {
        BASIN_TRY(basin_tensor_new(&result->x[i], BASIN_F64, basin_expr_shape(d->x[i]), error));
        BASIN_TRY(basin_tensor_new(&result->g[i], BASIN_F64, basin_expr_shape(d->g[i]), error));
    }
    return BASIN_OK;
}

static basin_status write_tokens(basin_descent *d, const basin_tensor *x, basin_error *error) {
    for (int i = 0; i < d->count && x; i++) {
        basin_shape shape = basin_expr_shape(d->x[i]);
        if (!basin_shape_equal(x[i].shape, shape))
            return basin_fail(error, BASIN_BAD_SHAPE, "a descent of tokens %s was given %s",
                              basin_shape_text(shape), basin_shape_text(x[i].shape));
        BASIN_TRY(basin_store_write(d->store, basin_expr_name(d->x[i]), &x[i], error));
    }
    for (int i = 0; i < d->count && d->lead;
         i++) { /* no move yet; what was there may be no number */
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor start = {0};
        BASIN_TRY(basin_store_get(&start, d->store, basin_expr_name(d->x[i]), error));
        BASIN_TRY(basin_store_write(d->store, basin_expr_name(d->last[i]), &start, error));
    }
    return BASIN_OK;
}

basin_status basin_descent_run(basin_descent *descent, basin_descent_result *result,
                               const basin_tensor *x, basin_error *error) {
    size_t count = (size_t)descent->samples;
    *result = (basin_descent_result){
        .terms = descent->terms, .samples = descent->samples, .first = descent->first};
    BASIN_SCRATCH(double, number, (5 + (size_t)descent->terms) * count, "a descent", error);
    BASIN_SCRATCH(bool, done, count, "a descent", error);
    run r = {.d = descent,
             .result = result,
             .alpha = number,
             .accept = number + count,
             .lead = number + 2 * count,
             .age = number + 3 * count,
             .move = number + 4 * count,
             .after = number + 5 * count,
             .done = done};
    basin_status status = alloc_result(&r, error);
    if (!status) status = write_tokens(descent, x, error);
    if (!status) status = run_steps(&r, error);
    if (!status) status = read_end(&r, error);
    if (status) basin_descent_result_free(result);
    return status;
}

void basin_descent_result_free(basin_descent_result *result) {
    for (int i = 0; i < result->count; i++) {
        basin_tensor_free(&result->x[i]);
        basin_tensor_free(&result->g[i]);
    }
    BASIN_FREE(result->x, result->g, result->energy, result->change, result->taken);
    *result = (basin_descent_result){0};
}

double basin_descent_total(const basin_descent_result *result, int step) {
    double total = 0;
    int64_t row = result->terms * result->samples;
    for (int64_t i = result->first * result->samples; i < row; i++)
        total += result->energy[step * row + i];
    return total;
}
