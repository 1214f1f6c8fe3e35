/* What the models of the zoo share. */
#ifndef BASIN_ENERGY_ZOO_H
#define BASIN_ENERGY_ZOO_H

#include "basin/zoo.h"

/* x W^T, for rows x [.., D] and w [out, D]; plus b [out] unless NULL. */
static inline basin_expr basin_zoo_linear(basin_expr x, basin_expr w, basin_expr b) {
    basin_expr y = basin_matmul_t(x, false, w, true);
    return b ? basin_add(y, b) : y;
}

#endif
