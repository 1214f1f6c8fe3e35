/* From the graph to instructions: what the outputs need, in an order that can run, with the
 * operations of recomputed regions repeated just before their first use outside. */

#include "base/try.h"
#include "engine/plan/ir.h"

basin_status basin_ir_no_memory(basin_ir *ir) { return basin_fail_memory(ir->error, "a plan"); }

void *basin_ir_scratch(basin_ir *ir, size_t count, size_t size) {
    void *made = NULL;
    if (BASIN_RESERVE(&ir->scratch, &ir->scratch_capacity, ir->scratches + 1))
        made = basin_zeros_new(count, size);
    if (made)
        ir->scratch[ir->scratches++] = made;
    else
        basin_ir_no_memory(ir);
    return made;
}

int *basin_ir_scratch_none(basin_ir *ir, size_t count) {
    int *made = basin_ir_scratch(ir, count, sizeof *made);
    if (made) memset(made, 0xff, count * sizeof *made);
    return made;
}

void basin_ir_scratch_free(basin_ir *ir) {
    for (size_t i = 0; i < ir->scratches; i++) free(ir->scratch[i]);
    free((void *)ir->scratch);
    ir->scratch = NULL;
    ir->scratches = ir->scratch_capacity = 0;
}

void basin_ir_free(basin_ir *ir) {
    for (size_t i = 0; i < ir->instructions; i++) basin_program_free(ir->instruction[i].program);
    basin_ir_scratch_free(ir);
    BASIN_FREE(ir->value, ir->instruction, ir->buffer, ir->output);
}

int basin_ir_value_new(basin_ir *ir, basin_shape shape, basin_kind kind) {
    if (!BASIN_RESERVE(&ir->value, &ir->value_capacity, ir->values + 1)) {
        basin_ir_no_memory(ir);
        return -1;
    }
    int id = (int)ir->values++;
    ir->value[id] = (basin_ir_value){
        .shape = shape, .kind = kind, .root = id, .producer = -1, .buffer = -1, .block = -1};
    return id;
}

int basin_ir_view_new(basin_ir *ir, int root, basin_shape shape, int64_t first, int64_t stride) {
    int value = basin_ir_value_new(ir, shape, ir->value[root].kind);
    if (value < 0) return -1;
    ir->value[value].root = root;
    ir->value[value].first = first, ir->value[value].stride = stride;
    return value;
}

basin_ir_instruction basin_ir_transpose(int to, int from) {
    return (basin_ir_instruction){.op = BASIN_OP_PERMUTE,
                                  .attr = {.axes = {1, 0}},
                                  .ins = 1,
                                  .outs = 1,
                                  .in = {from},
                                  .out = {to},
                                  .workspace = -1};
}

int basin_ir_instruction_new(basin_ir *ir, const basin_ir_instruction *instruction) {
    if (!BASIN_RESERVE(&ir->instruction, &ir->instruction_capacity, ir->instructions + 1)) {
        basin_ir_no_memory(ir);
        return -1;
    }
    int id = (int)ir->instructions++;
    ir->instruction[id] = *instruction;
    ir->instruction[id].workspace = -1;
    for (int i = 0; i < instruction->outs; i++)
        if (instruction->out[i] >= 0) ir->value[instruction->out[i]].producer = id;
    return id;
}

int basin_ir_apply(basin_ir *ir, basin_op op, int a, int b, basin_shape shape) {
    int out = basin_ir_value_new(ir, shape, BASIN_REAL);
    basin_ir_instruction made = {
        .op = op, .ins = b < 0 ? 1 : 2, .outs = 1, .in = {a, b < 0 ? 0 : b}, .out = {out}};
    return out < 0 || basin_ir_instruction_new(ir, &made) < 0 ? -1 : out;
}

/* The state of one lowering. Maps go from graph values to plan values, -1 where there is none. */
typedef struct lowering {
    basin_ir *ir;
    const basin_graph *graph;
    bool *live; /* [nodes] */
    int *first; /* [values] as first computed */
    int *again; /* [values] as recomputed for uses outside their region */
    int *dense; /* [values] of constants: as tensors, for operations that take no immediates */
} lowering;

