/* Golden cases of the zoo's transformers: NRGPT and its language model, Hyper-SET, AKOrN, CRATE,
 * the Hopfield layer. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "verify/zoo.h"

/* ---- NRGPT ---- */

static basin_zoo_nrgpt read_nrgpt(basin_case *c) {
    char feed[BASIN_CASE_WORD];
    basin_case_word(c, "ff", feed);
    bool two = strcmp(feed, "1") != 0;
    return (basin_zoo_nrgpt){.h = basin_zoo_parameter(c, "h"),
                             .bias = basin_zoo_parameter(c, "bias"),
                             .proj = basin_zoo_parameter(c, "proj"),
                             .scale = basin_zoo_parameter(c, "scale"),
                             .w1 = basin_zoo_parameter(c, "w1"),
                             .b1 = basin_zoo_parameter(c, "b1"),
                             .w2 = two ? basin_zoo_parameter(c, "w2") : NULL,
                             .b2 = two ? basin_zoo_parameter(c, "b2") : NULL,
                             .feed = !two                  ? BASIN_ZOO_FEED_1
                                     : !strcmp(feed, "2w") ? BASIN_ZOO_FEED_2W
                                                           : BASIN_ZOO_FEED_2,
                             .strict = basin_case_flag(c, "strict")};
}

/* The tokens at the end; energies [steps + 1, N, 2], of the feed-forward network without its
 * factor.
 */
static basin_expr run_nrgpt(basin_case *c, const basin_zoo_nrgpt *m, basin_expr x) {
    basin_expr trace[2 * (BASIN_ZOO_STEPS + 1)];
    basin_turn turn;
    basin_energy energy = basin_zoo_nrgpt_energy(m, &turn);
    basin_descent_spec spec = {.steps = basin_case_steps(c),
                               .alpha = 1,
                               .recompute = c->recompute,
                               .turn = &turn,
                               .turns = 1};
    basin_expr end = basin_zoo_descend(c, &energy, x, &spec, trace);
    if (!end) return NULL;
    int count = 2 * (spec.steps + 1);
    for (int i = 1; i < count; i += 2) trace[i] = basin_div(trace[i], m->scale);
    basin_expr all = basin_reshape(basin_stack(trace, count, 0),
                                   BASIN_SHAPE(spec.steps + 1, 2, basin_expr_shape(x).dim[0]));
    basin_case_output_add(c, basin_transpose(all), "out.energy");
    return end;
}

static basin_expr term_force(const basin_energy *energy, basin_expr g, int term) {
    basin_expr at = basin_variable(g);
    return basin_neg(basin_grad(basin_energy_term(energy, at, term), at));
}

void basin_case_build_nrgpt(basin_case *c) {
    basin_zoo_nrgpt m = read_nrgpt(c);
    basin_expr x = basin_case_input_add(c, "x0", 2), end = run_nrgpt(c, &m, x);
    basin_energy energy = basin_zoo_nrgpt_energy(&m, NULL);
    if (!end) return;
    basin_expr g = basin_energy_activation(&energy, x);
    basin_case_output_add(c, g, "out.g0");
    basin_case_output_add(c, term_force(&energy, g, 0), "out.force_att0");
    basin_case_output_add(c, basin_div(term_force(&energy, g, 1), m.scale), "out.force_ff0");
    basin_zoo_finish(c, end, x);
}

static basin_expr read_index(basin_case *c, const char *name) {
    basin_tensor number = basin_case_integers(c, name, 1);
    if (!number.data) return NULL;
    basin_expr index = basin_index(c->graph, name, number.shape);
    basin_case_write(c, index, &number);
    return index;
}

