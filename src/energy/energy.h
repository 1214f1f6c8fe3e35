/* Parts of an energy, checked. */
#ifndef BASIN_ENERGY_ENERGY_H
#define BASIN_ENERGY_ENERGY_H

#include "basin/energy.h"

/* Part number `part` at activations g. NULL leaves a message in g's graph that names the part. */
basin_expr basin_energy_part(const basin_energy *energy, basin_expr g, int part);
/* The tokens after one step from x; `alpha` broadcasts against them, `t` is the number of the step.
 */
basin_expr basin_descent_step(const basin_energy *energy, basin_expr x, basin_expr alpha,
                              basin_expr t, const basin_descent_spec *spec);
/* The tokens at rest; see basin_descent_spec.implicit. */
basin_expr basin_descend_to_rest(const basin_energy *energy, basin_expr x,
                                 const basin_descent_spec *spec, const basin_expr *trace);
/* -dE/dg of the parts whose bits are set; 0: of all. */
basin_expr basin_energy_force_of(const basin_energy *energy, basin_expr g, unsigned parts);

#endif
