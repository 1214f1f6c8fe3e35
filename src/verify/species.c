/* The species of the zoo: reference, formula, and how a specimen is built. Names of tensors and
 * settings are those of the golden files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "basin/pairs.h"
#include "verify/specimen.h"

enum { N = 6, D = 8, M = 10, HIDDEN = 12, HEADS = 2 }; /* of specimens that are drawn */

#define TENSOR basin_specimen_tensor
#define SCALAR basin_specimen_scalar

/* Fails where a file is of a variant that this specimen is not; settings are JSON. */
static void want_setting(basin_specimen *s, const char *key, const char *wanted) {
    const char *found = s->bundle ? basin_bundle_meta(s->bundle, key) : NULL;
    if (found && strcmp(found, wanted) != 0)
        basin_graph_fail(s->graph, BASIN_UNSUPPORTED, "%s: the setting %s is %s; wanted %s",
                         basin_bundle_path(s->bundle), key, found, wanted);
}

static void want_no_file(basin_specimen *s, const char *why) {
    if (s->bundle)
        basin_graph_fail(s->graph, BASIN_UNSUPPORTED, "%s: %s", basin_bundle_path(s->bundle), why);
}

/* ---- memories ---- */

static void begin(basin_specimen *s, double alpha) {
    s->alpha = basin_specimen_setting(s, "alpha", alpha);
    s->x = TENSOR(s, "x0", 1, BASIN_SHAPE(N, D));
}

static basin_expr into_cube(const void *context, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_to_box(x, -1, 1);
}

/* These energies have no lower bound but on the cube, where their networks live. */
static void build_dense(basin_specimen *s, double power) {
    begin(s, 0.1);
    s->x = basin_tanh(s->x);
    s->m.dense = (basin_zoo_dense){.xi = TENSOR(s, "xi", 0.5, BASIN_SHAPE(M, D)), .power = power};
    s->energy = basin_zoo_dense_energy(&s->m.dense);
    s->turn[0] = (basin_turn){.land = into_cube};
    s->turns = 1;
}
static void build_classical(basin_specimen *s) { build_dense(s, 2); }
static void build_power(basin_specimen *s) { build_dense(s, 3); }

static void build_entropy(basin_specimen *s, basin_zoo_entropy entropy) {
    begin(s, 1);
    s->m.hopfield = (basin_zoo_hopfield){.xi = TENSOR(s, "xi", 1, BASIN_SHAPE(M, D)),
                                         .beta = SCALAR(s, "beta", 1),
                                         .entropy = entropy};
    s->energy = basin_zoo_hopfield_energy(&s->m.hopfield);
}
static void build_hopfield(basin_specimen *s) { build_entropy(s, BASIN_ZOO_SOFTMAX); }
static void build_entmax15(basin_specimen *s) { build_entropy(s, BASIN_ZOO_ENTMAX15); }
static void build_sparsemax(basin_specimen *s) { build_entropy(s, BASIN_ZOO_SPARSEMAX); }
static void build_normmax2(basin_specimen *s) { build_entropy(s, BASIN_ZOO_NORMMAX2); }

static void build_drdam(basin_specimen *s) {
    want_setting(s, "kind", "\"sincos\"");
    begin(s, 0.1);
    basin_expr xi = TENSOR(s, "xi", 0.5, BASIN_SHAPE(M, D));
    s->m.features = (basin_zoo_features){.s = TENSOR(s, "s", 1, BASIN_SHAPE(300, D)),
                                         .beta = SCALAR(s, "beta", 0.3),
                                         .floor = basin_specimen_setting(s, "floor", 1e-5)};
    s->m.features.sum = basin_zoo_features_sum(&s->m.features, xi);
    s->energy = basin_zoo_features_energy(&s->m.features);
}

static void build_lsr(basin_specimen *s) {
    begin(s, 0.1);
    s->m.lsr = (basin_zoo_lsr){.xi = TENSOR(s, "xi", 1, BASIN_SHAPE(M, D)),
                               .beta = SCALAR(s, "beta", 0.15),
                               .epsilon = basin_specimen_setting(s, "eps", 1e-6),
                               .decay = basin_specimen_setting(s, "decay", 0)};
    s->energy = basin_zoo_lsr_energy(&s->m.lsr);
}

