/* Energies, the paper's block, and descent.
 *
 * An energy is a function of activations g, given as a list of named terms, each one number per
 * sample. Tokens x follow x <- x - alpha dE/dg with g = activation(x), and the total never rises
 * while alpha is small: the activation is the gradient of a convex Lagrangian. The Energy
 * Transformer block is one such energy (attention + Hopfield network over layer-normalized tokens);
 * a user's own is another, written as functions that build expressions:
 *
 *     static basin_expr pull(const void *w, basin_expr g) {
 *         return basin_scale(basin_sum(basin_square(basin_sub(g, w)), -1, 1), 0.5);
 *     }
 *     basin_energy energy = {BASIN_TERMS({"pull", pull, w})};
 *     basin_descent_spec spec = {.steps = 12, .alpha = 0.1};
 *     basin_expr end = basin_descend(&energy, x, &spec, NULL);
 *
 * basin_descend unrolls the steps into one expression, which a loss can be differentiated through.
 * A basin_descent runs step by step, calls an observer after every step, and can stop at a fixed
 * point or keep the energy from rising. Both run the very same step. */
#ifndef BASIN_ENERGY_H
#define BASIN_ENERGY_H

#include "basin/io.h"
#include "basin/params.h"
#include "basin/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- energies ---- */

/* One term of an energy: a function that builds it at activations g, one number per sample: shape
 * [B] for tokens [B, N, D], [] for [N, D]; any shape that identifies the samples is accepted. */
typedef struct basin_term {
    const char *name;
    basin_expr (*build)(const void *context, basin_expr g);
    const void *context; /* NULL: the energy's */
} basin_term;

/* What it points to must outlive the building of expressions. */
typedef struct basin_energy {
    const basin_term *term; /* [terms] */
    int terms;
    /* g from x; NULL means g = x. */
    basin_expr (*activation)(const void *context, basin_expr x);
    const void *context; /* for the activation, and for terms whose context is NULL */
} basin_energy;

/* The first two fields, from a list of terms: {BASIN_TERMS({"a", f, p}, {"b", h, q})}. Not in C++,
 * where an array without a name ends with the expression: give it one there,
 *
 *     const basin_term terms[] = {{"a", f, p}, {"b", h, q}};
 *     basin_energy energy = {};
 *     energy.term = terms;
 *     energy.terms = 2; */
#ifndef __cplusplus
#define BASIN_TERMS(...)                                                                           \
    .term = (const basin_term[]){__VA_ARGS__},                                                     \
    .terms = (int)(sizeof((const basin_term[]){__VA_ARGS__}) / sizeof(basin_term))
#endif

/* Term number `term` at activations g; NULL leaves a message in g's graph that names it. */
BASIN_API basin_expr basin_energy_term(const basin_energy *energy, basin_expr g, int term);
BASIN_API basin_expr basin_energy_activation(const basin_energy *energy, basin_expr x);
/* The sum of all terms. */
BASIN_API basin_expr basin_energy_total(const basin_energy *energy, basin_expr g);
/* -dE/dg */
BASIN_API basin_expr basin_energy_force(const basin_energy *energy, basin_expr g);

/* ---- the paper's energies; tokens g [B, N, D] or [N, D]; results [B] or [] ---- */

/* E = -sum over heads and queries C of (1 / beta) log sum over keys B of exp(beta K_B . Q_C);
 * wk, wq [H, Y, D], beta [H]; pattern and options as in basin_attention_lse. */
BASIN_API basin_expr basin_energy_attention(basin_expr g, basin_expr wk, basin_expr wq,
                                            basin_expr beta, const basin_pattern *pattern,
                                            const basin_lse_options *options);

typedef enum basin_hopfield {
    BASIN_HOPFIELD_RELU,    /* G(z) = relu(z)^2 / 2 */
    BASIN_HOPFIELD_POWER,   /* G(z) = relu(z)^n / n */
    BASIN_HOPFIELD_SOFTMAX, /* log sum over memories of exp z */
} basin_hopfield;

/* E = -sum over tokens and memories of G(xi_mu . g); xi [M, D]. `power` is the n of POWER. */
BASIN_API basin_expr basin_energy_hopfield(basin_expr g, basin_expr xi, basin_hopfield kind,
                                           double power);

/* ---- the block ---- */

