/* The zoo: published models that descend an energy, rows of one table. A row names the tensors and
 * settings of a model; basin_zoo_build makes its energy and substeps of values by name:
 *
 *     const basin_zoo_value values[] = {{"xi", .expr = xi}, {"beta", .number = 8}};
 *     const basin_zoo *memory = basin_zoo_build(graph, "hopfield", values, 2);
 *     if (!memory) return basin_graph_check(graph, &error);
 *     basin_descent_spec spec = {
 *         .steps = 3, .alpha = memory->alpha, .substep = memory->substep, .substeps =
 * memory->substeps}; basin_expr end = basin_descend(&memory->energy, x, &spec, NULL); basin_expr
 * shares = basin_zoo_output(memory, "recall", end);
 *
 * States are rows x [N, D]; an energy is one number per row, [N], unless a model says otherwise.
 * Linear maps are stored [out, in]. */
#ifndef BASIN_ZOO_H
#define BASIN_ZOO_H

#include "basin/energy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the table ---- */

typedef enum basin_zoo_role {
    BASIN_ZOO_STATE,     /* what is descended; bound, if at all, for its sizes */
    BASIN_ZOO_PARAMETER, /* trained */
    BASIN_ZOO_INPUT,     /* of a sample */
    BASIN_ZOO_EDGES,     /* integers on the host: bound as `data` */
} basin_zoo_role;

/* A tensor of a model. The shape is a text such as "M,D" or "..,N,D": letters are sizes, equal in
 * all tensors of a model, "2D" and "ND" are products, "*" is any size, ".." any leading axes, ""
 * one number; after "D|" a number may stand for the tensor. A name that ends with # stands for any
 * number in its place: w#: w2, w3, .. */
typedef struct basin_zoo_tensor {
    const char *name, *shape;
    basin_zoo_role role;
    double deviation; /* of first values N(0, deviation^2); 0: all elements are `value` */
    double value;     /* where the deviation is 0, also of a tensor that is not bound */
    bool optional;    /* may be absent */
} basin_zoo_tensor;

/* A number that a model is built with. A choice is the index of a name. */
typedef struct basin_zoo_setting {
    const char *name;
    const char *choices; /* "softmax|entmax15", or NULL */
    double value;        /* the default */
    double min, max;
} basin_zoo_setting;

/* A value by name. One of the others is set; if none is, the number is 0. */
typedef struct basin_zoo_value {
    const char *name;         /* of a tensor or setting, "alpha", or the letter of a size */
    basin_expr expr;          /* a tensor as an expression, */
    const basin_tensor *data; /* or its numbers, copied into a constant, */
    double number;            /* or one number for all elements; a setting */
    const char *choice;       /* a setting that has choices, by name */
} basin_zoo_value;

/* What variants of a model share. Lists end with a NULL name. */
typedef struct basin_zoo_kind {
    const char *title, *formula;
    double alpha;                     /* the published size of steps */
    const basin_zoo_tensor *tensor;   /* the state is the first */
    const basin_zoo_setting *setting; /* or NULL */
    const char *outputs;              /* names for basin_zoo_output: "recall|begin", or NULL */
    const char *exact; /* the setting that must be 0 for the force to be the gradient of the
                          energy's values; NULL: it is, unless the formula says otherwise */
} basin_zoo_kind;

typedef struct basin_zoo_model {
    const char *name, *reference; /* "hopfield", "Ramsauer et al. 2020" */
    const basin_zoo_kind *kind;
    const basin_zoo_value *variant; /* other defaults; NULL: none */
    /* A small example that can be drawn, where it is not as usual: sizes by letter, deviations of
     * tensors (of optional ones: those that it has), values of numbers and settings. */
    const basin_zoo_value *example;
} basin_zoo_model;

/* Row i of the table, from 0 on; NULL after the last. */
BASIN_API const basin_zoo_model *basin_zoo_at(int i);

/* ---- models ---- */

/* A model in a graph, to which it belongs. */
typedef struct basin_zoo {
    const basin_zoo_model *model;
    basin_energy energy;
    const basin_substep
        *substep; /* [substeps] of its update, where that is more than x - alpha dE/dx */
    int substeps;
    double alpha; /* size of steps: as bound, or as published */
} basin_zoo;

/* Checks names, shapes and ranges. NULL leaves a message in the graph. */
BASIN_API const basin_zoo *basin_zoo_build(basin_graph *graph, const char *name,
                                           const basin_zoo_value *value, int values);
/* A further result of a model at states x, by name. "begin", which every model has: x moved to
 * where its descents begin, such as a sphere. */
BASIN_API basin_expr basin_zoo_output(const basin_zoo *zoo, const char *name, basin_expr x);

#ifdef __cplusplus
}
#endif
#endif
