/* Golden cases "block_*": the paper's block, its forces and energies, and the gradient of half the
 * squared distance to a target through the descent. */
#include <stdlib.h>

#include "base/memory.h"
#include "basin/lagrangian.h"
#include "verify/verify.h"

/* All pairs, or all but a token with itself, where `allowed` [N, N] says just that; else a list. */
static void read_pattern(basin_case *c, int64_t n, bool self) {
    basin_tensor allowed = basin_case_integers(c, "allowed", 2);
    int32_t *edge = basin_array_new((size_t)basin_shape_count(allowed.shape), 2 * sizeof *edge);
    if (!allowed.data || !edge || allowed.shape.dim[0] != n || allowed.shape.dim[1] != n) {
        basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "%s: in.allowed; wanted [%lld, %lld]",
                         basin_bundle_path(c->bundle), (long long)n, (long long)n);
    } else {
        const int32_t *may = allowed.data;
        int64_t count = 0;
        for (int64_t i = 0; i < n * n; i++)
            if (may[i]) {
                edge[2 * count] = (int32_t)(i / n);
                edge[2 * count++ + 1] = (int32_t)(i % n);
            }
        if (count == (self ? n * n : n * n - n))
            c->pattern[0] = self ? BASIN_ALL_PAIRS : BASIN_OTHER_PAIRS;
        else
            basin_case_pairs(c, 0, n, edge, count, 0);
    }
    free(edge);
    basin_tensor_free(&allowed);
}

/* The force of each term on its own. */
static void add_forces(basin_case *c, const basin_energy *energy, basin_expr g) {
    for (int p = 0; p < energy->terms; p++) {
        bool attention = energy->term[p].name[0] == 'a';
        basin_expr force = basin_neg(basin_grad(basin_energy_term(energy, g, p), g));
        basin_case_output_add(c, force, "out.force_%s0", attention ? "att" : "hn");
    }
}

static void add_descent(basin_case *c, const basin_block *block, basin_expr x, basin_expr target,
                        basin_expr facts) {
    basin_block_bound bound = {.block = block, .pattern = c->pattern, .facts = facts};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = basin_case_descent(c);
    basin_expr trace[(size_t)((spec.steps + 1) * energy.terms)];
    basin_expr g = basin_energy_activation(&energy, x);
    basin_case_output_add(c, g, "out.g0");
    add_forces(c, &energy, g);
    basin_expr end = basin_descend(&energy, x, &spec, trace);
    basin_case_output_add(c, end, "out.xT");
    basin_expr energies = basin_case_energies(c, &block->config, trace, spec.steps, 0);
    basin_case_output_add(c, energies, "out.energy");
    basin_expr loss = basin_scale(basin_sum_all(basin_square(basin_sub(end, target))), 0.5);
    basin_case_output_add(c, loss, "out.loss");
    basin_case_gradients(c, loss, x);
    if (facts) basin_case_output_add(c, basin_grad(loss, facts), "grad.facts");
}

void basin_case_build_block(basin_case *c) {
    basin_block block;
    basin_block_config config = basin_case_block(c, "");
    config.no_attention = !basin_case_flag(c, "attention");
    config.no_hopfield = !basin_case_flag(c, "hopfield");
    basin_expr x = basin_case_input_add(c, "x0", 2), target = basin_case_input_add(c, "target", 2);
    basin_expr facts = NULL; /* of pairs, by query and then by key */
    if (basin_bundle_find(c->bundle, "in.facts")) facts = basin_case_input_add(c, "facts", 2);
    if (facts) config.facts = basin_expr_shape(facts).dim[1];
    if (!x || !target) return;
    read_pattern(c, basin_expr_shape(x).dim[0], basin_case_flag(c, "self_attention"));
    if (basin_graph_error(c->graph)) return;
    if (basin_block_declare(&block, &c->params, "", &config)) return;
    basin_lagrangian norm = {.name = "layernorm",
                             .gamma = block.gamma,
                             .delta = block.delta,
                             .epsilon = block.config.epsilon};
    basin_case_output_add(c, basin_lagrangian_value(&norm, x, 0), "out.lagrangian0");
    add_descent(c, &block, x, target, facts);
}
