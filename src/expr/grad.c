/* Differentiation as a rewrite: one sweep from y back to x, in which every operation's rule emits
 * nodes. The result is an expression, so it can be swept again. */
#include "expr/grad.h"

#include <stdlib.h>

/* Only the reverse of attention's force is reached and has no rule. */
void basin_rule_none(basin_node *node, const basin_expr *cotangent, const bool *want,
                     basin_expr *grad) {
    (void)cotangent, (void)want, (void)grad;
    basin_graph_fail(node->in[0]->graph, BASIN_UNSUPPORTED,
                     "attention: third derivatives are not available");
}

static basin_rule *const rules[BASIN_OP_COUNT] = {
#define LEAF(name, ...) basin_rule_none,
#define POINTWISE(name, ...) basin_rule_pointwise,
#define CALL(name, rule, ...) basin_rule_##rule,
#include "backend/ops.inc"
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
    char a[BASIN_EXPR_TEXT], b[BASIN_EXPR_TEXT];
    if (!cotangent || basin_shape_equal(y->shape, cotangent->shape)) return true;
    basin_graph_fail(y->graph, BASIN_BAD_SHAPE, "vjp: the cotangent %s of %s; wanted equal shapes",
                     basin_expr_print(a, cotangent), basin_expr_print(b, y));
    return false;
}

static bool check_variables(basin_graph *graph, const basin_expr *x, const bool *want, int count) {
    char text[BASIN_EXPR_TEXT];
    for (int i = 0; i < count; i++) {
        if (!x[i] || (want && !want[i])) continue;
        if (x[i]->graph == graph && x[i]->kind == BASIN_REAL) continue;
        basin_graph_fail(graph, BASIN_BAD_VALUE, "grad: variable %d, %s, %s", i,
                         basin_expr_print(text, x[i]),
                         x[i]->graph == graph ? "is an index tensor" : "is of another graph");
        return false;
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
        if (!gradient[i]) gradient[i] = basin_fill(graph, x[i]->shape, 0);
    }
}

/* With `want`, the sweep ends at those x; without, it goes below them and wants all. */
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
    sweep s = {.graph = graph};
    s.depends = calloc(graph->nodes, sizeof *s.depends);
    s.cut = calloc(graph->nodes, sizeof *s.cut);
    s.cotangent = calloc((size_t)graph->values, sizeof *s.cotangent);
    if (s.depends && s.cut && s.cotangent) {
        for (int i = 0; i < results; i++)
            if (y[i] && cotangent[i]) accumulate(&s, y[i], cotangent[i]);
        run_sweep(gradient, &s, last, x, want, count);
    } else
        basin_graph_fail(graph, BASIN_NO_MEMORY, "out of memory for a gradient");
    free(s.depends);
    free(s.cut);
    free(s.cotangent);
    if (graph->error.status != BASIN_OK)
        for (int i = 0; i < count; i++) gradient[i] = NULL;
}

void basin_vjp(basin_expr *gradient, basin_expr y, basin_expr cotangent, const basin_expr *x,
               int count) {
    if (y && !check_cotangent(y, cotangent)) y = NULL;
    if (y && !cotangent) cotangent = basin_fill(y->graph, y->shape, 1);
    differentiate(gradient, &y, &cotangent, 1, x, NULL, count);
}

void basin_grad_many(basin_expr *gradient, basin_expr y, const basin_expr *x, int count) {
    basin_vjp(gradient, y, NULL, x, count);
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
