/* The reverse sweep, as rules use it. */
#ifndef BASIN_EXPR_GRAD_H
#define BASIN_EXPR_GRAD_H

#include "expr/graph.h"

/* Partial derivatives of sum(cotangent * y): each x[i] counts as a variable of its own, even where
 * one is computed from another. Only those that want[i] are set. For rules that differentiate a
 * formula written in their own operands. */
void basin_partial(basin_expr *gradient, basin_expr y, basin_expr cotangent, const basin_expr *x,
                   const bool *want, int count);

#endif
