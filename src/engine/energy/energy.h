/* Terms of an energy, steps, and the loop that runs them. */
#ifndef BASIN_ENERGY_ENERGY_H
#define BASIN_ENERGY_ENERGY_H

#include "basin/energy.h"

/* The tokens at a fixed point; see basin_implicit. */
basin_expr basin_descend_implicit(const basin_energy *energy, basin_expr x,
                                  const basin_descent_spec *spec, const basin_expr *trace);

/* -dE/dg of the terms whose bits are set; 0: of all. */
basin_expr basin_energy_force_of(const basin_energy *energy, basin_expr g, unsigned terms);

/* The part of a force that is tangent to the spheres of basin_to_sphere at x. */
basin_expr basin_to_tangent(basin_expr force, basin_expr x, int64_t group);

/* What a step depends on beside the tokens. */
typedef struct basin_pace {
    basin_expr alpha; /* [], or one per sample */
    basin_expr t;     /* [] the number of the step */
    basin_expr seed;  /* index [2] of its noise; NULL: none */
} basin_pace;

/* What the loop descends, as functions that build expressions: tensors of tokens (one, or a layer
 * each), their activations g, energies of these, and a step. */
typedef struct basin_dynamics {
    int count;
    const basin_shape *shape; /* [count] */
    int terms, first;         /* terms before `first` are recorded, but not descended */
    const char *const *name;  /* [terms] for messages */
    double noise;
    bool independent;       /* samples are the first axis of tokens, any number of them */
    const double *schedule; /* [steps] the size of each step; NULL: alpha for all */
    void (*activate)(const void *context, basin_expr *g, const basin_expr *x);
    void (*energies)(const void *context, basin_expr *term, const basin_expr *x,
                     const basin_expr *g);
    void (*step)(const void *context, basin_expr *next, const basin_expr *x, const basin_expr *g,
                 const basin_pace *pace);
    const void *context; /* needed only during basin_loop_new */
} basin_dynamics;

basin_status basin_loop_new(basin_descent **descent, basin_store *store, basin_graph *graph,
                            const basin_dynamics *dynamics, int steps, double alpha,
                            const basin_stop *stop, basin_error *error);

/* One number per sample [B, ..] as [B, .., 1, 1], to broadcast against tokens; a number stays. */
basin_expr basin_per_sample(basin_expr numbers, basin_shape tokens);

#endif