/* ---- graphs ---- */

static basin_expr indices(basin_graph *graph, const int32_t *number, int64_t count) {
    return basin_index_constant(graph, number, BASIN_SHAPE(count));
}

/* A ring in which each node has two neighbours: A is 1/2 for every pair. */
static void build_graph(basin_specimen *s) {
    int32_t edge[N][2];
    basin_pairs p = {0};
    basin_error error;
    begin(s, 0.3);
    for (int32_t i = 0; i < N; i++) edge[i][0] = i, edge[i][1] = (i + 1) % N;
    want_no_file(s, "this model runs on a ring of its own; wanted no file");
    if (basin_graph_error(s->graph)) return;
    if (basin_pairs_new(&p, N, N, edge[0], N, BASIN_PAIRS_BOTH_WAYS, &error)) {
        basin_graph_fail(s->graph, error.status, "%s", error.text);
        return;
    }
    s->pattern = (basin_pattern){.row = indices(s->graph, p.row, N + 1),
                                 .key = indices(s->graph, p.key, p.pairs),
                                 .column = indices(s->graph, p.column, N + 1),
                                 .query = indices(s->graph, p.query, p.pairs),
                                 .pair = indices(s->graph, p.pair, p.pairs)};
    s->m.graph = (basin_zoo_graph){.xi = TENSOR(s, "xi", 1, BASIN_SHAPE(M, D)),
                                   .beta = SCALAR(s, "beta", 0.2),
                                   .pattern = &s->pattern,
                                   .weight = basin_fill(s->graph, BASIN_SHAPE(p.pairs), 0.5),
                                   .lambda = SCALAR(s, "lam", 0.3)};
    s->energy = basin_zoo_graph_energy(&s->m.graph);
    basin_pairs_free(&p);
}

/* ---- networks ---- */

static void build_plastic(basin_specimen *s) {
    begin(s, 0.2);
    s->alpha = basin_specimen_setting(s, "dt", 0.2);
    s->m.plastic = (basin_zoo_plastic){.xi = TENSOR(s, "xi", 1, BASIN_SHAPE(4, D)),
                                       .u = TENSOR(s, "u", 1, BASIN_SHAPE(N, D))};
    s->energy = basin_zoo_plastic_energy(&s->m.plastic, s->turn);
    s->turns = 1;
}

static void build_layers(basin_specimen *s) {
    s->alpha = 0.3;
    s->m.layers = (basin_zoo_layers){.layers = 2, .x = TENSOR(s, "x", 1, BASIN_SHAPE(N, 6))};
    basin_zoo_layers *m = &s->m.layers;
    m->w[0] = TENSOR(s, "w0", 0.5, BASIN_SHAPE(D, 6)),
    m->b[0] = TENSOR(s, "b0", 0.5, BASIN_SHAPE(D));
    m->w[1] = TENSOR(s, "w1", 0.5, BASIN_SHAPE(4, D)),
    m->b[1] = TENSOR(s, "b1", 0.5, BASIN_SHAPE(4));
    if (basin_graph_error(s->graph)) return;
    int64_t units = basin_expr_shape(m->b[0]).dim[0] + basin_expr_shape(m->b[1]).dim[0];
    basin_shape shape = BASIN_SHAPE(basin_expr_shape(m->x).dim[0], units);
    s->x = s->bundle ? basin_fill(s->graph, shape, 0) : TENSOR(s, "s", 1, shape);
    s->energy = basin_zoo_layers_energy(m);
}