static void mark_live(lowering *l, basin_expr a) {
    if (a) l->live[a->node->id] = true;
}

static void find_live(lowering *l, const basin_plan_spec *spec) {
    for (int i = 0; i < spec->outputs; i++) mark_live(l, spec->output[i]);
    for (int i = 0; i < spec->updates; i++) {
        mark_live(l, spec->update[i].value);
        mark_live(l, spec->update[i].state);
    }
    for (size_t n = l->graph->nodes; n-- > 0;)
        if (l->live[n])
            for (int i = 0; i < l->graph->node[n]->ins; i++) mark_live(l, l->graph->node[n]->in[i]);
}

static bool is_leaf(basin_op op) {
    return op == BASIN_OP_INPUT || op == BASIN_OP_STATE || op == BASIN_OP_DATA ||
           op == BASIN_OP_CONST;
}

/* A value as a stored tensor: of a constant, a copy, made once; all others are stored anyway. */
static int stored(lowering *l, int value) {
    const basin_node *leaf = value < 0 ? NULL : l->ir->value[value].leaf;
    if (!leaf || leaf->op != BASIN_OP_CONST) return value;
    int *dense = &l->dense[leaf->out[0]->id];
    if (*dense < 0) *dense = basin_ir_apply(l->ir, BASIN_OP_COPY, value, -1, leaf->out[0]->shape);
    return *dense;
}

static int emit(lowering *l, const basin_node *node, int *map);

/* The plan value of an operand as seen by a consumer in `region`; -1 on failure. */
static int resolve(lowering *l, basin_expr a, int region) {
    const basin_node *node = a->node;
    bool repeat = node->region != 0 && node->region != region && !node->keep && !is_leaf(node->op);
    int *map = repeat ? l->again : l->first;
    if (map[a->id] < 0 && emit(l, node, map) < 0) return -1;
    return map[a->id];
}

/* Inside a repetition, operands of the same region are the repeated ones. */
static int resolve_operand(lowering *l, const basin_node *node, basin_expr a, const int *map) {
    const basin_node *producer = a->node;
    bool repeating = map == l->again;
    if (repeating && producer->region == node->region && !producer->keep && !is_leaf(producer->op))
        return l->again[a->id] >= 0 || emit(l, producer, l->again) >= 0 ? l->again[a->id] : -1;
    return resolve(l, a, node->region);
}

static int emit_leaf(lowering *l, const basin_node *node) {
    const struct basin_value *out = node->out[0];
    int value = basin_ir_value_new(l->ir, out->shape, out->kind);
    if (value >= 0) l->ir->value[value].leaf = node;
    l->first[out->id] = value;
    return value;
}

static int emit_reshape(lowering *l, const basin_node *node, int *map) {
    int from = resolve_operand(l, node, node->in[0], map);
    int value = from < 0 ? -1 : basin_ir_value_new(l->ir, node->out[0]->shape, node->out[0]->kind);
    if (value < 0) return -1;
    l->ir->value[value].root = l->ir->value[from].root;
    return map[node->out[0]->id] = value;
}

/* Appends a node's instruction (first those it lacks), entering its results into `map`. */
static int emit(lowering *l, const basin_node *node, int *map) {
    if (is_leaf(node->op)) return emit_leaf(l, node);
    if (node->op == BASIN_OP_RESHAPE) return emit_reshape(l, node, map);
    basin_ir_instruction instruction = {
        .op = node->op, .attr = node->attr, .ins = node->ins, .outs = node->outs};
    instruction.again = map == l->again;
    for (int i = 0; i < node->ins; i++) {
        instruction.in[i] = -1;
        if (!node->in[i]) continue;
        int value = resolve_operand(l, node, node->in[i], map);
        if (!basin_op_is_pointwise(node->op)) value = stored(l, value);
        if (value < 0) return -1;
        instruction.in[i] = value;
    }
    for (int i = 0; i < node->outs; i++) {
        instruction.out[i] = -1;
        if (!node->out[i]) continue;
        instruction.out[i] = basin_ir_value_new(l->ir, node->out[i]->shape, node->out[i]->kind);
        if (instruction.out[i] < 0) return -1;
        map[node->out[i]->id] = instruction.out[i];
    }
    return basin_ir_instruction_new(l->ir, &instruction);
}

