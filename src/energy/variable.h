/* Variables: expressions that may be differentiated by. */
#ifndef BASIN_ENERGY_VARIABLE_H
#define BASIN_ENERGY_VARIABLE_H

#include "basin/expr.h"

/* The same value as `a`, as an expression of its own. Builders simplify (a reshaped reshape, a
 * scaled scale, a function of a constant), so what is built on an intermediate result may not
 * mention it; and two equal intermediate results are one. Nothing reads through a variable, and
 * variables with different tags stay apart. */
basin_expr basin_variable(basin_expr a, int tag);

#endif
