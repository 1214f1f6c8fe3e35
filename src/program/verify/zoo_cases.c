/* Golden cases of the zoo, a row each: the model, and what the file holds beside energies, end,
 * half the squared distance to "in.target" as the loss, gradients. */
#include <stdio.h>
#include <string.h>

#include "program/verify/specimen.h"

enum { STEPS = 64, TERMS = 2 }; /* of a case, at most */

static int steps_of(basin_case *c) {
    int steps = basin_case_steps(c);
    if (steps <= STEPS) return steps;
    basin_graph_fail(c->graph, BASIN_BAD_VALUE, "%d steps; expected 0 to %d", steps, STEPS);
    return 0;
}

/* Descends from s->x; term p of all steps is trace[t * terms + p]. */
static basin_expr descend(basin_case *c, const basin_specimen *s, basin_expr *trace, int *steps) {
    basin_descent_spec spec = {.steps = *steps = steps_of(c),
                               .alpha = s->alpha,
                               .recompute = c->recompute,
                               .turn = s->turn,
                               .turns = s->turns};
    return s->x && !basin_graph_error(c->graph) ? basin_descend(&s->energy, s->x, &spec, trace)
                                                : NULL;
}

/* Sums of energies over their rows: [steps + 1], of all terms together. */
static basin_expr totals(const basin_expr *trace, int terms, int steps) {
    basin_expr total[STEPS + 1];
    for (int t = 0; t <= steps; t++) {
        total[t] = basin_sum_all(trace[t * terms]);
        for (int p = 1; p < terms; p++)
            total[t] = basin_add(total[t], basin_sum_all(trace[t * terms + p]));
    }
    return basin_stack(total, steps + 1, 0);
}

static void finish(basin_case *c, basin_expr end, basin_expr x) {
    basin_expr target = basin_case_input_add(c, "target", -1);
    basin_expr loss = basin_scale(basin_sum_all(basin_square(basin_sub(end, target))), 0.5);
    basin_case_output_add(c, end, "out.xT");
    basin_case_loss(c, loss, x);
}

/* ---- memories ---- */

static basin_expr run(basin_case *c, basin_specimen *s) {
    basin_expr trace[(STEPS + 1) * TERMS];
    int steps;
    basin_expr end = descend(c, s, trace, &steps);
    if (!end) return NULL;
    basin_case_output_add(c, totals(trace, s->energy.terms, steps), "out.energy");
    finish(c, end, s->start);
    return end;
}

static void plain(basin_case *c, basin_specimen *s) { run(c, s); }

static void with_recall(basin_case *c, basin_specimen *s) {
    basin_case_output_add(c, basin_zoo_hopfield_recall(&s->m.hopfield, s->x), "out.p0");
    run(c, s);
}

/* -log sum exp(-beta |x - xi|^2 / 2) / beta, which the features approach. */
static basin_expr exact_energy(const basin_zoo_features *m, basin_expr x, basin_expr xi) {
    basin_expr gap = basin_sub(basin_expand_dims(x, 1, 1), basin_expand_dims(xi, 0, 1));
    basin_expr z = basin_scale(basin_mul(m->beta, basin_sum(basin_square(gap), -1, 1)), -0.5);
    return basin_neg(basin_sum_all(basin_div(basin_logsumexp(z, -1), m->beta)));
}

static void with_features(basin_case *c, basin_specimen *s) {
    const basin_zoo_features *m = &s->m.features;
    basin_case_output_add(c, m->sum, "out.T");
    basin_case_output_add(c, exact_energy(m, s->x, basin_case_parameter(c, "xi")),
                          "out.exact_energy0");
    run(c, s);
}

static void with_support(basin_case *c, basin_specimen *s) {
    basin_expr end = run(c, s);
    basin_case_output_add(c, basin_zoo_lsr_support(&s->m.lsr, s->x), "out.support0");
    basin_case_output_add(c, basin_zoo_lsr_support(&s->m.lsr, end), "out.supportT");
}

