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

/* h g_B of every head, [.., N, H D] */
static basin_expr keys(const basin_zoo_nrgpt *m, basin_expr g) {
    basin_shape h = basin_expr_shape(m->h);
    basin_expr all = basin_reshape(m->h, BASIN_SHAPE(h.dim[0] * h.dim[1], h.dim[1]));
    return basin_zoo_linear(basin_held(g), all, NULL);
}

static double beta_of(const basin_zoo_nrgpt *m) { return m->beta > 0 ? m->beta : 1; }

/* log sum over earlier B of exp(beta g_A . k_B) by fused attention, [.., N, H] */
static basin_expr streamed(const basin_zoo_nrgpt *m, basin_expr g) {
    basin_shape heads = basin_expr_shape(g);
    int64_t H = basin_expr_shape(m->h).dim[0], D = heads.dim[heads.rank - 1];
    int axis = heads.rank - 1;
    heads.dim[heads.rank++] = D;
    heads.dim[axis] = H;
    basin_expr q = basin_broadcast(basin_axes_insert(with_dropout(m, g), axis, 1), heads);
    basin_expr beta = basin_fill(basin_expr_graph(g), BASIN_SHAPE(H), beta_of(m));
    const basin_pattern *pairs = m->strict ? &BASIN_EARLIER_PAIRS : &BASIN_CAUSAL_PAIRS;
    return basin_attention_lse(q, basin_reshape(keys(m, g), heads), beta, NULL, NULL, pairs);
}

/* The same with the scores in memory. All heads have one query, so that scores are one product of
 * [N, D] and [N H, D], keys as they lie, and the pull is one of [N, N H] and [N H, D]. */
static basin_expr written(const basin_zoo_nrgpt *m, basin_expr g) {
    basin_shape s = basin_expr_shape(g), out = s;
    int64_t H = basin_expr_shape(m->h).dim[0], N = s.dim[s.rank - 2], D = s.dim[s.rank - 1];
    basin_expr k = basin_reshape(keys(m, g), BASIN_SHAPE(-1, N * H, D));
    basin_expr q = basin_reshape(with_dropout(m, g), BASIN_SHAPE(-1, N, D));
    basin_expr score = basin_reshape(basin_matmul_t(q, false, k, true), BASIN_SHAPE(-1, N, N, H));
    out.dim[out.rank - 1] = H;
    return basin_reshape(basin_causal_logsumexp(score, beta_of(m), m->strict), out);
}

/* Tiles of fused attention are made for narrow heads. NRGPT's are as wide as tokens: where scores
 * take no more room than keys, products of matrices are faster. */
static bool writes_scores(basin_shape g) { return g.dim[g.rank - 2] <= 2 * g.dim[g.rank - 1]; }

/* -(1 / beta) sum over heads of log sum over earlier B of exp(beta g_A . h g_B), [.., N] */
static basin_expr attention(const basin_zoo_nrgpt *m, basin_expr g) {
    basin_shape h = basin_expr_shape(m->h), s = basin_expr_shape(g);
    if (h.rank != 3 || s.rank < 2 || h.dim[1] != s.dim[s.rank - 1])
        return basin_graph_fail(basin_expr_graph(g), BASIN_BAD_SHAPE,
                                "NRGPT with matrices of rank %d and tokens of rank %d, wanted "
                                "[H, D, D] and [.., N, D]",
                                h.rank, s.rank);
    basin_expr lse = (writes_scores(s) ? written : streamed)(m, g);
    return basin_scale(basin_sum(lse, -1, 1), -1 / beta_of(m));
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
    const basin_zoo_nrgpt *m = context;
    (void)x, (void)t;
    return basin_dropout(basin_zoo_linear(force, m->proj, NULL), m->dropout_step, m->seed);
}

basin_turn basin_zoo_nrgpt_turn(const basin_zoo_nrgpt *model) {
    return (basin_turn){.move = project, .context = model};
}
