/* What the models of the zoo share. */
#ifndef BASIN_ENERGY_ZOO_ZOO_H
#define BASIN_ENERGY_ZOO_ZOO_H

#include "basin/zoo.h"

/* x W^T, for rows x [.., D] and w [out, D]; plus b [out] unless NULL. */
basin_expr basin_zoo_linear(basin_expr x, basin_expr w, basin_expr b);
/* Phi(x), the share of a normal distribution below x, and x Phi(x). */
basin_expr basin_zoo_below(basin_expr x);
basin_expr basin_zoo_gelu(basin_expr x);
/* (x - mean) / sqrt(variance + epsilon) gain + bias over the last axis; gain may be NULL. */
basin_expr basin_zoo_norm(basin_expr x, basin_expr gain, basin_expr bias, double epsilon);
/* Half the squares of each row, [.., D] -> [..]. */
basin_expr basin_zoo_half_square(basin_expr x);

/* Whether `width` channels divide into heads; if not, the graph has a message. */
bool basin_zoo_divides(basin_graph *graph, int64_t width, int64_t heads);

#endif