/* Energies [steps + 1, terms]. */
static void by_term(basin_case *c, basin_specimen *s) {
    basin_expr trace[(STEPS + 1) * TERMS];
    int steps, terms = s->energy.terms;
    basin_expr end = descend(c, s, trace, &steps);
    if (!end) return;
    int count = (steps + 1) * terms;
    for (int i = 0; i < count; i++) trace[i] = basin_sum_all(trace[i]);
    basin_expr all = basin_reshape(basin_stack(trace, count, 0), BASIN_SHAPE(steps + 1, terms));
    basin_case_output_add(c, all, "out.energy");
    finish(c, end, s->start);
}

/* ---- NRGPT ---- */

/* The tokens at the end; energies [steps + 1, N, 2], of the network without its factor. */
static basin_expr run_nrgpt(basin_case *c, basin_specimen *s) {
    basin_expr trace[(STEPS + 1) * TERMS];
    int steps;
    basin_expr end = descend(c, s, trace, &steps);
    if (!end) return NULL;
    int count = 2 * (steps + 1);
    for (int i = 1; i < count; i += 2) trace[i] = basin_div(trace[i], s->m.nrgpt.scale);
    basin_expr all = basin_reshape(basin_stack(trace, count, 0),
                                   BASIN_SHAPE(steps + 1, 2, basin_expr_shape(s->x).dim[0]));
    basin_case_output_add(c, basin_transpose(all), "out.energy");
    return end;
}

static basin_expr term_force(const basin_energy *energy, basin_expr g, int term) {
    basin_expr at = basin_variable(g);
    return basin_neg(basin_grad(basin_energy_term(energy, at, term), at));
}

static void with_forces(basin_case *c, basin_specimen *s) {
    basin_expr end = run_nrgpt(c, s);
    if (!end) return;
    basin_expr g = basin_energy_activation(&s->energy, s->x);
    basin_case_output_add(c, g, "out.g0");
    basin_case_output_add(c, term_force(&s->energy, g, 0), "out.force_att0");
    basin_case_output_add(c, basin_div(term_force(&s->energy, g, 1), s->m.nrgpt.scale),
                          "out.force_ff0");
    finish(c, end, s->start);
}

static basin_expr read_index(basin_case *c, const char *name) {
    basin_tensor number = basin_case_integers(c, name, 1);
    if (!number.data) return NULL;
    basin_expr index = basin_index(c->graph, name, number.shape);
    basin_case_write(c, index, &number);
    return index;
}

static void language_model(basin_case *c, basin_specimen *s) {
    basin_expr ids = read_index(c, "ids"), label = read_index(c, "label");
    s->x = basin_add(basin_gather(basin_case_parameter(c, "tok"), ids),
                     basin_case_parameter(c, "pos"));
    basin_expr gain = basin_case_parameter(c, "lnf_w"), bias = basin_case_parameter(c, "lnf_b");
    basin_expr w = basin_case_parameter(c, "head_w"), b = basin_case_parameter(c, "head_b");
    basin_expr end = run_nrgpt(c, s);
    if (!end) return;
    basin_expr zero = basin_full(c->graph, basin_expr_shape(bias), 0);
    basin_expr norm =
        basin_layernorm(end, basin_scalar(c->graph, 1), zero, basin_case_number(c, "eps"));
    basin_expr g = basin_add(basin_mul(norm, gain), bias);
    basin_expr logits = basin_add(basin_matmul_t(g, false, w, true), b);
    basin_expr loss = basin_mean_all(basin_cross_entropy_labels(logits, label));
    basin_case_output_add(c, logits, "out.logits");
    basin_case_loss(c, loss, NULL);
}

/* ---- Hyper-SET ---- */