/* Maps tokens to activations; each is the gradient of a convex Lagrangian where gamma > 0. */
typedef enum basin_norm {
    BASIN_NORM_LAYER, /* of each token: gamma (x - mean) / sqrt(var + epsilon) + delta */
    BASIN_NORM_RMS,   /* the same without the mean: gamma x / sqrt(mean of x^2 + epsilon) + delta */
} basin_norm;

/* What a block may have beyond the paper's, for tokens [N, D] that are nodes of graphs, with a list
 * of pairs for their edges. */
typedef struct basin_block_graph {
    size_t size;       /* sizeof this struct; 0: as in version 1.0 */
    int64_t couplings; /* heads, of width Y, of couplings: E = -sum over pairs (C, B) and heads
                          of c[pair, h] Q_C . K_B, quadratic; 0: none */
    int64_t neighbour_heads; /* U, of width Y: memories see a token beside U sums of its pairs, sum
                                over B of c[pair, u] V_u g_B; 0: none */
    int64_t pair_features;   /* P: numbers of a pair that c of both is linear in */
    int64_t facts;           /* A: numbers of a pair that bias its score; 0: none */
    bool degree_scalers;     /* what a token receives of its pairs counts 1 + w . [l, 1 / l], l the
                                logarithm of 2 + its neighbours, w [2] learnt for each head, 0 at
                                first */
    /* GraphNorm (Cai et al. 2021) in place of the layer norm: normalizes each feature over the
     * nodes of a graph and subtracts a learnt fraction of their mean: gamma (x - a (2 - a) mean) /
     * sqrt(mean of (x - a mean)^2 + epsilon) + delta, a [D]. Tokens that belong to no graph get the
     * block's norm. */
    bool graph_norm;
} basin_block_graph;

typedef struct basin_block_config {
    size_t size;                            /* sizeof this struct; 0: as in version 1.0 */
    int64_t dim, heads, head_dim, memories; /* D, H, Y, M */
    bool no_attention, no_hopfield;         /* the paper's ablations */
    basin_hopfield hopfield;
    double power;           /* of BASIN_HOPFIELD_POWER */
    double epsilon;         /* of the layer norm; 0 means 1e-5 */
    double beta;            /* first (or fixed) inverse temperature; 0 means 1 / sqrt(Y) */
    bool learn_beta;        /* one beta per head, trained */
    bool positive_gamma;    /* optimizers keep gamma above 0, so that the energy falls */
    bool mix;               /* head mixing [H, H], trained, as in the published graph code */
    basin_init init_query;  /* of wk and wq; a zero `init` means N(0, 0.002), the paper's */
    basin_init init_memory; /* of xi; zero means N(0, 0.02) */
    basin_norm norm;
    const basin_block_graph *graph; /* NULL: none of it; read only by basin_block_declare */
} basin_block_config;

/* The block's parameters as expressions; those that the configuration leaves out are NULL. */
typedef struct basin_block {
    basin_block_config config;
    basin_block_graph graph; /* a copy of the configuration's; zeros without it */
    basin_expr wk, wq, xi, gamma, delta, beta, mix;
    basin_expr ck, cq, ce; /* of couplings: [H', Y, D] [H', Y, D] [P, H'] */
    basin_expr nv, ne;     /* of sums over neighbours: [U, Y, D] [P, U]; xi is [M, D + U Y] then */
    basin_expr we;         /* of facts: [A, H] */
    basin_expr mean_part;  /* a of the norm over graphs: [D] */
    basin_expr wd, cd, nd; /* of degree scalers: [H, 2] [H', 2] [U, 2] */
} basin_block;

/* Declares wk, wq [H, Y, D], xi [M, D], gamma [], delta [D] (and beta [H], mix [H, H] where they
 * are trained; and ck, cq, ce, nv, ne, we, mean_part, wd, cd, nd) under `prefix` + name. */
BASIN_API basin_status basin_block_declare(basin_block *block, basin_params *params,
                                           const char *prefix, const basin_block_config *config);
/* g of each token by itself: the layer norm, or BASIN_NORM_RMS. */
BASIN_API basin_expr basin_block_norm(const basin_block *block, basin_expr x);

