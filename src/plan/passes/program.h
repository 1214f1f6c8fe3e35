/* Groups of pointwise instructions and the programs made of them. */
#ifndef BASIN_PLAN_PASSES_PROGRAM_H
#define BASIN_PLAN_PASSES_PROGRAM_H

#include "plan/ir.h"

enum { BASIN_GROUP_MEMBERS = 48, BASIN_GROUP_LOADS = BASIN_MAX_IN - 2 };

/* A group: its members in order, what it reads from outside, what it leaves behind. */
typedef struct basin_group {
    basin_shape domain;
    int member[BASIN_GROUP_MEMBERS], members;
    int load[BASIN_GROUP_LOADS], load_uses[BASIN_GROUP_LOADS], loads;
    int store[BASIN_MAX_OUT], stores;
    bool too_large; /* for these arrays; the rest is then incomplete */
} basin_group;

/* leader[i] == last marks the members among the pointwise instructions first .. last. */
void basin_group_collect(basin_group *group, const basin_ir *ir, const int *leader, int first,
                         int last);
/* Whether it stays within a program's limits. */
bool basin_group_fits(const basin_group *group, const basin_ir *ir);
/* Whether load number `tile` can come from the given matrix product, tile by tile. */
bool basin_group_fits_product(const basin_group *group, const basin_ir *ir, int tile,
                              const basin_ir_instruction *product);
/* The program of a group; `tile` is the load that is the product's element, or -1. `product` is the
 * matrix product then. NULL when out of memory. */
basin_program *basin_group_program(const basin_group *group, const basin_ir *ir, int tile,
                                   const basin_ir_instruction *product);
/* What an epilogue makes of its product, where that is simple: a sum of multiples of the product
 * and of one operand like it (-1: none), the ReLU of the product, or a multiple of the product
 * where the operand is above 0. Without a program it is the product. */
typedef enum basin_form_kind {
    BASIN_FORM_OTHER,
    BASIN_FORM_SUM,
    BASIN_FORM_RELU,
    BASIN_FORM_MASKED,
} basin_form_kind;
typedef struct basin_program_form {
    basin_form_kind kind;
    double of_product, of_operand;
    int operand;
} basin_program_form;
basin_program_form basin_program_form_of(const basin_program *program);
/* Room for so many instructions; NULL when out of memory. Freeing takes NULL. */
basin_program *basin_program_new(int instructions);
void basin_program_free(basin_program *program);
/* The reader's program whose operand `at` is what the call's program, which stores one result,
 * makes of operands where[]; the reader's others are kept[]. `merged` has room for
 * BASIN_PROGRAM_MERGED instructions. False where they do not suffice (merge.c). */
enum { BASIN_PROGRAM_MERGED = 64 };
bool basin_program_merge(basin_program *merged, const basin_program *reader, int at,
                         const int *kept, const basin_program *call, const int *where);
/* Whether both do the same with the same registers, wherever their results go (merge.c). */
bool basin_instruction_equal(const basin_instruction *a, const basin_instruction *b);
/* A program that copies one operand of the given shape. */
basin_program *basin_program_copy(basin_shape shape);
/* batch, m, n, k of a MATMUL instruction. */
void basin_product_sizes(int64_t size[4], const basin_ir *ir,
                         const basin_ir_instruction *instruction);

#endif