/* Energies of the tokens after each step, with the gains and without, and forces. */
static void hyperset(basin_case *c, basin_specimen *s) {
    basin_expr x = s->x, row[4 * (STEPS + 1)];
    int steps = steps_of(c);
    if (basin_graph_error(c->graph)) return;
    basin_zoo_hyperset plain_gains = s->m.hyperset;
    plain_gains.gain_w = plain_gains.gain_m = basin_scalar(c->graph, 1);
    basin_energy energy[2] = {s->energy, basin_zoo_hyperset_energy(&plain_gains, NULL)};
    basin_energy exact = basin_zoo_hyperset_energy(&s->exact, NULL);
    for (int t = 0; t <= steps; t++) { /* what descents share is built once */
        basin_descent_spec spec = {.steps = t, .alpha = s->alpha, .turn = s->turn, .turns = 2};
        x = basin_descend(&s->energy, s->x, &spec, NULL);
        for (int i = 0; i < 4; i++) row[4 * t + i] = basin_energy_term(&energy[i / 2], x, i % 2);
    }
    basin_expr all = basin_stack(row, 4 * (steps + 1), 0);
    basin_case_output_add(c, basin_reshape(all, BASIN_SHAPE(steps + 1, 4)), "out.energy");
    basin_case_output_add(c, term_force(&s->energy, s->x, 0), "out.force_att0");
    basin_case_output_add(c, term_force(&s->energy, s->x, 1), "out.force_ff0");
    basin_case_output_add(c, basin_neg(basin_energy_force(&exact, s->x)), "out.true_gradient0");
    finish(c, x, s->start);
}

/* ---- CRATE ---- */

static basin_expr block_parameter(basin_case *c, int block, const char *name) {
    char full[BASIN_CASE_WORD];
    snprintf(full, sizeof full, "block%d.%s", block, name);
    return basin_case_parameter(c, full);
}

static void crate(basin_case *c) {
    basin_expr x = basin_case_input_add(c, "x0", 2), end = x, row[STEPS];
    int blocks = (int)basin_case_number(c, "blocks");
    if (blocks < 1 || blocks > STEPS) {
        basin_graph_fail(c->graph, BASIN_BAD_VALUE, "%d blocks; expected 1 to %d", blocks, STEPS);
        return;
    }
    for (int i = 0; i < blocks; i++) {
        basin_zoo_crate m = {.ln1_w = block_parameter(c, i, "ln1_w"),
                             .ln1_b = block_parameter(c, i, "ln1_b"),
                             .u = block_parameter(c, i, "u"),
                             .out_w = block_parameter(c, i, "out_w"),
                             .out_b = block_parameter(c, i, "out_b"),
                             .ln2_w = block_parameter(c, i, "ln2_w"),
                             .ln2_b = block_parameter(c, i, "ln2_b"),
                             .d = block_parameter(c, i, "d"),
                             .heads = (int64_t)basin_case_number(c, "heads"),
                             .eta = basin_case_number(c, "eta"),
                             .lambda = basin_case_number(c, "lam"),
                             .epsilon = basin_case_number(c, "eps")};
        end = basin_zoo_crate_block(&m, end, &row[i]);
    }
    basin_case_output_add(c, basin_stack(row, blocks, 0), "out.energy");
    finish(c, end, x);
}

/* ---- the Hopfield layer ---- */

/* Heads [H, rows, Y] of rows through a norm and a linear map. */
static basin_expr heads_of(basin_case *c, basin_expr a, const char *norm, char map, int64_t heads) {
    char name[4][BASIN_CASE_WORD];
    snprintf(name[0], BASIN_CASE_WORD, "%s_gain", norm);
    snprintf(name[1], BASIN_CASE_WORD, "%s_bias", norm);
    snprintf(name[2], BASIN_CASE_WORD, "w%c", map);
    snprintf(name[3], BASIN_CASE_WORD, "b%c", map);
    basin_expr p[4];
    for (int i = 0; i < 4; i++) p[i] = basin_case_parameter(c, name[i]);
    basin_expr zero = basin_full(c->graph, basin_expr_shape(p[1]), 0);
    basin_expr g = basin_layernorm(a, basin_scalar(c->graph, 1), zero, basin_case_number(c, "eps"));
    g = basin_add(basin_mul(g, p[0]), p[1]);
    basin_expr y = basin_add(basin_matmul_t(g, false, p[2], true), p[3]);
    int64_t rows = basin_expr_shape(a).dim[0];
    return basin_permute(basin_reshape(y, BASIN_SHAPE(rows, heads, -1)), (int[]){1, 0, 2});
}

