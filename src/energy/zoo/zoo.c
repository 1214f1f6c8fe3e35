/* What the models of the zoo share: linear maps, gelu, norms. */
#include "energy/zoo/zoo.h"

#include <math.h>

basin_expr basin_zoo_linear(basin_expr x, basin_expr w, basin_expr b) {
    basin_expr y = basin_matmul_t(x, false, w, true);
    return b ? basin_add(y, b) : y;
}

basin_expr basin_zoo_below(basin_expr x) {
    return basin_scale(basin_offset(basin_erf(basin_scale(x, sqrt(0.5))), 1), 0.5);
}

basin_expr basin_zoo_gelu(basin_expr x) { return basin_mul(x, basin_zoo_below(x)); }

basin_expr basin_zoo_norm(basin_expr x, basin_expr gain, basin_expr bias, double epsilon) {
    basin_graph *graph = basin_expr_graph(x);
    basin_expr one = basin_const(graph, 1);
    if (!gain) return basin_layernorm(x, one, bias, epsilon);
    basin_expr zero = basin_fill(graph, basin_expr_shape(bias), 0);
    return basin_add(basin_mul(basin_layernorm(x, one, zero, epsilon), gain), bias);
}

basin_expr basin_zoo_half_square(basin_expr x) {
    return basin_scale(basin_sum(basin_square(x), -1, 1), 0.5);
}

bool basin_zoo_divides(basin_graph *graph, int64_t width, int64_t heads) {
    if (heads >= 1 && width % heads == 0) return true;
    basin_graph_fail(graph, BASIN_BAD_VALUE, "%lld channels in %lld heads; wanted a divisor",
                     (long long)width, (long long)heads);
    return false;
}
