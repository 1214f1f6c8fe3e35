/* Rewriting the expressions of a plan before it is made.
 *
 * What a user builds is kept as it is built, so that any part of it can be differentiated by. For a
 * plan, everything its outputs need is built once more on a graph that simplifies: constants move
 * together, factors move after products and broadcasts after arithmetic, views merge into one. */
#include "engine/plan/ir.h"

#include "base/try.h"

typedef struct rewrite {
    basin_graph *to;
    bool *live;      /* [nodes] of the graph rewritten */
    basin_expr *map; /* [values] */
} rewrite;

static void mark(rewrite *r, basin_expr a) {
    if (a) r->live[a->node->id] = true;
}

/* What a plan reads of a node: of the end of an iteration, the state. */
static int operands(const basin_node *node) {
    return node->op == BASIN_OP_ITERATED ? 1 : node->ins;
}

static void find_live(rewrite *r, const basin_graph *from, const basin_plan_spec *spec) {
    for (int i = 0; i < spec->outputs; i++) mark(r, spec->output[i]);
    for (int i = 0; i < spec->updates; i++) {
        mark(r, spec->update[i].state);
        mark(r, spec->update[i].value);
    }
    for (size_t n = from->nodes; n-- > 0;)
        if (r->live[n])
            for (int i = 0; i < operands(from->node[n]); i++) mark(r, from->node[n]->in[i]);
}

static void rebuild_leaf(rewrite *r, const basin_node *node) {
    const struct basin_value *out = node->out[0];
    basin_expr leaf = basin_leaf(r->to, node->op, out->kind, node->name, out->shape);
    if (leaf) leaf->node->origin = node;
    r->map[out->id] = leaf;
}

/* Operations without a special rule: the same node over the new operands. */
static void rebuild_as_is(rewrite *r, const basin_node *node, const basin_expr *in) {
    basin_result out[BASIN_MAX_OUT] = {{0}};
    for (int i = 0; i < node->outs; i++) {
        out[i].absent = !node->out[i];
        if (!node->out[i]) continue;
        out[i].kind = node->out[i]->kind;
        out[i].shape = node->out[i]->shape;
    }
    basin_node *made = basin_node_new(r->to, node->op, &node->attr, in, node->ins, out, node->outs);
    for (int i = 0; made && i < node->outs; i++)
        if (node->out[i]) r->map[node->out[i]->id] = made->out[i];
}

/* A constant factor moves after the sum, where there is less to multiply. */
static basin_expr rebuild_sum(const basin_node *node, basin_expr a) {
    double factor = a && a->graph->simplify ? basin_split_factor(&a) : 1;
    return basin_scale(basin_sum(a, node->attr.axis, node->attr.count), factor);
}

static basin_expr rebuild_single(const basin_node *node, const basin_expr *in) {
    basin_shape shape = node->out[0]->shape;
    switch (node->op) {
    case BASIN_OP_COPY: return basin_broadcast_to(in[0], shape);
    case BASIN_OP_SUM: return rebuild_sum(node, in[0]);
    case BASIN_OP_RESHAPE: return basin_reshape(in[0], shape);
    default: return basin_matmul_t(in[0], node->attr.transpose_a, in[1], node->attr.transpose_b);
    }
}

static void rebuild(rewrite *r, const basin_node *node) {
    basin_expr in[BASIN_MAX_IN] = {NULL};
    for (int i = 0; i < operands(node); i++)
        if (node->in[i]) in[i] = r->map[node->in[i]->id];
    if (node->op == BASIN_OP_INPUT || node->op == BASIN_OP_STATE)
        rebuild_leaf(r, node);
    else if (node->op == BASIN_OP_DATA)
        r->map[node->out[0]->id] = basin_leaf_again(r->to, node);
    else if (node->op == BASIN_OP_ITERATED)
        r->map[node->out[0]->id] = in[0];
    else if (node->op == BASIN_OP_CONST)
        r->map[node->out[0]->id] = basin_scalar(r->to, node->attr.value);
    else if (node->op == BASIN_OP_COPY || node->op == BASIN_OP_RESHAPE ||
             node->op == BASIN_OP_MATMUL || node->op == BASIN_OP_SUM)
        r->map[node->out[0]->id] = rebuild_single(node, in);
    else if (basin_op_is_pointwise(node->op))
        r->map[node->out[0]->id] = basin_pointwise(node->op, in, node->attr.value);
    else
        rebuild_as_is(r, node, in);
}

static void rebuild_live(rewrite *r, const basin_graph *from) {
    for (size_t n = 0; n < from->nodes && r->to->error.status == BASIN_OK; n++) {
        const basin_node *node = from->node[n];
        if (!r->live[n]) continue;
        r->to->region = node->region;
        rebuild(r, node);
        for (int i = 0; i < node->outs && node->keep; i++)
            if (node->out[i]) basin_keep(r->map[node->out[i]->id]);
    }
    r->to->region = 0;
}

static basin_status map_spec(basin_simple *simple, const rewrite *r, const basin_plan_spec *spec,
                             basin_error *error) {
    BASIN_TRY(BASIN_NEW_RAW(&simple->output, spec->outputs, "a plan", error));
    BASIN_TRY(BASIN_NEW_RAW(&simple->update, spec->updates, "a plan", error));
    for (int i = 0; i < spec->outputs; i++) simple->output[i] = r->map[spec->output[i]->id];
    for (int i = 0; i < spec->updates; i++)
        simple->update[i] =
            (basin_update){r->map[spec->update[i].state->id], r->map[spec->update[i].value->id]};
    simple->spec = *spec;
    simple->spec.output = simple->output;
    simple->spec.update = simple->update;
    return BASIN_OK;
}

basin_status basin_simplify(basin_simple *simple, const basin_graph *from,
                            const basin_plan_spec *spec, bool plain, bool thin,
                            basin_error *error) {
    *simple = (basin_simple){.graph = basin_graph_new()};
    if (!simple->graph) return basin_fail_memory(error, "a plan");
    BASIN_SCRATCH(bool, live, from->nodes, "a plan", error);
    BASIN_SCRATCH(basin_expr, map, from->values, "a plan", error);
    rewrite r = {.to = simple->graph, .live = live, .map = map};
    r.to->simplify = !plain, r.to->thin = thin;
    find_live(&r, from, spec);
    rebuild_live(&r, from);
    if (r.to->error.status) return basin_fail(error, r.to->error.status, "%s", r.to->error.text);
    return map_spec(simple, &r, spec, error);
}

void basin_simple_free(basin_simple *simple) {
    basin_graph_free(simple->graph);
    BASIN_FREE(simple->output, simple->update);
    *simple = (basin_simple){0};
}
