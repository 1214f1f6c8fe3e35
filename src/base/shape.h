/* A shape within a message. */
#ifndef BASIN_BASE_SHAPE_H
#define BASIN_BASE_SHAPE_H

#include "basin/tensor.h"

/* "[4, 196, 768]", which lives to the end of the enclosing block. */
#define basin_shape_text(shape) basin_shape_print((char[BASIN_SHAPE_TEXT]){0}, shape)

#endif
