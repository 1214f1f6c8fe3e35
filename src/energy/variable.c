/* A variable is a + 0, built past the simplification that would remove the zero. */
#include "energy/variable.h"

#include "expr/graph.h"

/* No builder reads through these, so they serve as they are. */
static bool opaque(basin_expr a) {
    switch (basin_expr_op(a)) {
    case BASIN_OP_INPUT:
    case BASIN_OP_STATE:
    case BASIN_OP_RELU:
    case BASIN_OP_EXP:
    case BASIN_OP_EXPM1:
    case BASIN_OP_POW:
    case BASIN_OP_TANH:
    case BASIN_OP_SIGMOID:
    case BASIN_OP_SOFTMAX:
    case BASIN_OP_LAYERNORM:
    case BASIN_OP_SLICE:
    case BASIN_OP_DIV:
    case BASIN_OP_ADD:
    case BASIN_OP_SUB: return true;
    case BASIN_OP_MUL: return !basin_expr_is_const(a->node->in[0]);
    default: return false;
    }
}

basin_expr basin_variable(basin_expr a, int tag) {
    if (!a || (tag == 0 && opaque(a))) return a;
    basin_attr attr = {.axis = tag};
    basin_expr in[2] = {a, basin_const(a->graph, 0)};
    return in[1] ? basin_node_single(a->graph, BASIN_OP_ADD, &attr, in, 2, a->shape) : NULL;
}