static void hopfield_layer(basin_case *c) {
    basin_expr trace[STEPS + 1];
    int64_t heads = (int64_t)basin_case_number(c, "heads");
    basin_expr x = basin_case_input_add(c, "x0", 2), y = basin_case_parameter(c, "y");
    if (!x || !y || heads < 1) return;
    basin_expr q = heads_of(c, x, "state", 'q', heads), k = heads_of(c, y, "stored", 'k', heads);
    basin_expr v = heads_of(c, y, "value", 'v', heads);
    basin_zoo_hopfield m = {.xi = k, .beta = basin_scalar(c->graph, basin_case_number(c, "beta"))};
    basin_energy energy = basin_zoo_hopfield_energy(&m);
    basin_descent_spec spec = {.steps = steps_of(c), .alpha = 1, .recompute = c->recompute};
    q = basin_descend(&energy, q, &spec, trace);
    if (!q) return;
    basin_expr out = basin_einsum("hns,hsd->nhd", basin_zoo_hopfield_recall(&m, q), v);
    out = basin_reshape(out, BASIN_SHAPE(basin_expr_shape(x).dim[0], -1));
    basin_expr end = basin_add(basin_matmul_t(out, false, basin_case_parameter(c, "wo"), true),
                               basin_case_parameter(c, "bo"));
    basin_case_output_add(c, totals(trace, 1, spec.steps), "out.energy");
    finish(c, end, x);
}

/* ---- energy-based transformers ---- */

/* The mean over the steps of the cross entropy; with `stop`, no gradient between steps. */
static basin_expr ebt_loss(const basin_zoo_ebt *m, basin_expr *y, basin_expr label, int steps,
                           bool stop, basin_expr *trace) {
    basin_expr total = NULL;
    basin_substep turn;
    basin_energy energy = basin_zoo_ebt_energy(m, &turn);
    basin_descent_spec spec = {.steps = 1, .alpha = 1, .turn = &turn, .turns = 1};
    for (int t = 0; t < steps; t++) {
        basin_expr p = basin_softmax(stop ? basin_stop_gradient(*y) : *y, -1), both[2];
        *y = basin_descend(&energy, p, &spec, both);
        trace[t] = basin_sum_all(both[0]);
        basin_expr part = basin_mean_all(basin_cross_entropy_labels(*y, label));
        total = total ? basin_add(total, part) : part;
    }
    return basin_scale(total, 1.0 / steps);
}

static void ebt(basin_case *c, basin_specimen *s) {
    basin_expr trace[STEPS], other[STEPS], gradient[7];
    const basin_zoo_ebt *m = &s->m.ebt;
    basin_expr y = s->start, free_y = y, label = read_index(c, "label");
    const basin_expr from[7] = {m->context, m->e, m->w1, m->b1, m->w2, m->alpha, y};
    int steps = steps_of(c);
    if (!y || steps < 1 || basin_graph_error(c->graph)) return;
    basin_expr loss = ebt_loss(m, &y, label, steps, true, trace);
    basin_vjp(gradient, ebt_loss(m, &free_y, label, steps, false, other), NULL, from, 7);
    for (int i = 0; i < 7; i++)
        basin_case_output_add(c, gradient[i], "gradfull.%s", basin_expr_name(from[i]));
    basin_case_output_add(c, y, "out.yT");
    basin_case_output_add(c, basin_stack(trace, steps, 0), "out.energy");
    basin_case_loss(c, loss, NULL);
}

/* ---- fixed points ---- */

