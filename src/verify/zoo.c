/* Golden cases of the zoo's memories: modern and sparse Hopfield networks, random features,
 * log-sum-ReLU, nodes of a graph, plasticity. */
#include "verify/zoo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

basin_expr basin_zoo_parameter(basin_case *c, const char *name) {
    const basin_tensor *tensor = basin_case_tensor(c, name, -1);
    return tensor ? basin_param_add(&c->params, "", name, tensor->shape, (basin_init){0}) : NULL;
}

basin_expr basin_zoo_descend(basin_case *c, const basin_energy *energy, basin_expr x,
                             const basin_descent_spec *spec, basin_expr *trace) {
    if (spec->steps > BASIN_ZOO_STEPS)
        return basin_graph_fail(c->graph, BASIN_BAD_VALUE, "%s: %d steps; wanted 0 to %d",
                                basin_bundle_path(c->bundle), spec->steps, BASIN_ZOO_STEPS);
    return x ? basin_descend(energy, x, spec, trace) : NULL;
}

basin_expr basin_zoo_totals(const basin_expr *trace, int terms, int steps) {
    basin_expr total[BASIN_ZOO_STEPS + 1];
    for (int t = 0; t <= steps; t++) {
        total[t] = basin_sum_all(trace[t * terms]);
        for (int p = 1; p < terms; p++)
            total[t] = basin_add(total[t], basin_sum_all(trace[t * terms + p]));
    }
    return basin_stack(total, steps + 1, 0);
}

void basin_zoo_finish(basin_case *c, basin_expr end, basin_expr x) {
    basin_expr target = basin_case_input_add(c, "target", -1);
    basin_expr loss = basin_scale(basin_sum_all(basin_square(basin_sub(end, target))), 0.5);
    basin_case_output_add(c, end, "out.xT");
    basin_case_output_add(c, loss, "out.loss");
    basin_case_gradients(c, loss, x);
}

/* A plain descent from "in.x0", its energies summed, and what follows from its end. */
static basin_expr run(basin_case *c, const basin_energy *energy, basin_expr x) {
    basin_expr trace[(BASIN_ZOO_STEPS + 1) * BASIN_ZOO_TERMS];
    basin_descent_spec spec = basin_case_descent(c);
    basin_expr end = basin_zoo_descend(c, energy, x, &spec, trace);
    if (!end) return NULL;
    basin_case_output_add(c, basin_zoo_totals(trace, energy->terms, spec.steps), "out.energy");
    basin_zoo_finish(c, end, x);
    return end;
}

void basin_case_build_hopfield(basin_case *c) {
    basin_zoo_hopfield m = {.xi = basin_zoo_parameter(c, "xi"),
                            .beta = basin_zoo_parameter(c, "beta")};
    basin_energy energy = basin_zoo_hopfield_energy(&m);
    run(c, &energy, basin_case_input_add(c, "x0", 2));
}

void basin_case_build_sparse(basin_case *c) {
    char kind[BASIN_CASE_WORD];
    basin_case_word(c, "kind", kind);
    basin_zoo_hopfield m = {.xi = basin_zoo_parameter(c, "xi"),
                            .beta = basin_zoo_parameter(c, "beta"),
                            .entropy = !strcmp(kind, "entmax15")    ? BASIN_ZOO_ENTMAX15
                                       : !strcmp(kind, "sparsemax") ? BASIN_ZOO_SPARSEMAX
                                                                    : BASIN_ZOO_NORMMAX2};
    basin_energy energy = basin_zoo_hopfield_energy(&m);
    basin_expr x = basin_case_input_add(c, "x0", 2);
    basin_case_output_add(c, basin_zoo_hopfield_recall(&m, x), "out.p0");
    run(c, &energy, x);
}

/* -log sum exp(-beta |x - xi|^2 / 2) / beta, which the features approach. */
static basin_expr exact_energy(const basin_zoo_features *m, basin_expr x, basin_expr xi) {
    basin_expr gap = basin_sub(basin_axes_insert(x, 1, 1), basin_axes_insert(xi, 0, 1));
    basin_expr z = basin_scale(basin_mul(m->beta, basin_sum(basin_square(gap), -1, 1)), -0.5);
    return basin_neg(basin_sum_all(basin_div(basin_logsumexp(z), m->beta)));
}

