/* The reverse sweep, as rules use it. */
#ifndef BASIN_EXPR_GRAD_H
#define BASIN_EXPR_GRAD_H

#include "expr/graph.h"

/* Partial derivatives of the sum over i of sum(cotangent[i] * y[i]), where cotangents may be NULL
 * and count as constants. Each x[i] counts as a variable of its own, even where one is computed
 * from another; only those that want[i] are set, and of equal ones the first. For rules that
 * differentiate a formula written in their own operands. */
void basin_partial(basin_expr *gradient, const basin_expr *y, const basin_expr *cotangent,
                   int results, const basin_expr *x, const bool *want, int count);

#endif
