/* Differentiation as a rewrite: one sweep from y back to x, in which every operation's rule emits
 * nodes. The result is an expression, so it can be swept again. */
#include "engine/expr/graph.h"

#include "base/try.h"

/* Only the reverse of attention's force is reached and has no rule. */
BASIN_RULE(none) {
    basin_graph_fail(node->in[0]->graph, BASIN_UNSUPPORTED,
                     "attention: third derivatives are not available");
}

static basin_rule *const rules[BASIN_OP_COUNT] = {
#define LEAF(name, ...) basin_rule_none,
#define POINTWISE(name, ...) basin_rule_pointwise,
#define CALL(name, rule, ...) basin_rule_##rule,
#include "engine/backend/ops.inc"
};

/* What one sweep knows; indexed by node id and value id as they were when it began. */
typedef struct sweep {
    basin_graph *graph;
    bool *depends;         /* [nodes] whether the node depends on some x */
    bool *cut;             /* [nodes] stand-ins: do not look below */
    basin_expr *cotangent; /* [values] */
} sweep;

static void mark_dependents(sweep *s, const basin_expr *x, const bool *want, int count, int last) {
    for (int i = 0; i < count; i++)
        if (x[i]) {
            if (!want || want[i]) s->depends[x[i]->node->id] = true;
            s->cut[x[i]->node->id] = want != NULL;
        }
    for (int n = 0; n <= last; n++) {
        const basin_node *node = s->graph->node[n];
        for (int i = 0; i < node->ins && !s->depends[n]; i++)
            if (node->in[i]) s->depends[n] = s->depends[node->in[i]->node->id];
    }
}

static void accumulate(sweep *s, basin_expr operand, basin_expr grad) {
    basin_expr *sum = &s->cotangent[operand->id];
    *sum = *sum ? basin_add(*sum, grad) : grad;
}

/* Sends the cotangents of one node's results to its operands. */
static void visit(sweep *s, basin_node *node) {
    basin_expr cotangent[BASIN_MAX_OUT] = {NULL}, grad[BASIN_MAX_IN] = {NULL};
    bool want[BASIN_MAX_IN] = {false}, any = false, reached = false;
    for (int i = 0; i < node->outs; i++) {
        if (node->out[i]) cotangent[i] = s->cotangent[node->out[i]->id];
        reached = reached || cotangent[i];
    }
    for (int i = 0; i < node->ins; i++) {
        basin_expr in = node->in[i];
        want[i] = in && in->kind == BASIN_REAL && s->depends[in->node->id];
        any = any || want[i];
    }
    if (!reached || !any) return;
    rules[node->op](node, cotangent, want, grad);
    for (int i = 0; i < node->ins; i++)
        if (want[i] && grad[i]) accumulate(s, node->in[i], grad[i]);
}

static bool check_cotangent(basin_expr y, basin_expr cotangent) {
    if (!cotangent || basin_shape_equal(y->shape, cotangent->shape)) return true;
    return basin_graph_fail(y->graph, BASIN_BAD_SHAPE,
                            "vjp: the cotangent %s of %s; expected equal shapes",
                            basin_expr_text(cotangent), basin_expr_text(y));
}

static bool check_variables(basin_graph *graph, const basin_expr *x, const bool *want, int count) {
    for (int i = 0; i < count; i++) {
        if (!x[i] || (want && !want[i])) continue;
        if (x[i]->graph == graph && x[i]->kind == BASIN_REAL) continue;
        return basin_graph_fail(
            graph, BASIN_BAD_VALUE, "grad: variable %d, %s, %s", i, basin_expr_text(x[i]),
            x[i]->graph == graph ? "is an index tensor" : "is of another graph");
    }
    return true;
}

/* The sweep proper, from node `last` down; the cotangents of the results are set. */
static void run_sweep(basin_expr *gradient, sweep *s, int last, const basin_expr *x,
                      const bool *want, int count) {
    basin_graph *graph = s->graph;
    mark_dependents(s, x, want, count, last);
    for (int n = last; n >= 0 && graph->error.status == BASIN_OK; n--)
        if (s->depends[n] && !s->cut[n]) visit(s, graph->node[n]);
    for (int i = 0; i < count; i++) {
        if (!x[i] || (want && !want[i])) continue;
        gradient[i] = s->cotangent[x[i]->id];
        if (!gradient[i]) gradient[i] = basin_full(graph, x[i]->shape, 0);
    }
}

/* With `want`, the sweep stops at the x that it selects; without, it continues below them, and all
 * are computed. */
static void differentiate(basin_expr *gradient, const basin_expr *y, const basin_expr *cotangent,
                          int results, const basin_expr *x, const bool *want, int count) {
    basin_graph *graph = NULL;
    int last = -1;
    for (int i = 0; i < count; i++) gradient[i] = NULL;
    for (int i = 0; i < results; i++) {
        if (!y[i] || !cotangent[i]) continue;
        graph = y[i]->graph;
        if (last < y[i]->node->id) last = y[i]->node->id;
    }
    if (!graph || !check_variables(graph, x, want, count)) return;
    BASIN_FREE_AT_EXIT bool *depends = basin_zeros_new(graph->nodes, sizeof *depends);
    BASIN_FREE_AT_EXIT bool *cut = basin_zeros_new(graph->nodes, sizeof *cut);
    BASIN_FREE_AT_EXIT basin_expr *sum = basin_zeros_new((size_t)graph->values, sizeof *sum);
    sweep s = {graph, depends, cut, sum};
    if (depends && cut && sum) {
        for (int i = 0; i < results; i++)
            if (y[i] && cotangent[i]) accumulate(&s, y[i], cotangent[i]);
        run_sweep(gradient, &s, last, x, want, count);
    } else
        basin_graph_fail(graph, BASIN_NO_MEMORY, "out of memory for a gradient");
    if (graph->error.status != BASIN_OK)
        for (int i = 0; i < count; i++) gradient[i] = NULL;
}

