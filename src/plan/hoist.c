/* Standing steps: what depends on nothing but constants and states that the plan leaves as they
 * are, as the narrow or packed copies of weights in a plan for inference do. They come first, and
 * run again only after a state has changed. Draws hang on their seed, an input, and never stand. */
#include <stdlib.h>

#include "base/memory.h"
#include "plan/ir.h"

static int root_of(const basin_ir *ir, int value) { return ir->value[value].root; }

static bool is_updated(const basin_ir *ir, const basin_node *state) {
    for (size_t i = 0; i < ir->values; i++)
        if (ir->value[i].state == state) return true;
    return false;
}

/* Whether another run may find other numbers there, whatever the steps do. */
static bool begins_moving(const basin_ir *ir, const basin_ir_value *value) {
    if (value->state) return true;
    const basin_node *leaf = value->leaf;
    return leaf &&
           (leaf->op == BASIN_OP_INPUT || (leaf->op == BASIN_OP_STATE && is_updated(ir, leaf)));
}

/* A joint value moves where one of its parts does, and then so do all steps that write into it. */
static bool is_moving(const basin_ir *ir, const basin_ir_step *step, const bool *moving) {
    for (int k = 0; k < step->ins; k++)
        if (step->in[k] >= 0 && moving[root_of(ir, step->in[k])]) return true;
    for (int k = 0; k < step->outs; k++)
        if (step->out[k] >= 0 && moving[root_of(ir, step->out[k])]) return true;
    return false;
}

/* Marks the results of a step that moves; whether any was not marked before. */
static bool spread(const basin_ir *ir, const basin_ir_step *step, bool *moving) {
    bool more = false;
    for (int k = 0; k < step->outs; k++) {
        if (step->out[k] < 0 || moving[root_of(ir, step->out[k])]) continue;
        moving[root_of(ir, step->out[k])] = more = true;
    }
    return more;
}

static void find_moving(const basin_ir *ir, bool *moving) {
    for (size_t i = 0; i < ir->values; i++)
        if (begins_moving(ir, &ir->value[i])) moving[root_of(ir, (int)i)] = true;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < ir->steps; i++)
            if (is_moving(ir, &ir->step[i], moving))
                more = spread(ir, &ir->step[i], moving) || more;
    }
}

/* Standing steps first, either kind in its order. `sorted` takes the place of the steps. */
static void part(basin_ir *ir, basin_ir_step *sorted, const bool *moving) {
    size_t at = 0;
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < ir->steps; i++)
            if (is_moving(ir, &ir->step[i], moving) == (turn > 0)) sorted[at++] = ir->step[i];
        if (turn == 0) ir->standing = at;
    }
    free(ir->step);
    ir->step = sorted;
    ir->step_capacity = ir->steps > 0 ? ir->steps : 1;
    for (size_t i = 0; i < ir->steps; i++)
        for (int k = 0; k < sorted[i].outs; k++) {
            if (sorted[i].out[k] < 0) continue;
            ir->value[sorted[i].out[k]].producer = (int)i;
            ir->value[root_of(ir, sorted[i].out[k])].producer = (int)i;
        }
}

basin_status basin_ir_stand(basin_ir *ir) {
    bool *moving = calloc(ir->values + 1, sizeof *moving); /* of roots */
    basin_ir_step *sorted = basin_array_new(ir->steps, sizeof *sorted);
    bool ok = moving && sorted;
    if (ok) {
        find_moving(ir, moving);
        part(ir, sorted, moving);
    } else
        free(sorted);
    free(moving);
    return ok ? BASIN_OK : basin_fail(ir->error, BASIN_NO_MEMORY, "no memory for a plan");
}