static void build_et(basin_specimen *s) {
    basin_block *b = &s->m.et.block;
    begin(s, 0.1);
    *b = (basin_block){.config = {.dim = D, .heads = HEADS, .head_dim = 4, .memories = M},
                       .wk = TENSOR(s, "wk", 0.5, BASIN_SHAPE(HEADS, 4, D)),
                       .wq = TENSOR(s, "wq", 0.5, BASIN_SHAPE(HEADS, 4, D)),
                       .xi = TENSOR(s, "xi", 0.5, BASIN_SHAPE(M, D)),
                       .gamma = SCALAR(s, "gamma", 1),
                       .delta = TENSOR(s, "delta", 0.1, BASIN_SHAPE(D))};
    if (basin_graph_error(s->graph)) return;
    basin_shape heads = basin_expr_shape(b->wk), memories = basin_expr_shape(b->xi);
    b->config = (basin_block_config){.dim = heads.dim[2],
                                     .heads = heads.dim[0],
                                     .head_dim = heads.dim[1],
                                     .memories = memories.dim[0]};
    b->config.epsilon = 1e-5;
    b->config.beta = 1 / sqrt((double)heads.dim[1]);
    b->beta = basin_fill(s->graph, BASIN_SHAPE(heads.dim[0]), b->config.beta);
    s->m.et.bound = (basin_block_bound){.block = b, .pattern = &BASIN_OTHER_PAIRS};
    s->energy = basin_block_energy(&s->m.et.bound);
}

/* ---- NRGPT ---- */

static void build_nrgpt(basin_specimen *s, bool strict, bool identity) {
    want_setting(s, "ff", "\"1\"");
    want_setting(s, "strict", strict ? "true" : "false");
    begin(s, 1);
    s->alpha = s->bundle ? 1 : 0.1;
    s->m.nrgpt = (basin_zoo_nrgpt){.h = TENSOR(s, "h", 0.3, BASIN_SHAPE(HEADS, D, D)),
                                   .bias = TENSOR(s, "bias", 0.1, BASIN_SHAPE(D)),
                                   .scale = SCALAR(s, "scale", 1),
                                   .w1 = TENSOR(s, "w1", 0.3, BASIN_SHAPE(HIDDEN, D)),
                                   .b1 = TENSOR(s, "b1", 0.1, BASIN_SHAPE(HIDDEN)),
                                   .feed = BASIN_ZOO_FEED_1,
                                   .strict = strict};
    s->m.nrgpt.proj = identity ? basin_eye(s->graph, basin_expr_shape(s->x).dim[1])
                               : TENSOR(s, "proj", 0.3, BASIN_SHAPE(D, D));
    s->energy = basin_zoo_nrgpt_energy(&s->m.nrgpt, s->turn);
    s->turns = 1;
}
static void build_nrgpt_learned(basin_specimen *s) { build_nrgpt(s, true, false); }
static void build_nrgpt_strict(basin_specimen *s) { build_nrgpt(s, true, true); }
static void build_nrgpt_inclusive(basin_specimen *s) { build_nrgpt(s, false, true); }

/* ---- Hyper-SET, AKOrN, CRATE, EBT ---- */

static void build_hyperset(basin_specimen *s) {
    want_setting(s, "learned_steps", "false");
    want_setting(s, "activation", "\"relu\"");
    begin(s, 0.25);
    s->m.hyperset =
        (basin_zoo_hyperset){.w = TENSOR(s, "w", 0.4, BASIN_SHAPE(D, D)),
                             .m = TENSOR(s, "m", 0.4, BASIN_SHAPE(4 * D, D)),
                             .gain_w = TENSOR(s, "gain_w", 1, BASIN_SHAPE(D / HEADS)),
                             .gain_m = TENSOR(s, "gain_m", 1, BASIN_SHAPE(4 * D)),
                             .heads = (int64_t)basin_specimen_setting(s, "heads", HEADS),
                             .straight = true,
                             .epsilon = basin_specimen_setting(s, "eps", 1.1920928955078125e-07),
                             .alpha = 1};
    if (!s->bundle) s->m.hyperset.gain_w = s->m.hyperset.gain_m = basin_const(s->graph, 1);
    s->exact = s->m.hyperset;
    s->exact.straight = false;
    s->by_x = &s->exact;
    s->energy = basin_zoo_hyperset_energy(&s->m.hyperset, s->turn);
    s->turns = 2;
}

