/* Descent of tokens: x <- x - alpha dE/dg (the paper's equation 6 in discrete time), a step at a
 * time. The same step is unrolled into an expression here, and run by the loop of loop.c. */
#include "base/shape.h"
#include "base/sized.h"
#include "base/try.h"
#include "engine/energy/energy.h"
#include "engine/expr/graph.h"

/* x + alpha move(force), then where it lands. */
static basin_expr take_turn(const basin_energy *energy, basin_expr x, basin_expr g,
                            const basin_substep *turn, const basin_pace *pace,
                            const basin_descent_spec *spec, bool last) {
    basin_expr alpha = basin_per_sample(pace->alpha, basin_expr_shape(x));
    basin_expr force = basin_energy_force_of(energy, g, turn->terms);
    if (turn->move) force = turn->move(turn->context, force, x, pace->t);
    basin_expr next = basin_add(x, basin_mul(alpha, force));
    if (last && spec->noise > 0) {
        basin_expr draw = basin_scale(basin_normal(pace->seed, basin_expr_shape(x)), spec->noise);
        next = basin_add(next, basin_mul(basin_sqrt(alpha), draw));
    }
    return turn->project ? turn->project(turn->context, next, pace->t) : next;
}

/* NULL, or a message, where a turn moved the tokens into another shape. */
static basin_expr check_shape(basin_expr next, basin_expr x, int turn) {
    basin_shape found = basin_expr_shape(next), expected = basin_expr_shape(x);
    if (!next)
        return basin_graph_fail(basin_expr_graph(x), BASIN_BAD_VALUE,
                                "turn %d of a descent gives NULL; expected tokens", turn);
    if (basin_shape_equal(found, expected)) return next;
    return basin_graph_fail(basin_expr_graph(x), BASIN_BAD_SHAPE,
                            "turn %d of a descent gives tokens %s, expected %s", turn,
                            basin_shape_text(found), basin_shape_text(expected));
}

/* One step from x with activations g: all its turns. */
static basin_expr step(const basin_energy *energy, basin_expr x, basin_expr g,
                       const basin_pace *pace, const basin_descent_spec *spec) {
    static const basin_substep whole = {0};
    int turns = spec->substeps > 0 ? spec->substeps : 1;
    for (int i = 0; i < turns && x; i++) {
        const basin_substep *turn = spec->substeps > 0 ? &spec->substep[i] : &whole;
        if (i > 0) g = basin_energy_activation(energy, x);
        x = check_shape(take_turn(energy, x, g, turn, pace, spec, i + 1 == turns), x, i);
    }
    return x;
}

static basin_status check_spec(const basin_descent_spec *spec, const basin_energy *energy,
                               basin_error *error) {
    BASIN_TRY(BASIN_SIZE_CHECK(spec, "basin_descent_spec", error));
    if (!(spec->noise >= 0))
        return basin_fail(error, BASIN_BAD_VALUE, "a descent with noise %g; expected none below 0",
                          spec->noise);
    if (spec->substeps < 0 || (spec->substeps > 0 && !spec->substep))
        return basin_fail(error, BASIN_BAD_VALUE, "a descent of %d turns without a list of them",
                          spec->substeps);
    for (int i = 0; i < spec->substeps; i++)
        if (energy->terms < 32 && spec->substep[i].terms >> energy->terms)
            return basin_fail(
                error, BASIN_BAD_VALUE,
                "turn %d of a descent takes the terms of bits 0x%x; the energy has %d terms", i,
                spec->substep[i].terms, energy->terms);
    return BASIN_OK;
}

static void record(const basin_energy *energy, basin_expr g, basin_expr *trace) {
    for (int p = 0; trace && p < energy->terms; p++)
        trace[p] = basin_keep(basin_energy_term(energy, g, p));
}

basin_expr basin_descend(const basin_energy *energy, basin_expr x, const basin_descent_spec *spec,
                         basin_expr *trace) {
    if (spec->implicit.on) return basin_descend_implicit(energy, x, spec, trace);
    basin_graph *graph = basin_expr_graph(x);
    basin_pace pace = {.seed = spec->seed};
    basin_error error = {0};
    if (check_spec(spec, energy, &error))
        return basin_graph_fail(graph, error.status, "%s", error.text);
    if (spec->noise > 0 && !spec->seed)
        return basin_graph_fail(graph, BASIN_BAD_VALUE, "a descent with noise needs a seed");
    for (int t = 0; t < spec->steps; t++) {
        if (spec->recompute) basin_recompute_begin(graph);
        basin_expr g = basin_energy_activation(energy, x);
        record(energy, g, trace ? trace + t * energy->terms : NULL);
        pace.t = basin_scalar(graph, t);
        pace.alpha = basin_scalar(graph, spec->schedule ? spec->schedule[t] : spec->alpha);
        x = basin_keep(step(energy, x, g, &pace, spec));
        if (spec->recompute) basin_recompute_end(graph);
    }
    if (trace)
        record(energy, basin_energy_activation(energy, x), trace + spec->steps * energy->terms);
    return x;
}

/* ---- for the loop ---- */

typedef struct descended {
    const basin_energy *energy;
    const basin_descent_spec *spec;
} descended;

static void activate(const void *context, basin_expr *g, const basin_expr *x) {
    *g = x[0] ? basin_energy_activation(((const descended *)context)->energy, x[0]) : NULL;
}

static void energies(const void *context, basin_expr *term, const basin_expr *x,
                     const basin_expr *g) {
    (void)x;
    record(((const descended *)context)->energy, g[0], term);
}

static void take_step(const void *context, basin_expr *next, const basin_expr *x,
                      const basin_expr *g, const basin_pace *pace) {
    const descended *d = context;
    *next = step(d->energy, x[0], g[0], pace, d->spec);
}

basin_status basin_descent_new(basin_descent **descent, basin_store *store,
                               const basin_energy *energy, basin_graph *graph, basin_shape shape,
                               const basin_descent_spec *spec, const basin_stop *stop,
                               basin_error *error) {
    BASIN_FREE_AT_EXIT const char **name = NULL;
    *descent = NULL;
    BASIN_TRY(check_spec(spec, energy, error));
    BASIN_TRY(BASIN_SIZE_CHECK(stop, "basin_stop", error));
    BASIN_TRY(BASIN_NEW(&name, energy->terms > 0 ? energy->terms : 0, "a descent", error));
    for (int p = 0; p < energy->terms; p++) name[p] = energy->term[p].name;
    basin_dynamics dynamics = {.count = 1,
                               .shape = &shape,
                               .terms = energy->terms,
                               .name = name,
                               .noise = spec->noise,
                               .schedule = spec->schedule,
                               .activate = activate,
                               .energies = energies,
                               .step = take_step,
                               .context = &(descended){energy, spec}};
    return basin_loop_new(descent, store, graph, &dynamics, spec->steps, spec->alpha, stop, error);
}

basin_status basin_engine_descend(basin_engine *engine, basin_descent_result *result,
                                  const basin_energy *energy, const basin_tensor *x,
                                  const basin_descent_spec *spec, const basin_stop *stop,
                                  basin_error *error) {
    BASIN_AT_EXIT(basin_engine_close) basin_engine own = {0};
    basin_descent *descent;
    *result = (basin_descent_result){0};
    if (!engine) BASIN_TRY(basin_engine_open(engine = &own, NULL, error));
    BASIN_TRY(basin_descent_new(&descent, engine->store, energy, engine->graph, x->shape, spec,
                                stop, error));
    basin_status status = basin_descent_run(descent, result, x, error);
    basin_descent_free(descent);
    return status;
}
