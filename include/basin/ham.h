/* Hierarchical associative memories: networks of neuron layers and synapses that descend one
 * energy.
 *
 * A layer has states x and a Lagrangian L, which gives its activations g = dL/dx and its own energy
 * <x, g> - L(x) (basin/lagrangian.h). A synapse is an energy of the activations of one or more
 * layers. The network's energy is the sum,
 *
 *     E = sum over layers of [<x, g> - L(x)] + sum over connections of E_synapse(g, ...),
 *
 * and because the first part has the derivative x, all neurons follow
 *
 *     tau dx/dt = -dE/dg = -(x + dE_synapses/dg).
 *
 * Every layer thereby hears from every synapse it touches: a linear synapse -g1 W g2 sends g1 W
 * forward and W g2 back, a convolution sends back its transpose. E never rises while steps are
 * small, for L is convex. With layers clamped (an image given, its label requested, or the other
 * way round) the rest settles around them. A classifier, whole:
 *
 *     basin_ham *ham = basin_ham_new(graph);
 *     basin_ham_layer(ham, &(basin_layer){.name = "image", .shape = BASIN_SHAPE(784)});
 *     basin_ham_layer(ham, &(basin_layer){.name = "label", .shape = BASIN_SHAPE(10),
 *                                         .lagrangian = {.name = "softmax"}});
 *     basin_ham_synapse(ham, &(basin_synapse){.name = "memory", .kind = BASIN_SYNAPSE_HIDDEN,
 *                                             .units = 500, .hidden = {.name = "relu"}});
 *     basin_ham_connect(ham, "memory", "image, label");
 *
 *     basin_expr x[2] = {basin_input(graph, "image", BASIN_SHAPE(100, 784)),
 *                        basin_input(graph, "label", BASIN_SHAPE(100, 10))};
 *     basin_expr end[2], mask[2] = {basin_scalar(graph, 0), NULL};
 *     basin_ham_descend(ham, end, x, &(basin_ham_spec){.steps = 4, .dt = 0.5, .mask = mask}, NULL);
 *     basin_expr label = basin_ham_activation(ham, 1, end[1]);
 *     ... a loss of `label`, and basin_optimizer_new(&adamw, basin_ham_params(ham), loss, ...)
 *
 * basin_ham_descend unrolls the steps into an expression, which a loss is differentiated through.
 * basin_ham_descent_new makes a descent on numbers, and basin_descent_run returns the energy of
 * every term at every step.
 *
 * Expressions carry a batch axis before the layer's shape, and energies are one number per sample.
 * Errors stick in the graph, as everywhere with expressions: build, then ask basin_graph_error
 * once. */
#ifndef BASIN_HAM_H
#define BASIN_HAM_H

#include "basin/energy.h"
#include "basin/lagrangian.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Belongs to one thread at a time, as its graph does. */
typedef struct basin_ham basin_ham;

/* A network within `graph`, which must outlive it. NULL when out of memory. */
BASIN_API basin_ham *basin_ham_new(basin_graph *graph);
BASIN_API void basin_ham_free(basin_ham *ham);

/* ---- layers ---- */

typedef struct basin_layer {
    size_t size; /* sizeof this struct; 0: as in version 1.0 */
    const char *name;
    basin_shape shape; /* of one sample, any rank up to 7 */
    basin_lagrangian lagrangian;
    double tau; /* time constant; 0 means 1 */
    bool bias;  /* a learnable bias "NAME.bias": the Lagrangian is taken at x - bias */
} basin_layer;

/* Adds a layer. Its number, from 0 on, or -1 with the graph's error set. */
BASIN_API int basin_ham_layer(basin_ham *ham, const basin_layer *layer);

/* ---- synapses ---- */

typedef struct basin_synapse basin_synapse;

/* The energy of a synapse between `count` activations g, each [B, layer shape]: an expression whose
 * first axis is the batch; what is left is summed. Parameters come from basin_ham_parameter. */
