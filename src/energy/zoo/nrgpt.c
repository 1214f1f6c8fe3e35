/* NRGPT: energies of tokens by causal attention, whose keys are held, and a feed-forward network.
 */
#include "energy/zoo/zoo.h"

static basin_expr activation(const void *context, basin_expr x) {
    return basin_zoo_norm(x, NULL, ((const basin_zoo_nrgpt *)context)->bias, 1e-5);
}

/* The same tokens, whose pull is dropped here and there: held + mask (g - held). */
static basin_expr with_dropout(const basin_zoo_nrgpt *m, basin_expr g) {
    if (!m->seed || m->dropout == 0) return g;
    basin_expr one = basin_fill(basin_expr_graph(g), basin_expr_shape(g), 1), held = basin_held(g);
    basin_expr mask = basin_dropout(one, m->dropout, m->seed);
    return basin_add(held, basin_mul(mask, basin_sub(g, held)));
}

/* -sum over heads of log sum over earlier B of exp(g_A . h g_B), [.., N] */
static basin_expr attention(const basin_zoo_nrgpt *m, basin_expr g) {
    basin_shape h = basin_expr_shape(m->h), heads = basin_expr_shape(g);
    if (h.rank != 3 || heads.rank < 2)
        return basin_graph_fail(basin_expr_graph(g), BASIN_BAD_SHAPE,
                                "NRGPT with matrices of rank %d and tokens of rank %d, wanted "
                                "[H, D, D] and [.., N, D]",
                                h.rank, heads.rank);
    int64_t H = h.dim[0], D = h.dim[1];
    int axis = heads.rank - 1;
    basin_expr all = basin_reshape(m->h, BASIN_SHAPE(H * D, D));
    heads.dim[heads.rank++] = D;
    heads.dim[axis] = H;
    basin_expr q = basin_broadcast(basin_axes_insert(with_dropout(m, g), axis, 1), heads);
    basin_expr k = basin_reshape(basin_zoo_linear(basin_held(g), all, NULL), heads);
    basin_expr one = basin_fill(basin_expr_graph(g), BASIN_SHAPE(H), 1);
    const basin_pattern *pairs = m->strict ? &BASIN_EARLIER_PAIRS : &BASIN_CAUSAL_PAIRS;
    return basin_neg(basin_sum(basin_attention_lse(q, k, one, NULL, NULL, pairs), -1, 1));
}

static basin_expr feed_forward(const basin_zoo_nrgpt *m, basin_expr g) {
    basin_expr a = basin_zoo_gelu(basin_zoo_linear(g, m->w1, m->b1));
    if (m->feed == BASIN_ZOO_FEED_1) return basin_neg(basin_sum(basin_square(a), -1, 1));
    a = basin_zoo_linear(a, m->w2, m->b2);
    if (m->feed == BASIN_ZOO_FEED_2W) return basin_neg(basin_sum(basin_mul(g, a), -1, 1));
    return basin_neg(basin_sum(basin_square(basin_zoo_gelu(a)), -1, 1));
}

static basin_expr energy(const void *context, basin_expr g, int part) {
    const basin_zoo_nrgpt *m = context;
    return part == 0 ? attention(m, g) : basin_mul(m->scale, feed_forward(m, g));
}

basin_energy basin_zoo_nrgpt_energy(const basin_zoo_nrgpt *model) {
    return (basin_energy){.parts = 2,
                          .name = {"attention", "feed-forward"},
                          .part = energy,
                          .activation = activation,
                          .context = model};
}

static basin_expr project(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)x, (void)t;
    return basin_zoo_linear(force, ((const basin_zoo_nrgpt *)context)->proj, NULL);
}

basin_turn basin_zoo_nrgpt_turn(const basin_zoo_nrgpt *model) {
    return (basin_turn){.move = project, .context = model};
}
