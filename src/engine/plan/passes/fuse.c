/* Fusion. Pointwise instructions that feed only each other become one program; where the program is
 * the only reader of a matrix product, it becomes that product's epilogue; values that end in a
 * state are written there. Without fusion each instruction is its own group. */
#include "base/try.h"
#include "engine/plan/ir.h"

typedef struct fusion {
    basin_ir *ir;
    bool device;
    int *leader; /* [instructions] the last instruction of the group an instruction is in */
    int *first;  /* [instructions] of leaders: the first instruction of their group */
    int *anchor; /* [instructions] of pointwise ones: find_anchor */
    int *viewed; /* [values] uses of the value through its own shape, by live instructions */
} fusion;

/* A device compiles operations of the caller's own with those around them. */
static bool is_pointwise(const fusion *f, basin_op op) {
    return basin_op_is_pointwise(op) || (f->device && op == BASIN_OP_OWN);
}

/* An update whose value a pointwise instruction computes: that instruction writes the state. */
static void absorb_updates(const fusion *f) {
    basin_ir *ir = f->ir;
    for (size_t i = 0; i < ir->instructions; i++) {
        basin_ir_instruction *copy = &ir->instruction[i];
        if (copy->op != BASIN_OP_COPY || !ir->value[copy->out[0]].state) continue;
        basin_ir_value *v = &ir->value[copy->in[0]];
        if (v->root != copy->in[0] || v->producer < 0 || v->output || v->state ||
            !is_pointwise(f, ir->instruction[v->producer].op))
            continue;
        v->state = ir->value[copy->out[0]].state;
        ir->value[copy->out[0]].state = NULL;
        copy->dead = true;
    }
}

/* The group that all readers of an instruction's result belong to; -1: no single one. */
static int single_reader(const fusion *f, int instruction, const int *reader) {
    const basin_ir *ir = f->ir;
    int value = ir->instruction[instruction].out[0];
    const basin_ir_value *v = &ir->value[value];
    if (reader[value] < 0 || f->viewed[value] != v->uses || v->output) return -1;
    int leader = reader[value];
    const basin_ir_value *domain = &ir->value[ir->instruction[leader].out[0]];
    return basin_shape_equal(domain->shape, v->shape) ? leader : -1;
}

/* The latest product read by no other instruction, whose epilogue the group can become; or -1. */
static int find_anchor(const fusion *f, const basin_ir_instruction *instruction) {
    const basin_ir *ir = f->ir;
    int64_t count = basin_shape_count(ir->value[instruction->out[0]].shape);
    int anchor = -1;
    for (int k = 0; k < instruction->ins; k++) {
        const basin_ir_value *root = &ir->value[ir->value[instruction->in[k]].root];
        if (root->producer < 0 || root->uses != 1 || root->output) continue;
        if (basin_shape_count(root->shape) != count) continue;
        bool product = ir->instruction[root->producer].op == BASIN_OP_MATMUL;
        bool pointwise = is_pointwise(f, ir->instruction[root->producer].op);
        int found = product ? root->producer : pointwise ? f->anchor[root->producer] : -1;
        if (found > anchor) anchor = found;
    }
    return anchor;
}

/* Moves instruction i into the group within the limits. A group has one anchor, so that a long sum
 * of products is accumulated in place, product by product. */
static void join(fusion *f, int i, int group) {
    basin_group grown;
    if (group < 0 || (f->anchor[i] >= 0 && f->anchor[i] != f->anchor[group])) return;
    f->leader[i] = group;
    basin_group_collect(&grown, f->ir, f->leader, i, group);
    if (basin_group_fits(&grown, f->ir))
        f->first[group] = i;
    else
        f->leader[i] = i;
}

/* Fills leader[] from the last instruction to the first: an instruction joins the group of its only
 * readers. reader[value] is that group while all readers seen so far agree, -2 once they do not. */
static void find_groups(fusion *f, int *reader, bool plain) {
    basin_ir *ir = f->ir;
    for (size_t i = 0; i < ir->instructions; i++)
        f->anchor[i] =
            is_pointwise(f, ir->instruction[i].op) ? find_anchor(f, &ir->instruction[i]) : -1;
    for (int i = (int)ir->instructions - 1; i >= 0; i--) {
        const basin_ir_instruction *instruction = &ir->instruction[i];
        f->leader[i] = f->first[i] = i;
        if (instruction->dead) continue;
        bool pointwise = is_pointwise(f, instruction->op);
        if (pointwise && !plain) join(f, i, single_reader(f, i, reader));
        for (int k = 0; k < instruction->ins; k++) {
            int value = instruction->in[k];
            if (value < 0) continue;
            int found = pointwise ? f->leader[i] : -2;
            reader[value] = reader[value] == -1 || reader[value] == found ? found : -2;
        }
    }
}

