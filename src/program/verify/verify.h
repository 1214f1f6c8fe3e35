/* A golden case: a file with inputs "in.*", results "out.*" and gradients "grad.*" that an oracle
 * computed in double. A builder declares the model through the tasks' functions and names an
 * expression for each result, without checks: errors stick in the graph. run.c compares. */
#ifndef BASIN_VERIFY_VERIFY_H
#define BASIN_VERIFY_VERIFY_H

#include "basin/energy.h"
#include "basin/pairs.h"

enum { BASIN_CASE_WORD = 64 };

typedef struct basin_case_output {
    char name[96];
    char beside[96]; /* the tensor whose size counts too; "" for none */
    basin_expr value;
} basin_case_output;

typedef struct basin_case {
    basin_backend *backend; /* the caller's */
    bool recompute;         /* differentiate with activations computed again */
    basin_bundle *bundle;
    char name[BASIN_CASE_WORD];
    basin_graph *graph;
    basin_params params;
    basin_case_output *output;
    size_t outputs, output_room;
    basin_store *store;
    basin_plan *plan;
    double *off; /* [tensors of the bundle] relative errors of results; -1: not a result */
    size_t results, worst; /* how many; the tensor with the largest error */
} basin_case;

/* A row of the zoo by name; NULL where there is none. */
const struct basin_zoo_model *basin_case_model(const char *name);
/* Reads the case's name and builds it. */
void basin_case_build(basin_case *c);
/* Reads a file into a case of which the caller set the first two fields, runs it and measures its
 * results; free it, also after an error. */
basin_status basin_case_run(basin_case *c, const char *path, basin_error *error);
void basin_case_free(basin_case *c);

/* Puts the path before a message of the library, which knows no files. */
void basin_verify_name_file(basin_error *error, const char *path);

#endif
