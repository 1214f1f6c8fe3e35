/* The attention synapse, E = -sum over heads h and queries C of L(Q_C K_B over keys B), whose L is
 * softmax's Lagrangian, 1/beta log-sum-exp, unless another is given. */
#include <math.h>
#include <string.h>

#include "energy/synapse.h"

/* One beta per head, [heads], above 1e-6 where it is learnt. */
static basin_expr head_beta(basin_ham *ham, const basin_synapse *s) {
    if (!s->hidden.beta)
        return basin_fill(ham->graph, BASIN_SHAPE(s->heads), 1 / sqrt((double)s->width));
    basin_expr beta = basin_max(s->hidden.beta, basin_const(ham->graph, 1e-6));
    return basin_broadcast(beta, BASIN_SHAPE(s->heads));
}

/* Queries or keys, [B, N, heads, width] */
static basin_expr project(basin_ham *ham, const basin_synapse *s, basin_expr g, const char *part) {
    basin_shape shape = BASIN_SHAPE(s->heads, s->width, basin_expr_shape(g).dim[2]);
    basin_expr p = basin_einsum("bnd,hyd->bnhy", g, basin_synapse_weight(ham, s, part, shape));
    if (!s->normalise) return p;
    return basin_layernorm(p, basin_synapse_offset(ham, s, "norm_gamma", BASIN_SCALAR, 1),
                           basin_synapse_offset(ham, s, "norm_delta", BASIN_SHAPE(s->width), 0),
                           1e-5);
}

static bool is_softmax(const basin_synapse *s) {
    if (s->hidden.own) return false;
    const char *name = s->hidden.name;
    return !name || strcmp(name, "softmax") == 0;
}

/* Any Lagrangian over the scores of all pairs, [B, heads, queries, keys]. */
static basin_expr general(basin_ham *ham, const basin_synapse *s, basin_expr q, basin_expr k) {
    if (s->pattern.row || s->pattern.exclude_self || s->pattern.causal)
        return basin_graph_fail(ham->graph, BASIN_UNSUPPORTED,
                                "synapse '%s': attention with the Lagrangian '%s' among chosen "
                                "pairs; only softmax can leave pairs out",
                                s->name, s->hidden.name ? s->hidden.name : "of your own");
    basin_expr score = basin_einsum("bqhy,bkhy->bhqk", q, k);
    return score ? basin_neg(basin_lagrangian_value(&s->hidden, score, 1)) : NULL;
}

basin_expr basin_synapse_attention(basin_ham *ham, const basin_synapse *synapse,
                                   const basin_expr *g, int count) {
    if (!basin_synapse_check(ham, synapse, g, count, 1, 2) ||
        !basin_synapse_positive(ham, synapse, "heads", synapse->heads) ||
        !basin_synapse_positive(ham, synapse, "width", synapse->width))
        return NULL;
    basin_expr tokens = basin_synapse_tokens(g[0]);
    basin_expr q = project(ham, synapse, tokens, "wq");
    if (count == 2) tokens = basin_synapse_tokens(g[1]);
    basin_expr k = project(ham, synapse, tokens, "wk");
    if (!is_softmax(synapse)) return general(ham, synapse, q, k);
    basin_expr beta = head_beta(ham, synapse);
    basin_expr lse = basin_attention_lse(q, k, beta, NULL, NULL, &synapse->pattern);
    return basin_neg(basin_sum(basin_div(lse, beta), 1, 2));
}
