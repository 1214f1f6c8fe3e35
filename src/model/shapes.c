/* Checks of shapes for models and losses; see shapes.h. */
#include "model/shapes.h"

#include "expr/graph.h"

bool basin_model_shapes_agree(basin_expr a, basin_expr b, const char *what) {
    char x[BASIN_EXPR_TEXT], y[BASIN_EXPR_TEXT];
    if (!a || !b) return false;
    if (basin_shape_equal(basin_expr_shape(a), basin_expr_shape(b))) return true;
    basin_graph_fail(basin_expr_graph(a), BASIN_BAD_SHAPE, "%s: %s and %s, wanted equal shapes",
                     what, basin_expr_print(x, a), basin_expr_print(y, b));
    return false;
}

bool basin_model_shape_is(basin_expr a, basin_shape wanted, const char *what) {
    char x[BASIN_EXPR_TEXT], y[BASIN_EXPR_TEXT];
    basin_shape shape = basin_expr_shape(a);
    bool good = a && shape.rank == wanted.rank;
    for (int i = 0; good && i < wanted.rank; i++)
        good = wanted.dim[i] < 0 || shape.dim[i] == wanted.dim[i];
    if (a && !good)
        basin_graph_fail(basin_expr_graph(a), BASIN_BAD_SHAPE, "%s %s, wanted %s%s", what,
                         basin_expr_print(x, a), basin_shape_print(y, wanted), " (-1: any size)");
    return good;
}
