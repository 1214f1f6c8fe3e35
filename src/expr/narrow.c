/* Narrow storage: which intermediate results are kept as bfloat16 where the backend was asked to.
 *
 * Wide (float) stay inputs, states, outputs; what an operation takes or gives only so (statistics,
 * sums, the tokens that layer norm reads); and everything of a state's size on its way into that
 * state: gradients and updates. The rest, activations and their cotangents, is narrow. Matrix
 * products and attention read only narrow factors, so that they run on tensor cores: a wide one, a
 * weight for instance, is cast once for all of them. */
#include <stdlib.h>

#include "base/memory.h"
#include "expr/ir.h"
#include "expr/program.h"

typedef struct narrowing {
    basin_ir *ir;
    bool *wide;          /* [values] of roots */
    int *cast;           /* [values] of wide roots: the narrow copy, -1 before it is needed */
    basin_ir_step *step; /* the new list */
    size_t steps, capacity, values;
} narrowing;

static basin_status no_memory(basin_ir *ir) {
    return basin_fail(ir->error, BASIN_NO_MEMORY, "no memory for a plan");
}

typedef enum demand { ANY, WIDE, NARROW } demand;

static bool is_attention(basin_op op) {
    return op >= BASIN_OP_ATTENTION && op <= BASIN_OP_ATTENTION_REVERSE;
}

/* What an operation wants of operand k. */
static demand operand_demand(basin_op op, int k) {
    switch (op) {
    case BASIN_OP_POINTWISE: return ANY;
    case BASIN_OP_MATMUL: return k < 2 ? NARROW : ANY;
    case BASIN_OP_LAYERNORM_REVERSE: return k == 2 ? ANY : WIDE;
    case BASIN_OP_SUM: return ANY;
    default: break;
    }
    if (!is_attention(op)) return WIDE;
    return k == BASIN_ATT_Q || k == BASIN_ATT_K || k == BASIN_ATT_A || k == BASIN_ATT_B ? NARROW
                                                                                        : WIDE;
}

/* What it gives as result k. */
static demand result_demand(basin_op op, int k) {
    switch (op) {
    case BASIN_OP_POINTWISE:
    case BASIN_OP_MATMUL:
    case BASIN_OP_LAYERNORM: return ANY;
    case BASIN_OP_ATTENTION_FORCE: return k == BASIN_ATT_DQ || k == BASIN_ATT_DK ? NARROW : WIDE;
    case BASIN_OP_ATTENTION_REVERSE: return k == BASIN_ATT_GQ || k == BASIN_ATT_GK ? NARROW : WIDE;
    default: return WIDE;
    }
}

/* ---- which values are wide ---- */

static void mark_operands(narrowing *n, const basin_ir_step *step) {
    for (int k = 0; k < step->ins; k++)
        if (step->in[k] >= 0 && operand_demand(step->op, k) == WIDE)
            n->wide[n->ir->value[step->in[k]].root] = true;
    for (int k = 0; k < step->outs; k++)
        if (step->out[k] >= 0 && result_demand(step->op, k) == WIDE) n->wide[step->out[k]] = true;
}

static int64_t count_of(const basin_ir *ir, int value) {
    return basin_shape_count(ir->value[value].shape);
}

/* From the last step to the first: what a program reads to compute something exact, element by
 * element, is exact, too. `exact` starts with what is written into states. */
static void follow_exact(narrowing *n, bool *exact) {
    const basin_ir *ir = n->ir;
    for (size_t i = ir->steps; i-- > 0;) {
        const basin_ir_step *step = &ir->step[i];
        int made = -1;
        for (int k = 0; k < step->outs; k++)
            if (step->out[k] >= 0 && exact[step->out[k]]) made = step->out[k];
        if (made < 0 || !step->program) continue;
        int64_t count = count_of(ir, made);
        for (int k = step->op == BASIN_OP_MATMUL ? 2 : 0; k < step->ins; k++)
            if (count_of(ir, step->in[k]) == count) exact[ir->value[step->in[k]].root] = true;
    }
    for (size_t i = 0; i < ir->values; i++) n->wide[i] = n->wide[i] || exact[i];
}

static basin_status mark_wide(narrowing *n) {
    const basin_ir *ir = n->ir;
    bool *exact = calloc(ir->values + 1, sizeof *exact);
    if (!exact) return no_memory(n->ir);
    for (size_t i = 0; i < ir->values; i++) {
        const basin_ir_value *v = &ir->value[i];
        n->wide[i] = v->leaf || v->output || v->kind != BASIN_REAL || v->producer < 0;
        exact[i] = v->state != NULL;
    }
    for (size_t i = 0; i < ir->steps; i++) mark_operands(n, &ir->step[i]);
    follow_exact(n, exact);
    free(exact);
    return BASIN_OK;
}

