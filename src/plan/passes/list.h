/* A new list of instructions in the making, for passes that put some between those that are there.
 * Programs belong to the old list until the new one takes its place. */
#ifndef BASIN_PLAN_PASSES_LIST_H
#define BASIN_PLAN_PASSES_LIST_H

#include "plan/ir.h"

typedef struct basin_ir_list {
    basin_ir_instruction *instruction;
    size_t count, capacity;
} basin_ir_list;

/* False when out of memory. */
bool basin_ir_list_add(basin_ir_list *list, const basin_ir_instruction *instruction);
/* to <- from, as an instruction of its own; kinds may differ. */
bool basin_ir_list_copy(basin_ir_list *list, const basin_ir *ir, int to, int from);
/* The list takes the place of the plan's. */
void basin_ir_list_take(basin_ir_list *list, basin_ir *ir);
/* Frees a list that does not. */
void basin_ir_list_discard(basin_ir_list *list, const basin_ir *ir);

#endif