static void build_akorn(basin_specimen *s, bool attention, double omega) {
    int64_t sphere = (int64_t)basin_specimen_setting(s, "n", 4);
    begin(s, 1);
    s->alpha = 1;
    s->m.akorn = (basin_zoo_akorn){.c = TENSOR(s, "c", 0.5, BASIN_SHAPE(N, D)),
                                   .omega = TENSOR(s, "omega", omega, BASIN_SHAPE(D / 2, 2)),
                                   .gamma = SCALAR(s, "gamma", 0.5),
                                   .heads = (int64_t)basin_specimen_setting(s, "heads", HEADS),
                                   .sphere = sphere};
    if (attention) {
        s->m.akorn.qkv_w = TENSOR(s, "qkv_w", 0.5, BASIN_SHAPE(3 * D, D));
        s->m.akorn.qkv_b = TENSOR(s, "qkv_b", 0.1, BASIN_SHAPE(3 * D));
        s->m.akorn.o_w = TENSOR(s, "o_w", 0.5, BASIN_SHAPE(D, D));
        s->m.akorn.o_b = TENSOR(s, "o_b", 0.1, BASIN_SHAPE(D));
    } else {
        s->m.akorn.a = TENSOR(s, "a", 0.3, BASIN_SHAPE(N * D, N * D));
    }
    s->x = basin_to_sphere(s->x, sphere);
    s->energy = basin_zoo_akorn_energy(&s->m.akorn, s->turn);
    s->turns = 1;
}
static void build_akorn_still(basin_specimen *s) { build_akorn(s, false, 0); }
static void build_akorn_turning(basin_specimen *s) { build_akorn(s, false, 0.5); }
static void build_akorn_attention(basin_specimen *s) { build_akorn(s, true, 0.5); }

/* |y - a d'|^2 / 2 + lambda sum a, of a >= 0 */
static basin_expr sparsity(const void *context, basin_expr a) {
    return basin_scale(basin_sum(a, -1, 1), ((const basin_specimen *)context)->m.crate.lambda);
}
static basin_expr sparse_code(const void *context, basin_expr a) {
    const basin_specimen *s = context;
    basin_expr gap = basin_sub(s->m.crate.y, basin_matmul_t(a, false, s->m.crate.d, true));
    return basin_scale(basin_sum(basin_square(gap), -1, 1), 0.5);
}

static basin_expr above_zero(const void *context, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_relu(x);
}

/* From the block's second step on: its first begins at a = y, which may be negative. */
static void build_crate(basin_specimen *s) {
    want_no_file(s, "half a block of this model has no file; wanted none");
    begin(s, 0.1);
    s->m.crate.y = s->x;
    s->m.crate.d = TENSOR(s, "d", 0.35, BASIN_SHAPE(D, D));
    s->m.crate.lambda = 0.1;
    s->x = basin_relu(s->x);
    static const basin_term term[] = {{"code", sparse_code, NULL}, {"sparsity", sparsity, NULL}};
    s->energy = (basin_energy){.term = term, .terms = 2, .context = s};
    s->turn[0] = (basin_turn){.land = above_zero};
    s->turns = 1;
}

static basin_expr to_probabilities(const void *context, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_softmax(x);
}

static void build_ebt(basin_specimen *s, bool loop) {
    enum { V = 7 };
    s->alpha = 1;
    s->x = basin_softmax(TENSOR(s, "y0", 1, BASIN_SHAPE(N, V)));
    s->m.ebt = (basin_zoo_ebt){.context = TENSOR(s, "ctx", 1, BASIN_SHAPE(N, D)),
                               .e = TENSOR(s, "e", 1, BASIN_SHAPE(D, V)),
                               .w1 = TENSOR(s, "w1", 0.5, BASIN_SHAPE(HIDDEN, 2 * D)),
                               .b1 = TENSOR(s, "b1", 0.1, BASIN_SHAPE(HIDDEN)),
                               .w2 = TENSOR(s, "w2", 1, BASIN_SHAPE(HIDDEN)),
                               .alpha = SCALAR(s, "alpha", 0.5)};
    s->energy = basin_zoo_ebt_energy(&s->m.ebt, s->turn);
    if (loop) s->turn[0].land = to_probabilities;
    s->turns = 1;
}
static void build_ebt_turn(basin_specimen *s) { build_ebt(s, false); }
static void build_ebt_loop(basin_specimen *s) { build_ebt(s, true); }

