/* The zoo: published models that descend an energy, each as a basin_energy over expressions of its
 * parameters. `turn`, unless NULL, receives the substeps of a model whose update is more than x -
 * alpha dE/dx.
 *
 *     basin_zoo_hopfield memories = {.xi = xi, .beta = beta};
 *     basin_energy energy = basin_zoo_hopfield_energy(&memories);
 *     basin_descent_spec spec = {.steps = 3, .alpha = 1};
 *     basin_expr end = basin_descend(&energy, x, &spec, NULL);
 *
 * States are rows x [N, D]; an energy is one number per row, [N], unless a model says otherwise.
 * Linear maps are stored [out, in]. The structs must outlive the building of expressions. */
#ifndef BASIN_ZOO_H
#define BASIN_ZOO_H

#include "basin/energy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memories ---- */

/* Classical and dense associative memories (Hopfield 1982; Krotov and Hopfield 2016):
 * E = -sum over memories of F(xi . x), F(z) = z^2 / 2 or relu(z)^n / n, the power n. */
typedef struct basin_zoo_dense {
    basin_expr xi; /* [M, D] */
    double power;  /* 0 or 2: the classical one, with memories and their opposites */
} basin_zoo_dense;
BASIN_API basin_energy basin_zoo_dense_energy(const basin_zoo_dense *model);

/* Modern Hopfield networks (Ramsauer et al. 2020) and their Fenchel-Young relatives (Santos et al.
 * 2024): E = -Omega*(beta xi x) / beta + |x|^2 / 2 + H(uniform) / beta + max |xi|^2 / 2, where
 * Omega* is log-sum-exp or the conjugate of a sparse one. A step of size 1 is xi^T p. */
typedef enum basin_zoo_entropy {
    BASIN_ZOO_SOFTMAX,
    BASIN_ZOO_ENTMAX15,
    BASIN_ZOO_SPARSEMAX,
    BASIN_ZOO_NORMMAX2,
} basin_zoo_entropy;
typedef struct basin_zoo_hopfield {
    basin_expr xi;   /* [M, D], or [.., M, D] with the leading axes of x [.., N, D] */
    basin_expr beta; /* [] */
    basin_zoo_entropy entropy;
} basin_zoo_hopfield;
BASIN_API basin_energy basin_zoo_hopfield_energy(const basin_zoo_hopfield *model);
/* p [.., N, M] of states x. */
BASIN_API basin_expr basin_zoo_hopfield_recall(const basin_zoo_hopfield *model, basin_expr x);

/* DrDAM (Hoover et al. 2024), memories summed into random features: E = -log max(phi(x) . T, floor)
 * / beta, T = sum of phi(xi); phi is [cos, sin](sqrt(beta) s x) / sqrt(Y), or with phases sqrt(2 /
 * Y) cos(sqrt(beta) s x + phase). */
typedef struct basin_zoo_features {
    basin_expr s;     /* [Y, D] */
    basin_expr phase; /* [Y], or NULL */
    basin_expr beta;  /* [] */
    basin_expr sum;   /* T, of basin_zoo_features_sum */
    double floor;
} basin_zoo_features;
BASIN_API basin_expr basin_zoo_features_sum(const basin_zoo_features *model, basin_expr xi);
BASIN_API basin_energy basin_zoo_features_energy(const basin_zoo_features *model);

/* Log-sum-ReLU memories (Hoover et al. 2025): E = -log(eps + sum relu(1 - beta/2 |x - xi|^2)) /
 * beta + decay |x|^2. */
typedef struct basin_zoo_lsr {
    basin_expr xi, beta; /* [M, D], [] */
    double epsilon, decay;
} basin_zoo_lsr;
BASIN_API basin_energy basin_zoo_lsr_energy(const basin_zoo_lsr *model);
/* How many memories a state feels, [N]. */
BASIN_API basin_expr basin_zoo_lsr_support(const basin_zoo_lsr *model, basin_expr x);

/* Graph Hopfield network (arXiv 2603.03464): -log-sum-exp(beta xi x) / beta + |x|^2 / 2 at every
 * node, and lambda tr(x^T L x) with L = I - A, A the normalized adjacency: a weight a pair of the
 * list. Energies are [], of all nodes. */
typedef struct basin_zoo_graph {
    basin_expr xi, beta;          /* [M, D], [] */
    const basin_pattern *pattern; /* both directions of every edge */
    basin_expr weight;            /* [pairs] */
    basin_expr lambda;            /* [] */
} basin_zoo_graph;
BASIN_API basin_energy basin_zoo_graph_energy(const basin_zoo_graph *model);

/* Input-driven plasticity (Betteti et al. 2025): g = tanh(x), E = <x, g> - L(x) - g . W(u) g / 2
 * with W(u) = sum over memories of (xi . u / D) xi xi^T / D. The turn is x + dt (W(u) g - x). */
typedef struct basin_zoo_plastic {
    basin_expr xi, u; /* [M, D], [N, D] */
} basin_zoo_plastic;
BASIN_API basin_energy basin_zoo_plastic_energy(const basin_zoo_plastic *model,
                                                basin_substep *turn);

/* A layered network whose input is clamped, trained by equilibrium propagation (Scellier and Bengio
 * 2017): E = |x|^2 / 2 + |s|^2 / 2 - sum over layers of r(u_{i+1}) . (w_i r(u_i) + b_i), r =
 * sigmoid, s [N, all layers] side by side. With a nudge, a second term nudge |u_last - target|^2
 * / 2. */
