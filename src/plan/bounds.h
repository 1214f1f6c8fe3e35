/* What index inputs and constants may hold: low <= number <= high, and where they are offsets, 0
 * and then numbers that do not fall. */
#ifndef BASIN_PLAN_BOUNDS_H
#define BASIN_PLAN_BOUNDS_H

#include "plan/ir.h"

typedef struct basin_bounds {
    int64_t low, high;
    bool ascending;
} basin_bounds;

/* Of all values that are roots, by the instructions that read them; [values]. */
void basin_bounds_find(basin_bounds *bounds, const basin_ir *ir);
/* Fails with the first number that is not within them; `name` is the input's, NULL a constant's. */
basin_status basin_bounds_check(const basin_bounds *bounds, const char *name,
                                const basin_tensor *tensor, basin_error *error);

#endif
