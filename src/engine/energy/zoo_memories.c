/* The zoo's memories, one energy each; a kind of basin_zoo each. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "basin/pairs.h"
#include "engine/energy/zoo.h"
#include "engine/expr/graph.h"

/* Half the squares of each row, [.., D] -> [..]. */
static basin_expr half_square(basin_expr x) {
    return basin_scale(basin_sum(basin_square(x), -1, 1), 0.5);
}

/* ---- classical and dense associative memories ---- */

static basin_expr dense_energy(const void *m, basin_expr x) {
    double power = SETTING("power");
    basin_expr overlap = basin_zoo_linear(x, TENSOR("xi"), NULL);
    if (power == 2) return basin_neg(half_square(overlap));
    basin_expr sum = basin_sum(basin_power_scalar(basin_relu(overlap), power), -1, 1);
    return basin_scale(sum, -1 / power);
}

/* These energies have no lower bound but on the cube, where their networks live. */
static basin_expr into_cube(const void *m, basin_expr x, basin_expr t) {
    (void)m, (void)t;
    return basin_minimum(basin_maximum(x, basin_scalar(basin_expr_graph(x), -1)),
                         basin_scalar(basin_expr_graph(x), 1));
}

static basin_expr inside_cube(const void *m, basin_expr x) {
    (void)m;
    return basin_tanh(x);
}

const basin_zoo_code basin_zoo_dense = {
    .kind = {.title = "Classical and dense associative memories",
             .formula = "E = -sum over memories of F(xi . x), F(z) = z^2 / 2 (power 2) or\n"
                        "relu(z)^n / n, in the cube: a step ends cut to [-1, 1].",
             .alpha = 0.1,
             TENSORS(STATE("x0", "..,N,D"), WEIGHT("xi", "M,D", 0.5)),
             SETTINGS({"power", NULL, 2, 1, 1000}),
             .outputs = "begin"},
    BASIN_TERMS({"memories", dense_energy, NULL}),
    .substep = {{.project = into_cube}},
    .output = {inside_cube},
};

/* ---- modern Hopfield networks and their Fenchel-Young relatives ---- */

enum { SOFTMAX, ENTMAX15, SPARSEMAX, NORMMAX2 };
static const basin_sparse_kind sparse_kind[] = {[ENTMAX15] = BASIN_SPARSE_ENTMAX15,
                                                [SPARSEMAX] = BASIN_SPARSE_SPARSEMAX,
                                                [NORMMAX2] = BASIN_SPARSE_NORMMAX2};

static basin_expr hopfield_scores(const void *m, basin_expr x) {
    basin_expr overlap = basin_matmul_t(x, false, TENSOR("xi"), true);
    return basin_mul(TENSOR("beta"), overlap);
}

/* The conjugate Omega* of an entropy, and the gradient p of that. */
static basin_expr conjugate(int entropy, basin_expr z) {
    if (entropy == SOFTMAX) return basin_logsumexp(z, -1);
    return basin_sparse_conjugate(z, sparse_kind[entropy]);
}
static basin_expr probabilities(int entropy, basin_expr z) {
    return entropy == SOFTMAX ? basin_softmax(z, -1)
                              : basin_sparse_softmax(z, sparse_kind[entropy]);
}

/* The largest entropy, of `count` equal probabilities. */
static double uniform_entropy(int entropy, double count) {
    switch (entropy) {
    case ENTMAX15: return (1 - 1 / sqrt(count)) * 4 / 3;
    case SPARSEMAX: return (1 - 1 / count) / 2;
    case NORMMAX2: return 1 - 1 / sqrt(count);
    default: return log(count);
    }
}

/* p [.., N, M] of states x, how much of each memory a step takes. */
static basin_expr hopfield_recall(const void *m, basin_expr x) {
    return probabilities((int)SETTING("entropy"), hopfield_scores(m, x));
}

