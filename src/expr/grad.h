/* The reverse sweep, as rules use it. */
#ifndef BASIN_EXPR_GRAD_H
#define BASIN_EXPR_GRAD_H

#include "expr/graph.h"

/* Stand-ins for a node's operands, for rules that write a formula of them and differentiate it with
 * basin_partial: variables of their own even where one operand is another, or is computed from it,
 * and opaque to the simplifications of builders. Absent ones stay NULL. */
void basin_stand_ins(basin_expr *stand_in, const basin_node *node);
/* The gradient of the sum over i of sum(cotangent[i] * y[i]) with respect to the stand-ins x that
 * want one. Cotangents count as constants and may be NULL. */
void basin_partial(basin_expr *gradient, const basin_expr *y, const basin_expr *cotangent,
                   int results, const basin_expr *x, const bool *want, int count);

#endif
