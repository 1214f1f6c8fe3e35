/* The zoo's memories, one energy each; include/basin/zoo.h has the formulas. */
#include <math.h>

#include "engine/energy/energy.h"
#include "engine/expr/graph.h"

/* Half the squares of each row, [.., D] -> [..]. */
static basin_expr half_square(basin_expr x) {
    return basin_scale(basin_sum(basin_square(x), -1, 1), 0.5);
}

/* ---- classical and dense associative memories ---- */

static basin_expr dense_energy(const void *context, basin_expr x) {
    const basin_zoo_dense *m = context;
    basin_expr overlap = basin_zoo_linear(x, m->xi, NULL);
    if (m->power == 0 || m->power == 2) return basin_neg(half_square(overlap));
    basin_expr sum = basin_sum(basin_power_scalar(basin_relu(overlap), m->power), -1, 1);
    return basin_scale(sum, -1 / m->power);
}

basin_energy basin_zoo_dense_energy(const basin_zoo_dense *model) {
    static const basin_term term = {"memories", dense_energy, NULL};
    return (basin_energy){.term = &term, .terms = 1, .context = model};
}

/* ---- modern Hopfield networks and their Fenchel-Young relatives ---- */

static basin_expr hopfield_scores(const basin_zoo_hopfield *m, basin_expr x) {
    return basin_mul(m->beta, basin_matmul_t(x, false, m->xi, true));
}

static basin_expr conjugate(basin_zoo_entropy entropy, basin_expr z) {
    switch (entropy) {
    case BASIN_ZOO_ENTMAX15: return basin_entmax15_conjugate(z);
    case BASIN_ZOO_SPARSEMAX: return basin_sparsemax_conjugate(z);
    case BASIN_ZOO_NORMMAX2: return basin_normmax2_conjugate(z);
    default: return basin_logsumexp(z, -1);
    }
}

/* The largest entropy, of `count` equal probabilities. */
static double uniform_entropy(basin_zoo_entropy entropy, double count) {
    switch (entropy) {
    case BASIN_ZOO_ENTMAX15: return (1 - 1 / sqrt(count)) * 4 / 3;
    case BASIN_ZOO_SPARSEMAX: return (1 - 1 / count) / 2;
    case BASIN_ZOO_NORMMAX2: return 1 - 1 / sqrt(count);
    default: return log(count);
    }
}

basin_expr basin_zoo_hopfield_recall(const basin_zoo_hopfield *model, basin_expr x) {
    basin_expr z = hopfield_scores(model, x);
    switch (model->entropy) {
    case BASIN_ZOO_ENTMAX15: return basin_entmax15(z);
    case BASIN_ZOO_SPARSEMAX: return basin_sparsemax(z);
    case BASIN_ZOO_NORMMAX2: return basin_normmax2(z);
    default: return basin_softmax(z, -1);
    }
}

static basin_expr hopfield_energy(const void *context, basin_expr x) {
    const basin_zoo_hopfield *m = context;
    basin_shape shape = basin_expr_shape(m->xi);
    if (!x || shape.rank < 2) return NULL;
    double max = uniform_entropy(m->entropy, (double)shape.dim[shape.rank - 2]);
    basin_expr gain = basin_sub(basin_scalar(basin_expr_graph(x), max),
                                conjugate(m->entropy, hopfield_scores(m, x)));
    basin_expr longest = basin_max(half_square(m->xi), -1, 1); /* [..] */
    basin_expr bound = basin_expand_dims(longest, -1, 1);
    return basin_add(basin_add(basin_div(gain, m->beta), half_square(x)), bound);
}

basin_energy basin_zoo_hopfield_energy(const basin_zoo_hopfield *model) {
    static const basin_term term = {"memories", hopfield_energy, NULL};
    return (basin_energy){.term = &term, .terms = 1, .context = model};
}

/* ---- DrDAM: memories summed into random features ---- */

static basin_expr features(const basin_zoo_features *m, basin_expr x) {
    basin_expr h = basin_mul(basin_sqrt(m->beta), basin_zoo_linear(x, m->s, NULL));
    double count = (double)basin_expr_shape(m->s).dim[0];
    if (m->phase) return basin_scale(basin_cos(basin_add(h, m->phase)), sqrt(2 / count));
    basin_expr both = basin_concat((basin_expr[]){basin_cos(h), basin_sin(h)}, 2, -1);
    return basin_scale(both, 1 / sqrt(count));
}

basin_expr basin_zoo_features_sum(const basin_zoo_features *model, basin_expr xi) {
    return basin_sum(features(model, xi), 0, 1);
}

static basin_expr features_energy(const void *context, basin_expr x) {
    const basin_zoo_features *m = context;
    basin_expr near = basin_sum(basin_mul(features(m, x), m->sum), -1, 1);
    basin_expr min = basin_scalar(basin_expr_graph(x), m->floor);
    return basin_neg(basin_div(basin_log(basin_maximum(near, min)), m->beta));
}

basin_energy basin_zoo_features_energy(const basin_zoo_features *model) {
    static const basin_term term = {"memories", features_energy, NULL};
    return (basin_energy){.term = &term, .terms = 1, .context = model};
}

/* ---- log-sum-ReLU memories ---- */

/* relu(1 - beta/2 |x - xi|^2), [N, M] */
static basin_expr kernels(const basin_zoo_lsr *m, basin_expr x) {
    basin_expr rows = basin_expand_dims(half_square(x), -1, 1);
    basin_expr half =
        basin_sub(basin_add(rows, half_square(m->xi)), basin_zoo_linear(x, m->xi, NULL));
    return basin_relu(basin_offset(basin_neg(basin_mul(m->beta, half)), 1));
}

