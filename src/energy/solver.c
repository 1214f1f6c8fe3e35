/* Conjugate residuals; see solver.h. */
#include "energy/solver.h"

basin_expr basin_solver_dot(basin_expr a, basin_expr b) { return basin_sum_all(basin_mul(a, b)); }

/* a / b, and 0 where b is: a system that is solved stays so. */
static basin_expr share(basin_expr a, basin_expr b) {
    basin_expr one = basin_const(basin_expr_graph(b), 1),
               none = basin_const(basin_expr_graph(b), 0);
    return basin_select(b, basin_div(a, basin_select(b, b, one)), none);
}

void basin_solver_build(basin_solver *solver) {
    basin_solver *s = solver;
    basin_expr c = s->state[BASIN_SOLVER_C], r = s->state[BASIN_SOLVER_R];
    basin_expr p = s->state[BASIN_SOLVER_P], q = s->state[BASIN_SOLVER_Q];
    basin_expr rho = s->state[BASIN_SOLVER_RHO], first_q = s->product(s->context, s->right);
    basin_expr along = share(rho, basin_solver_dot(q, q)),
               next_r = basin_sub(r, basin_mul(along, q));
    basin_expr product = s->product(s->context, next_r),
               next_rho = basin_solver_dot(next_r, product);
    basin_expr turn = share(next_rho, rho);
    s->first[BASIN_SOLVER_C] =
        basin_fill(basin_expr_graph(s->right), basin_expr_shape(s->right), 0);
    s->first[BASIN_SOLVER_R] = s->first[BASIN_SOLVER_P] = s->right;
    s->first[BASIN_SOLVER_Q] = first_q;
    s->first[BASIN_SOLVER_RHO] = basin_solver_dot(s->right, first_q);
    s->next[BASIN_SOLVER_C] = basin_add(c, basin_mul(along, p));
    s->next[BASIN_SOLVER_R] = next_r;
    s->next[BASIN_SOLVER_P] = basin_add(next_r, basin_mul(turn, p));
    s->next[BASIN_SOLVER_Q] = basin_add(product, basin_mul(turn, q));
    s->next[BASIN_SOLVER_RHO] = next_rho;
    s->size = basin_solver_dot(s->right, s->right);
    s->left = basin_solver_dot(next_r, next_r);
}