static basin_expr hopfield_energy(const void *m, basin_expr x) {
    const basin_zoo_built *built = m;
    int entropy = (int)SETTING("entropy");
    double max = uniform_entropy(entropy, (double)built->size['M' - 'A']);
    basin_expr gain = basin_sub(basin_scalar(basin_expr_graph(x), max),
                                conjugate(entropy, hopfield_scores(m, x)));
    basin_expr longest = basin_max(half_square(TENSOR("xi")), -1, 1); /* [..] */
    basin_expr bound = basin_expand_dims(longest, -1, 1), beta = TENSOR("beta");
    return basin_add(basin_add(basin_div(gain, beta), half_square(x)), bound);
}

const basin_zoo_code basin_zoo_hopfield = {
    .kind = {.title = "Modern Hopfield networks and their sparse Fenchel-Young relatives",
             .formula =
                 "E = -Omega*(beta xi x) / beta + |x|^2 / 2 + H(uniform) / beta + max |xi|^2 / 2,\n"
                 "with Omega* log-sum-exp (\"softmax\") or the conjugate of \"entmax15\",\n"
                 "\"sparsemax\" or \"normmax2\". A step of size 1 is xi^T p.",
             .alpha = 1,
             TENSORS(STATE("x0", "..,N,D"), WEIGHT("xi", "..,M,D", 1), NUMBER("beta", "", 1)),
             SETTINGS({"entropy", "softmax|entmax15|sparsemax|normmax2", SOFTMAX, 0, NORMMAX2}),
             .outputs = "recall"},
    BASIN_TERMS({"memories", hopfield_energy, NULL}),
    .output = {hopfield_recall},
};

/* ---- DrDAM: memories summed into random features ---- */

static basin_expr features(const void *m, basin_expr x) {
    basin_expr s = TENSOR("s"), phase = TENSOR("phase");
    basin_expr h = basin_mul(basin_sqrt(TENSOR("beta")), basin_zoo_linear(x, s, NULL));
    double count = (double)basin_expr_shape(s).dim[0];
    if (phase) return basin_scale(basin_cos(basin_add(h, phase)), sqrt(2 / count));
    basin_expr both = basin_concat((basin_expr[]){basin_cos(h), basin_sin(h)}, 2, -1);
    return basin_scale(both, 1 / sqrt(count));
}

/* T, of memories or as given. */
static basin_expr features_sum(const void *m, basin_expr x) {
    basin_expr total = TENSOR("total");
    (void)x;
    return total ? total : basin_sum(features(m, TENSOR("xi")), 0, 1);
}

static basin_expr features_energy(const void *m, basin_expr x) {
    basin_expr near = basin_sum(basin_mul(features(m, x), features_sum(m, x)), -1, 1);
    basin_expr min = basin_scalar(basin_expr_graph(x), SETTING("floor"));
    basin_expr beta = TENSOR("beta");
    return basin_neg(basin_div(basin_log(basin_maximum(near, min)), beta));
}

/* -log sum exp(-beta |x - xi|^2 / 2) / beta [N], which the features approach. */
static basin_expr features_exact(const void *m, basin_expr x) {
    basin_expr xi = TENSOR("xi"), beta = TENSOR("beta");
    basin_expr gap = basin_sub(basin_expand_dims(x, 1, 1), basin_expand_dims(xi, 0, 1));
    basin_expr z = basin_scale(basin_mul(beta, basin_sum(basin_square(gap), -1, 1)), -0.5);
    return basin_neg(basin_div(basin_logsumexp(z, -1), beta));
}