typedef basin_expr basin_synapse_function(basin_ham *ham, const basin_synapse *synapse,
                                          const basin_expr *g, int count);

/* What dense synapses take for a vector. */
typedef enum basin_rows {
    BASIN_ROWS_FLAT,   /* the whole sample */
    BASIN_ROWS_EACH,   /* each row (last axis); row i of one layer meets row i of the other */
    BASIN_ROWS_SUMMED, /* the sum of the rows */
} basin_rows;

/* Synapses of the library, and what each of them reads. */
typedef enum basin_synapse_kind {
    BASIN_SYNAPSE_CUSTOM, /* `energy` */
    /* -<b, g> for one layer. b as the vector of `rows`, starts at 0. */
    BASIN_SYNAPSE_BIAS,
    /* -sum W[a, b, ..] g1[a] g2[b] .. for one layer or more; w [n1, n2, ..]. For two layers the
     * usual matrix, -g1 W g2. `bias` adds -<b, g> for the last layer. */
    BASIN_SYNAPSE_LINEAR,
    /* Dense associative memory: -L(Xi g) with `units` memories xi [units, n] of one layer. `hidden`
     * softmax (the default) is the log-sum-exp -1/beta ln sum e^(beta xi.g), "repu3" the cubic one,
     * identity the classical Hopfield network -1/2 sum (xi.g)^2. With `normalize` each memory has
     * length 1; with `distance` -|xi - g|^2 / 2 replaces xi.g. */
    BASIN_SYNAPSE_MEMORY,
    /* -L(W1'g1 + W2'g2 + .. (+ b)): `units` hidden neurons integrated out; w1 [n1, units], w2, ..
     * Columns have length 1 with `normalize`. `hidden` is relu by default. */
    BASIN_SYNAPSE_HIDDEN,
    /* -sum over heads of L(W g1 g2 ..): the same for products; w [heads, units, n1, n2, ..]. */
    BASIN_SYNAPSE_TENSOR,
    /* -sum over heads of L(sum over rows i of g1[i] W g2[i]); w [heads, units, D1, D2]. A layer of
     * one row meets all rows of the other. `hidden` is softmax by default. */
    BASIN_SYNAPSE_MIXER,
    /* -<g2, pool(conv(g1))> between [h, w, C] and [h', w', O]; w [kernel, kernel, C, O]. `bias`
     * adds
     * -<b, g2> with b [O]. */
    BASIN_SYNAPSE_CONV2D,
    /* Energy attention of `heads` heads of `head_dim`: -sum over heads and queries of 1/beta ln sum
     * over keys e^(beta Q.K), queries from the first layer, keys from the second (or the same, if
     * one is given), tokens [.., D]. wq, wk [heads, head_dim, D]. hidden.beta is [] or [heads],
     * 1/sqrt(head_dim) by default; another `hidden` than softmax is taken over all pairs' scores.
     * `normalize` puts one layer norm (norm_gamma [], norm_delta [head_dim]) over queries and keys.
     * `pattern` says which pairs. */
    BASIN_SYNAPSE_ATTENTION,
} basin_synapse_kind;

/* A synapse and its settings. */
struct basin_synapse {
    size_t size;      /* sizeof this struct; 0: as in version 1.0 */
    const char *name; /* its parameters are "NAME.w" and so on */
    basin_synapse_kind kind;
    basin_synapse_function *energy; /* of a custom one */
    basin_rows rows;
    int64_t units, heads, head_dim;
    basin_lagrangian hidden; /* of the hidden neurons, which have no time constant */
    bool bias, normalize, distance;
    int kernel, stride; /* stride 0 means 1 */
    bool valid;         /* no padding; otherwise out = ceil(in / stride) */
    basin_pool pool;
    int pool_window, pool_stride; /* stride 0 means the window */
    basin_pattern pattern;
    double deviation; /* of the first weights; 0 means 0.02 */
    void *context;    /* passed to a custom function */
};