/* What a basin_block_graph reads of the pairs and tokens. */
typedef struct basin_block_graph_inputs {
    size_t size; /* sizeof this struct; 0: as in version 1.0 */
    /* For couplings and sums over neighbours: numbers of the pairs [pairs, P], and how much each
     * pair counts [pairs], 0 where the list is padded. */
    basin_expr features, strength;
    /* Facts of the pairs [pairs, A]; the score of a pair becomes beta K . Q + facts . we, in place
     * of any multiplier. */
    basin_expr facts;
    /* For the norm: the graph of each token, an index [N], -1 for none, and one over the nodes of
     * each graph [G]. */
    basin_expr owner, share;
} basin_block_graph_inputs;

/* The block among given pairs, as an energy with terms "attention", "hopfield" and "couplings". The
 * returned object points to `bound`, which points to the block and the pattern. */
typedef struct basin_block_bound {
    size_t size; /* sizeof this struct; 0: as in version 1.0 */
    const basin_block *block;
    const basin_pattern *pattern;
    basin_expr scale;                      /* per-pair score multipliers, or NULL */
    const basin_block_graph_inputs *graph; /* of a block with a basin_block_graph; NULL: none */
} basin_block_bound;
BASIN_API basin_energy basin_block_energy(const basin_block_bound *bound);
/* Intermediate results of a block at activations g [N, D] among a list of pairs. */
typedef struct basin_block_view {
    size_t size;      /* sizeof(basin_block_view), set by the caller */
    basin_expr share; /* [pairs] each pair's share of its query's attention, mean over heads; NULL
                         without attention */
    basin_expr energy[3]; /* [N] energy of each token in attention, memories and couplings; NULL for
                             absent terms */
} basin_block_view;
BASIN_API void basin_block_inspect(basin_block_view *view, const basin_block_bound *bound,
                                   basin_expr g);

/* ---- descent ---- */

/* One substep: x <- project(x + alpha move(force)), with the force -dE/dg of some terms of the
 * energy at g = activation(x). `t` is the number of the step, 0, 1, .., as an expression []. */
typedef struct basin_substep {
    unsigned terms; /* bit p: term p pulls; 0: all do */
    /* Maps the force to the step: scaled by a number, a vector or a function of the step and the
     * token, multiplied by a matrix, projected, or with an addend that is not a gradient. NULL: the
     * force itself. */
    basin_expr (*move)(const void *context, basin_expr force, basin_expr x, basin_expr t);
    /* A retraction such as basin_to_sphere, or a proximal map. NULL: none. */
    basin_expr (*project)(const void *context, basin_expr x, basin_expr t);
    const void *context; /* must outlive the building of expressions */
} basin_substep;

/* A descent to a fixed point instead of a number of steps, as basin_descend builds it. Each step
 * adds the pull of where the tokens began, x <- x + alpha (x0 - x - dE/dg), until no token would
 * move by more than `until` of its length at alpha 1 (which counts as at most 100 times what it and
 * its force were at first), after `steps` steps at most; then x = x0 - dE/dg, whatever alpha is.
 * Gradients are those of the fixed point: of a linear system, solved to within `accuracy`
 * (relative) by `products` products with the energy's Hessian at most. Memory is that of one step.
 * basin_store_take_convergence gives the statistics. The activation must be the gradient of a
 * Lagrangian, as layer norms are; no noise, no substeps. */
typedef struct basin_implicit {
    bool on;
    double until, accuracy; /* 0: 1e-4 and 1e-3 */
    int products;           /* 0: as many as steps */
} basin_implicit;

/* The steps of a descent. */
typedef struct basin_descent_spec {
    size_t size; /* sizeof this struct; 0: as in version 1.0 */
    int steps;
    double alpha;
    const double *schedule; /* [steps] the size of each step; NULL: alpha for all */
    double noise;           /* Langevin: sqrt(alpha) N(0, noise^2) is added to each step */
    basin_expr seed;        /* index [2], for noise; a basin_descent has its own */
    bool recompute; /* unrolled: keep one token tensor per step, recompute the rest in reverse */
    /* [substeps] one after the other in every step (attention, then memories); NULL: one along the
     * force of all terms. Noise comes with the last. */
    const basin_substep *substep;
    int substeps;
    basin_implicit implicit; /* basin_descend only */
} basin_descent_spec;

/* x with every `group` neighbours of the last axis at length 1: a retraction for `project`. */
BASIN_API basin_expr basin_to_sphere(basin_expr x, int64_t group);

/* The tokens after all steps. Where `trace` is not NULL, trace[t * terms + p] becomes term p before
 * step t, for t = 0 .. steps (the last: at the end). */
