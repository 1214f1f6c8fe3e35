/* Constant tensors: the host's numbers, counts, masks by formulas; index tensors as numbers. */
#include "base/try.h"
#include "engine/expr/graph.h"

basin_expr basin_constant(basin_graph *graph, const basin_tensor *tensor) {
    if (!graph || !tensor) return NULL;
    if (tensor->dtype == BASIN_F64 || tensor->dtype == BASIN_I32)
        return basin_leaf_data(graph, tensor->dtype == BASIN_I32 ? BASIN_INDEX : BASIN_REAL,
                               tensor->shape, tensor->data);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor wide = {0};
    basin_error error = {0};
    if (basin_tensor_new(&wide, BASIN_F64, tensor->shape, &error) ||
        basin_tensor_convert(&wide, tensor, &error))
        return basin_graph_fail(graph, error.status, "a constant: %s", error.text);
    return basin_leaf_data(graph, BASIN_REAL, wide.shape, wide.data);
}

basin_expr basin_arange(basin_graph *graph, int64_t count) {
    if (!graph) return NULL;
    if (count < 0 || count > BASIN_MAX_ARANGE)
        return basin_graph_fail(graph, BASIN_BAD_VALUE, "iota: %lld numbers, expected 0 to %d",
                                (long long)count, BASIN_MAX_ARANGE);
    BASIN_FREE_AT_EXIT double *number = basin_array_new((size_t)count, sizeof *number);
    if (!number) return basin_graph_fail(graph, BASIN_NO_MEMORY, "out of memory for a constant");
    for (int64_t i = 0; i < count; i++) number[i] = (double)i;
    return basin_leaf_data(graph, BASIN_REAL, BASIN_SHAPE(count), number);
}

basin_expr basin_eye(basin_graph *graph, int64_t count) {
    basin_expr column = basin_arange(graph, count);
    return basin_equal(basin_as_column(column), column);
}

basin_expr basin_tri(basin_graph *graph, int64_t rows, int64_t columns, int64_t diagonal) {
    basin_expr row = basin_as_column(basin_arange(graph, rows)),
               column = basin_arange(graph, columns);
    return basin_greater(basin_offset(row, (double)diagonal + 0.5), column);
}

basin_expr basin_from_index(basin_expr index, int64_t limit) {
    if (!index) return NULL;
    if (index->kind != BASIN_INDEX || limit < 0 || limit > BASIN_MAX_ARANGE)
        return basin_graph_fail(
            index->graph, BASIN_BAD_VALUE,
            "from_index: %s below %lld, expected an index tensor and a limit of 0 to %d",
            basin_expr_text(index), (long long)limit, BASIN_MAX_ARANGE);
    basin_attr attr = {.start = limit};
    return basin_node_single(index->graph, BASIN_OP_FROM_INDEX, &attr, &index, 1, index->shape);
}

basin_expr basin_to_index(basin_expr a, int64_t limit) {
    if (!a) return NULL;
    if (limit < 1 || limit > INT32_MAX)
        return basin_graph_fail(a->graph, BASIN_BAD_VALUE,
                                "to_index: %s below %lld, expected a limit of 1 to %d",
                                basin_expr_text(a), (long long)limit, INT32_MAX);
    basin_attr attr = {.start = limit};
    basin_result out = {.kind = BASIN_INDEX, .shape = a->shape};
    basin_node *node = basin_node_new(a->graph, BASIN_OP_TO_INDEX, &attr, &a, 1, &out, 1);
    return node ? node->out[0] : NULL;
}

basin_expr basin_one_hot(basin_expr index, int64_t count) {
    if (!index) return NULL;
    if (count < 1)
        return basin_graph_fail(index->graph, BASIN_BAD_VALUE,
                                "one_hot: %s among %lld, expected 1 or more",
                                basin_expr_text(index), (long long)count);
    return basin_equal(basin_as_column(basin_from_index(index, count)),
                       basin_arange(index->graph, count));
}

/* ---- Random draws as leaves of a formula; the numbers are those of basin/random.h ---- */

bool basin_is_seed(basin_expr seed) {
    if (seed->kind == BASIN_INDEX && basin_shape_equal(seed->shape, BASIN_SHAPE(2))) return true;
    return basin_graph_fail(seed->graph, BASIN_BAD_SHAPE,
                            "a seed is an index tensor of shape [2], got %s",
                            basin_expr_text(seed));
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
        return basin_graph_fail(a->graph, BASIN_BAD_VALUE, "dropout of %g, expected 0 <= rate < 1",
                                rate);
    basin_expr keep = draw(BASIN_OP_UNIFORM, seed, a->shape, rate);
    return basin_mul(a, basin_scale(keep, 1 / (1 - rate)));
}