void basin_case_build_nrgpt_lm(basin_case *c) {
    basin_zoo_nrgpt m = read_nrgpt(c);
    basin_expr ids = read_index(c, "ids"), label = read_index(c, "label");
    basin_expr x =
        basin_add(basin_gather(basin_zoo_parameter(c, "tok"), ids), basin_zoo_parameter(c, "pos"));
    basin_expr gain = basin_zoo_parameter(c, "lnf_w"), bias = basin_zoo_parameter(c, "lnf_b");
    basin_expr w = basin_zoo_parameter(c, "head_w"), b = basin_zoo_parameter(c, "head_b");
    basin_expr end = run_nrgpt(c, &m, x);
    if (!end) return;
    basin_expr zero = basin_fill(c->graph, basin_expr_shape(bias), 0);
    basin_expr norm =
        basin_layernorm(end, basin_const(c->graph, 1), zero, basin_case_number(c, "eps"));
    basin_expr g = basin_add(basin_mul(norm, gain), bias);
    basin_expr logits = basin_add(basin_matmul_t(g, false, w, true), b);
    basin_expr loss = basin_mean_all(basin_cross_entropy_labels(logits, label));
    basin_case_output_add(c, logits, "out.logits");
    basin_case_output_add(c, loss, "out.loss");
    basin_case_gradients(c, loss, NULL);
}

/* ---- Hyper-SET ---- */

static basin_zoo_hyperset read_hyperset(basin_case *c, basin_expr start) {
    char kind[BASIN_CASE_WORD];
    basin_zoo_hyperset m = {.w = basin_zoo_parameter(c, "w"),
                            .m = basin_zoo_parameter(c, "m"),
                            .gain_w = basin_zoo_parameter(c, "gain_w"),
                            .gain_m = basin_zoo_parameter(c, "gain_m"),
                            .heads = (int64_t)basin_case_number(c, "heads"),
                            .gelu = !strcmp(basin_case_word(c, "activation", kind), "gelu"),
                            .straight = true,
                            .epsilon = basin_case_number(c, "eps"),
                            .alpha = basin_case_number(c, "alpha"),
                            .start = start};
    if (!basin_case_flag(c, "learned_steps")) return m;
    m.t1_w = basin_zoo_parameter(c, "t1_w"), m.t1_b = basin_zoo_parameter(c, "t1_b");
    m.t2_w = basin_zoo_parameter(c, "t2_w"), m.t2_b = basin_zoo_parameter(c, "t2_b");
    m.t3_w = basin_zoo_parameter(c, "t3_w"), m.t3_b = basin_zoo_parameter(c, "t3_b");
    return m;
}

/* The tokens after each step, of which energies are asked with the gains and without. */
static void add_hyperset_energies(basin_case *c, const basin_zoo_hyperset *m, const basin_expr *x,
                                  int steps) {
    basin_expr row[4 * (BASIN_ZOO_STEPS + 1)];
    basin_zoo_hyperset plain = *m;
    plain.gain_w = plain.gain_m = basin_const(c->graph, 1);
    const basin_energy energy[2] = {basin_zoo_hyperset_energy(m, NULL),
                                    basin_zoo_hyperset_energy(&plain, NULL)};
    for (int t = 0; t <= steps; t++)
        for (int i = 0; i < 4; i++) row[4 * t + i] = basin_energy_term(&energy[i / 2], x[t], i % 2);
    basin_expr all = basin_stack(row, 4 * (steps + 1), 0);
    basin_case_output_add(c, basin_reshape(all, BASIN_SHAPE(steps + 1, 4)), "out.energy");
}

void basin_case_build_hyperset(basin_case *c) {
    basin_expr x = basin_case_input_add(c, "x0", 2), at[BASIN_ZOO_STEPS + 1] = {x};
    basin_zoo_hyperset m = read_hyperset(c, x), exact = m;
    basin_turn turn[2];
    basin_energy energy = basin_zoo_hyperset_energy(&m, turn);
    int steps = basin_case_steps(c);
    if (!x || steps > BASIN_ZOO_STEPS || basin_graph_error(c->graph)) return;
    basin_case_output_add(c, term_force(&energy, x, 0), "out.force_att0");
    basin_case_output_add(c, term_force(&energy, x, 1), "out.force_ff0");
    for (int t = 0; t < steps; t++) /* all steps up to there; what they share is built once */
        at[t + 1] = basin_descend(
            &energy, x, &(basin_descent_spec){.steps = t + 1, .alpha = 1, .turn = turn, .turns = 2},
            NULL);
    add_hyperset_energies(c, &m, at, steps);
    exact.straight = false;
    energy = basin_zoo_hyperset_energy(&exact, NULL);
    basin_case_output_add(c, basin_neg(basin_energy_force(&energy, x)), "out.true_gradient0");
    basin_zoo_finish(c, at[steps], x);
}