BASIN_API basin_expr basin_descend(const basin_energy *energy, basin_expr x,
                                   const basin_descent_spec *spec, basin_expr *trace);

/* ---- descents that run step by step ---- */

/* Belongs to the thread of its store. */
typedef struct basin_descent basin_descent;

/* A descent between two steps: an observer is called before each step and at the end. The tokens
 * are the state basin_descent_tokens: basin_store_get reads them, plans of the observer may too.
 */
typedef struct basin_descent_state {
    basin_descent *descent;
    int step; /* 0 .. */
    int terms;
    int64_t samples;
    const double *energy; /* [terms, samples] */
    double change;        /* the largest change of an element of g in the step before; 0 at first */
    bool *stop;           /* set it, and the descent ends here */
} basin_descent_state;
typedef basin_status basin_observer(void *context, const basin_descent_state *now,
                                    basin_error *error);

/* When a descent stops, constraints on its steps, and an observer. All zero: runs all steps. */
typedef struct basin_stop {
    size_t size;      /* sizeof this struct; 0: as in version 1.0 */
    double tolerance; /* > 0: stop when no element of g moved by more */
    double until;     /* > 0: a sample stops when none of its tokens (last axis) moved by more than
                         this share of its length; the descent ends when all have */
    bool guard;       /* halve a sample's step until its energy does not rise */
    /* Nesterov's momentum: a step begins ahead of the tokens, by (k - 1) / (k + 2) of their last
     * move in the k-th step. A sample whose energy would rise drops the momentum and restarts from
     * where it is; with the guard, the energy never rises; with `until`, a sample that would rise
     * even so stops. */
    bool accelerate;
    uint64_t seed; /* of the noise */
    basin_observer *observe;
    void *context; /* for it */
} basin_stop;

typedef struct basin_descent_result {
    int steps; /* taken */
    int terms;
    int64_t samples;
    int count;           /* tensors of tokens: 1, or the layers of a network */
    double *energy;      /* [steps + 1, terms, samples] before each step and at the end */
    double *change;      /* [steps] the largest change of an element of g in each step */
    int64_t *taken;      /* [samples] steps that each sample took; fewer than `steps` by `until` */
    int64_t halvings;    /* by the guard, over all steps and samples */
    bool converged;      /* the tolerance was reached, or every sample converged by `until` */
    int first;           /* the descended energy is the sum of the terms from this one on */
    basin_tensor *x, *g; /* [count] at the end */
} basin_descent_result;

/* A descent is made once for a shape, then run on any tokens of it, which stay on the backend from
 * step to step. stop NULL: all steps, no observer. */
BASIN_API basin_status basin_descent_new(basin_descent **descent, basin_store *store,
                                         const basin_energy *energy, basin_graph *graph,
                                         basin_shape shape, const basin_descent_spec *spec,
                                         const basin_stop *stop, basin_error *error);
BASIN_API void basin_descent_free(basin_descent *descent);
/* For writing other inputs, such as pair lists. */
BASIN_API basin_plan *basin_descent_plan(basin_descent *descent);
/* Tensor i of the tokens, a state of the store: 0, or the number of a network's layer. Descents of
 * one shape on one store share it, so that they run one after the other. */
BASIN_API basin_expr basin_descent_tokens(const basin_descent *descent, int i);
/* Changes how many steps of which sizes are taken (steps, alpha, schedule) and when it ends;
 * whether there are a guard, momentum and `until` stays as it was made. stop NULL: all steps, no
 * observer.
 */
BASIN_API basin_status basin_descent_set(basin_descent *descent, const basin_descent_spec *spec,
                                         const basin_stop *stop, basin_error *error);
/* x [count], of any type; NULL: from the tokens as they are in the store. */
BASIN_API basin_status basin_descent_run(basin_descent *descent, basin_descent_result *result,
                                         const basin_tensor *x, basin_error *error);
BASIN_API void basin_descent_result_free(basin_descent_result *result);
/* The energy that was descended, summed over samples, before step t. */
BASIN_API double basin_descent_total(const basin_descent_result *result, int step);
/* Makes, runs and frees a descent of one tensor of tokens. engine NULL: a temporary engine with
 * default settings. */
BASIN_API basin_status basin_engine_descend(basin_engine *engine, basin_descent_result *result,
                                            const basin_energy *energy, const basin_tensor *x,
                                            const basin_descent_spec *spec, const basin_stop *stop,
                                            basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
