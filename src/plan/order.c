/* Which steps run, and in which order: dead ones are dropped, log-sum-exps that a force computes
 * anyway are taken from there, what is added to the reverse of a layer norm is added there, and the
 * rest is sorted so that producers come first. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/ir.h"

static basin_status no_memory(basin_ir *ir) {
    return basin_fail(ir->error, BASIN_NO_MEMORY, "no memory for a plan");
}

static int producer_of(const basin_ir *ir, int value) {
    return value < 0 ? -1 : ir->value[ir->value[value].root].producer;
}

/* A walk from steps to what they need, depth first, keeping the old order where it can. */
typedef struct walk {
    basin_ir *ir;
    int *order; /* [steps] old numbers, producers first */
    int count;
    bool *seen; /* [steps] */
    int *stack; /* [steps] begun steps */
    int *next;  /* [steps] of each begun step: the operand to follow next */
} walk;

static bool walk_begin(walk *w, basin_ir *ir) {
    *w = (walk){.ir = ir};
    w->order = basin_array_new(ir->steps, sizeof *w->order);
    w->seen = calloc(ir->steps + 1, sizeof *w->seen);
    w->stack = basin_array_new(ir->steps, sizeof *w->stack);
    w->next = basin_array_new(ir->steps, sizeof *w->next);
    return w->order && w->seen && w->stack && w->next;
}

static void walk_restart(walk *w) {
    w->count = 0;
    memset(w->seen, 0, w->ir->steps * sizeof *w->seen);
}

static void walk_end(walk *w) {
    free(w->order);
    free(w->seen);
    free(w->stack);
    free(w->next);
}

static void visit(walk *w, int step) {
    int depth = 0, found = step;
    for (;;) {
        if (found >= 0 && !w->seen[found]) {
            w->seen[found] = true;
            w->next[found] = 0;
            w->stack[depth++] = found;
        }
        if (depth == 0) return;
        int top = w->stack[depth - 1];
        const basin_ir_step *s = &w->ir->step[top];
        if (w->next[top] < s->ins)
            found = producer_of(w->ir, s->in[w->next[top]++]);
        else {
            w->order[w->count++] = top;
            depth--;
            found = -1;
        }
    }
}

static bool writes_something_wanted(const basin_ir *ir, const basin_ir_step *step) {
    for (int i = 0; i < step->outs; i++) {
        if (step->out[i] < 0) continue;
        const basin_ir_value *v = &ir->value[step->out[i]];
        if (v->output || v->state) return true;
    }
    return false;
}

/* Steps reachable from what is wanted, found with the same walk. */
static void find_needed(walk *w) {
    for (size_t i = 0; i < w->ir->steps; i++)
        if (!w->ir->step[i].dead && writes_something_wanted(w->ir, &w->ir->step[i]))
            visit(w, (int)i);
    for (size_t i = 0; i < w->ir->steps; i++) w->ir->step[i].dead = !w->seen[i];
}

static void sort_needed(walk *w) {
    walk_restart(w);
    for (size_t i = 0; i < w->ir->steps; i++)
        if (!w->ir->step[i].dead) visit(w, (int)i);
}

static void drop_program(basin_ir_step *step) {
    if (!step->program) return;
    free(step->program->step);
    free(step->program);
    step->program = NULL;
}

/* Takes over the walk's order; `sorted` has room for all steps. */
static void reorder(basin_ir *ir, basin_ir_step *sorted, const walk *w) {
    for (size_t i = 0; i < ir->steps; i++)
        if (ir->step[i].dead) drop_program(&ir->step[i]);
    for (int i = 0; i < w->count; i++) sorted[i] = ir->step[w->order[i]];
    free(ir->step);
    ir->step = sorted;
    ir->step_capacity = ir->steps > 0 ? ir->steps : 1;
    ir->steps = (size_t)w->count;
    for (int i = 0; i < w->count; i++)
        for (int k = 0; k < sorted[i].outs; k++)
            if (sorted[i].out[k] >= 0) ir->value[sorted[i].out[k]].producer = i;
}

