/* A block's energy token by token, and the attention that its pairs get; see
 * include/basin/energy.h. */
#include "basin/energy.h"

/* g [N, D] by w [H, Y, D] -> [N, H, Y] */
static basin_expr project(basin_expr g, basin_expr w) { return basin_einsum("nd,hyd->nhy", g, w); }

/* Scores of the pairs [pairs, H], as in basin_attention_lse. */
static basin_expr scores(const basin_block_bound *bound, basin_expr q, basin_expr k) {
    const basin_block *b = bound->block;
    basin_expr z = basin_mul(basin_pair_dot(q, k, bound->pattern), b->beta);
    if (b->mix) z = basin_matmul(z, b->mix);
    if (bound->facts) return basin_add(z, basin_matmul(bound->facts, b->we));
    return bound->scale ? basin_mul(z, bound->scale) : z;
}

basin_expr basin_block_shares(const basin_block_bound *bound, basin_expr g) {
    const basin_block *b = bound->block;
    if (b->config.no_attention || !bound->pattern->row || !g) return NULL;
    basin_expr q = project(g, b->wq), k = project(g, b->wk);
    basin_expr lse = basin_block_lse(bound, g);
    if (!lse) return NULL;
    int64_t N = basin_expr_shape(g).dim[0], H = b->config.heads;
    basin_expr ones = basin_fill(basin_expr_graph(g), BASIN_SHAPE(N, H, 1), 1);
    basin_expr norm =
        basin_pair_dot(basin_reshape(lse, BASIN_SHAPE(N, H, 1)), ones, bound->pattern);
    return basin_mean(basin_exp(basin_sub(scores(bound, q, k), norm)), 1, 1);
}

static basin_expr couplings_of(const basin_block_bound *bound, basin_expr g) {
    const basin_block *b = bound->block;
    basin_shape pairs = basin_expr_shape(bound->strength);
    basin_expr strength = basin_reshape(bound->strength, BASIN_SHAPE(pairs.dim[0], 1));
    basin_expr c = basin_mul(basin_matmul(bound->features, b->ce), strength);
    basin_expr z =
        basin_mul(basin_pair_dot(project(g, b->cq), project(g, b->ck), bound->pattern), c);
    basin_expr each = basin_reshape(basin_sum(z, 1, 1), BASIN_SHAPE(pairs.dim[0], 1));
    int64_t N = basin_expr_shape(g).dim[0];
    basin_expr ones = basin_fill(basin_expr_graph(g), BASIN_SHAPE(N, 1, 1), 1);
    return basin_neg(basin_reshape(basin_pair_sum(each, ones, bound->pattern), BASIN_SHAPE(N)));
}

void basin_block_token_energies(basin_expr energy[3], const basin_block_bound *bound,
                                basin_expr g) {
    const basin_block *b = bound->block;
    basin_shape s = basin_expr_shape(g);
    energy[0] = energy[1] = energy[2] = NULL;
    if (!g) return;
    if (!b->config.no_attention) {
        basin_expr lse = basin_block_lse(bound, g);
        energy[0] = basin_neg(basin_sum(basin_div(lse, b->beta), 1, 1));
    }
    if (!b->config.no_hopfield) {
        basin_expr one =
            basin_reshape(g, BASIN_SHAPE(s.dim[0], 1, s.dim[1])); /* a token a sample */
        energy[1] = basin_energy_hopfield(one, b->xi, b->config.hopfield, b->config.power);
    }
    if (b->config.couplings > 0) energy[2] = couplings_of(bound, g);
}
