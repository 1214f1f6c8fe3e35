/* What losses and models ask of shapes, beyond what broadcasting would let pass. */
#ifndef BASIN_MODEL_SHAPES_H
#define BASIN_MODEL_SHAPES_H

#include "basin/expr.h"

/* Whether a and b have one shape; otherwise the graph gets an error that names both. */
bool basin_model_shapes_agree(basin_expr a, basin_expr b, const char *what);
/* Whether the shape of a is the one wanted, -1 standing for any size. */
bool basin_model_shape_is(basin_expr a, basin_shape wanted, const char *what);

#endif
