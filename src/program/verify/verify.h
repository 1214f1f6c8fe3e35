/* A golden case: a file with inputs "in.*", results "out.*" and gradients "grad.*" that an oracle
 * computed in double. A builder declares the model through the tasks' functions and names an
 * expression for each result, without checks: errors stick in the graph. verify.c compares. */
#ifndef BASIN_VERIFY_VERIFY_H
#define BASIN_VERIFY_VERIFY_H

#include "basin/energy.h"
#include "basin/pairs.h"

enum { BASIN_CASE_WORD = 64, BASIN_CASE_STEPS = 1000 };

typedef struct basin_case_output {
    char name[96];
    char beside[96]; /* the tensor whose size counts too; "" for none */
    basin_expr value;
} basin_case_output;

typedef struct basin_case {
    const basin_bundle *bundle;
    bool recompute; /* differentiate with activations computed again */
    basin_graph *graph;
    basin_params params;
    basin_case_output *output;
    size_t outputs, output_room;
    basin_backend *backend;
    basin_store *store;
    basin_plan *plan;
} basin_case;

/* The tensor "in.NAME", or NULL. `rank` below 0 takes any. */
const basin_tensor *basin_case_tensor(basin_case *c, const char *name, int rank);
/* Its axis; 0 where there is no such tensor. */
int64_t basin_case_dim(basin_case *c, const char *name, int rank, int axis);
/* A copy as int32_t; data is NULL where there is no such tensor. Free it. */
basin_tensor basin_case_integers(basin_case *c, const char *name, int rank);
/* The metadata `key`, JSON: a number, true or false, a string (unquoted into `text`). */
const char *basin_case_word(basin_case *c, const char *key, char text[BASIN_CASE_WORD]);
double basin_case_number(basin_case *c, const char *key);
bool basin_case_flag(basin_case *c, const char *key);

/* A parameter with the shape and the numbers of "in.NAME"; the same where there is one. */
basin_expr basin_case_parameter(basin_case *c, const char *name);
/* The same for a tensor that is not differentiated by: a state. */
basin_expr basin_case_input_add(basin_case *c, const char *name, int rank);
/* The integers of "in.NAME" [n], from 0 to count - 1. */
basin_expr basin_case_index(basin_case *c, const char *name, int64_t count);
/* Numbers as a constant [count]. */
basin_expr basin_case_indices(basin_case *c, const int32_t *number, int64_t count);
/* A list of pairs among tokens, from edges [count, 2], and its constants; free the list. */
basin_pattern basin_case_pairs(basin_case *c, basin_pairs *pairs, int64_t tokens,
                               const int32_t *edge, int64_t count, int flags);

/* The expression that must equal the tensor NAME, "out." or "grad." included. */
void basin_case_output_add(basin_case *c, basin_expr value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a result that the oracle made as a difference of two larger numbers, and whose
 * digits end where theirs do: its error is relative to the tensor BESIDE where that is larger. */
void basin_case_difference_add(basin_case *c, basin_expr value, const char *name,
                               const char *beside);
/* "out.loss", and its gradients by every parameter and by `x` ("grad.x0") if not NULL. */
void basin_case_loss(basin_case *c, basin_expr loss, basin_expr x);
/* The block's shape from the tensors under `prefix`, the steps from the metadata. */
basin_block_config basin_case_block(basin_case *c, const char *prefix);
basin_descent_spec basin_case_descent(basin_case *c);
int basin_case_steps(basin_case *c);
/* Energies [steps + 1, 2] (with a batch [B, steps + 1, 2]) of a trace, zero for an absent term. */
basin_expr basin_case_energies(basin_case *c, const basin_block_config *block,
                               const basin_expr *trace, int steps, int64_t batch);

/* A row of the zoo by name; NULL where there is none. */
const struct basin_zoo_model *basin_case_model(const char *name);
/* The builder for a case's name. */
void basin_case_build(basin_case *c, const char *name);

/* Puts the path before a message of the library, which knows no files. */
void basin_verify_name_file(basin_error *error, const char *path);

#endif