enum { BASIN_MAX_ZOO_LAYERS = 8 };
typedef struct basin_zoo_layers {
    int layers;
    basin_expr x;                                                /* [N, D], clamped */
    basin_expr w[BASIN_MAX_ZOO_LAYERS], b[BASIN_MAX_ZOO_LAYERS]; /* [out, in], [out] */
    basin_expr target;                                           /* [N, last], for the nudge */
    double nudge;
} basin_zoo_layers;
BASIN_API basin_energy basin_zoo_layers_energy(const basin_zoo_layers *model);

/* ---- attention ---- */

/* NRGPT (Dehmamy et al. 2025) of tokens x [.., N, D]: g = LN(x) + bias, energies [.., N]: -sum over
 * heads of log sum over earlier B of exp(g_A . h g_B), with a force on A only, plus a feed-forward
 * energy times `scale`. The turn is x + proj force. */
typedef enum basin_zoo_feed {
    BASIN_ZOO_FEED_1,  /* -|gelu(w1 g + b1)|^2 */
    BASIN_ZOO_FEED_2,  /* -|gelu(w2 gelu(w1 g + b1) + b2)|^2 */
    BASIN_ZOO_FEED_2W, /* -g . (w2 gelu(w1 g + b1) + b2) */
} basin_zoo_feed;
typedef struct basin_zoo_nrgpt {
    basin_expr h, bias, proj, scale; /* [H, D, D], [D], [D, D], [] */
    basin_expr w1, b1, w2, b2;
    basin_zoo_feed feed;
    bool
        strict; /* a token does not see itself: only then is the force the gradient of its energy */
    double dropout;  /* in training: the share of attention's pull, summed over heads, that is 0; */
    basin_expr seed; /* index [2] of its draws, or NULL: none */
    double dropout_step; /* in training: the share of what a step adds that is 0 */
    double beta;         /* attention's inverse temperature; 0: 1, as published */
} basin_zoo_nrgpt;
BASIN_API basin_energy basin_zoo_nrgpt_energy(const basin_zoo_nrgpt *model, basin_substep *turn);

/* Hyper-SET (2026): tokens repel each other, then go to a feed-forward energy, both on spheres w =
 * gain rms(W x) through which the force goes straight. Energies are [], of all tokens; [B] of
 * tokens [B, N, D]. */
typedef struct basin_zoo_hyperset {
    basin_expr w, m, gain_w, gain_m; /* [D, D], [M, D], [D / H], [M] */
    int64_t heads;
    bool gelu;     /* in place of relu */
    bool straight; /* the authors' force; else the gradient by x */
    double epsilon;
    double alpha; /* the size of steps, where they are not learned: */
    /* sizes [.., N, 2 D] = t3 gelu(t2 gelu(t1 sinusoid(t + 1)) + start), or NULL */
    basin_expr t1_w, t1_b, t2_w, t2_b, t3_w, t3_b, start;
} basin_zoo_hyperset;
BASIN_API basin_energy basin_zoo_hyperset_energy(const basin_zoo_hyperset *model,
                                                 basin_substep turn[2]);

/* AKOrN (Miyato et al. 2025): oscillators, every n channels a unit vector; the turn is x <-
 * normalize(x + gamma (omega x + tangent(force))). With `a`, E = -x . J x / 2 - c . x, J = (a +
 * a^T) / 2 over all tokens and channels; with attention in its place the force is not a gradient,
 * and the energy only a score. Energies are [], of all tokens. */
typedef struct basin_zoo_akorn {
    basin_expr c, omega, gamma; /* [N, C], [C / 2, 2], [] */
    basin_expr a;               /* [N C, N C], or NULL: */
    basin_expr qkv_w, qkv_b, o_w, o_b;
    int64_t heads, sphere;
} basin_zoo_akorn;
BASIN_API basin_energy basin_zoo_akorn_energy(const basin_zoo_akorn *model, basin_substep *turn);

/* Energy-based transformers (Gladstone et al. 2025), their loop around a small network: E(p) = w2 .
 * gelu(w1 [context ; e p] + b1) of probabilities p [N, V]; the turn gives logits p - alpha dE/dp,
 * of which the next p is the softmax. */
typedef struct basin_zoo_ebt {
    basin_expr context, e, w1, b1, w2, alpha; /* [N, D], [D, V], [M, 2 D], [M], [M], [] */
} basin_zoo_ebt;
BASIN_API basin_energy basin_zoo_ebt_energy(const basin_zoo_ebt *model, basin_substep *turn);

/* CRATE (Yu et al. 2023), one block: attention with q = k = v, which descends nothing, then one
 * proximal step of |y - d a|^2 / 2 + lambda |a|, a >= 0, from a = y = LN(z). */
typedef struct basin_zoo_crate {
    basin_expr ln1_w, ln1_b, u, out_w, out_b, ln2_w, ln2_b, d;
    int64_t heads;
    double eta, lambda, epsilon;
} basin_zoo_crate;
/* The block's result; `objective`, if not NULL, gets the value at y and at the result, [2]. */
BASIN_API basin_expr basin_zoo_crate_block(const basin_zoo_crate *model, basin_expr x,
                                           basin_expr *objective);

#ifdef __cplusplus
}
#endif
#endif
