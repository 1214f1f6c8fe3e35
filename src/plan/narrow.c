/* Narrow storage: which intermediate results are kept as bfloat16 where the backend was asked to.
 *
 * Tensor cores read narrow factors, so those of the large matrix products and of attention over all
 * pairs are narrow; a small product gains nothing from it and stays float, factors and all. Narrow
 * is what nobody but such products reads, or a layer norm's reverse as its cotangent; a factor that
 * others read, too (a weight, the cotangent of the tokens), is float and gets a narrow copy, stored
 * by the step that computes it where that can. Everything else stays float: inputs, states,
 * outputs, the tokens, statistics, sums, energies, heads, lists of pairs, gradients on their way
 * into a state. */
#include <stdlib.h>

#include "base/memory.h"
#include "plan/ir.h"
#include "plan/program.h"

typedef struct narrowing {
    basin_ir *ir;
    double least;        /* multiply-adds from which on a product or an attention is large */
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

static double count_of(const basin_ir *ir, int value) {
    return (double)basin_shape_count(ir->value[value].shape);
}

/* Whether the step has enough to multiply that narrow factors pay. */
static bool is_large(const narrowing *n, const basin_ir_step *step) {
    const basin_ir *ir = n->ir;
    if (step->op == BASIN_OP_MATMUL) {
        int64_t size[4];
        basin_product_sizes(size, ir, step);
        return (double)size[0] * (double)size[1] * (double)size[2] * (double)size[3] >= n->least;
    }
    if (!is_attention(step->op) || step->in[BASIN_ATT_ROW] >= 0) return false;
    double keys = (double)ir->value[step->in[BASIN_ATT_K]].shape.dim[1];
    return count_of(ir, step->in[BASIN_ATT_Q]) * keys >= n->least;
}

/* What a step wants of operand k. */
static demand operand_demand(const narrowing *n, const basin_ir_step *step, int k) {
    switch (step->op) {
    case BASIN_OP_POINTWISE: return ANY;
    case BASIN_OP_MATMUL: return k >= 2 ? ANY : is_large(n, step) ? NARROW : WIDE;
    case BASIN_OP_LAYERNORM_REVERSE: return k == 2 ? ANY : WIDE;
    case BASIN_OP_SUM: return ANY;
    default: break;
    }
    bool tokens = k == BASIN_ATT_Q || k == BASIN_ATT_K || k == BASIN_ATT_A || k == BASIN_ATT_B;
    return is_attention(step->op) && tokens && is_large(n, step) ? NARROW : WIDE;
}

/* What it gives as result k. */
static demand result_demand(const narrowing *n, const basin_ir_step *step, int k) {
    switch (step->op) {
    case BASIN_OP_POINTWISE:
    case BASIN_OP_MATMUL:
    case BASIN_OP_LAYERNORM: return ANY;
    case BASIN_OP_ATTENTION_FORCE:
        return (k == BASIN_ATT_DQ || k == BASIN_ATT_DK) && is_large(n, step) ? NARROW : WIDE;
    case BASIN_OP_ATTENTION_REVERSE:
        return (k == BASIN_ATT_GQ || k == BASIN_ATT_GK) && is_large(n, step) ? NARROW : WIDE;
    default: return WIDE;
    }
}

/* ---- which values are wide ---- */

static bool is_large_product(const narrowing *n, int value) {
    const basin_ir_value *root = &n->ir->value[n->ir->value[value].root];
    const basin_ir_step *step = root->producer < 0 ? NULL : &n->ir->step[root->producer];
    return step && step->op == BASIN_OP_MATMUL && is_large(n, step);
}

/* Whether operand k of the step may be narrow though it is no factor: a large product that a layer
 * norm takes as its cotangent, or what a product adds to a narrow result. Results of the step are
 * decided already. */
static bool tolerates(const narrowing *n, const basin_ir_step *step, int k) {
    if (step->op == BASIN_OP_LAYERNORM_REVERSE) return k == 2 && is_large_product(n, step->in[k]);
    if (step->op != BASIN_OP_MATMUL || k < 2) return false;
    for (int i = 0; i < step->outs; i++)
        if (step->out[i] >= 0 && !n->wide[step->out[i]]) return true;
    return false;
}

/* From the last step to the first, so that the readers of a result are decided before it is. A
 * result starts as wide as its step gives it, and any reader can make it wide. */
static void mark_wide(narrowing *n) {
    const basin_ir *ir = n->ir;
    for (size_t i = 0; i < ir->values; i++) {
        const basin_ir_value *v = &ir->value[i];
        n->wide[i] = v->leaf || v->output || v->state || v->kind != BASIN_REAL || v->producer < 0 ||
                     v->uses == 0;
    }
    for (size_t i = ir->steps; i-- > 0;) {
        const basin_ir_step *step = &ir->step[i];
        for (int k = 0; k < step->outs; k++)
            if (step->out[k] >= 0 && result_demand(n, step, k) == WIDE)
                n->wide[step->out[k]] = true;
        for (int k = 0; k < step->ins; k++) {
            if (step->in[k] < 0) continue;
            if (operand_demand(n, step, k) != NARROW && !tolerates(n, step, k))
                n->wide[ir->value[step->in[k]].root] = true;
        }
    }
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

/* Lets the program that computes `root` store it once more as `made`, if there is such a program
 * and it has room for that. */
static bool store_twice(narrowing *n, int made, int root) {
    for (size_t i = n->steps; i-- > 0;) {
        basin_ir_step *step = &n->step[i];
        for (int k = 0; k < step->outs; k++) {
            if (step->out[k] != root) continue;
            if (step->op == BASIN_OP_LAYERNORM_REVERSE && k == 0 && step->outs == 3) {
                step->out[step->outs++] = made;
                return true;
            }
            if (step->op != BASIN_OP_POINTWISE || step->outs == BASIN_MAX_OUT) return false;
            step->program->store[step->program->stores++] = step->program->store[k];
            step->out[step->outs++] = made;
            return true;
        }
    }
    return false;
}

/* The narrow form of a wide operand, made here unless an earlier step needed it. */
static int narrow_operand(narrowing *n, int value) {
    int root = n->ir->value[value].root;
    if (n->cast[root] < 0) {
        int made = narrow_like(n, value, -1);
        if (made < 0 || (!store_twice(n, made, root) && !add_cast(n, made, value))) return -1;
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
        if (step.in[k] < 0 || operand_demand(n, &step, k) != NARROW) continue;
        int root = n->ir->value[step.in[k]].root;
        if ((size_t)root >= n->values || !n->wide[root]) continue;
        step.in[k] = narrow_operand(n, step.in[k]);
        if (step.in[k] < 0) return false;
    }
    for (int k = 0; k < step.outs; k++) {
        int value = step.out[k];
        if (value < 0 || result_demand(n, &step, k) != NARROW || !n->wide[value]) continue;
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

basin_status basin_ir_narrow(basin_ir *ir, double least) {
    narrowing n = {.ir = ir, .least = least, .values = ir->values};
    n.wide = calloc(ir->values + 1, sizeof *n.wide);
    n.cast = basin_array_new(ir->values, sizeof *n.cast);
    basin_status status = n.wide && n.cast ? BASIN_OK : no_memory(ir);
    if (!status) {
        mark_wide(&n);
        status = rewrite(&n);
    }
    if (n.step) discard(&n);
    free(n.wide);
    free(n.cast);
    return status;
}