/* The fixed point of u - x - dE/dg, to what the backend's numbers can give. */
static basin_expr fixed_point(basin_case *c, const basin_energy *energy, basin_expr u) {
    bool twice = basin_backend_dtype(c->backend) == BASIN_F64;
    basin_descent_spec spec = {
        .steps = 20000,
        .alpha = 0.3,
        .implicit = {.on = true, .until = twice ? 1e-14 : 4e-6, .accuracy = twice ? 1e-13 : 1e-5}};
    return u ? basin_descend(energy, u, &spec, NULL) : NULL;
}

/* ---- an Energy Transformer held by an input ---- */

typedef struct held {
    basin_block block;
    basin_energy inner; /* of activations */
} held;

/* E(norm(x)), by x: with the pull of the input, x is a minimum of |x - u|^2 / 2 + E. */
static basin_expr by_tokens(const void *context, basin_expr x) {
    const held *h = context;
    return basin_energy_total(&h->inner, basin_block_norm(&h->block, x));
}

static void implicit(basin_case *c) {
    held h;
    basin_expr u = basin_case_parameter(c, "u"), target = basin_case_input_add(c, "target", 2);
    basin_block_config config = basin_case_block(c, "");
    if (!u || !target || basin_block_declare(&h.block, &c->params, "", &config)) return;
    basin_block_bound bound = {.block = &h.block, .pattern = &BASIN_OTHER_PAIRS};
    h.inner = basin_block_energy(&bound);
    const basin_energy whole = {BASIN_TERMS({"held", by_tokens, &h})};
    const basin_energy *energy = basin_case_flag(c, "minimum") ? &whole : &h.inner;
    basin_expr x = fixed_point(c, energy, u);
    basin_expr loss = basin_scale(basin_sum_all(basin_square(basin_sub(x, target))), 0.5);
    if (!x || !loss) return;
    basin_expr at = basin_variable(x);
    basin_expr force = basin_energy_force(energy, basin_energy_activation(energy, at));
    basin_expr residual = basin_sub(basin_sub(at, u), force);
    basin_case_output_add(c, x, "out.x");
    basin_case_output_add(c, basin_reshape(by_tokens(&h, x), BASIN_SHAPE(1)), "out.energy");
    basin_case_output_add(c, basin_jacobian(residual, at), "out.jacobian");
    basin_case_difference_add(c, basin_max(basin_abs(residual), 0, basin_expr_shape(residual).rank),
                              "out.residual", "out.x");
    basin_case_loss(c, loss, NULL);
}

/* ---- equilibrium propagation ---- */

/* The energy without |s|^2 / 2, which is the pull of zero. */
static basin_expr without_pull(const void *context, basin_expr s) {
    basin_energy energy = basin_zoo_layers_energy(context);
    basin_expr half = basin_scale(basin_sum(basin_square(s), -1, 1), 0.5);
    return basin_sub(basin_energy_total(&energy, s), half);
}

static basin_expr rest_of(basin_case *c, const basin_zoo_layers *m, basin_shape shape) {
    basin_energy energy = {BASIN_TERMS({"layers", without_pull, m})};
    return fixed_point(c, &energy, basin_full(c->graph, shape, 0));
}

/* (dE/dp at one state - dE/dp at the other) / by, the mean over the batch; the states are held. */
static void add_estimates(basin_case *c, const basin_zoo_layers *m, basin_expr one,
                          basin_expr other, double by, const char *name) {
    basin_energy energy = basin_zoo_layers_energy(m);
    basin_expr a = basin_energy_total(&energy, basin_stop_gradient(one));
    basin_expr b = basin_energy_total(&energy, basin_stop_gradient(other));
    basin_expr gap = basin_sub(basin_mean_all(a), basin_mean_all(b));
    for (size_t i = 0; i < c->params.count; i++) {
        basin_expr p = c->params.param[i].state;
        basin_case_output_add(c, basin_scale(basin_grad(gap, p), 1 / by), "out.%s.%s", name,
                              basin_expr_name(p));
    }
}

