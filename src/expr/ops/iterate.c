/* The ends of iterations: rest points of descents, and the linear systems of their reverse. What is
 * iterated is an expression of states; plans run it (src/plan/iterate.c), so that memory does not
 * grow with the number of steps. */
#include "base/memory.h"
#include "expr/graph.h"

basin_expr basin_iterated(const basin_iteration *iteration, basin_expr through, basin_expr after) {
    if (!through || through->graph->error.status) return NULL;
    basin_graph *graph = through->graph;
    basin_expr in[] = {iteration->carry[0].state, through, after};
    if (!basin_array_reserve((void **)&graph->iteration, &graph->iteration_capacity,
                             graph->iterations + 1, sizeof *graph->iteration))
        return basin_graph_fail(graph, BASIN_NO_MEMORY, "out of memory for an expression");
    basin_attr attr = {.start = (int64_t)graph->iterations};
    graph->iteration[graph->iterations++] = *iteration;
    return basin_node_single(graph, BASIN_OP_ITERATED, &attr, in, after ? 3 : 2, through->shape);
}

/* x = f(x) has the reverse of f, of a cotangent that another iteration finds. */
void basin_rule_iterated(basin_node *node, const basin_expr *cotangent, const bool *want,
                         basin_expr *grad) {
    basin_expr end = node->out[0];
    basin_iteration iteration = end->graph->iteration[node->attr.start]; /* the list may move */
    if (!want[1]) return;
    if (iteration.reverse)
        grad[1] = iteration.reverse(end, &iteration, cotangent[0]);
    else
        basin_graph_fail(end->graph, BASIN_UNSUPPORTED,
                         "second derivatives at a rest point are not available");
}
