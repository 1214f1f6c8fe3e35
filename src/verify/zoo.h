/* What the cases of the zoo share; see ../energy/zoo. Metadata and names are those of the oracle.
 */
#ifndef BASIN_VERIFY_ZOO_H
#define BASIN_VERIFY_ZOO_H

#include "basin/zoo.h"
#include "verify/verify.h"

/* A parameter of the case with the shape of "in.NAME". */
basin_expr basin_zoo_parameter(basin_case *c, const char *name);
/* Descends from x; term p of all steps is trace[t * terms + p]. */
basin_expr basin_zoo_descend(basin_case *c, const basin_energy *energy, basin_expr x,
                             const basin_descent_spec *spec, basin_expr *trace);
/* Sums of energies over their rows: [steps + 1], of all terms together. */
basin_expr basin_zoo_totals(const basin_expr *trace, int terms, int steps);
/* "out.xT", and half the squared distance to "in.target" as the loss, with its gradients. */
void basin_zoo_finish(basin_case *c, basin_expr end, basin_expr x);

enum { BASIN_ZOO_STEPS = 64, BASIN_ZOO_TERMS = 2 }; /* of a case, at most */

#endif