/* The synapse's energy at `count` activations g, for custom ones that build on another. */
BASIN_API basin_expr basin_synapse_energy(basin_ham *ham, const basin_synapse *synapse,
                                          const basin_expr *g, int count);

/* Adds a synapse, which connections use by its name. Its number or -1. */
BASIN_API int basin_ham_synapse(basin_ham *ham, const basin_synapse *synapse);
/* Puts the synapse between the layers named, "v, h". The same synapse in several connections shares
 * its weights. The connection's number or -1. */
BASIN_API int basin_ham_connect(basin_ham *ham, const char *synapse, const char *layers);

/* The parameter "OWNER.PART", found again where it is already there. */
BASIN_API basin_expr basin_ham_parameter(basin_ham *ham, const char *owner, const char *part,
                                         basin_shape shape, basin_init init);
/* Uses `value` for the parameter "OWNER.PART" instead of a new state, in layers and connections
 * added later: a constant, an input, the result of another network. */
BASIN_API void basin_ham_bind(basin_ham *ham, const char *parameter, basin_expr value);
/* All parameters that are not bound: weights as N(0, 0.02^2), biases as 0. basin_params_init draws
 * first values into a store; an optimizer takes the list as it is. */
BASIN_API const basin_params *basin_ham_params(const basin_ham *ham);

/* ---- the network as expressions; x, g, dEdg have an entry per layer ---- */

/* Terms of the energy: the layers, then the connections; "v", "h", "vh(v, h)". NULL beyond the
 * last. */
BASIN_API const char *basin_ham_term_name(const basin_ham *ham, int term);

BASIN_API basin_expr basin_ham_activation(basin_ham *ham, int layer, basin_expr x);
/* The sum of all terms, or of the connections' only; [batch]. */
BASIN_API basin_expr basin_ham_energy(basin_ham *ham, const basin_expr *x, bool synapses_only);
/* dE/dg, of all terms or of the connections' only. */
BASIN_API void basin_ham_gradient(basin_ham *ham, basin_expr *dEdg, const basin_expr *x,
                                  bool synapses_only);

/* How the network descends. */
typedef struct basin_ham_spec {
    size_t size; /* sizeof this struct; 0: as in version 1.0 */
    int steps;
    double dt;
    bool synapses_only; /* leave the neurons' own energy out: x <- x - dt/tau dE_synapses/dg, as
                           the Energy Transformer does; nothing decays then */
    const basin_expr
        *mask; /* [layers] 1 where a neuron is free, 0 where it is clamped; the layer's shape, with
                  or without a batch axis, or a constant. NULL (the array or an entry): free. With a
                  Lagrangian that acts along rows, clamp whole rows, or the energy may rise */
    bool recompute; /* unrolled: keep the states of each step, compute the rest again */
    double noise;   /* on numbers: sqrt(dt / tau) mask N(0, noise^2) is added per step */
} basin_ham_spec;

/* All steps x - (dt / tau) mask dE/dg, unrolled. Where `trace` is not NULL, trace[t * terms + term]
 * becomes that term before step t, for t = 0 .. steps. */
BASIN_API void basin_ham_descend(basin_ham *ham, basin_expr *end, const basin_expr *x,
                                 const basin_ham_spec *spec, basin_expr *trace);

/* ---- the network on numbers ---- */

/* A descent (basin/energy.h) made once for a batch size, to be run often: basin_descent_run takes
 * the states x[layer], each [batch, shape]. spec->mask may hold inputs of the graph:
 * basin_descent_plan gives access to them, and to the inputs of custom synapses. */
BASIN_API basin_status basin_ham_descent_new(basin_descent **descent, basin_ham *ham,
                                             basin_store *store, int64_t batch,
                                             const basin_ham_spec *spec, const basin_stop *stop,
                                             basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
