/* Conjugate residuals: a linear system with a symmetric matrix, as expressions of states that a
 * loop or an iteration of a plan carries from step to step. */
#ifndef BASIN_ENERGY_SOLVER_H
#define BASIN_ENERGY_SOLVER_H

#include "basin/expr.h"

/* Solution, residual, direction, the matrix's product with it, and residual . (matrix residual). */
enum {
    BASIN_SOLVER_C,
    BASIN_SOLVER_R,
    BASIN_SOLVER_P,
    BASIN_SOLVER_Q,
    BASIN_SOLVER_RHO,
    BASIN_SOLVER_STATES
};

typedef struct basin_solver {
    /* Given: the states, [] for rho and like the right side for the others; the right side; the
     * matrix times a. */
    basin_expr state[BASIN_SOLVER_STATES];
    basin_expr right;
    basin_expr (*product)(const void *context, basin_expr a);
    const void *context;
    /* Made: what the states are at first, where the solution is 0, and after a step; the squared
     * lengths of the right side and of what a step leaves of it. That never grows, also where the
     * matrix is not definite. */
    basin_expr first[BASIN_SOLVER_STATES], next[BASIN_SOLVER_STATES];
    basin_expr size, left;
} basin_solver;

void basin_solver_build(basin_solver *solver);
/* The sum of the products of all elements. */
basin_expr basin_solver_dot(basin_expr a, basin_expr b);

#endif
