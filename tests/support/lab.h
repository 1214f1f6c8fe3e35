/* For tests of expressions, energies and models: a graph whose states live in a store, plans that
 * fail the test on any error, and gradients against finite differences of every state. */
#ifndef BASIN_TESTS_SUPPORT_LAB_H
#define BASIN_TESTS_SUPPORT_LAB_H

#include "basin/expr.h"
#include "basin/pairs.h"
#include "basin/params.h"
#include "basin/plan.h"
#include "basin/random.h"
#include "support/test.h"

enum { LAB_INPUTS = 24 };

typedef struct lab {
    basin_graph *graph;
    basin_params params;
    basin_backend *backend;
    basin_store *store;
    basin_expr input[LAB_INPUTS]; /* written into every plan that lab_plan makes */
    basin_tensor tensor[LAB_INPUTS];
    int inputs;
} lab;

lab lab_new(const char *backend, int threads);
void lab_open(lab *l, const char *backend, int threads);
void lab_close(lab *l);
/* Plans made from now on store factors of all products, however small, in that type. */
void lab_narrow(lab *l, basin_dtype storage);

/* A state of the given shape among the parameters. */
basin_expr lab_state(lab *l, const char *name, basin_shape shape);
/* Every parameter uniform in (-size, size), those named "..gamma" and "..beta" in (0.5, 1.5); the
 * numbers depend on the parameter's name and the seed, not on the order of declaration. */
void lab_fill(lab *l, uint64_t seed, double size);
/* Overwrites one state; [count] numbers. */
void lab_set(lab *l, basin_expr state, const double *number);

/* Inputs with their numbers, which are copied. */
basin_expr lab_input(lab *l, const char *name, basin_shape shape, const double *number);
basin_expr lab_index(lab *l, const char *name, const int32_t *number, int64_t count);
void lab_give(lab *l, basin_expr input, const void *number);
/* A pattern of inputs "NAME.row", ... with room for `capacity` pairs (at least those given). */
basin_pattern lab_pairs(lab *l, const char *name, int64_t tokens, const int32_t *edge,
                        int64_t count, int flags, int64_t capacity);

/* Writes the inputs into a plan, a descent's for one. */
void lab_write(lab *l, basin_plan *plan);
/* A plan with the inputs written. */
basin_plan *lab_plan(lab *l, const basin_expr *output, int outputs);
void lab_run(basin_plan *plan);
basin_tensor lab_read(basin_plan *plan, basin_expr output); /* F64; the caller frees it */
/* All three for one expression. */
basin_tensor lab_value(lab *l, basin_expr a);

/* The graph has an error, whose message has that part. */
void assert_misbuilt(const basin_graph *graph, const char *part);
int lab_states(const lab *l); /* how many states its store has */

/* Softmax attention of tokens x [batch, tokens, 3 heads Y], queries, keys and values side by side,
 * with dropout where there is a seed. */
basin_expr lab_attention(basin_expr x, int64_t heads, double dropout, basin_expr seed,
                         const basin_pattern *pattern);

/* ||a - b|| / (||b|| + added), with 1e-30 for lab_distance; NaN anywhere gives NaN. */
double lab_apart(const basin_tensor *a, const basin_tensor *b, double added);
double lab_distance(const basin_tensor *a, const basin_tensor *b);
void lab_assert_near(const basin_tensor *a, const basin_tensor *b, double tolerance,
                     const char *what);

/* The gradient of the sum of y with respect to every parameter against fourth-order central
 * differences; the backend should be ref. */
void lab_check_gradients(lab *l, basin_expr y, double tolerance, const char *what);

/* Fills with numbers in (-1, 1) that depend on `seed` alone. */
void check_fill(double *data, int64_t count, uint64_t seed);

/* For tests of expressions: a set of inputs with their numbers, given to every plan that check_*
 * makes; evaluated on a backend, gradients against finite differences. */
enum { CHECK_INPUTS = 24 };
typedef struct check {
    basin_graph *graph;
    basin_expr input[CHECK_INPUTS];
    basin_tensor tensor[CHECK_INPUTS];
    bool first_only[CHECK_INPUTS]; /* the gradient with respect to it is not differentiated */
    int inputs;
} check;

check check_new(void);
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
/* Both of the sine of y, so that no second derivative is zero; frees the check. */
void check_sine(check *c, basin_expr y);

#endif
