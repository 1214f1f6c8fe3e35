/* Hoisted instructions: what depends on nothing but constants and states that the plan leaves as
 * they are, as the narrow or packed copies of weights in a plan for inference do. They come first,
 * and run again only after a state has changed. Draws depend on their seed, an input, and are never
 * hoisted. */
#include <stdlib.h>

#include "base/memory.h"
#include "plan/ir.h"

static int root_of(const basin_ir *ir, int value) { return ir->value[value].root; }

static bool is_updated(const basin_ir *ir, const basin_node *state) {
    for (size_t i = 0; i < ir->values; i++)
        if (ir->value[i].state == state) return true;
    return false;
}

/* Whether another run may find other numbers there, whatever the instructions do. */
static bool begins_moving(const basin_ir *ir, const basin_ir_value *value) {
    if (value->state) return true;
    const basin_node *leaf = value->leaf;
    return leaf &&
           (leaf->op == BASIN_OP_INPUT || (leaf->op == BASIN_OP_STATE && is_updated(ir, leaf)));
}

/* A joint value moves where one of its parts does, and then so do all instructions that write into
 * it. */
static bool is_moving(const basin_ir *ir, const basin_ir_instruction *instruction,
                      const bool *moving) {
    if (basin_op_exchanges(instruction->op)) return true; /* others run, too */
    for (int k = 0; k < instruction->ins; k++)
        if (instruction->in[k] >= 0 && moving[root_of(ir, instruction->in[k])]) return true;
    for (int k = 0; k < basin_ir_results(instruction); k++) {
        int result = basin_ir_result(instruction, k);
        if (result >= 0 && moving[root_of(ir, result)]) return true;
    }
    return false;
}

/* Marks the results of an instruction that moves; whether any was not marked before. */
static bool spread(const basin_ir *ir, const basin_ir_instruction *instruction, bool *moving) {
    bool more = false;
    for (int k = 0; k < basin_ir_results(instruction); k++) {
        int result = basin_ir_result(instruction, k);
        if (result < 0 || moving[root_of(ir, result)]) continue;
        moving[root_of(ir, result)] = more = true;
    }
    return more;
}

static void find_moving(const basin_ir *ir, bool *moving) {
    for (size_t i = 0; i < ir->values; i++)
        if (begins_moving(ir, &ir->value[i])) moving[root_of(ir, (int)i)] = true;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < ir->instructions; i++)
            if (is_moving(ir, &ir->instruction[i], moving))
                more = spread(ir, &ir->instruction[i], moving) || more;
    }
}

/* Hoisted instructions first; both kinds keep their order. `sorted` replaces the list. */
static void part(basin_ir *ir, basin_ir_instruction *sorted, const bool *moving) {
    size_t at = 0;
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < ir->instructions; i++)
            if (is_moving(ir, &ir->instruction[i], moving) == (turn > 0))
                sorted[at++] = ir->instruction[i];
        if (turn == 0) ir->hoisted = at;
    }
    free(ir->instruction);
    ir->instruction = sorted;
    ir->instruction_capacity = ir->instructions > 0 ? ir->instructions : 1;
    basin_ir_number(ir);
}

basin_status basin_ir_hoist(basin_ir *ir) {
    bool *moving = calloc(ir->values + 1, sizeof *moving); /* of roots */
    basin_ir_instruction *sorted = basin_array_new(ir->instructions, sizeof *sorted);
    bool ok = moving && sorted;
    if (ok) {
        find_moving(ir, moving);
        part(ir, sorted, moving);
    } else
        free(sorted);
    free(moving);
    return ok ? BASIN_OK : basin_fail(ir->error, BASIN_NO_MEMORY, "out of memory for a plan");
}