basin_expr basin_zoo_lsr_support(const basin_zoo_lsr *model, basin_expr x) {
    return basin_sum(basin_heaviside(kernels(model, x)), -1, 1);
}

static basin_expr lsr_energy(const void *context, basin_expr x) {
    const basin_zoo_lsr *m = context;
    basin_expr sum = basin_offset(basin_sum(kernels(m, x), -1, 1), m->epsilon);
    return basin_sub(basin_scale(half_square(x), 2 * m->decay), basin_div(basin_log(sum), m->beta));
}

basin_energy basin_zoo_lsr_energy(const basin_zoo_lsr *model) {
    static const basin_term term = {"memories", lsr_energy, NULL};
    return (basin_energy){.term = &term, .terms = 1, .context = model};
}

/* ---- a graph Hopfield network; energies [] are of all nodes ---- */

static basin_expr node_memories(const void *context, basin_expr x) {
    const basin_zoo_graph *m = context;
    basin_expr score = basin_mul(m->beta, basin_zoo_linear(x, m->xi, NULL));
    basin_expr gain = basin_div(basin_logsumexp(score, -1), m->beta);
    return basin_sum_all(basin_sub(half_square(x), gain));
}

/* lambda tr(x^T (I - A) x) */
static basin_expr edges(const void *context, basin_expr x) {
    const basin_zoo_graph *m = context;
    basin_expr tokens = basin_expand_dims(x, 1, 1); /* [N, 1, D] */
    basin_expr products = basin_pair_dot(tokens, tokens, m->pattern);
    basin_expr along = basin_sum_all(basin_mul(basin_expand_dims(m->weight, 1, 1), products));
    return basin_mul(m->lambda, basin_sub(basin_sum_all(basin_square(x)), along));
}

basin_energy basin_zoo_graph_energy(const basin_zoo_graph *model) {
    static const basin_term term[] = {{"memories", node_memories, NULL}, {"edges", edges, NULL}};
    return (basin_energy){.term = term, .terms = 2, .context = model};
}

/* ---- input-driven plasticity, descended in g = tanh(x) ---- */

static basin_expr plastic_activation(const void *context, basin_expr x) {
    (void)context;
    return basin_tanh(x);
}

/* <x, g> - L(x) with x = artanh g and L = log cosh: (1 + g) log(1 + g) / 2 + (1 - g) log(1 - g) / 2
 */
static basin_expr neurons(const void *context, basin_expr g) {
    (void)context;
    basin_expr up = basin_mul(basin_offset(g, 1), basin_log1p(g));
    basin_expr down = basin_mul(basin_offset(basin_neg(g), 1), basin_log1p(basin_neg(g)));
    return basin_scale(basin_sum(basin_add(up, down), -1, 1), 0.5);
}

/* -sum over memories of (xi . u / D) (xi . g)^2 / 2 D */
static basin_expr plastic_synapse(const void *context, basin_expr g) {
    const basin_zoo_plastic *m = context;
    double width = (double)basin_expr_shape(m->xi).dim[1];
    basin_expr salience = basin_zoo_linear(m->u, m->xi, NULL);
    basin_expr overlap = basin_square(basin_zoo_linear(g, m->xi, NULL));
    return basin_scale(basin_sum(basin_mul(salience, overlap), -1, 1), -0.5 / (width * width));
}

/* The neurons' force is -x, taken as it is: artanh of a tanh loses digits. */
static basin_expr leak(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_sub(force, x);
}

basin_energy basin_zoo_plastic_energy(const basin_zoo_plastic *model, basin_substep *turn) {
    static const basin_term term[] = {{"neurons", neurons, NULL},
                                      {"synapse", plastic_synapse, NULL}};
    if (turn) *turn = (basin_substep){.terms = 2, .move = leak, .context = model};
    return (basin_energy){
        .term = term, .terms = 2, .activation = plastic_activation, .context = model};
}

/* ---- a layered network with a clamped input ---- */

/* Layer i of the states side by side; 0 is the input. */
static basin_expr layer(const basin_zoo_layers *m, basin_expr s, int i) {
    int64_t first = 0;
    if (i == 0) return m->x;
    for (int k = 1; k < i; k++) first += basin_expr_shape(m->w[k - 1]).dim[0];
    return basin_slice(s, -1, first, basin_expr_shape(m->w[i - 1]).dim[0]);
}

static basin_expr layers_energy(const void *context, basin_expr s) {
    const basin_zoo_layers *m = context;
    basin_expr sum = basin_add(half_square(m->x), half_square(s));
    for (int i = 0; i < m->layers; i++) {
        basin_expr below = basin_sigmoid(layer(m, s, i)), above = layer(m, s, i + 1);
        basin_expr drive = basin_zoo_linear(below, m->w[i], m->b[i]);
        sum = basin_sub(sum, basin_sum(basin_mul(basin_sigmoid(above), drive), -1, 1));
    }
    return sum;
}

static basin_expr nudge(const void *context, basin_expr s) {
    const basin_zoo_layers *m = context;
    basin_expr gap = basin_sub(layer(m, s, m->layers), m->target);
    return basin_scale(half_square(gap), m->nudge);
}

basin_energy basin_zoo_layers_energy(const basin_zoo_layers *model) {
    static const basin_term term[] = {{"layers", layers_energy, NULL}, {"nudge", nudge, NULL}};
    return (basin_energy){.term = term, .terms = model->nudge != 0 ? 2 : 1, .context = model};
}