const basin_zoo_code basin_zoo_features = {
    .kind = {.title = "Memories summed into random features (DrDAM)",
             .formula =
                 "E = -log max(phi(x) . T, floor) / beta, T = sum of phi(xi); phi is\n"
                 "[cos, sin](sqrt(beta) s x) / sqrt(Y), or with phases\n"
                 "sqrt(2 / Y) cos(sqrt(beta) s x + phase). `total` is T where memories are gone.",
             .alpha = 0.1,
             TENSORS(STATE("x0", "..,N,D"), WEIGHT("s", "Y,D", 1), OPTIONAL("xi", "M,D"),
                     NUMBER("beta", "", 1), OPTIONAL("phase", "Y"), OPTIONAL("total", "*")),
             SETTINGS({"floor", NULL, 1e-5, 0, 1}),
             .outputs = "sum|exact_energy"},
    BASIN_TERMS({"memories", features_energy, NULL}),
    .output = {features_sum, features_exact},
    .needs = "xi|total",
};

/* ---- log-sum-ReLU memories ---- */

/* relu(1 - beta/2 |x - xi|^2), [N, M] */
static basin_expr kernels(const void *m, basin_expr x) {
    basin_expr rows = basin_expand_dims(half_square(x), -1, 1), xi = TENSOR("xi");
    basin_expr half = basin_sub(basin_add(rows, half_square(xi)), basin_zoo_linear(x, xi, NULL));
    return basin_relu(basin_offset(basin_neg(basin_mul(TENSOR("beta"), half)), 1));
}

/* How many memories act on a state, [N]. */
static basin_expr lsr_support(const void *m, basin_expr x) {
    return basin_sum(basin_heaviside(kernels(m, x)), -1, 1);
}

static basin_expr lsr_energy(const void *m, basin_expr x) {
    double epsilon = SETTING("epsilon"), decay = SETTING("decay");
    basin_expr sum = basin_offset(basin_sum(kernels(m, x), -1, 1), epsilon);
    return basin_sub(basin_scale(half_square(x), 2 * decay),
                     basin_div(basin_log(sum), TENSOR("beta")));
}

const basin_zoo_code basin_zoo_lsr = {
    .kind = {.title = "Log-sum-ReLU memories",
             .formula = "E = -log(epsilon + sum relu(1 - beta/2 |x - xi|^2)) / beta + decay |x|^2",
             .alpha = 0.1,
             TENSORS(STATE("x0", "..,N,D"), WEIGHT("xi", "M,D", 1), NUMBER("beta", "", 1)),
             SETTINGS({"epsilon", NULL, 1e-6, 0, 1}, {"decay", NULL, 0, 0, 1e9}),
             .outputs = "support"},
    BASIN_TERMS({"memories", lsr_energy, NULL}),
    .output = {lsr_support},
};

/* ---- a graph Hopfield network; energies [] are of all nodes ---- */

typedef struct adjacency {
    basin_pattern pattern; /* both directions of every edge */
    basin_expr weight;     /* [pairs] 1 / sqrt(degree of both ends) */
} adjacency;

static basin_expr node_memories(const void *m, basin_expr x) {
    basin_expr beta = TENSOR("beta"), xi = TENSOR("xi");
    basin_expr score = basin_mul(beta, basin_zoo_linear(x, xi, NULL));
    basin_expr gain = basin_div(basin_logsumexp(score, -1), beta);
    return basin_sum_all(basin_sub(half_square(x), gain));
}

/* lam tr(x^T (I - A) x) */
static basin_expr edges(const void *m, basin_expr x) {
    const adjacency *a = ((const basin_zoo_built *)m)->own;
    basin_expr tokens = basin_expand_dims(x, 1, 1); /* [N, 1, D] */
    basin_expr products = basin_pair_dot(tokens, tokens, &a->pattern);
    basin_expr along = basin_sum_all(basin_mul(basin_expand_dims(a->weight, 1, 1), products));
    return basin_mul(TENSOR("lam"), basin_sub(basin_sum_all(basin_square(x)), along));
}