/* ---- casts ---- */

static bool add_step(narrowing *n, const basin_ir_step *step) {
    if (!basin_array_reserve((void **)&n->step, &n->capacity, n->steps + 1, sizeof *step)) {
        no_memory(n->ir);
        return false;
    }
    n->step[n->steps++] = *step;
    return true;
}

/* to <- from, as a step of its own. */
static bool add_cast(narrowing *n, int to, int from) {
    basin_ir_step cast = {
        .op = BASIN_OP_POINTWISE, .ins = 1, .outs = 1, .in = {from}, .out = {to}, .workspace = -1};
    cast.program = basin_program_copy(n->ir->value[from].shape);
    if (cast.program && add_step(n, &cast)) return true;
    if (cast.program) free(cast.program->step);
    free(cast.program);
    no_memory(n->ir);
    return false;
}

/* A narrow value like `value`; its root is `root`, or itself for -1. */
static int narrow_like(narrowing *n, int value, int root) {
    int made = basin_ir_value_new(n->ir, n->ir->value[value].shape, BASIN_NARROW);
    if (made >= 0 && root >= 0) n->ir->value[made].root = root;
    return made;
}

/* The narrow form of a wide operand, cast here unless an earlier step needed it. */
static int narrow_operand(narrowing *n, int value) {
    int root = n->ir->value[value].root;
    if (n->cast[root] < 0) {
        int made = narrow_like(n, value, -1);
        if (made < 0 || !add_cast(n, made, value)) return -1;
        n->cast[root] = made;
    }
    int cast = n->cast[root];
    bool same = basin_shape_equal(n->ir->value[cast].shape, n->ir->value[value].shape);
    return same ? cast : narrow_like(n, value, cast);
}

/* Copies a step into the new list, with casts of what it wants narrow before it and of what must be
 * wide after it. */
static bool move_step(narrowing *n, basin_ir_step step) {
    int after[BASIN_MAX_OUT][2], casts = 0;
    for (int k = 0; k < step.ins; k++) {
        if (step.in[k] < 0 || operand_demand(step.op, k) != NARROW) continue;
        int root = n->ir->value[step.in[k]].root;
        if ((size_t)root >= n->values || !n->wide[root]) continue;
        step.in[k] = narrow_operand(n, step.in[k]);
        if (step.in[k] < 0) return false;
    }
    for (int k = 0; k < step.outs; k++) {
        int value = step.out[k];
        if (value < 0 || result_demand(step.op, k) != NARROW || !n->wide[value]) continue;
        int made = narrow_like(n, value, -1);
        if (made < 0) return false;
        after[casts][0] = value, after[casts++][1] = made;
        step.out[k] = made;
    }
    if (!add_step(n, &step)) return false;
    for (int i = 0; i < casts; i++)
        if (!add_cast(n, after[i][0], after[i][1])) return false;
    return true;
}

static void take_over(narrowing *n) {
    basin_ir *ir = n->ir;
    free(ir->step);
    ir->step = n->step;
    ir->steps = n->steps;
    ir->step_capacity = n->capacity;
    for (size_t i = 0; i < ir->steps; i++)
        for (int k = 0; k < ir->step[i].outs; k++)
            if (ir->step[i].out[k] >= 0) ir->value[ir->step[i].out[k]].producer = (int)i;
    basin_ir_count_uses(ir);
}

/* Programs belong to the steps of the old list until the new one is complete. */
static void discard(narrowing *n) {
    for (size_t i = 0; i < n->steps; i++) {
        bool old = false;
        for (size_t j = 0; j < n->ir->steps; j++)
            old = old || n->step[i].program == n->ir->step[j].program;
        if (old || !n->step[i].program) continue;
        free(n->step[i].program->step);
        free(n->step[i].program);
    }
    free(n->step);
}

static basin_status rewrite(narrowing *n) {
    basin_ir *ir = n->ir;
    for (size_t i = 0; i < n->values; i++) {
        n->cast[i] = -1;
        if (!n->wide[i] && ir->value[i].root == (int)i) ir->value[i].kind = BASIN_NARROW;
    }
    for (size_t i = 0; i < ir->steps; i++)
        if (!move_step(n, ir->step[i])) return BASIN_NO_MEMORY;
    take_over(n);
    n->step = NULL;
    return BASIN_OK;
}

basin_status basin_ir_narrow(basin_ir *ir) {
    narrowing n = {.ir = ir, .values = ir->values};
    n.wide = calloc(ir->values + 1, sizeof *n.wide);
    n.cast = basin_array_new(ir->values, sizeof *n.cast);
    basin_status status = n.wide && n.cast ? mark_wide(&n) : no_memory(ir);
    if (!status) status = rewrite(&n);
    if (n.step) discard(&n);
    free(n.wide);
    free(n.cast);
    return status;
}
