/* What the epilogue of a matrix product makes of it, where that is simple enough to be computed
 * with the product:
 *
 *     relu?(alpha tile + beta c + row)    or    alpha tile, 0 where `mask` is not above 0
 *
 * Here tile is the product, c an operand that lies like the result, row one that repeats a row [n]
 * and mask one that lies like the result, too. Some kernels add a second operand like c. */
#ifndef BASIN_BACKEND_FORM_H
#define BASIN_BACKEND_FORM_H

#include "backend/kernel.h"

typedef struct basin_form {
    bool known, relu;
    double alpha, beta;
    int c, row, mask; /* operands of the program; -1: none */
    double of_more;
    int more; /* as c; -1 unless asked for by basin_form_with_more */
} basin_form;

/* The form of a program over a product, NULL for the product itself; .known is false where it has
 * none. With the call of the product, operands count where their kinds are right: those of the
 * result or INDEX (bits) for c and mask, REAL for row. Without one, NULL, any kind is. */
basin_form basin_form_of(const basin_program *program, const basin_call *call);
/* The same with of_more times a second operand, and masks of sums. */
basin_form basin_form_with_more(const basin_program *program, const basin_call *call);

#endif