/* ---- the list ---- */

#define ZOO "src/energy/zoo_"
const basin_species basin_species_all[] = {
    {"classical", "Classical Hopfield network", "Hopfield 1982", ZOO "memories.c",
     "E(x) = -sum over memories of (xi . x)^2 / 2, x in the cube\n"
     "x <- cut to -1 .. 1 (x - alpha dE/dx)\n",
     build_classical},
    {"power", "Dense associative memory, n = 3", "Krotov and Hopfield 2016", ZOO "memories.c",
     "E(x) = -sum over memories of relu(xi . x)^n / n, x in the cube\n"
     "x <- cut to -1 .. 1 (x - alpha dE/dx)\n",
     build_power},
    {"hopfield", "Modern Hopfield network", "Ramsauer et al. 2020", ZOO "memories.c",
     "E(x) = -log-sum-exp(beta xi x) / beta + |x|^2 / 2 + log(M) / beta + max |xi|^2 / 2\n"
     "x <- xi' softmax(beta xi x)     = x - 1 dE/dx\n",
     build_hopfield},
    {"entmax15", "Hopfield-Fenchel-Young, entmax 1.5", "Santos et al. 2024", ZOO "memories.c",
     "E(x) = -Omega*(beta xi x) / beta + |x|^2 / 2 + .., Omega the Tsallis entropy of 1.5\n"
     "x <- xi' entmax15(beta xi x)    = x - 1 dE/dx\n",
     build_entmax15},
    {"sparsemax", "Hopfield-Fenchel-Young, sparsemax", "Santos et al. 2024", ZOO "memories.c",
     "E(x) = -Omega*(beta xi x) / beta + |x|^2 / 2 + .., Omega(p) = (|p|^2 - 1) / 2\n"
     "x <- xi' sparsemax(beta xi x)   = x - 1 dE/dx\n",
     build_sparsemax},
    {"normmax2", "Hopfield-Fenchel-Young, normmax", "Santos et al. 2024", ZOO "memories.c",
     "E(x) = -Omega*(beta xi x) / beta + |x|^2 / 2 + .., Omega(p) = |p| - 1\n"
     "x <- xi' normmax(beta xi x)     = x - 1 dE/dx\n",
     build_normmax2},
    {"drdam", "Memories in random features (DrDAM)", "Hoover et al. 2024", ZOO "memories.c",
     "phi(x) = [cos, sin] of (sqrt(beta) s x) / sqrt(Y),  T = sum over memories of phi(xi)\n"
     "E(x) = -log max(phi(x) . T, floor) / beta\n"
     "x <- x - alpha dE/dx\n",
     build_drdam},
    {"lsr", "Log-sum-ReLU memories", "Hoover et al. 2025", ZOO "memories.c",
     "E(x) = -log(eps + sum over memories of relu(1 - beta/2 |x - xi|^2)) / beta\n"
     "x <- x - alpha dE/dx\n",
     build_lsr},
    {"graph_hopfield", "Graph Hopfield network", "arXiv 2603.03464", ZOO "memories.c",
     "E(X) = sum over nodes of [-log-sum-exp(beta xi x) / beta + |x|^2 / 2] + lambda tr(X' L X)\n"
     "X <- (1 - alpha) X + alpha (softmax(beta X xi') xi - 2 lambda L X)\n",
     build_graph},
    {"idp", "Input-driven plasticity", "Betteti et al. 2025", ZOO "memories.c",
     "g = tanh(x),  W(u) = sum over memories of (xi . u / D) xi xi' / D\n"
     "E(x; u) = <x, g> - L(x) - g . W(u) g / 2\n"
     "x <- x + dt (W(u) g - x)        = x - dt dE/dg\n",
     build_plastic},
    {"eqprop", "Layers with a clamped input", "Scellier and Bengio 2017", ZOO "memories.c",
     "E(u) = sum |u|^2 / 2 - sum over layers of r(u_next) . (w r(u) + b),  r = sigmoid\n"
     "u <- u - alpha dE/du\n",
     build_layers},
    {"et", "Energy Transformer block", "Hoover et al. 2023", "src/energy/block.c",
     "g = layernorm(x)\n"
     "E(g) = -sum log-sum-exp(beta K Q) / beta - sum relu(xi . g)^2 / 2\n"
     "x <- x - alpha dE/dg\n",
     build_et},
    {"nrgpt", "NRGPT, strict mask, random matrix step", "Dehmamy et al. 2025", ZOO "attention.c",
     "g = layernorm(x) + bias\n"
     "E_A = -sum over heads of log sum over B < A of exp(g_A . h g_B) - |gelu(w1 g_A + b1)|^2\n"
     "x_A <- x_A - P dE_A/dg_A, keys held; P is learned, here random\n",
     build_nrgpt_learned},
    {"nrgpt_strict", "NRGPT, strict mask, P = 1", "Dehmamy et al. 2025", ZOO "attention.c",
     "As nrgpt, with P = 1: the force is the gradient of each token's own energy.\n"
     "The energy that is watched is the sum over tokens: keys move, too.\n",
     build_nrgpt_strict},
    {"nrgpt_inclusive", "NRGPT, inclusive mask, P = 1", "Dehmamy et al. 2025", ZOO "attention.c",
     "As nrgpt_strict, over B <= A: the force leaves out the token's own key.\n",
     build_nrgpt_inclusive},
    {"hyperset", "Hyper-SET", "Hu et al. 2026", ZOO "attention.c",
     "w = rms(W x),  f = rms(M x)\n"
     "E = sqrt(d) sum log-sum-exp(w_i . w_j / sqrt(d)) - |relu(f)|^2 / 2\n"
     "x <- x - alpha W' dE/dw, then x <- x - alpha M' dE/df: straight through the norms\n",
     build_hyperset},
    {"akorn", "AKOrN, symmetric J, no rotation", "Miyato et al. 2025", ZOO "attention.c",
     "E(x) = -x . J x / 2 - c . x,  J symmetric, groups of channels on spheres\n"
     "x <- normalise(x + gamma tangent(J x + c))\n",
     build_akorn_still},
    {"akorn_rotation", "AKOrN, symmetric J, rotation", "Miyato et al. 2025", ZOO "attention.c",
     "As akorn, with x <- normalise(x + gamma (omega x + tangent(J x + c)))\n",
     build_akorn_turning},
    {"akorn_attention", "AKOrN, attention as J", "Miyato et al. 2025", ZOO "attention.c",
     "E(x) = -x . (attention(x) + c), a score\n"
     "x <- normalise(x + gamma (omega x + tangent(attention(x) + c)))\n",
     build_akorn_attention},
    {"crate", "CRATE, the proximal half", "Yu et al. 2023", ZOO "attention.c",
     "E(a) = |y - D a|^2 / 2 + lambda |a|,  a >= 0\n"
     "a <- relu(a + eta D' (y - D a) - eta lambda)\n"
     "The attention half states a rate that needs a determinant; it is not judged here.\n",
     build_crate},
    {"ebt", "Energy-based transformer, one turn", "Gladstone et al. 2025", ZOO "attention.c",
     "E(p) = w2 . gelu(w1 [context ; e p] + b1) of probabilities p\n"
     "y <- p - alpha dE/dp\n",
     build_ebt_turn},
    {"ebt_loop", "Energy-based transformer, the loop", "Gladstone et al. 2025", ZOO "attention.c",
     "As ebt, with p <- softmax(p - alpha dE/dp) in every step\n", build_ebt_loop},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
