/* Which steps run, and in which order: dead ones are dropped, log-sum-exps that a force computes
 * anyway are taken from there, and the rest is sorted so that producers come first. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "expr/ir.h"

static basin_status no_memory(basin_ir *ir) {
    return basin_fail(ir->error, BASIN_NO_MEMORY, "no memory for a plan");
}

static int producer_of(const basin_ir *ir, int value) {
    return value < 0 ? -1 : ir->value[ir->value[value].root].producer;
}

/* Sorting visits depth first, keeping the old order where it can. */
typedef struct sorting {
    basin_ir *ir;
    int *order; /* [steps] old numbers in their new order */
    int count;
    bool *seen;
} sorting;

static void visit(sorting *s, int step) {
    if (step < 0 || s->seen[step]) return;
    s->seen[step] = true;
    for (int i = 0; i < s->ir->step[step].ins; i++)
        visit(s, producer_of(s->ir, s->ir->step[step].in[i]));
    s->order[s->count++] = step;
}

static bool writes_something_wanted(const basin_ir *ir, const basin_ir_step *step) {
    for (int i = 0; i < step->outs; i++) {
        if (step->out[i] < 0) continue;
        const basin_ir_value *v = &ir->value[step->out[i]];
        if (v->output || v->state) return true;
    }
    return false;
}

/* Steps reachable from what is wanted, found with the same traversal. */
static void find_needed(sorting *s) {
    for (size_t i = 0; i < s->ir->steps; i++)
        if (!s->ir->step[i].dead && writes_something_wanted(s->ir, &s->ir->step[i]))
            visit(s, (int)i);
    for (size_t i = 0; i < s->ir->steps; i++) s->ir->step[i].dead = !s->seen[i];
}

static void sort_needed(sorting *s) {
    s->count = 0;
    memset(s->seen, 0, s->ir->steps * sizeof *s->seen);
    for (size_t i = 0; i < s->ir->steps; i++)
        if (!s->ir->step[i].dead) visit(s, (int)i);
}

static void drop_program(basin_ir_step *step) {
    if (!step->program) return;
    free(step->program->step);
    free(step->program);
    step->program = NULL;
}

basin_status basin_ir_sort(basin_ir *ir) {
    sorting s = {.ir = ir};
    s.order = basin_array_new(ir->steps, sizeof *s.order);
    s.seen = calloc(ir->steps + 1, sizeof *s.seen);
    basin_ir_step *sorted = basin_array_new(ir->steps, sizeof *sorted);
    bool ok = s.order && s.seen && sorted;
    if (ok) {
        find_needed(&s);
        sort_needed(&s);
        for (size_t i = 0; i < ir->steps; i++)
            if (ir->step[i].dead) drop_program(&ir->step[i]);
        for (int i = 0; i < s.count; i++) sorted[i] = ir->step[s.order[i]];
        free(ir->step);
        ir->step = sorted;
        ir->step_capacity = ir->steps > 0 ? ir->steps : 1;
        ir->steps = (size_t)s.count;
        for (int i = 0; i < s.count; i++)
            for (int k = 0; k < sorted[i].outs; k++)
                if (sorted[i].out[k] >= 0) ir->value[sorted[i].out[k]].producer = i;
    } else
        free(sorted);
    free(s.order);
    free(s.seen);
    return ok ? BASIN_OK : no_memory(ir);
}

void basin_ir_count_uses(basin_ir *ir) {
    for (size_t i = 0; i < ir->values; i++) ir->value[i].uses = 0;
    for (size_t i = 0; i < ir->steps; i++)
        for (int k = 0; k < ir->step[i].ins; k++)
            if (ir->step[i].in[k] >= 0) ir->value[ir->value[ir->step[i].in[k]].root].uses++;
}

/* Whether step `to` needs the results of step `from`; only steps after `from` can. */
static bool depends(const basin_ir *ir, int to, int from) {
    if (to == from) return true;
    if (to < from) return false;
    for (int i = 0; i < ir->step[to].ins; i++)
        if (depends(ir, producer_of(ir, ir->step[to].in[i]), from)) return true;
    return false;
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

basin_status basin_ir_share_forces(basin_ir *ir) {
    for (size_t i = 0; i < ir->steps; i++) {
        if (ir->step[i].op != BASIN_OP_ATTENTION) continue;
        int lse = ir->step[i].out[0];
        for (size_t f = i + 1; f < ir->steps; f++) {
            if (!same_scores(ir, &ir->step[i], &ir->step[f]) ||
                depends(ir, producer_of(ir, ir->step[f].in[BASIN_ATT_W]), (int)i))
                continue;
            int instead = ir->step[f].out[BASIN_ATT_LSE];
            for (size_t v = 0; v < ir->values; v++)
                if (ir->value[v].root == lse) ir->value[v].root = instead;
            ir->value[instead].output = ir->value[instead].output || ir->value[lse].output;
            ir->value[lse].output = false;
            break;
        }
    }
    return basin_ir_sort(ir);
}