/* A matrix product that only this group reads, the latest such; -1 if there is none. */
static int find_product(const fusion *f, const basin_group *group) {
    const basin_ir *ir = f->ir;
    int best = -1;
    for (int i = 0; i < group->loads; i++) {
        const basin_ir_value *root = &ir->value[ir->value[group->load[i]].root];
        if (root->producer < 0 || root->output || root->uses != group->load_uses[i]) continue;
        const basin_ir_instruction *instruction = &ir->instruction[root->producer];
        if (instruction->op != BASIN_OP_MATMUL || instruction->program || instruction->dead)
            continue;
        if (best >= 0 && ir->value[ir->value[group->load[best]].root].producer > root->producer)
            continue;
        if (basin_group_fits_product(group, ir, i, instruction)) best = i;
    }
    return best;
}

/* Turns the leader's instruction into the group's call: POINTWISE, or MATMUL with an epilogue. */
static basin_status form_call(fusion *f, int leader, bool plain) {
    basin_ir *ir = f->ir;
    basin_group group;
    basin_group_collect(&group, ir, f->leader, f->first[leader], leader);
    int product = plain ? -1 : find_product(f, &group);
    basin_ir_instruction call = {.op = BASIN_OP_POINTWISE, .workspace = -1};
    if (product >= 0) {
        basin_ir_instruction *matmul =
            &ir->instruction[ir->value[ir->value[group.load[product]].root].producer];
        call = *matmul;
        matmul->dead = true;
    }
    call.program = basin_group_program(&group, ir, product, &call);
    if (!call.program) return basin_ir_no_memory(ir);
    int base = product >= 0 ? 2 : 0, at = base;
    for (int i = 0; i < group.loads; i++)
        if (i != product) call.in[at++] = group.load[i];
    call.ins = at;
    call.outs = group.stores;
    for (int i = 0; i < group.stores; i++) {
        call.out[i] = group.store[i];
        ir->value[group.store[i]].producer = leader;
    }
    ir->instruction[leader] = call;
    for (int i = f->first[leader]; i < leader; i++)
        if (f->leader[i] == leader) ir->instruction[i].dead = true;
    return BASIN_OK;
}

static bool reads_state(const basin_ir *ir, const basin_ir_instruction *instruction,
                        const basin_node *state) {
    for (int i = 0; i < instruction->ins; i++)
        if (instruction->in[i] >= 0 && ir->value[ir->value[instruction->in[i]].root].leaf == state)
            return true;
    return false;
}

/* In its own instruction, a state may only be read at the element that is then written. */
static bool reads_in_place(const basin_ir *ir, const basin_ir_instruction *instruction, int value) {
    const basin_node *state = ir->value[value].state;
    int64_t count = basin_shape_count(ir->value[value].shape);
    int base = instruction->op == BASIN_OP_MATMUL ? 2 : 0;
    for (int i = 0; i < instruction->ins; i++) {
        if (instruction->in[i] < 0 || ir->value[ir->value[instruction->in[i]].root].leaf != state)
            continue;
        if (i < base || basin_shape_count(ir->value[instruction->in[i]].shape) != count)
            return false;
    }
    return true;
}

/* A state written before its last reader has run is computed aside and copied at the end. */
static basin_status demote_early_writes(basin_ir *ir) {
    size_t instructions = ir->instructions;
    for (size_t i = 0; i < instructions; i++)
        for (int k = 0; k < ir->instruction[i].outs; k++) {
            int value = ir->instruction[i].out[k];
            const basin_node *state = value < 0 ? NULL : ir->value[value].state;
            if (!state) continue;
            bool late = reads_in_place(ir, &ir->instruction[i], value);
            for (size_t j = i + 1; j < instructions && late; j++)
                late = !reads_state(ir, &ir->instruction[j], state);
            if (late) continue;
            ir->value[value].state = NULL;
            int written = basin_ir_value_new(ir, ir->value[value].shape, BASIN_REAL);
            if (written < 0) return BASIN_NO_MEMORY;
            ir->value[written].state = state;
            basin_ir_instruction copy = {
                .op = BASIN_OP_POINTWISE, .ins = 1, .outs = 1, .in = {value}, .out = {written}};
            copy.program = basin_program_copy(ir->value[value].shape);
            if (!copy.program) return basin_ir_no_memory(ir);
            if (basin_ir_instruction_new(ir, &copy) < 0) {
                basin_program_free(copy.program);
                return BASIN_NO_MEMORY;
            }
        }
    return BASIN_OK;
}