static void weigh(basin_graph *graph, adjacency *a, const basin_pairs *p) {
    basin_tensor weight;
    basin_error error;
    if (basin_tensor_new(&weight, BASIN_F64, BASIN_SHAPE(p->pairs), &error)) {
        basin_graph_fail(graph, error.status, "%s", error.text);
        return;
    }
    for (int64_t q = 0; q < p->queries; q++)
        for (int32_t i = p->row[q]; i < p->row[q + 1]; i++) {
            int32_t k = p->key[i], degree = p->row[q + 1] - p->row[q];
            double degrees = (double)degree * (double)(p->row[k + 1] - p->row[k]);
            ((double *)weight.data)[i] = 1 / sqrt(degrees);
        }
    a->weight = basin_constant(graph, &weight);
    basin_tensor_free(&weight);
    basin_shape rows = BASIN_SHAPE(p->queries + 1), pairs = BASIN_SHAPE(p->pairs);
    a->pattern = (basin_pattern){.row = basin_leaf_data(graph, BASIN_INDEX, rows, p->row),
                                 .key = basin_leaf_data(graph, BASIN_INDEX, pairs, p->key),
                                 .column = basin_leaf_data(graph, BASIN_INDEX, rows, p->column),
                                 .query = basin_leaf_data(graph, BASIN_INDEX, pairs, p->query),
                                 .pair = basin_leaf_data(graph, BASIN_INDEX, pairs, p->pair)};
}

static void read_edges(basin_zoo_built *built, basin_graph *graph) {
    const basin_tensor *list = NULL;
    basin_tensor whole = {0};
    basin_pairs pairs = {0};
    basin_error error;
    int64_t nodes = built->size['N' - 'A'];
    for (int i = 0; i < built->parts; i++)
        if (built->part[i].data) list = built->part[i].data;
    if (nodes < 1)
        basin_graph_fail(graph, BASIN_BAD_VALUE, "%s: no number of nodes; expected x0 or N",
                         built->zoo.model->name);
    else if (basin_tensor_new(&whole, BASIN_I32, list->shape, &error) ||
             basin_tensor_convert(&whole, list, &error) ||
             basin_pairs_new(&pairs, nodes, nodes, whole.data, list->shape.dim[0],
                             BASIN_PAIRS_BOTH_WAYS, &error))
        basin_graph_fail(graph, error.status, "%s", error.text);
    else if ((built->own = basin_graph_keep(graph, sizeof(adjacency))))
        weigh(graph, built->own, &pairs);
    basin_pairs_free(&pairs);
    basin_tensor_free(&whole);
}

const basin_zoo_code basin_zoo_graph = {
    .kind = {.title = "A Hopfield network at every node of a graph",
             .formula = "E = sum over nodes of [-log-sum-exp(beta xi x) / beta + |x|^2 / 2]\n"
                        "+ lam tr(x^T L x), L = I - A, A the normalized adjacency of `edges`\n"
                        "[E, 2]. Energies are of all nodes.",
             .alpha = 0.3,
             TENSORS(STATE("x0", "N,D"), WEIGHT("xi", "M,D", 1),
                     {"edges", "E,2", .role = BASIN_ZOO_EDGES}, NUMBER("beta", "", 1),
                     NUMBER("lam", "", 0.3))},
    BASIN_TERMS({"memories", node_memories, NULL}, {"edges", edges, NULL}),
    .prepare = read_edges,
};

/* ---- input-driven plasticity, descended in g = tanh(x) ---- */

static basin_expr plastic_activation(const void *m, basin_expr x) {
    (void)m;
    return basin_tanh(x);
}

/* <x, g> - L(x) with x = artanh g and L = log cosh: (1 + g) log(1 + g) / 2 + (1 - g) log(1 - g) / 2
 */
static basin_expr neurons(const void *m, basin_expr g) {
    (void)m;
    basin_expr up = basin_mul(basin_offset(g, 1), basin_log1p(g));
    basin_expr down = basin_mul(basin_offset(basin_neg(g), 1), basin_log1p(basin_neg(g)));
    return basin_scale(basin_sum(basin_add(up, down), -1, 1), 0.5);
}

