/* New lists of instructions; see list.h. */
#include "plan/passes/list.h"

#include <stdlib.h>

#include "base/memory.h"
#include "plan/passes/program.h"

static void program_free(basin_program *program) {
    if (program) free(program->instruction);
    free(program);
}

bool basin_ir_list_add(basin_ir_list *list, const basin_ir_instruction *instruction) {
    if (!basin_array_reserve((void **)&list->instruction, &list->capacity, list->count + 1,
                             sizeof *instruction))
        return false;
    list->instruction[list->count++] = *instruction;
    return true;
}

bool basin_ir_list_copy(basin_ir_list *list, const basin_ir *ir, int to, int from) {
    basin_ir_instruction copy = {
        .op = BASIN_OP_POINTWISE, .ins = 1, .outs = 1, .in = {from}, .out = {to}, .workspace = -1};
    copy.program = basin_program_copy(ir->value[from].shape);
    if (copy.program && basin_ir_list_add(list, &copy)) return true;
    program_free(copy.program);
    return false;
}

/* A joint value's producer is the last of those that write parts of it. */
void basin_ir_list_take(basin_ir_list *list, basin_ir *ir) {
    free(ir->instruction);
    ir->instruction = list->instruction;
    ir->instructions = list->count, ir->instruction_capacity = list->capacity;
    *list = (basin_ir_list){0};
    for (size_t i = 0; i < ir->instructions; i++)
        for (int k = 0; k < basin_ir_results(&ir->instruction[i]); k++) {
            int value = basin_ir_result(&ir->instruction[i], k);
            if (value < 0) continue;
            ir->value[value].producer = (int)i;
            ir->value[ir->value[value].root].producer = (int)i;
        }
    basin_ir_count_uses(ir);
}

void basin_ir_list_discard(basin_ir_list *list, const basin_ir *ir) {
    for (size_t i = 0; i < list->count; i++) {
        bool old = false;
        for (size_t j = 0; j < ir->instructions; j++)
            old = old || list->instruction[i].program == ir->instruction[j].program;
        if (!old) program_free(list->instruction[i].program);
    }
    free(list->instruction);
}
