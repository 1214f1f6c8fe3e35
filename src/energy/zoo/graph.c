/* Graph Hopfield network: memories at every node, and lambda tr(x^T (I - A) x) along the edges, one
 * energy [] for all nodes. */
#include "energy/zoo/zoo.h"

static basin_expr energy(const void *context, basin_expr x, int part) {
    const basin_zoo_graph *m = context;
    if (part == 0) {
        basin_expr score = basin_mul(m->beta, basin_zoo_linear(x, m->xi, NULL));
        basin_expr gain = basin_div(basin_logsumexp(score), m->beta);
        return basin_sum_all(basin_sub(basin_zoo_half_square(x), gain));
    }
    basin_expr tokens = basin_axes_insert(x, 1, 1); /* [N, 1, D] */
    basin_expr products = basin_pair_dot(tokens, tokens, m->pattern);
    basin_expr along = basin_sum_all(basin_mul(basin_axes_insert(m->weight, 1, 1), products));
    return basin_mul(m->lambda, basin_sub(basin_sum_all(basin_square(x)), along));
}

basin_energy basin_zoo_graph_energy(const basin_zoo_graph *model) {
    return (basin_energy){
        .parts = 2, .name = {"memories", "edges"}, .part = energy, .context = model};
}