/* ---- AKOrN ---- */

void basin_case_build_akorn(basin_case *c) {
    basin_expr trace[BASIN_ZOO_STEPS + 1];
    bool gradient = basin_case_flag(c, "gradient");
    basin_zoo_akorn m = {.c = basin_zoo_parameter(c, "c"),
                         .omega = basin_zoo_parameter(c, "omega"),
                         .gamma = basin_zoo_parameter(c, "gamma"),
                         .heads = (int64_t)basin_case_number(c, "heads"),
                         .sphere = (int64_t)basin_case_number(c, "n")};
    if (gradient) {
        m.a = basin_zoo_parameter(c, "a");
    } else {
        m.qkv_w = basin_zoo_parameter(c, "qkv_w"), m.qkv_b = basin_zoo_parameter(c, "qkv_b");
        m.o_w = basin_zoo_parameter(c, "o_w"), m.o_b = basin_zoo_parameter(c, "o_b");
    }
    basin_turn turn;
    basin_energy energy = basin_zoo_akorn_energy(&m, &turn);
    basin_descent_spec spec = {.steps = basin_case_steps(c),
                               .alpha = 1,
                               .recompute = c->recompute,
                               .turn = &turn,
                               .turns = 1};
    basin_expr x = basin_case_input_add(c, "x0", 2);
    basin_expr end = basin_zoo_descend(c, &energy, basin_to_sphere(x, m.sphere), &spec, trace);
    if (!end) return;
    basin_case_output_add(c, basin_zoo_totals(trace, 1, spec.steps), "out.energy");
    basin_zoo_finish(c, end, x);
}

/* ---- CRATE ---- */

static basin_expr block_parameter(basin_case *c, int block, const char *name) {
    char full[BASIN_CASE_WORD];
    snprintf(full, sizeof full, "block%d.%s", block, name);
    return basin_zoo_parameter(c, full);
}

