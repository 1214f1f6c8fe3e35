/* A user's program, in C and in C++17: needs nothing but the installed headers and library. What
 * headers define beside functions works in both languages. */
#include <stdio.h>
#include <string.h>

#include <basin/basin.h>

static int version_fits(void) {
    basin_error error;
    if (basin_fail(&error, BASIN_BAD_VALUE, "%d", 7) != BASIN_BAD_VALUE) return 0;
    return strcmp(basin_version(), BASIN_VERSION_STRING) == 0;
}

/* Dimensions known at run time only, of whatever integer type. */
static int shapes_fit(int d, size_t n) {
    basin_shape shape = BASIN_SHAPE(d, 2, n);
    if (shape.rank != 3 || shape.dim[0] != d || shape.dim[1] != 2) return 0;
    return shape.dim[2] == (int64_t)n && basin_shape_count(BASIN_SCALAR) == 1;
}

/* Zeros, then assignments: C++17 has no other way to fill a configuration. */
static int step_fits(int d) {
    basin_error error;
    basin_params params;
    basin_init init;
    basin_expr gradient;
    memset(&init, 0, sizeof init);
    init.kind = BASIN_INIT_NORMAL;
    init.scale = 1;
    basin_graph *graph = basin_graph_new();
    basin_params_begin(&params, graph);
    basin_expr q = basin_param_add(&params, "", "q", BASIN_SHAPE(4, d, 2), init);
    basin_expr beta = basin_full(graph, BASIN_SHAPE(d), 1);
    basin_expr lse = basin_attention_lse(q, q, beta, &BASIN_OTHER_PAIRS, NULL);
    basin_vjp(&gradient, basin_sum_all(lse), NULL, &q, 1);
    int bad = basin_graph_check(graph, &error);
    basin_params_free(&params);
    basin_graph_free(graph);
    return !bad;
}

int main(void) {
    if (!version_fits() || !shapes_fit(3, 5) || !step_fits(3)) return 1;
    printf("basin %s\n", basin_version());
    return 0;
}