/* -sum over memories of (xi . u / D) (xi . g)^2 / 2 D */
static basin_expr plastic_synapse(const void *m, basin_expr g) {
    basin_expr xi = TENSOR("xi");
    double width = (double)basin_expr_shape(xi).dim[1];
    basin_expr salience = basin_zoo_linear(TENSOR("u"), xi, NULL);
    basin_expr overlap = basin_square(basin_zoo_linear(g, xi, NULL));
    return basin_scale(basin_sum(basin_mul(salience, overlap), -1, 1), -0.5 / (width * width));
}

/* The neurons' force is -x, taken as it is: artanh of a tanh loses digits. */
static basin_expr leak(const void *m, basin_expr force, basin_expr x, basin_expr t) {
    (void)m, (void)t;
    return basin_sub(force, x);
}

const basin_zoo_code basin_zoo_plastic = {
    .kind = {.title = "Input-driven plasticity",
             .formula = "g = tanh(x), E = <x, g> - L(x) - g . W(u) g / 2 with W(u) = sum over\n"
                        "memories of (xi . u / D) xi xi^T / D, of an input u [N, D]. A step is\n"
                        "x + alpha (W(u) g - x).",
             .alpha = 0.2,
             TENSORS(STATE("x0", "N,D"), WEIGHT("xi", "M,D", 1), WEIGHT("u", "N,D", 1))},
    BASIN_TERMS({"neurons", neurons, NULL}, {"synapse", plastic_synapse, NULL}),
    .activation = plastic_activation,
    .substep = {{.terms = 2, .move = leak}},
};

/* ---- memories with gates that a context opens, states [x, h] side by side ---- */

static basin_expr gated_part(const void *m, basin_expr state, bool gates) {
    int64_t D = basin_expr_shape(TENSOR("xi")).dim[1], G = basin_expr_shape(TENSOR("a")).dim[1];
    return basin_slice(state, -1, gates ? D : 0, gates ? G : D);
}

static basin_expr gated_activation(const void *m, basin_expr state) {
    basin_expr open = basin_softmax(basin_mul(TENSOR("gamma"), gated_part(m, state, true)), -1);
    return basin_concat((basin_expr[]){gated_part(m, state, false), open}, 2, -1);
}

/* |x|^2 / 2 and, of the gates s = softmax(gamma h), s . h - log-sum-exp(gamma h) / gamma. */
static basin_expr gated_neurons(const void *m, basin_expr g) {
    basin_expr s = gated_part(m, g, true), tiny = basin_scalar(basin_expr_graph(g), 1e-30);
    basin_expr entropy = basin_sum(basin_mul(s, basin_log(basin_maximum(s, tiny))), -1, 1);
    return basin_add(half_square(gated_part(m, g, false)), basin_div(entropy, TENSOR("gamma")));
}

static basin_expr gated_scores(const void *m, basin_expr g) {
    basin_expr overlap = basin_zoo_linear(gated_part(m, g, false), TENSOR("xi"), NULL);
    basin_expr gate = basin_zoo_linear(gated_part(m, g, true), TENSOR("a"), NULL);
    return basin_mul(TENSOR("beta"), basin_add(overlap, gate));
}

static basin_expr gated_memories(const void *m, basin_expr g) {
    basin_expr context = basin_zoo_linear(TENSOR("u"), TENSOR("w"), NULL);
    basin_expr drive = basin_sum(basin_mul(gated_part(m, g, true), context), -1, 1);
    basin_expr lse = basin_logsumexp(gated_scores(m, g), -1);
    return basin_neg(basin_add(drive, basin_div(lse, TENSOR("beta"))));
}