void basin_case_build_drdam(basin_case *c) {
    char kind[BASIN_CASE_WORD];
    bool phases = !strcmp(basin_case_word(c, "kind", kind), "cos");
    basin_expr xi = basin_zoo_parameter(c, "xi"), x = basin_case_input_add(c, "x0", 2);
    basin_zoo_features m = {.s = basin_zoo_parameter(c, "s"),
                            .phase = phases ? basin_zoo_parameter(c, "b") : NULL,
                            .beta = basin_zoo_parameter(c, "beta"),
                            .floor = basin_case_number(c, "floor")};
    m.sum = basin_zoo_features_sum(&m, xi);
    basin_energy energy = basin_zoo_features_energy(&m);
    basin_case_output_add(c, m.sum, "out.T");
    basin_case_output_add(c, exact_energy(&m, x, xi), "out.exact_energy0");
    run(c, &energy, x);
}

void basin_case_build_lsr(basin_case *c) {
    basin_zoo_lsr m = {.xi = basin_zoo_parameter(c, "xi"),
                       .beta = basin_zoo_parameter(c, "beta"),
                       .epsilon = basin_case_number(c, "eps"),
                       .decay = basin_case_number(c, "decay")};
    basin_energy energy = basin_zoo_lsr_energy(&m);
    basin_expr x = basin_case_input_add(c, "x0", 2), end = run(c, &energy, x);
    basin_case_output_add(c, basin_zoo_lsr_support(&m, x), "out.support0");
    basin_case_output_add(c, basin_zoo_lsr_support(&m, end), "out.supportT");
}

/* 1 / sqrt(degree of both ends) for each pair of the case's list, as an input. */
static basin_expr edge_weights(basin_case *c) {
    const basin_pairs *list = c->pairs;
    basin_tensor tensor;
    basin_error error;
    if (basin_graph_error(c->graph)) return NULL;
    if (basin_tensor_new(&tensor, BASIN_F64, BASIN_SHAPE(list->pairs), &error))
        return basin_graph_fail(c->graph, error.status, "%s", error.text);
    for (int64_t q = 0; q < list->queries; q++)
        for (int32_t i = list->row[q]; i < list->row[q + 1]; i++) {
            int32_t k = list->key[i];
            double degrees = (double)(list->row[q + 1] - list->row[q]) *
                             (double)(list->row[k + 1] - list->row[k]);
            ((double *)tensor.data)[i] = 1 / sqrt(degrees);
        }
    basin_expr weight = basin_input(c->graph, "weight", tensor.shape);
    basin_case_write(c, weight, &tensor);
    return weight;
}

void basin_case_build_graph_hopfield(basin_case *c) {
    basin_expr x = basin_case_input_add(c, "x0", 2);
    if (x) basin_case_edges(c, 0, basin_expr_shape(x).dim[0], "edges", BASIN_PAIRS_BOTH_WAYS);
    basin_zoo_graph m = {.xi = basin_zoo_parameter(c, "xi"),
                         .beta = basin_zoo_parameter(c, "beta"),
                         .pattern = c->pattern,
                         .weight = edge_weights(c),
                         .lambda = basin_zoo_parameter(c, "lam")};
    basin_energy energy = basin_zoo_graph_energy(&m);
    run(c, &energy, x);
}

void basin_case_build_idp(basin_case *c) {
    basin_expr trace[(BASIN_ZOO_STEPS + 1) * BASIN_ZOO_TERMS], sum[2 * (BASIN_ZOO_STEPS + 1)];
    basin_zoo_plastic m = {.xi = basin_zoo_parameter(c, "xi"), .u = basin_zoo_parameter(c, "u")};
    basin_turn turn;
    basin_energy energy = basin_zoo_plastic_energy(&m, &turn);
    basin_descent_spec spec = {.steps = basin_case_steps(c),
                               .alpha = basin_case_number(c, "dt"),
                               .recompute = c->recompute,
                               .turn = &turn,
                               .turns = 1};
    basin_expr x = basin_case_input_add(c, "x0", 2);
    basin_expr end = basin_zoo_descend(c, &energy, x, &spec, trace);
    if (!end) return;
    int rows = spec.steps + 1;
    for (int i = 0; i < 2 * rows; i++) sum[i] = basin_sum_all(trace[i]);
    basin_expr energies = basin_reshape(basin_stack(sum, 2 * rows, 0), BASIN_SHAPE(rows, 2));
    basin_case_output_add(c, energies, "out.energy");
    basin_zoo_finish(c, end, x);
}