basin_status basin_ir_sort(basin_ir *ir) {
    walk w;
    basin_ir_step *sorted = basin_array_new(ir->steps, sizeof *sorted);
    bool ok = walk_begin(&w, ir) && sorted;
    if (ok) {
        find_needed(&w);
        sort_needed(&w);
        reorder(ir, sorted, &w);
    } else
        free(sorted);
    walk_end(&w);
    return ok ? BASIN_OK : no_memory(ir);
}

void basin_ir_count_uses(basin_ir *ir) {
    for (size_t i = 0; i < ir->values; i++) ir->value[i].uses = 0;
    for (size_t i = 0; i < ir->steps; i++)
        for (int k = 0; k < ir->step[i].ins; k++)
            if (ir->step[i].in[k] >= 0) ir->value[ir->value[ir->step[i].in[k]].root].uses++;
}

/* Whether step `to` needs the results of step `from`. */
static bool depends(walk *w, int to, int from) {
    walk_restart(w);
    visit(w, to);
    return w->seen[from];
}

static bool same_scores(const basin_ir *ir, const basin_ir_step *lse, const basin_ir_step *force) {
    if (force->op != BASIN_OP_ATTENTION_FORCE || force->out[BASIN_ATT_LSE] < 0 ||
        force->attr.exclude_self != lse->attr.exclude_self)
        return false;
    for (int i = 0; i <= BASIN_ATT_PAIR; i++) {
        int a = lse->in[i], b = force->in[i];
        if ((a < 0) != (b < 0) || (a >= 0 && ir->value[a].root != ir->value[b].root)) return false;
    }
    return true;
}

/* Every reader of `lse` reads `instead`. */
static void replace(basin_ir *ir, int lse, int instead) {
    for (size_t v = 0; v < ir->values; v++)
        if (ir->value[v].root == lse) ir->value[v].root = instead;
    ir->value[instead].output = ir->value[instead].output || ir->value[lse].output;
    ir->value[lse].output = false;
}

/* A force that waits for the log-sum-exp itself cannot give it. What was replaced before counts:
 * then steps may wait for later ones. */
basin_status basin_ir_share_forces(basin_ir *ir) {
    walk w;
    bool ok = walk_begin(&w, ir);
    for (size_t i = 0; ok && i < ir->steps; i++) {
        if (ir->step[i].op != BASIN_OP_ATTENTION) continue;
        for (size_t f = i + 1; f < ir->steps; f++) {
            if (!same_scores(ir, &ir->step[i], &ir->step[f]) || depends(&w, (int)f, (int)i))
                continue;
            replace(ir, ir->step[i].out[0], ir->step[f].out[BASIN_ATT_LSE]);
            break;
        }
    }
    walk_end(&w);
    return ok ? basin_ir_sort(ir) : no_memory(ir);
}

/* The reverse of a layer norm whose result dx only step `add` reads, to add another value to it
 * that is there before; -1 where there is none. */
static int residual_of(const basin_ir *ir, const basin_ir_step *add, int side) {
    int dx = add->in[side], other = add->in[1 - side];
    const basin_ir_value *v = &ir->value[dx], *r = &ir->value[other];
    if (v->root != dx || v->producer < 0 || v->uses != 1 || v->output || v->state) return -1;
    const basin_ir_step *reverse = &ir->step[v->producer];
    bool fits = reverse->op == BASIN_OP_LAYERNORM_REVERSE && reverse->ins == 3 &&
                reverse->out[0] == dx && basin_shape_equal(v->shape, r->shape) &&
                basin_shape_equal(v->shape, ir->value[add->out[0]].shape);
    return fits && ir->value[r->root].producer < v->producer ? v->producer : -1;
}

basin_status basin_ir_join_residuals(basin_ir *ir) {
    basin_ir_count_uses(ir);
    for (size_t i = 0; i < ir->steps; i++) {
        basin_ir_step *add = &ir->step[i];
        if (add->op != BASIN_OP_ADD || add->dead) continue;
        for (int side = 0; side < 2; side++) {
            int reverse = residual_of(ir, add, side);
            if (reverse < 0) continue;
            ir->step[reverse].in[ir->step[reverse].ins++] = add->in[1 - side];
            ir->step[reverse].out[0] = add->out[0];
            ir->value[add->out[0]].producer = reverse;
            add->dead = true;
            break;
        }
    }
    return basin_ir_sort(ir);
}