const basin_zoo_code basin_zoo_gated = {
    .kind = {.title = "Context-gated memories",
             .formula =
                 "States [x, h] of D + G numbers, gates s = softmax(gamma h) that a context u\n"
                 "[N, C] opens: E = |x|^2 / 2 + s . h - log-sum-exp(gamma h) / gamma - s . W u -\n"
                 "log-sum-exp(beta (xi x + a s)) / beta. A step goes to x = xi^T p and h = W u +\n"
                 "a^T p, p = softmax(beta (xi x + a s)): the context, and what is recalled.",
             .alpha = 0.2,
             TENSORS(STATE("x0", "N,Z"), WEIGHT("xi", "M,D", 1), WEIGHT("a", "M,G", 1),
                     WEIGHT("w", "G,C", 1), INPUT("u", "N,C", 1, false), NUMBER("beta", "", 1),
                     NUMBER("gamma", "", 1))},
    BASIN_TERMS({"neurons", gated_neurons, NULL}, {"memories", gated_memories, NULL}),
    .activation = gated_activation,
    .substep = {{.terms = 2, .move = leak}},
};

/* ---- memories that are Gaussians, states [mean, factor L] with the covariance L L' ---- */

enum { POLAR_STEPS = 12 };

/* The sum of the singular values of each k [.., D, D]: Q . k with Q the nearest rotation, by
 * Newton's steps Q <- (Q + Q'^-1) / 2 from a matrix whose determinant is 1. */
static basin_expr nuclear_norm(basin_expr k) {
    basin_shape shape = basin_expr_shape(k);
    int64_t D = shape.dim[shape.rank - 1];
    basin_expr size = basin_scale(basin_slogdet(k, NULL), -1.0 / (double)D);
    basin_expr q = basin_mul(basin_exp(basin_as_column(basin_as_column(size))), k);
    basin_expr eye = basin_eye(basin_expr_graph(k), D);
    for (int i = 0; i < POLAR_STEPS && q; i++)
        q = basin_scale(basin_add(q, basin_solve(q, eye, BASIN_SOLVE_TRANSPOSED)), 0.5);
    return basin_sum(basin_mul(q, k), -2, 2);
}

/* -beta / 2 times the squared distance of Wasserstein, [N, M]:
 * |m - mu|^2 + tr S + tr S_mu - 2 tr (S_mu^1/2 S S_mu^1/2)^1/2, the last the norm of L' C. */
static basin_expr gaussian_scores(const void *m, basin_expr x) {
    basin_expr mu = TENSOR("mu"), c = TENSOR("c");
    int64_t N = basin_expr_shape(x).dim[0], M = basin_expr_shape(mu).dim[0],
            D = basin_expr_shape(mu).dim[1];
    if (!c) c = basin_cholesky(TENSOR("s"));
    basin_expr l = basin_reshape(basin_slice(x, 1, D, D * D), BASIN_SHAPE(N, D, D));
    basin_expr apart = basin_sub(basin_reshape(basin_slice(x, 1, 0, D), BASIN_SHAPE(N, 1, D)), mu);
    basin_expr cross = basin_einsum("nab,mac->nmbc", l, c);
    basin_expr traces =
        basin_add(basin_reshape(basin_sum(basin_square(l), 1, 2), BASIN_SHAPE(N, 1)),
                  basin_reshape(basin_sum(basin_square(c), 1, 2), BASIN_SHAPE(M)));
    basin_expr half = basin_sub(basin_scale(traces, 0.5), nuclear_norm(cross));
    return basin_neg(basin_mul(TENSOR("beta"), basin_add(half_square(apart), half)));
}

static basin_expr gaussian_recall(const void *m, basin_expr x) {
    return basin_softmax(gaussian_scores(m, x), -1);
}

static basin_expr gaussian_energy(const void *m, basin_expr x) {
    return basin_neg(basin_div(basin_logsumexp(gaussian_scores(m, x), -1), TENSOR("beta")));
}