static void eqprop(basin_case *c, basin_specimen *specimen) {
    basin_zoo_layers m = specimen->m.layers;
    m.target = basin_case_input_add(c, "target", 2);
    double nudge = basin_case_number(c, "nudge");
    if (basin_graph_error(c->graph)) return;
    int64_t hidden = basin_expr_shape(m.b[0]).dim[0], last = basin_expr_shape(m.b[1]).dim[0];
    basin_shape shape = basin_expr_shape(specimen->x);
    basin_zoo_layers plus = m, minus = m;
    plus.nudge = nudge, minus.nudge = -nudge;
    basin_expr up = rest_of(c, &plus, shape), down = rest_of(c, &minus, shape);
    basin_expr s = rest_of(c, &m, shape);
    if (!up || !down || !s) return;
    basin_energy energy = basin_zoo_layers_energy(&m);
    basin_expr gap = basin_sub(basin_slice(s, 1, hidden, last), m.target);
    basin_expr cost = basin_scale(basin_sum(basin_square(gap), 1, 1), 0.5);
    basin_case_output_add(c, s, "out.free");
    basin_case_output_add(c, up, "out.nudged");
    basin_case_output_add(c, down, "out.nudged_minus");
    basin_case_output_add(c, basin_energy_total(&energy, s), "out.energy");
    add_estimates(c, &m, up, s, nudge, "ep");
    add_estimates(c, &m, up, down, 2 * nudge, "ep2");
    basin_case_loss(c, basin_mean_all(cost), NULL);
}

/* ---- the rows ---- */

/* The first prefix that fits: a model of the zoo and what its file holds, or a builder. */
static const struct {
    const char *prefix, *model;
    void (*add)(basin_case *c, basin_specimen *s);
    void (*build)(basin_case *c);
} rows[] = {
    {"graph_hopfield", .model = "graph_hopfield", .add = plain},
    {"hopfield_layer", .build = hopfield_layer},
    {"hopfield", .model = "hopfield", .add = plain},
    {"sparse_entmax15", .model = "entmax15", .add = with_recall},
    {"sparse_sparsemax", .model = "sparsemax", .add = with_recall},
    {"sparse_normmax2", .model = "normmax2", .add = with_recall},
    {"drdam", .model = "drdam", .add = with_features},
    {"lsr", .model = "lsr", .add = with_support},
    {"idp", .model = "idp", .add = by_term},
    {"nrgpt_lm", .model = "nrgpt", .add = language_model},
    {"nrgpt_", .model = "nrgpt", .add = with_forces},
    {"hyperset", .model = "hyperset", .add = hyperset},
    {"akorn_attention", .model = "akorn_attention", .add = plain},
    {"akorn", .model = "akorn", .add = plain},
    {"crate", .build = crate},
    {"ebt", .model = "ebt", .add = ebt},
    {"implicit_", .build = implicit},
    {"eqprop", .model = "eqprop", .add = eqprop},
    {"block_", .build = basin_case_build_block},
    {"image", .build = basin_case_build_image},
    {"anomaly", .build = basin_case_build_anomaly},
    {"graph", .build = basin_case_build_graphs},
    {"lagrangians", .build = basin_case_build_lagrangians},
    {"ham", .build = basin_case_build_ham},
};

void basin_case_build(basin_case *c, const char *name) {
    size_t i = 0, count = sizeof rows / sizeof *rows;
    while (i < count && strncmp(name, rows[i].prefix, strlen(rows[i].prefix)) != 0) i++;
    if (i == count) {
        basin_graph_fail(c->graph, BASIN_UNSUPPORTED, "unknown case '%s'", name);
    } else if (rows[i].build) {
        rows[i].build(c);
    } else {
        const basin_species *species = basin_species_find(rows[i].model);
        basin_specimen s = {
            .graph = c->graph, .c = c, .bundle = c->bundle, .variant = species->variant};
        species->build(&s);
        if (!basin_graph_error(c->graph)) rows[i].add(c, &s);
    }
}