void basin_case_build_crate(basin_case *c) {
    basin_expr x = basin_case_input_add(c, "x0", 2), end = x, row[BASIN_ZOO_STEPS];
    int blocks = (int)basin_case_number(c, "blocks");
    if (blocks < 1 || blocks > BASIN_ZOO_STEPS) {
        basin_graph_fail(c->graph, BASIN_BAD_VALUE, "%s: %d blocks; wanted 1 to %d",
                         basin_bundle_path(c->bundle), blocks, BASIN_ZOO_STEPS);
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
    basin_zoo_finish(c, end, x);
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
    for (int i = 0; i < 4; i++) p[i] = basin_zoo_parameter(c, name[i]);
    basin_expr zero = basin_fill(c->graph, basin_expr_shape(p[1]), 0);
    basin_expr g = basin_layernorm(a, basin_const(c->graph, 1), zero, basin_case_number(c, "eps"));
    g = basin_add(basin_mul(g, p[0]), p[1]);
    basin_expr y = basin_add(basin_matmul_t(g, false, p[2], true), p[3]);
    int64_t rows = basin_expr_shape(a).dim[0];
    return basin_permute(basin_reshape(y, BASIN_SHAPE(rows, heads, -1)), (int[]){1, 0, 2});
}

void basin_case_build_hopfield_layer(basin_case *c) {
    basin_expr trace[BASIN_ZOO_STEPS + 1];
    int64_t heads = (int64_t)basin_case_number(c, "heads");
    basin_expr x = basin_case_input_add(c, "x0", 2), y = basin_zoo_parameter(c, "y");
    if (!x || !y || heads < 1) return;
    basin_expr q = heads_of(c, x, "state", 'q', heads), k = heads_of(c, y, "stored", 'k', heads);
    basin_expr v = heads_of(c, y, "value", 'v', heads);
    basin_zoo_hopfield m = {.xi = k, .beta = basin_const(c->graph, basin_case_number(c, "beta"))};
    basin_energy energy = basin_zoo_hopfield_energy(&m);
    basin_descent_spec spec = {.steps = basin_case_steps(c), .alpha = 1, .recompute = c->recompute};
    q = basin_zoo_descend(c, &energy, q, &spec, trace);
    if (!q) return;
    basin_expr out = basin_einsum("hns,hsd->nhd", basin_zoo_hopfield_recall(&m, q), v);
    out = basin_reshape(out, BASIN_SHAPE(basin_expr_shape(x).dim[0], -1));
    basin_expr end = basin_add(basin_matmul_t(out, false, basin_zoo_parameter(c, "wo"), true),
                               basin_zoo_parameter(c, "bo"));
    basin_case_output_add(c, basin_zoo_totals(trace, 1, spec.steps), "out.energy");
    basin_zoo_finish(c, end, x);
}

/* ---- energy-based transformers ---- */

/* The mean over the steps of the cross entropy; with `stop`, no gradient flows from step to step.
 */
static basin_expr ebt_loss(const basin_zoo_ebt *m, basin_expr *y, basin_expr label, int steps,
                           bool stop, basin_expr *trace) {
    basin_expr total = NULL;
    basin_turn turn;
    basin_energy energy = basin_zoo_ebt_energy(m, &turn);
    basin_descent_spec spec = {.steps = 1, .alpha = 1, .turn = &turn, .turns = 1};
    for (int t = 0; t < steps; t++) {
        basin_expr p = basin_softmax(stop ? basin_stop_gradient(*y) : *y), both[2];
        *y = basin_descend(&energy, p, &spec, both);
        trace[t] = basin_sum_all(both[0]);
        basin_expr part = basin_mean_all(basin_cross_entropy_labels(*y, label));
        total = total ? basin_add(total, part) : part;
    }
    return basin_scale(total, 1.0 / steps);
}

void basin_case_build_ebt(basin_case *c) {
    basin_expr trace[BASIN_ZOO_STEPS], other[BASIN_ZOO_STEPS], gradient[7];
    basin_zoo_ebt m = {.context = basin_zoo_parameter(c, "ctx"),
                       .e = basin_zoo_parameter(c, "e"),
                       .w1 = basin_zoo_parameter(c, "w1"),
                       .b1 = basin_zoo_parameter(c, "b1"),
                       .w2 = basin_zoo_parameter(c, "w2"),
                       .alpha = basin_zoo_parameter(c, "alpha")};
    basin_expr y = basin_case_input_add(c, "y0", 2), free_y = y, label = read_index(c, "label");
    const basin_expr from[7] = {m.context, m.e, m.w1, m.b1, m.w2, m.alpha, y};
    int steps = basin_case_steps(c);
    if (!y || steps < 1 || steps > BASIN_ZOO_STEPS || basin_graph_error(c->graph)) return;
    basin_expr loss = ebt_loss(&m, &y, label, steps, true, trace);
    basin_grad_many(gradient, ebt_loss(&m, &free_y, label, steps, false, other), from, 7);
    for (int i = 0; i < 7; i++)
        basin_case_output_add(c, gradient[i], "gradfull.%s", basin_expr_name(from[i]));
    basin_case_output_add(c, y, "out.yT");
    basin_case_output_add(c, basin_stack(trace, steps, 0), "out.energy");
    basin_case_output_add(c, loss, "out.loss");
    basin_case_gradients(c, loss, NULL);
}
