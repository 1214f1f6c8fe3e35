/* A golden case: a file with inputs "in.*", results "out.*" and gradients "grad.*" that an oracle
 * computed in double. A builder declares the model through the tasks' functions and names an
 * expression for each result, without checks: errors stick in the graph. verify.c compares. */
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

typedef struct basin_case_input {
    basin_expr input;
    basin_tensor tensor;
} basin_case_input;

typedef struct basin_case {
    const basin_bundle *bundle;
    bool recompute; /* differentiate with activations computed again */
    basin_graph *graph;
    basin_params params;
    basin_case_output *output;
    size_t outputs, output_room;
    basin_case_input *input;
    size_t inputs, input_room;
    basin_backend *backend;
    basin_store *store;
    basin_plan *plan;
    basin_pairs pairs; /* of `pattern`, where the case has a list of pairs */
    basin_pattern pattern;
} basin_case;

/* The tensor "in.NAME", or NULL. `rank` below 0 takes any. */
const basin_tensor *basin_case_tensor(basin_case *c, const char *name, int rank);
/* Its axis; 0 where there is no such tensor. */
int64_t basin_case_dim(basin_case *c, const char *name, int rank, int axis);
/* A copy as integers; data is NULL where there is no such tensor. Free it. */
basin_tensor basin_case_integers(basin_case *c, const char *name, int rank);
/* The metadata `key`, JSON: a number, true or false, a string (unquoted into `text`). */
double basin_case_number(basin_case *c, const char *key);
bool basin_case_flag(basin_case *c, const char *key);

/* A parameter with the shape and the numbers of "in.NAME"; the same where there is one. */
basin_expr basin_case_parameter(basin_case *c, const char *name);
/* An input that gets the numbers of "in.NAME". */
basin_expr basin_case_input_add(basin_case *c, const char *name, int rank);
/* Numbers of the builder's own for an input; takes `tensor` over. */
void basin_case_write(basin_case *c, basin_expr input, basin_tensor *tensor);
/* The list of pairs among `tokens`, from edges [count, 2]. */
void basin_case_pairs(basin_case *c, int64_t tokens, const int32_t *edge, int64_t count, int flags);
/* The same from the tensor "in.NAME". */
void basin_case_edges(basin_case *c, int64_t tokens, const char *name, int flags);

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

/* The builder for a case's name; and those of models.c. */
void basin_case_build(basin_case *c, const char *name);
void basin_case_build_block(basin_case *c);
void basin_case_build_image(basin_case *c);
void basin_case_build_anomaly(basin_case *c);
void basin_case_build_graphs(basin_case *c);
void basin_case_build_lagrangians(basin_case *c);
void basin_case_build_ham(basin_case *c);

typedef struct basin_verdict {
    char name[BASIN_CASE_WORD]; /* of the case */
    int tensors;
    char worst[96]; /* the tensor with the largest error */
    double error;
} basin_verdict;

/* Puts the path before a message of the library, which knows no files. */
void basin_verify_name_file(basin_error *error, const char *path);

/* Called for every tensor. */
typedef void basin_verify_report(void *context, const char *tensor, double error);

/* Recomputes the case of a file; `report` may be NULL. */
basin_status basin_verify(basin_verdict *verdict, const char *path, basin_backend *backend,
                          bool recompute, basin_verify_report *report, void *context,
                          basin_error *error);

/* What `basin descend` reads: a block's weights, tokens and pairs, from safetensors or npz.
 * Errors name file, tensor and shapes. */
typedef struct basin_weights {
    basin_block_config config;
    basin_tensor wk, wq,
        xi; /* [H, Y, D] [H, Y, D] [M, D]; no data where the configuration has none */
    basin_tensor gamma, delta, beta, mix; /* [] [D] [H] [H, H] */
} basin_weights;

/* `config` has the kind of energy and ablations; sizes are filled in from the file.
 * Names may stand under `prefix`. Without gamma, delta or beta: 1, 0 and 1 / sqrt(Y). */
basin_status basin_weights_read(basin_weights *weights, const basin_bundle *bundle,
                                const char *prefix, const basin_block_config *config,
                                basin_error *error);
void basin_weights_free(basin_weights *weights);
/* Gives the states of a block declared with weights->config their numbers. */
basin_status basin_weights_store(const basin_weights *weights, basin_store *store,
                                 basin_error *error);

/* The tokens [N, D] or [B, N, D]: x, x0, or the only tensor of two or three axes. */
basin_status basin_tokens_find(const basin_tensor **tokens, const basin_bundle *bundle,
                               const char *prefix, basin_error *error);

#endif
