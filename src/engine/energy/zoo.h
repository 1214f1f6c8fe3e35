/* The kinds of models of the zoo, and what functions of a model see of it. */
#ifndef BASIN_ENERGY_ZOO_H
#define BASIN_ENERGY_ZOO_H

#include "basin/zoo.h"

/* A model. Builders get it as their context. */
typedef struct basin_zoo_built {
    basin_zoo zoo; /* the first member */
    basin_substep substep[2];
    void *own;                   /* of `prepare`: memory of basin_graph_keep */
    int64_t size[26];            /* by letter; 0 where no tensor has it */
    double setting[8];           /* in the order of kind.setting */
    const basin_zoo_value *part; /* [parts] tensors as expressions, edges as data */
    int parts;
} basin_zoo_built;

/* A tensor by name, NULL where it is absent; a setting. */
basin_expr basin_zoo_part(const void *zoo, const char *name);
double basin_zoo_number(const void *zoo, const char *name);
/* The end of steps that stay where descents begin. */
basin_expr basin_zoo_project(const void *zoo, basin_expr x, basin_expr t);

/* How a kind of model is built. */
typedef struct basin_zoo_code {
    basin_zoo_kind kind; /* the first member: rows of the table point to it */
    const basin_term *term;
    int terms;
    basin_expr (*activation)(const void *zoo, basin_expr x);
    basin_substep substep[2];
    basin_expr (*output[2])(const void *zoo, basin_expr x); /* in the order of kind.outputs */
    const char *needs; /* "a|b,c": tensors of one of these groups, and none of the others; a group
                          may be empty. NULL: no condition */
    void (*prepare)(basin_zoo_built *built, basin_graph *graph); /* NULL: nothing to do */
} basin_zoo_code;

extern const basin_zoo_code basin_zoo_dense, basin_zoo_hopfield, basin_zoo_features, basin_zoo_lsr,
    basin_zoo_graph, basin_zoo_plastic, basin_zoo_gated, basin_zoo_gaussians, basin_zoo_layers;
extern const basin_zoo_code basin_zoo_block, basin_zoo_stack, basin_zoo_convergent, basin_zoo_pairs,
    basin_zoo_nrgpt, basin_zoo_hyperset, basin_zoo_akorn, basin_zoo_ebt, basin_zoo_crate;

/* Lists of a kind. */
#define TENSORS(...)                                                                               \
    .tensor = (const basin_zoo_tensor[]) {                                                         \
        __VA_ARGS__, { 0 }                                                                         \
    }
#define SETTINGS(...)                                                                              \
    .setting = (const basin_zoo_setting[]) {                                                       \
        __VA_ARGS__, { 0 }                                                                         \
    }
#define STATE(name, shape)                                                                         \
    { name, shape, BASIN_ZOO_STATE, 1, 0, false }
#define WEIGHT(name, shape, deviation)                                                             \
    { name, shape, BASIN_ZOO_PARAMETER, deviation, 0, false }
#define NUMBER(name, shape, value)                                                                 \
    { name, shape, BASIN_ZOO_PARAMETER, 0, value, false }
#define OPTIONAL(name, shape)                                                                      \
    { name, shape, BASIN_ZOO_PARAMETER, 0, 0, true }
#define INPUT(name, shape, deviation, optional)                                                    \
    { name, shape, BASIN_ZOO_INPUT, deviation, 0, optional }
#define FLAG(name, value)                                                                          \
    { name, NULL, value, 0, 1 }

/* A tensor and a setting of the model `m`. */
#define TENSOR(name) basin_zoo_part(m, name)
#define SETTING(name) basin_zoo_number(m, name)

/* x W^T for rows x [.., D] and w [out, D]; plus b [out] unless NULL. */
static inline basin_expr basin_zoo_linear(basin_expr x, basin_expr w, basin_expr b) {
    basin_expr y = basin_matmul_t(x, false, w, true);
    return b ? basin_add(y, b) : y;
}

#endif
