/* Factors of bytes the other way round, for bytes.c: a product of bytes sums along rows of both. */
#ifndef BASIN_PLAN_PASSES_TURN_H
#define BASIN_PLAN_PASSES_TURN_H

#include "plan/passes/list.h"

enum { BASIN_TURN_WEIGHTS = 64 }; /* what weights are multiplied by as bytes */

/* A factor the other way round: columns of a root, from `first` on. */
typedef struct basin_turned {
    int root, value;                     /* value: bytes [columns, rows] */
    int64_t first, columns, rows, apart; /* apart: from one row of the root to the next */
    size_t writer;                       /* behind which the rest is turned; SIZE_MAX */
} basin_turned;

typedef struct basin_converting {
    basin_ir *ir;
    double least;
    size_t values, instructions; /* as they were */
    bool *varies;                /* [values] of roots: depends on an input */
    bool *converted;             /* [instructions] products that read bytes */
    double *scale;               /* [values] of roots that become bytes or get a twin; 0: not */
    basin_kind *kind;            /* [values] of these: E4M3 or E5M2 */
    int *twin;                   /* [values] of roots: the value of bytes, perhaps itself; -1 */
    basin_ir_list list;          /* the new one */
    basin_turned *turned;
    size_t turns, turned_capacity;
} basin_converting;

/* Which result of the instruction is, or is a part of, the root; -1. */
int basin_result_in(const basin_ir *ir, const basin_ir_instruction *instruction, int root);
/* A new value of bytes; -1 when out of memory. */
int basin_byte_value(basin_converting *c, basin_shape shape, basin_kind kind, double scale);

/* Which tokens gradients of weights will read; twins are known. False when out of memory. */
bool basin_turns_find(basin_converting *c);
/* The bytes of a factor [rows, columns], transposed; made here unless they were needed before. A
 * weight may have no bytes as it is: it is turned first. -1 when out of memory. */
int basin_turn_of(basin_converting *c, int value, int64_t rows, int64_t columns);
/* Lets product i store its result the other way round, too, where that is wanted. */
bool basin_turn_store(basin_converting *c, basin_ir_instruction *instruction, size_t i);
/* Turns what instruction i has written and no product stores so; in the list, it comes next. */
bool basin_turn_rest(basin_converting *c, size_t i);

#endif
