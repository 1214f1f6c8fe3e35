/* Random draws as leaves of a formula; the numbers are those of basin/random.h. */
#include "expr/graph.h"

bool basin_is_seed(basin_expr seed) {
    char text[BASIN_EXPR_TEXT];
    if (seed->kind == BASIN_INDEX && basin_shape_equal(seed->shape, BASIN_SHAPE(2))) return true;
    basin_graph_fail(seed->graph, BASIN_BAD_SHAPE, "a seed is an index tensor of shape [2], got %s",
                     basin_expr_print(text, seed));
    return false;
}

static basin_expr draw(basin_op op, basin_expr seed, basin_shape shape, double drop) {
    if (!seed || !basin_is_seed(seed)) return NULL;
    basin_attr attr = {.stream = ++seed->graph->streams, .drop = drop};
    return basin_node_single(seed->graph, op, &attr, &seed, 1, shape);
}

basin_expr basin_normal(basin_expr seed, basin_shape shape) {
    return draw(BASIN_OP_NORMAL, seed, shape, 0);
}
basin_expr basin_uniform(basin_expr seed, basin_shape shape) {
    return draw(BASIN_OP_UNIFORM, seed, shape, 0);
}

basin_expr basin_dropout(basin_expr a, double rate, basin_expr seed) {
    if (!a || !seed || rate == 0) return a;
    if (!(rate > 0 && rate < 1))
        return basin_graph_fail(a->graph, BASIN_BAD_VALUE, "dropout of %g, wanted 0 <= rate < 1",
                                rate);
    basin_expr keep = draw(BASIN_OP_UNIFORM, seed, a->shape, rate);
    return basin_mul(a, basin_scale(keep, 1 / (1 - rate)));
}