void basin_vjp(basin_expr *gradient, basin_expr y, basin_expr cotangent, const basin_expr *x,
               int count) {
    if (y && !check_cotangent(y, cotangent)) y = NULL;
    if (y && !cotangent) cotangent = basin_full(y->graph, y->shape, 1);
    differentiate(gradient, &y, &cotangent, 1, x, NULL, count);
}

basin_expr basin_grad(basin_expr y, basin_expr x) {
    basin_expr gradient;
    basin_vjp(&gradient, y, NULL, &x, 1);
    return gradient;
}

/* A reshape to the same shape, marked by its count; it becomes nothing in a plan. */
void basin_stand_ins(basin_expr *stand_in, const basin_node *node) {
    for (int i = 0; i < node->ins; i++) {
        basin_expr a = node->in[i];
        stand_in[i] = NULL;
        if (!a) continue;
        basin_attr attr = {.count = 1, .axis = i};
        basin_result out = {.kind = a->kind, .shape = a->shape};
        basin_node *made = basin_node_new(a->graph, BASIN_OP_RESHAPE, &attr, &a, 1, &out, 1);
        if (made) stand_in[i] = made->out[0];
    }
}

void basin_partial(basin_expr *gradient, const basin_expr *y, const basin_expr *cotangent,
                   int results, const basin_expr *x, const bool *want, int count) {
    differentiate(gradient, y, cotangent, results, x, want, count);
}

/* Derivatives in other forms, made of the reverse sweep: along directions, and as a matrix. */

/* The reverse is linear in its cotangent c: its slope by c along tangents is the forward mode. */
basin_expr basin_jvp(basin_expr y, const basin_expr *x, const basin_expr *tangent, int count) {
    if (!y || count < 1) return NULL;
    basin_expr c = basin_variable(basin_full(y->graph, y->shape, 0)), sum = NULL;
    BASIN_FREE_AT_EXIT basin_expr *back = basin_array_new((size_t)count, sizeof *back);
    if (!back) return basin_graph_fail(y->graph, BASIN_NO_MEMORY, "out of memory for a gradient");
    basin_vjp(back, y, c, x, count);
    for (int i = 0; i < count && back[i] && tangent[i]; i++) {
        if (!basin_shape_equal(tangent[i]->shape, x[i]->shape))
            basin_graph_fail(y->graph, BASIN_BAD_SHAPE,
                             "jvp: the tangent %s of %s; expected equal shapes",
                             basin_expr_text(tangent[i]), basin_expr_text(x[i]));
        basin_expr part = basin_sum_all(basin_mul(back[i], tangent[i]));
        sum = sum ? basin_add(sum, part) : part;
    }
    return basin_graph_error(y->graph) ? NULL : basin_grad(sum, c);
}

/* One row an element of y, by cotangents that are 1 there. */
basin_expr basin_jacobian(basin_expr y, basin_expr x) {
    basin_expr row[BASIN_MAX_JACOBIAN];
    if (!y || !x) return NULL;
    int64_t rows = basin_shape_count(y->shape), columns = basin_shape_count(x->shape);
    if (rows < 1 || rows > BASIN_MAX_JACOBIAN)
        return basin_graph_fail(y->graph, BASIN_UNSUPPORTED,
                                "jacobian: %s has %lld elements, expected 1 to %d",
                                basin_expr_text(y), (long long)rows, BASIN_MAX_JACOBIAN);
    basin_expr unit = basin_eye(y->graph, rows);
    for (int64_t i = 0; i < rows; i++) {
        basin_expr cotangent = basin_reshape(basin_slice(unit, 0, i, 1), y->shape);
        basin_vjp(&row[i], y, cotangent, &x, 1);
        row[i] = basin_reshape(row[i], BASIN_SHAPE(1, columns));
    }
    return basin_concat(row, (int)rows, 0);
}

/* The ends of iterations: rest points of descents, linear systems of their reverse. Plans run them
 * (src/engine/plan/iterate.c): memory does not grow with the steps. */

basin_expr basin_iterated(const basin_iteration *iteration, basin_expr through, basin_expr after) {
    if (!through || through->graph->error.status) return NULL;
    basin_graph *graph = through->graph;
    basin_expr in[] = {iteration->carry[0].state, through, after};
    if (!BASIN_RESERVE(&graph->iteration, &graph->iteration_capacity, graph->iterations + 1))
        return basin_graph_fail(graph, BASIN_NO_MEMORY, "out of memory for an expression");
    basin_attr attr = {.start = (int64_t)graph->iterations};
    graph->iteration[graph->iterations++] = *iteration;
    return basin_node_single(graph, BASIN_OP_ITERATED, &attr, in, after ? 3 : 2, through->shape);
}

/* x = f(x) has the reverse of f, of a cotangent that another iteration finds. */
BASIN_RULE(iterated) {
    basin_expr end = node->out[0];
    basin_iteration iteration = end->graph->iteration[node->attr.start]; /* the list may move */
    if (!want[1]) return;
    if (iteration.reverse)
        grad[1] = iteration.reverse(end, &iteration, cotangent[0]);
    else
        basin_graph_fail(end->graph, BASIN_UNSUPPORTED,
                         "second derivatives at a rest point are not available");
}
