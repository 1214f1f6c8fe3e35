/* Smoothing over a graph as the descent of an energy; see basin/model.h. */
#include "basin/model.h"

typedef struct smoothness {
    basin_expr own;  /* h [N, C] */
    basin_expr root; /* [N, 1] one over the root of the number of neighbours */
    const basin_pattern *pattern;
    const basin_smoothing *how;
} smoothness;

/* 1 for each pair, [pairs, 1]. */
static basin_expr ones_of(basin_expr x, const basin_pattern *pattern) {
    return basin_fill(basin_expr_graph(x), BASIN_SHAPE(basin_expr_shape(pattern->key).dim[0], 1),
                      1);
}

/* The sum of x [N, D] over each node's neighbours. */
static basin_expr neighbour_sum(basin_expr x, const basin_pattern *pattern) {
    if (!x) return NULL;
    basin_shape shape = basin_expr_shape(x);
    basin_expr one = basin_reshape(x, BASIN_SHAPE(shape.dim[0], 1, shape.dim[1]));
    return basin_reshape(basin_pair_sum(ones_of(x, pattern), one, pattern), shape);
}

/* One over the root of the numbers of neighbours, each node being its own. */
static basin_expr roots(basin_expr h, const basin_pattern *pattern, bool loops) {
    basin_graph *graph = basin_expr_graph(h);
    basin_expr one = basin_fill(graph, BASIN_SHAPE(basin_expr_shape(h).dim[0], 1), 1);
    basin_expr count = neighbour_sum(one, pattern);
    count = loops ? basin_max(count, one) : basin_add(count, one);
    return basin_pow(count, -0.5);
}

/* S z */
static basin_expr spread(const smoothness *s, basin_expr z) {
    basin_expr sent = basin_mul(z, s->root);
    basin_expr heard = neighbour_sum(sent, s->pattern);
    if (!s->how->loops) heard = basin_add(heard, sent);
    return basin_mul(heard, s->root);
}

static basin_expr own(const void *context, basin_expr z) {
    const smoothness *s = context;
    return basin_scale(basin_sum_all(basin_square(basin_sub(z, s->own))), 0.5 * s->how->anchor);
}

static basin_expr neighbours(const void *context, basin_expr z) {
    const smoothness *s = context;
    basin_expr rough = basin_mul(z, basin_sub(z, spread(s, z)));
    return basin_scale(basin_sum_all(rough), 0.5 * (1 - s->how->anchor));
}

basin_expr basin_smooth(basin_expr h, const basin_pattern *pattern, const basin_smoothing *how) {
    if (!h || how->steps < 1) return h;
    smoothness s = {h, roots(h, pattern, how->loops), pattern, how};
    basin_energy energy = {BASIN_TERMS({"own", own, &s}, {"neighbours", neighbours, &s})};
    basin_descent_spec spec = {.steps = how->steps, .alpha = 1};
    return basin_descend(&energy, h, &spec, NULL);
}
