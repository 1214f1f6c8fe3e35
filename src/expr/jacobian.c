/* Derivatives in other forms, made of the reverse sweep: along directions, and as a matrix. */
#include <stdlib.h>

#include "base/memory.h"
#include "expr/graph.h"

/* The reverse is linear in its cotangent c; its slope by c in the direction of the tangents is the
 * forward derivative. */
basin_expr basin_jvp(basin_expr y, const basin_expr *x, const basin_expr *tangent, int count) {
    char a[BASIN_EXPR_TEXT], b[BASIN_EXPR_TEXT];
    if (!y || count < 1) return NULL;
    basin_expr c = basin_variable(basin_fill(y->graph, y->shape, 0)), sum = NULL;
    basin_expr *back = basin_array_new((size_t)count, sizeof(basin_expr));
    if (!back) return basin_graph_fail(y->graph, BASIN_NO_MEMORY, "out of memory for a gradient");
    basin_vjp(back, y, c, x, count);
    for (int i = 0; i < count && back[i] && tangent[i]; i++) {
        if (!basin_shape_equal(tangent[i]->shape, x[i]->shape))
            basin_graph_fail(y->graph, BASIN_BAD_SHAPE,
                             "jvp: the tangent %s of %s; wanted equal shapes",
                             basin_expr_print(a, tangent[i]), basin_expr_print(b, x[i]));
        basin_expr part = basin_sum_all(basin_mul(back[i], tangent[i]));
        sum = sum ? basin_add(sum, part) : part;
    }
    free(back);
    return basin_graph_error(y->graph) ? NULL : basin_grad(sum, c);
}

/* One row an element of y, by cotangents that are 1 there. */
basin_expr basin_jacobian(basin_expr y, basin_expr x) {
    char text[BASIN_EXPR_TEXT];
    basin_expr row[BASIN_JACOBIAN_MOST];
    if (!y || !x) return NULL;
    int64_t rows = basin_shape_count(y->shape), columns = basin_shape_count(x->shape);
    if (rows < 1 || rows > BASIN_JACOBIAN_MOST)
        return basin_graph_fail(y->graph, BASIN_UNSUPPORTED,
                                "jacobian: %s has %lld elements, wanted 1 to %d",
                                basin_expr_print(text, y), (long long)rows, BASIN_JACOBIAN_MOST);
    basin_expr unit = basin_eye(y->graph, rows);
    for (int64_t i = 0; i < rows; i++) {
        basin_expr cotangent = basin_reshape(basin_slice(unit, 0, i, 1), y->shape);
        basin_vjp(&row[i], y, cotangent, &x, 1);
        row[i] = basin_reshape(row[i], BASIN_SHAPE(1, columns));
    }
    return basin_concat(row, (int)rows, 0);
}
