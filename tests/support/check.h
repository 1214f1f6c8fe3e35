/* For tests of expressions: evaluate on a backend, compare gradients with finite differences. */
#ifndef BASIN_TESTS_SUPPORT_CHECK_H
#define BASIN_TESTS_SUPPORT_CHECK_H

#include "basin/expr.h"
#include "basin/plan.h"
#include "support/test.h"

/* Fills with numbers in (-1, 1) that depend on `seed` alone. */
void check_fill(double *data, int64_t count, uint64_t seed);

/* A set of inputs with their numbers, given to every plan that check_* makes. */
enum { CHECK_INPUTS = 24 };
typedef struct check {
    basin_graph *graph;
    basin_expr input[CHECK_INPUTS];
    basin_tensor tensor[CHECK_INPUTS];
    bool first_only[CHECK_INPUTS]; /* the gradient with respect to it is not differentiated */
    int inputs;
} check;

void check_init(check *c);
void check_free(check *c);
/* A new input with numbers in (low, high). */
basin_expr check_input(check *c, const char *name, basin_shape shape, double low, double high);
/* A new index input with the given numbers. */
basin_expr check_index(check *c, const char *name, const int32_t *number, int64_t count);

/* The value of an expression; the caller frees the tensor (F64). */
basin_tensor check_value(check *c, basin_expr a, const char *backend, bool plain);
/* ||a - b|| / max(||b||, 0.001) */
double check_distance(const basin_tensor *a, const basin_tensor *b);

/* Compares basin_grad(y, x) with central differences in double for every real input x of the check,
 * and the gradient of a random projection of that gradient likewise (second order). Backends must
 * agree on both. */
void check_gradients(check *c, basin_expr y, double tolerance);
/* ref plain, ref fused and cpu agree on the expression. */
void check_backends(check *c, basin_expr a, double tolerance);

#endif