/* Results that nobody reads need no storage. */
static void drop_unread_results(basin_ir *ir) {
    basin_ir_count_uses(ir);
    for (size_t i = 0; i < ir->instructions; i++)
        for (int k = 0; k < ir->instruction[i].outs; k++) {
            int value = ir->instruction[i].out[k];
            if (value < 0) continue;
            const basin_ir_value *v = &ir->value[ir->value[value].root];
            if (v->uses == 0 && !v->output && !v->state) ir->instruction[i].out[k] = -1;
        }
}

static basin_status form_groups(fusion *f, bool plain) {
    basin_ir *ir = f->ir;
    f->leader = basin_ir_scratch(ir, ir->instructions, sizeof *f->leader);
    f->first = basin_ir_scratch(ir, ir->instructions, sizeof *f->first);
    f->anchor = basin_ir_scratch(ir, ir->instructions, sizeof *f->anchor);
    f->viewed = basin_ir_scratch(ir, ir->values, sizeof *f->viewed);
    int *reader = basin_ir_scratch_none(ir, ir->values);
    if (!f->leader || !f->first || !f->anchor || !f->viewed || !reader) return BASIN_NO_MEMORY;
    for (size_t i = 0; i < ir->instructions; i++)
        for (int k = 0; k < ir->instruction[i].ins; k++) {
            int value = ir->instruction[i].in[k];
            if (value >= 0 && !ir->instruction[i].dead) f->viewed[value]++;
        }
    find_groups(f, reader, plain);
    for (size_t i = 0; i < ir->instructions; i++)
        if (!ir->instruction[i].dead && f->leader[i] == (int)i &&
            is_pointwise(f, ir->instruction[i].op))
            BASIN_TRY(form_call(f, (int)i, plain));
    return BASIN_OK;
}

/* The program whose only result this instruction reduces row by row, if rows are short (those of a
 * maximum may be longer, which needs no order) and blocks of whole rows can begin anywhere; or -1.
 */
static int find_reduced(const basin_ir *ir, const basin_ir_instruction *reducer) {
    enum { ROW = 256, LONG = 32768 };
    if (!basin_op_reduces(reducer->op) || reducer->program || reducer->dead) return -1;
    const basin_ir_value *v = &ir->value[reducer->in[0]], *root = &ir->value[v->root];
    const basin_ir_instruction *maker = &ir->instruction[root->producer < 0 ? 0 : root->producer];
    if (root->producer < 0 || root->uses != 1 || root->output || root->state ||
        maker->op != BASIN_OP_POINTWISE || maker->outs != 1 || v->first || v->stride)
        return -1;
    const basin_shape *shape = &v->shape, *domain = &maker->program->domain;
    int64_t n = 1, count = basin_shape_count(*shape),
            width = domain->rank ? domain->dim[domain->rank - 1] : 1;
    for (int i = reducer->attr.axis; i < shape->rank; i++) n *= shape->dim[i];
    bool fits = count > 0 && n <= (reducer->op == BASIN_OP_MAX ? LONG : ROW) &&
                reducer->attr.axis + reducer->attr.count == shape->rank &&
                count == basin_shape_count(root->shape) && (domain->rank < 2 || n % width == 0);
    return fits ? root->producer : -1;
}

static void reduce_programs(basin_ir *ir) {
    basin_ir_number(ir);
    basin_ir_count_uses(ir);
    for (size_t i = 0; i < ir->instructions; i++) {
        basin_ir_instruction *reducer = &ir->instruction[i];
        int found = find_reduced(ir, reducer);
        if (found < 0) continue;
        basin_ir_instruction *maker = &ir->instruction[found];
        reducer->program = maker->program, reducer->ins = maker->ins;
        memcpy(reducer->in, maker->in, sizeof maker->in);
        maker->program = NULL, maker->dead = true;
    }
}

basin_status basin_ir_fuse(basin_ir *ir, bool plain, bool device, bool reduces) {
    fusion f = {.ir = ir, .device = device};
    if (!plain) absorb_updates(&f);
    BASIN_TRY(basin_ir_sort(ir));
    basin_ir_count_uses(ir);
    BASIN_TRY(form_groups(&f, plain));
    BASIN_TRY(basin_ir_sort(ir));
    if (!plain) {
        BASIN_TRY(basin_ir_inline(ir, device));
        BASIN_TRY(basin_ir_sort(ir));
    }
    if (reduces) {
        reduce_programs(ir);
        BASIN_TRY(basin_ir_sort(ir));
    }
    BASIN_TRY(demote_early_writes(ir));
    drop_unread_results(ir);
    return BASIN_OK;
}