const basin_zoo_code basin_zoo_gaussians = {
    .kind =
        {.title = "Memories of Gaussians",
         .formula =
             "States [mean, factor L] of D + D D numbers, Gaussians of covariance L L^T, and\n"
             "memories of means mu and covariances s, or factors c: E = -log-sum-exp(-beta / 2\n"
             "W^2) / beta with the squared distances of Bures and Wasserstein. A step of size 1\n"
             "goes along the transport maps to the memories, by their shares.",
         .alpha = 1,
         TENSORS(STATE("x0", "N,Z"), WEIGHT("mu", "M,D", 1), OPTIONAL("c", "M,D,D"),
                 OPTIONAL("s", "M,D,D"), NUMBER("beta", "", 1)),
         .outputs = "recall"},
    BASIN_TERMS({"memories", gaussian_energy, NULL}),
    .output = {gaussian_recall},
    .needs = "c|s",
};

/* ---- a layered network with a clamped input ---- */

static basin_expr layer_part(const void *m, char kind, int i) {
    char name[16];
    snprintf(name, sizeof name, "%c%d", kind, i);
    return basin_zoo_part(m, name);
}

/* Layer i of the states side by side; 0 is the input. */
static basin_expr layer(const void *m, basin_expr s, int i) {
    int64_t first = 0;
    if (i == 0) return TENSOR("x");
    for (int k = 1; k < i; k++) first += basin_expr_shape(layer_part(m, 'w', k - 1)).dim[0];
    return basin_slice(s, -1, first, basin_expr_shape(layer_part(m, 'w', i - 1)).dim[0]);
}

static basin_expr layers_energy(const void *m, basin_expr s) {
    basin_expr sum = basin_add(half_square(TENSOR("x")), half_square(s));
    for (int i = 0; layer_part(m, 'w', i); i++) {
        basin_expr below = basin_sigmoid(layer(m, s, i)), above = layer(m, s, i + 1);
        basin_expr drive = basin_zoo_linear(below, layer_part(m, 'w', i), layer_part(m, 'b', i));
        sum = basin_sub(sum, basin_sum(basin_mul(basin_sigmoid(above), drive), -1, 1));
    }
    return sum;
}

static basin_expr nudge(const void *m, basin_expr s) {
    int layers = 0;
    while (layer_part(m, 'w', layers)) layers++;
    basin_expr gap = basin_sub(layer(m, s, layers), TENSOR("target"));
    return basin_scale(half_square(gap), SETTING("nudge"));
}

static void check_layers(basin_zoo_built *built, basin_graph *graph) {
    for (int i = 0; i < built->parts; i++) {
        const char *name = built->part[i].name;
        int number = (int)strtol(name + 1, NULL, 10);
        if (name[0] == 'w' && !layer_part(built, 'b', number))
            basin_graph_fail(graph, BASIN_BAD_VALUE, "%s: %s without a bias",
                             built->zoo.model->name, name);
    }
    bool nudged = basin_zoo_number(built, "nudge") != 0;
    if (nudged && !basin_zoo_part(built, "target"))
        basin_graph_fail(graph, BASIN_BAD_VALUE, "%s: a nudge needs a target",
                         built->zoo.model->name);
    if (!nudged) built->zoo.energy.terms = 1;
}

const basin_zoo_code basin_zoo_layers = {
    .kind = {.title = "A layered network with a clamped input, for equilibrium propagation",
             .formula =
                 "E = |x|^2 / 2 + |s|^2 / 2 - sum over layers of r(u_next) . (w r(u) + b),\n"
                 "r = sigmoid, of states s [N, all layers] side by side. With a nudge, a second\n"
                 "term nudge |u_last - target|^2 / 2.",
             .alpha = 0.3,
             TENSORS(STATE("s", "N,S"), INPUT("x", "N,I", 1, false), WEIGHT("w0", "D,I", 0.5),
                     WEIGHT("b0", "D", 0.5), OPTIONAL("w1", "O,D"), OPTIONAL("b1", "O"),
                     OPTIONAL("w#", "*,*"), OPTIONAL("b#", "*"), INPUT("target", "N,*", 0, true)),
             SETTINGS({"nudge", NULL, 0, -1e9, 1e9})},
    BASIN_TERMS({"layers", layers_energy, NULL}, {"nudge", nudge, NULL}),
    .prepare = check_layers,
};