static int copy_of(lowering *l, int value) {
    return basin_ir_apply(l->ir, BASIN_OP_COPY, value, -1, l->ir->value[value].shape);
}

/* The plan value of what leaves the plan: as first computed, wherever it was built. */
static int resolve_result(lowering *l, basin_expr a) {
    return l->first[a->id] >= 0 ? l->first[a->id] : resolve(l, a, 0);
}

/* Whether the value lies in a state that this plan updates, so that it is gone after the run. */
static bool is_overwritten(const lowering *l, int value, const basin_plan_spec *spec) {
    const basin_node *leaf = l->ir->value[l->ir->value[value].root].leaf;
    for (int i = 0; leaf && i < spec->updates; i++)
        if (spec->update[i].state->node == leaf) return true;
    return false;
}

/* Updates: the value, computed aside where it is a leaf or a view, then written into the state. */
static basin_status lower_updates(lowering *l, const basin_plan_spec *spec) {
    int *value = basin_ir_scratch(l->ir, (size_t)spec->updates, sizeof *value);
    if (!value) return BASIN_NO_MEMORY;
    for (int i = 0; i < spec->updates; i++) {
        value[i] = resolve_result(l, spec->update[i].value);
        if (value[i] < 0 || resolve(l, spec->update[i].state, 0) < 0) return BASIN_NO_MEMORY;
        if (l->ir->value[l->ir->value[value[i]].root].leaf) value[i] = copy_of(l, value[i]);
        if (value[i] < 0) return BASIN_NO_MEMORY;
    }
    for (int i = 0; i < spec->updates; i++) {
        int written = copy_of(l, value[i]);
        if (written < 0) return BASIN_NO_MEMORY;
        l->ir->value[written].state = spec->update[i].state->node;
    }
    return BASIN_OK;
}

static basin_status lower_outputs(lowering *l, const basin_plan_spec *spec) {
    basin_ir *ir = l->ir;
    ir->outputs = spec->outputs;
    ir->output = basin_array_new((size_t)spec->outputs, sizeof *ir->output);
    if (!ir->output) return basin_ir_no_memory(ir);
    for (int i = 0; i < spec->outputs; i++) {
        int value = stored(l, resolve_result(l, spec->output[i]));
        if (value >= 0 && is_overwritten(l, value, spec)) value = copy_of(l, value);
        if (value < 0) return BASIN_NO_MEMORY;
        ir->output[i] = value;
        ir->value[ir->value[value].root].output = true;
    }
    return BASIN_OK;
}

static basin_status lower_nodes(lowering *l, const basin_plan_spec *spec) {
    for (size_t n = 0; n < l->graph->nodes; n++) {
        const basin_node *node = l->graph->node[n];
        if (!l->live[n]) continue;
        bool done = false;
        for (int i = 0; i < node->outs; i++)
            done = done || (node->out[i] && l->first[node->out[i]->id] >= 0);
        if (!done && emit(l, node, l->first) < 0) return BASIN_NO_MEMORY;
    }
    BASIN_TRY(lower_outputs(l, spec));
    return lower_updates(l, spec);
}

basin_status basin_ir_lower(basin_ir *ir, const basin_graph *graph, const basin_plan_spec *spec) {
    size_t values = (size_t)graph->values;
    lowering l = {.ir = ir, .graph = graph};
    l.live = basin_ir_scratch(ir, graph->nodes, sizeof *l.live);
    l.first = basin_ir_scratch_none(ir, values);
    l.again = basin_ir_scratch_none(ir, values);
    l.dense = basin_ir_scratch_none(ir, values);
    if (!l.live || !l.first || !l.again || !l.dense) return BASIN_NO_MEMORY;
    find_live(&l, spec);
    return lower_nodes(&l, spec);
}
