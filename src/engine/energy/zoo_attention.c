/* The zoo's transformers and their relatives, a kind of basin_zoo each. */
#include <math.h>

#include "base/shape.h"
#include "engine/energy/energy.h"
#include "engine/energy/zoo.h"
#include "engine/expr/graph.h"

/* Phi(x), the share of a normal distribution below x, and x Phi(x). */
static basin_expr below(basin_expr x) {
    return basin_scale(basin_offset(basin_erf(basin_scale(x, sqrt(0.5))), 1), 0.5);
}

static basin_expr gelu(basin_expr x) { return basin_mul(x, below(x)); }

/* (x - mean) / sqrt(variance + epsilon) gain + bias over the last axis; gain may be NULL. */
static basin_expr norm(basin_expr x, basin_expr gain, basin_expr bias, double epsilon) {
    basin_graph *graph = basin_expr_graph(x);
    basin_expr one = basin_scalar(graph, 1);
    if (!gain) return basin_layernorm(x, one, bias, epsilon);
    basin_expr zero = basin_full(graph, basin_expr_shape(bias), 0);
    return basin_add(basin_mul(basin_layernorm(x, one, zero, epsilon), gain), bias);
}

/* Whether `width` channels divide into heads; if not, the graph has a message. */
static bool divides(basin_graph *graph, int64_t width, int64_t heads) {
    if (heads >= 1 && width % heads == 0) return true;
    return basin_graph_fail(graph, BASIN_BAD_VALUE,
                            "%lld channels in %lld heads; expected a divisor", (long long)width,
                            (long long)heads);
}

/* ---- the Energy Transformer's block ---- */

typedef struct whole_block {
    basin_block block;
    basin_pattern pattern;
    basin_block_bound bound;
} whole_block;

/* A tensor of `count` numbers: as bound, or one number for all. */
static basin_expr spread(const basin_zoo_built *built, basin_graph *graph, const char *name,
                         int64_t count, double otherwise) {
    basin_expr part = basin_zoo_part(built, name), all = basin_full(graph, BASIN_SHAPE(count), 1);
    if (!part) return basin_scale(all, otherwise);
    return basin_expr_shape(part).rank ? part : basin_mul(all, part);
}

static void make_block(basin_zoo_built *built, basin_graph *graph) {
    whole_block *own = built->own = basin_graph_keep(graph, sizeof *own);
    if (!own) return;
    const int64_t *size = built->size;
    int64_t D = size['D' - 'A'], H = size['H' - 'A'], Y = size['Y' - 'A'];
    basin_expr wk = basin_zoo_part(built, "wk"), xi = basin_zoo_part(built, "xi");
    if (!wk && !xi) basin_graph_fail(graph, BASIN_BAD_VALUE, "et needs wk and wq, or xi");
    own->block = (basin_block){
        .config = {.dim = D,
                   .heads = H,
                   .head_dim = Y,
                   .memories = size['M' - 'A'],
                   .no_attention = !wk,
                   .no_hopfield = !xi,
                   .mix = basin_zoo_part(built, "mix") != NULL,
                   .hopfield = (basin_hopfield)basin_zoo_number(built, "memories"),
                   .power = basin_zoo_number(built, "power"),
                   .epsilon = basin_zoo_number(built, "epsilon")},
        .wk = wk,
        .wq = basin_zoo_part(built, "wq"),
        .xi = xi,
        .mix = basin_zoo_part(built, "mix"),
        .gamma = basin_zoo_part(built, "gamma"),
        .delta = spread(built, graph, "delta", D, 0),
        .beta = wk ? spread(built, graph, "beta", H, 1 / sqrt((double)Y)) : NULL,
    };
    own->pattern = (basin_pattern){.exclude_self = basin_zoo_number(built, "exclude_self") != 0,
                                   .causal = basin_zoo_number(built, "causal") != 0};
    own->bound = (basin_block_bound){.block = &own->block, .pattern = &own->pattern};
    built->zoo.energy = basin_block_energy(&own->bound);
}

const basin_zoo_code basin_zoo_block = {
    .kind = {.title = "The block of the Energy Transformer",
             .formula =
                 "Tokens [N, D] or [B, N, D], g = layernorm(x), E = -sum over heads and tokens\n"
                 "of log-sum-exp(beta K Q) / beta - sum over tokens and memories of G(xi . g), G\n"
                 "by `memories`. beta [H] or a number is 1 / sqrt(Y) by default; `mix` mixes the\n"
                 "scores of heads. Without wk and wq, or xi, the energy has one term.",
             .alpha = 0.1,
             TENSORS(STATE("x0", "..,N,D"), OPTIONAL("wk", "H,Y,D"), OPTIONAL("wq", "H,Y,D"),
                     OPTIONAL("xi", "M,D"), NUMBER("gamma", "", 1), OPTIONAL("delta", "D|"),
                     OPTIONAL("beta", "H|"), OPTIONAL("mix", "H,H")),
             SETTINGS({"memories", "relu|power|softmax", 0, 0, 2}, {"power", NULL, 0, 0, 1000},
                      FLAG("exclude_self", 1), FLAG("causal", 0), {"epsilon", NULL, 1e-5, 0, 1})},
    .needs = "|wk,wq",
    .prepare = make_block,
};

/* ---- two blocks in turns, with a norm each ---- */

static basin_expr row_of(const void *m, const char *name, int i) {
    basin_expr a = TENSOR(name);
    if (basin_expr_shape(a).rank == 0) return a;
    basin_shape one = basin_shape_drop(basin_expr_shape(a), 0, 1);
    return basin_reshape(basin_slice(a, 0, i, 1), one);
}

static basin_expr plain_norm(const void *m, basin_expr x) {
    return norm(x, NULL, NULL, SETTING("epsilon"));
}

static basin_expr attention_of(const void *m, basin_expr g, basin_expr wk, basin_expr wq) {
    basin_shape shape = basin_expr_shape(wk);
    double beta = 1 / sqrt((double)shape.dim[1]);
    basin_expr betas = basin_full(basin_expr_graph(g), BASIN_SHAPE(shape.dim[0]), beta);
    const basin_pattern *pattern =
        SETTING("exclude_self") != 0 ? &BASIN_OTHER_PAIRS : &BASIN_ALL_PAIRS;
    return basin_energy_attention(g, wk, wq, betas, pattern, NULL);
}

/* E_i(gamma_i g + delta_i) / gamma_i: by g its gradient is that of E_i by the block's own norm. */
static basin_expr stacked(const void *m, basin_expr g, int i) {
    basin_expr gamma = row_of(m, "gamma", i);
    basin_expr own = basin_add(basin_mul(gamma, g), row_of(m, "delta", i));
    basin_expr memories = basin_energy_hopfield(own, row_of(m, "xi", i), BASIN_HOPFIELD_RELU, 0);
    basin_expr attention = attention_of(m, own, row_of(m, "wk", i), row_of(m, "wq", i));
    return basin_div(basin_add(attention, memories), gamma);
}

static basin_expr first_block(const void *m, basin_expr g) { return stacked(m, g, 0); }
static basin_expr second_block(const void *m, basin_expr g) { return stacked(m, g, 1); }

const basin_zoo_code basin_zoo_stack = {
    .kind =
        {.title = "A stack of two blocks of the Energy Transformer",
         .formula =
             "Tokens [N, D] or [B, N, D], g = layernorm(x), blocks with energies E_i at g_i =\n"
             "gamma_i g + delta_i: x <- x - alpha dE_1/dg_1, then x <- x -\n"
             "alpha dE_2/dg_2 at the new x. The energy is E_1 / gamma_1 + E_2 / gamma_2, whose\n"
             "gradient by g is the sum of both forces at one x.",
         .alpha = 0.1,
         TENSORS(STATE("x0", "..,N,D"), WEIGHT("wk", "2,H,Y,D", 0.5), WEIGHT("wq", "2,H,Y,D", 0.5),
                 WEIGHT("xi", "2,M,D", 0.5), NUMBER("gamma", "2|", 1), NUMBER("delta", "2,D|", 0)),
         SETTINGS(FLAG("exclude_self", 1), {"epsilon", NULL, 1e-5, 0, 1})},
    BASIN_TERMS({"first", first_block, NULL}, {"second", second_block, NULL}),
    .activation = plain_norm,
    .substep = {{.terms = 1}, {.terms = 2}},
};

/* ---- the Convergent Energy Transformer: tokens that stay normalised, held by their input ---- */

static basin_expr convergent_input(const void *m, basin_expr z) {
    basin_expr drive = basin_zoo_linear(TENSOR("v"), TENSOR("e"), NULL);
    return basin_neg(basin_sum_all(basin_mul(z, basin_add(drive, TENSOR("pos")))));
}

static basin_expr convergent_block(const void *m, basin_expr z) {
    basin_expr memories = basin_energy_hopfield(z, TENSOR("xi"), BASIN_HOPFIELD_SOFTMAX, 0);
    return basin_add(attention_of(m, z, TENSOR("wk"), TENSOR("wq")), memories);
}

/* |y|^2 / 2 - y . d z at its minimum by y. */
static basin_expr convergent_output(const void *m, basin_expr z) {
    basin_expr y = basin_zoo_linear(z, TENSOR("d"), NULL);
    return basin_scale(basin_sum_all(basin_square(y)), -0.5);
}

static basin_expr onto_norm(const void *m, basin_expr x, basin_expr t) {
    (void)t;
    return plain_norm(m, x);
}

const basin_zoo_code basin_zoo_convergent = {
    .kind =
        {.title = "The Convergent Energy Transformer",
         .formula =
             "Tokens z [N, D] of mean 0 and deviation 1, held by patches v [N, P]: E = -sum z .\n"
             "(e v + pos) - sum of log-sum-exp(beta K Q) / beta - sum of log-sum-exp(xi z) -\n"
             "|d z|^2 / 2, the last of an output y = d z at its minimum. A step ends with\n"
             "layernorm(z - alpha dE/dz), so that descents end at a fixed point.",
         .alpha = 0.05,
         TENSORS(STATE("x0", "N,D"), INPUT("v", "N,P", 1, false), WEIGHT("e", "D,P", 0.5),
                 WEIGHT("pos", "N,D", 0.5), WEIGHT("wk", "H,Y,D", 0.5), WEIGHT("wq", "H,Y,D", 0.5),
                 WEIGHT("xi", "M,D", 0.5), WEIGHT("d", "P,D", 0.3)),
         SETTINGS(FLAG("exclude_self", 1), {"epsilon", NULL, 0, 0, 1}),
         .outputs = "begin"},
    BASIN_TERMS({"input", convergent_input, NULL}, {"block", convergent_block, NULL},
                {"output", convergent_output, NULL}),
    .substep = {{.project = onto_norm}},
    .output = {plain_norm},
};

/* ---- nodes and pairs of nodes as tokens of one energy ---- */

/* The tokens by node, [n, D], and by pair, [n, n, D], of tokens [n (n + 1), D]. */
typedef struct apart {
    int64_t n;
    basin_expr node, pair, other; /* other [n, n]: 1 where the nodes of a pair differ */
} apart;

static apart take_apart(basin_expr g) {
    basin_shape s = basin_expr_shape(g);
    int64_t n = (int64_t)sqrt((double)s.dim[0]), D = s.dim[1];
    if (s.rank != 2 || n < 2 || n * (n + 1) != s.dim[0])
        return (apart){.node = basin_graph_fail(basin_expr_graph(g), BASIN_BAD_SHAPE,
                                                "pairs of tokens %s; expected n (n + 1) rows",
                                                basin_shape_text(s))};
    basin_expr pair = basin_reshape(basin_slice(g, 0, n, n * n), BASIN_SHAPE(n, n, D));
    basin_expr same = basin_eye(basin_expr_graph(g), n);
    return (apart){n, basin_slice(g, 0, 0, n), pair, basin_offset(basin_neg(same), 1)};
}

/* log sum over other nodes j of exp(beta q_hi . k_hj + w_h . e_ij), over -beta */
static basin_expr pairs_attention(const void *m, basin_expr g) {
    apart t = take_apart(g);
    if (!t.n) return NULL;
    double beta = 1 / sqrt((double)basin_expr_shape(TENSOR("wk")).dim[1]);
    basin_expr q = basin_einsum("id,hyd->hiy", t.node, TENSOR("wq"));
    basin_expr k = basin_einsum("jd,hyd->hjy", t.node, TENSOR("wk"));
    basin_expr score = basin_add(basin_scale(basin_einsum("hiy,hjy->hij", q, k), beta),
                                 basin_einsum("ijd,hd->hij", t.pair, TENSOR("w")));
    score = basin_add(score, basin_scale(basin_offset(t.other, -1), 1e9));
    return basin_scale(basin_sum_all(basin_logsumexp(score, -1)), -1 / beta);
}

static basin_expr pairs_nodes(const void *m, basin_expr g) {
    apart t = take_apart(g);
    return t.n ? basin_energy_hopfield(t.node, TENSOR("xi"), BASIN_HOPFIELD_RELU, 0) : NULL;
}

static basin_expr pairs_memories(const void *m, basin_expr g) {
    apart t = take_apart(g);
    if (!t.n) return NULL;
    basin_expr from = basin_expand_dims(basin_zoo_linear(t.node, TENSOR("a_i"), NULL), 1, 1);
    basin_expr to = basin_zoo_linear(t.node, TENSOR("a_j"), NULL);
    basin_expr h = basin_zoo_linear(t.pair, TENSOR("a"), TENSOR("bias"));
    h = basin_mul(basin_relu(basin_add(h, basin_add(from, to))), basin_expand_dims(t.other, 2, 1));
    return basin_scale(basin_sum_all(basin_square(h)), -0.5);
}

const basin_zoo_code basin_zoo_pairs = {
    .kind =
        {.title = "Nodes and pairs of nodes as tokens of one energy",
         .formula =
             "Tokens [N, D], N = n (n + 1): n nodes i, then n n pairs (i, j) row by row, whose\n"
             "i = j stay; [g ; e] = layernorm([x ; y]). E = -sum over heads and i of log-sum-exp\n"
             "over j of (beta q_i . k_j + w . e_ij) / beta - sum of relu(xi g_i)^2 / 2 - sum over\n"
             "pairs of relu(a e_ij + a_i g_i + a_j g_j + bias)^2 / 2.",
         .alpha = 0.1,
         TENSORS(STATE("x0", "N,D"), WEIGHT("wk", "H,Y,D", 0.5), WEIGHT("wq", "H,Y,D", 0.5),
                 WEIGHT("w", "H,D", 0.5), WEIGHT("xi", "M,D", 0.5), WEIGHT("a", "U,D", 0.5),
                 WEIGHT("a_i", "U,D", 0.5), WEIGHT("a_j", "U,D", 0.5), WEIGHT("bias", "U", 0.1)),
         SETTINGS({"epsilon", NULL, 1e-5, 0, 1})},
    BASIN_TERMS({"attention", pairs_attention, NULL}, {"nodes", pairs_nodes, NULL},
                {"pairs", pairs_memories, NULL}),
    .activation = plain_norm,
};

/* ---- NRGPT: causal attention, whose keys are held, and a feed-forward network ---- */

enum { FEED_1, FEED_2, FEED_2W };

static basin_expr nrgpt_activation(const void *m, basin_expr x) {
    return norm(x, NULL, TENSOR("bias"), 1e-5);
}

/* The same tokens, whose pull is dropped here and there: held + mask (g - held). */
static basin_expr with_dropout(const void *m, basin_expr g) {
    double dropout = SETTING("dropout");
    basin_expr seed = TENSOR("seed"), held = basin_variable_source(g);
    if (!seed || dropout == 0) return g;
    basin_expr one = basin_full(basin_expr_graph(g), basin_expr_shape(g), 1);
    basin_expr mask = basin_dropout(one, dropout, seed);
    return basin_add(held, basin_mul(mask, basin_sub(g, held)));
}

/* h g_B of every head, [.., N, H D] */
static basin_expr keys(const void *m, basin_expr g) {
    basin_expr h = TENSOR("h");
    basin_shape s = basin_expr_shape(h);
    basin_expr all = basin_reshape(h, BASIN_SHAPE(s.dim[0] * s.dim[1], s.dim[1]));
    return basin_zoo_linear(basin_variable_source(g), all, NULL);
}

/* log sum over earlier B of exp(beta g_A . k_B) by fused attention, [.., N, H] */
static basin_expr streamed(const void *m, basin_expr g) {
    basin_shape heads = basin_expr_shape(g);
    int64_t H = basin_expr_shape(TENSOR("h")).dim[0], D = heads.dim[heads.rank - 1];
    int axis = heads.rank - 1;
    heads.dim[heads.rank++] = D;
    heads.dim[axis] = H;
    basin_expr q = basin_broadcast_to(basin_expand_dims(with_dropout(m, g), axis, 1), heads);
    basin_expr beta = basin_full(basin_expr_graph(g), BASIN_SHAPE(H), SETTING("beta"));
    const basin_pattern *pairs =
        SETTING("strict") != 0 ? &BASIN_EARLIER_PAIRS : &BASIN_CAUSAL_PAIRS;
    return basin_attention_lse(q, basin_reshape(keys(m, g), heads), beta, pairs, NULL);
}

/* The same with the scores in memory. All heads have one query, so that scores are one product of
 * [N, D] and [N H, D], keys as they lie, and the pull is one of [N, N H] and [N H, D]. */
static basin_expr written(const void *m, basin_expr g) {
    basin_shape s = basin_expr_shape(g), out = s;
    int64_t H = basin_expr_shape(TENSOR("h")).dim[0], N = s.dim[s.rank - 2], D = s.dim[s.rank - 1];
    basin_expr k = basin_reshape(keys(m, g), BASIN_SHAPE(-1, N * H, D));
    basin_expr q = basin_reshape(with_dropout(m, g), BASIN_SHAPE(-1, N, D));
    basin_expr score = basin_reshape(basin_matmul_t(q, false, k, true), BASIN_SHAPE(-1, N, N, H));
    out.dim[out.rank - 1] = H;
    return basin_reshape(basin_causal_logsumexp(score, SETTING("beta"), SETTING("strict") != 0),
                         out);
}

/* Tiles of fused attention are made for narrow heads. NRGPT's are as wide as tokens: where scores
 * take no more room than keys, products of matrices are faster. */
static bool writes_scores(basin_shape g) { return g.dim[g.rank - 2] <= 2 * g.dim[g.rank - 1]; }

/* -(1 / beta) sum over heads of log sum over earlier B of exp(beta g_A . h g_B), [.., N] */
static basin_expr nrgpt_attention(const void *m, basin_expr g) {
    basin_shape s = basin_expr_shape(g);
    int64_t D = basin_expr_shape(TENSOR("h")).dim[1];
    if (s.rank < 2 || s.dim[s.rank - 1] != D)
        return basin_graph_fail(basin_expr_graph(g), BASIN_BAD_SHAPE,
                                "NRGPT of tokens %s; expected [.., N, %lld]", basin_shape_text(s),
                                (long long)D);
    basin_expr lse = (writes_scores(s) ? written : streamed)(m, g);
    return basin_scale(basin_sum(lse, -1, 1), -1 / SETTING("beta"));
}

static basin_expr nrgpt_network(const void *m, basin_expr g) {
    int feed = (int)SETTING("feed");
    basin_expr a = gelu(basin_zoo_linear(g, TENSOR("w1"), TENSOR("b1")));
    if (feed == FEED_1) return basin_neg(basin_sum(basin_square(a), -1, 1));
    a = basin_zoo_linear(a, TENSOR("w2"), TENSOR("b2"));
    if (feed == FEED_2W) return basin_neg(basin_sum(basin_mul(g, a), -1, 1));
    return basin_neg(basin_sum(basin_square(gelu(a)), -1, 1));
}

static basin_expr nrgpt_feed(const void *m, basin_expr g) {
    return basin_mul(TENSOR("scale"), nrgpt_network(m, g));
}

static basin_expr project(const void *m, basin_expr force, basin_expr x, basin_expr t) {
    basin_expr proj = TENSOR("proj");
    bool one = basin_expr_shape(proj).rank == 0;
    (void)x, (void)t;
    basin_expr step = one ? basin_mul(proj, force) : basin_zoo_linear(force, proj, NULL);
    return basin_dropout(step, SETTING("dropout_step"), TENSOR("seed"));
}

static void check_feed(basin_zoo_built *built, basin_graph *graph) {
    bool second = basin_zoo_number(built, "feed") != FEED_1;
    if (second != (basin_zoo_part(built, "w2") && basin_zoo_part(built, "b2")))
        basin_graph_fail(graph, BASIN_BAD_VALUE, "nrgpt: this feed needs %sw2 and b2",
                         second ? "" : "no ");
}

const basin_zoo_code basin_zoo_nrgpt = {
    .kind =
        {.title = "NRGPT",
         .formula =
             "Tokens [.., N, D], g = layernorm(x) + bias, energies [.., N]: -sum over heads\n"
             "of log sum over earlier B of exp(beta g_A . h g_B) / beta, with a force only on\n"
             "A, and a feed-forward one times `scale`: feed \"1\" -|gelu(w1 g + b1)|^2, \"2\"\n"
             "-|gelu(w2 gelu(w1 g + b1) + b2)|^2, \"2w\" -g . (w2 gelu(w1 g + b1) + b2). A step\n"
             "is x + proj force. `strict`: a token does not see itself; only then is the force\n"
             "the gradient of its energy. In training, with a seed, `dropout` drops parts of\n"
             "attention's force and `dropout_step` parts of the step.",
         .alpha = 1,
         TENSORS(STATE("x0", "..,N,D"), WEIGHT("h", "H,D,D", 0.3), WEIGHT("bias", "D", 0.1),
                 WEIGHT("proj", "D,D|", 0.3), WEIGHT("w1", "K,D", 0.3), WEIGHT("b1", "K", 0.1),
                 OPTIONAL("w2", "L,K"), OPTIONAL("b2", "L"), NUMBER("scale", "", 1),
                 INPUT("seed", "2", 0, true)),
         SETTINGS({"feed", "1|2|2w", FEED_1, 0, FEED_2W}, FLAG("strict", 1),
                  {"beta", NULL, 1, 1e-9, 1e9}, FLAG("dropout", 0), FLAG("dropout_step", 0))},
    BASIN_TERMS({"attention", nrgpt_attention, NULL}, {"feed-forward", nrgpt_feed, NULL}),
    .activation = nrgpt_activation,
    .substep = {{.move = project}},
    .prepare = check_feed,
};

/* ---- Hyper-SET: attention on spheres, a feed-forward energy, in turns; straight-through ---- */

/* gain x / sqrt(mean x^2 + epsilon) */
static basin_expr on_sphere(basin_expr x, basin_expr gain, double epsilon) {
    basin_expr mean = basin_expand_dims(basin_mean(basin_square(x), -1, 1), -1, 1);
    return basin_mul(gain, basin_div(x, basin_sqrt(basin_offset(mean, epsilon))));
}

/* The same value, with the slope 1 in a force: x + (sphere - x), the second held. */
static basin_expr normalised(const void *m, basin_expr x, basin_expr map, basin_expr gain,
                             int64_t heads) {
    basin_shape shape = basin_expr_shape(x);
    double epsilon = SETTING("epsilon");
    if (!divides(basin_expr_graph(x), basin_expr_shape(map).dim[0], heads)) return NULL;
    int64_t width = basin_expr_shape(map).dim[0] / heads;
    shape.dim[shape.rank - 1] = heads;
    shape.dim[shape.rank++] = width;
    basin_expr plain = basin_reshape(basin_zoo_linear(x, map, NULL), shape);
    if (SETTING("straight") == 0) return on_sphere(plain, gain, epsilon);
    basin_expr held = basin_reshape(basin_zoo_linear(basin_variable_source(x), map, NULL), shape);
    return basin_add(plain, basin_sub(on_sphere(held, gain, epsilon), held));
}

/* The sum for each sample: [B] of tokens [B, N, D], [] of [N, D]. */
static basin_expr per_sample(basin_expr a, basin_expr x) {
    int batch = basin_expr_shape(x).rank == 3;
    return a ? basin_sum(a, batch, basin_expr_shape(a).rank - batch) : NULL;
}

/* sqrt(d) sum of log-sum-exp of w_i . w_j / sqrt(d), self included */
static basin_expr hyperset_attention(const void *m, basin_expr x) {
    int64_t heads = (int64_t)SETTING("heads");
    basin_expr w = normalised(m, x, TENSOR("w"), TENSOR("gain_w"), heads);
    if (!w) return NULL;
    basin_shape shape = basin_expr_shape(w);
    double root = sqrt((double)shape.dim[shape.rank - 1]);
    basin_expr beta = basin_full(basin_expr_graph(x), BASIN_SHAPE(heads), 1 / root);
    basin_expr lse = basin_attention_lse(w, w, beta, &BASIN_ALL_PAIRS, NULL);
    return basin_scale(per_sample(lse, x), root);
}

/* -relu(f)^2 / 2, or minus the integral of gelu: ((f^2 - 1) Phi(f) + f phi(f)) / 2 */
static basin_expr hyperset_feed(const void *m, basin_expr x) {
    basin_expr f = normalised(m, x, TENSOR("m"), TENSOR("gain_m"), 1);
    basin_expr square = basin_square(f);
    if (SETTING("activation") == 0)
        return basin_scale(per_sample(basin_square(basin_relu(f)), x), -0.5);
    basin_expr phi = basin_scale(basin_exp(basin_scale(square, -0.5)), sqrt(0.5 / acos(-1)));
    basin_expr under = basin_mul(basin_offset(square, -1), below(f));
    basin_expr sum = basin_add(under, basin_mul(f, phi));
    return basin_scale(per_sample(sum, x), -0.5);
}

/* [sin, cos] of (t + 1) 10000^(-i / (half - 1)), [E] */
static basin_expr sinusoid(basin_expr t, int64_t width) {
    double rate = -log(10000.0) / (double)(width / 2 - 1);
    basin_expr number = basin_arange(basin_expr_graph(t), width / 2);
    basin_expr angle = basin_mul(basin_offset(t, 1), basin_exp(basin_scale(number, rate)));
    return basin_concat((basin_expr[]){basin_sin(angle), basin_cos(angle)}, 2, 0);
}

static basin_expr affine(const void *m, basin_expr x, const char *weight, const char *bias) {
    return basin_zoo_linear(x, basin_zoo_part(m, weight), basin_zoo_part(m, bias));
}

/* The force, times half `which` of the learned step sizes where there are any. */
static basin_expr sized(const void *m, basin_expr force, basin_expr t, int which) {
    basin_expr start = TENSOR("start"), t1 = TENSOR("t1_w");
    basin_shape tokens = basin_expr_shape(start);
    if (!t1) return force;
    int64_t width = tokens.dim[tokens.rank - 1];
    basin_expr e = affine(m, sinusoid(t, basin_expr_shape(t1).dim[1]), "t1_w", "t1_b");
    e = affine(m, gelu(e), "t2_w", "t2_b");
    basin_expr both = affine(m, gelu(basin_add(e, start)), "t3_w", "t3_b");
    return basin_mul(basin_slice(both, -1, which * width, width), force);
}

static basin_expr move_1(const void *m, basin_expr force, basin_expr x, basin_expr t) {
    (void)x;
    return sized(m, force, t, 0);
}
static basin_expr move_2(const void *m, basin_expr force, basin_expr x, basin_expr t) {
    (void)x;
    return sized(m, force, t, 1);
}

/* Learned sizes are whole steps. */
static void learned_sizes(basin_zoo_built *built, basin_graph *graph) {
    if (!basin_zoo_part(built, "t1_w")) return;
    built->zoo.alpha = 1;
    if (!basin_zoo_part(built, "start"))
        basin_graph_fail(graph, BASIN_BAD_VALUE, "hyperset: learned sizes need `start`");
}

const basin_zoo_code basin_zoo_hyperset = {
    .kind =
        {.title = "Hyper-SET",
         .formula =
             "Tokens [N, D] or [B, N, D]: on spheres w = gain rms(W x) tokens repel each\n"
             "other, then go to a feed-forward energy, in two substeps; forces go `straight`\n"
             "through the norms. Energies are of all tokens. With t1_w .. t3_b the size of each\n"
             "step is learned: t3 gelu(t2 gelu(t1 sinusoid(t + 1)) + start), `start` the tokens\n"
             "at the beginning.",
         .alpha = 0.25,
         TENSORS(STATE("x0", "..,N,D"), WEIGHT("w", "D,D", 0.4), WEIGHT("m", "M,D", 0.4),
                 NUMBER("gain_w", "*|", 1), NUMBER("gain_m", "M|", 1), OPTIONAL("t1_w", "E,*"),
                 OPTIONAL("t1_b", "E"), OPTIONAL("t2_w", "D,E"), OPTIONAL("t2_b", "D"),
                 OPTIONAL("t3_w", "2D,D"), OPTIONAL("t3_b", "2D"),
                 INPUT("start", "..,N,D", 0, true)),
         SETTINGS({"heads", NULL, 1, 1, 1e6}, {"activation", "relu|gelu", 0, 0, 1},
                  FLAG("straight", 1), {"epsilon", NULL, 1.1920928955078125e-07, 0, 1}),
         .exact = "straight"},
    BASIN_TERMS({"attention", hyperset_attention, NULL}, {"feed-forward", hyperset_feed, NULL}),
    .substep = {{.terms = 1, .move = move_1}, {.terms = 2, .move = move_2}},
    .needs = "|t1_w,t1_b,t2_w,t2_b,t3_w,t3_b",
    .prepare = learned_sizes,
};

/* ---- AKOrN: oscillators on spheres ---- */

/* Plain attention with biases; head h owns the channels h, h + H, h + 2 H, .. */
static basin_expr akorn_attention(const void *m, basin_expr x) {
    basin_shape shape = basin_expr_shape(x);
    int64_t heads = (int64_t)SETTING("heads");
    if (!divides(basin_expr_graph(x), shape.dim[1], heads)) return NULL;
    int64_t tokens = shape.dim[0], channels = shape.dim[1], width = channels / heads;
    basin_expr all = affine(m, x, "qkv_w", "qkv_b"), part[3];
    for (int i = 0; i < 3; i++)
        part[i] = basin_reshape(basin_slice(all, 1, i * channels, channels),
                                BASIN_SHAPE(tokens, width, heads));
    basin_expr score = basin_einsum("ich,jch->hij", part[0], part[1]);
    basin_expr a = basin_softmax(basin_scale(score, 1 / sqrt((double)width)), -1);
    basin_expr mixed = basin_einsum("hij,jch->ich", a, part[2]);
    return affine(m, basin_reshape(mixed, shape), "o_w", "o_b");
}

static basin_expr akorn_energy(const void *m, basin_expr x) {
    basin_expr a = TENSOR("a"), c = TENSOR("c");
    if (!a) return basin_neg(basin_sum_all(basin_mul(x, basin_add(akorn_attention(m, x), c))));
    basin_expr flat = basin_reshape(x, BASIN_SHAPE(-1));
    basin_expr square = basin_sum_all(basin_mul(flat, basin_matmul(flat, a)));
    return basin_neg(basin_add(basin_scale(square, 0.5), basin_sum_all(basin_mul(c, x))));
}

/* Channels (2 i, 2 i + 1) -> |omega_i| (x[2 i + 1], -x[2 i]) */
static basin_expr rotate(basin_expr x, basin_expr omega) {
    basin_shape shape = basin_expr_shape(x);
    basin_expr pairs = basin_reshape(x, BASIN_SHAPE(shape.dim[0], -1, 2));
    basin_expr speed = basin_sqrt(basin_sum(basin_square(omega), -1, 1));
    basin_expr sign = basin_scale(basin_offset(basin_arange(basin_expr_graph(x), 2), -0.5), -2);
    basin_expr transposed = basin_mul(basin_stride(pairs, -1, 1, 2, -1), sign);
    return basin_reshape(basin_mul(basin_expand_dims(speed, 1, 1), transposed), shape);
}

static int64_t sphere_of(const void *m) { return (int64_t)SETTING("sphere"); }

static basin_expr akorn_move(const void *m, basin_expr force, basin_expr x, basin_expr t) {
    (void)t;
    if (!TENSOR("a")) force = basin_add(akorn_attention(m, x), TENSOR("c"));
    basin_expr tangent = basin_to_tangent(force, x, sphere_of(m));
    basin_expr rotated = rotate(x, TENSOR("omega"));
    return basin_mul(TENSOR("gamma"), basin_add(rotated, tangent));
}

static basin_expr akorn_begin(const void *m, basin_expr x) {
    return basin_to_sphere(x, sphere_of(m));
}

const basin_zoo_code basin_zoo_akorn = {
    .kind =
        {.title = "AKOrN: oscillators, every `sphere` channels of a token a unit vector",
         .formula =
             "A step is normalize(x + gamma (omega x + tangent(force))). With `a`, E = -x . J x\n"
             "/ 2 - c . x, J = (a + a^T) / 2 over all tokens and channels; with attention in\n"
             "its place the force is not a gradient, and the energy a score. Energies are of\n"
             "all tokens.",
         .alpha = 1,
         TENSORS(STATE("x0", "N,D"), WEIGHT("c", "N,D", 0.5), WEIGHT("omega", "R,2", 0.5),
                 NUMBER("gamma", "", 1), OPTIONAL("a", "ND,ND"), OPTIONAL("qkv_w", "3D,D"),
                 OPTIONAL("qkv_b", "3D"), OPTIONAL("o_w", "D,D"), OPTIONAL("o_b", "D")),
         SETTINGS({"heads", NULL, 1, 0, 1e6}, {"sphere", NULL, 4, 1, 1e6}),
         .outputs = "begin"},
    BASIN_TERMS({"oscillators", akorn_energy, NULL}),
    .substep = {{.move = akorn_move, .project = basin_zoo_project}},
    .output = {akorn_begin},
    .needs = "a|qkv_w,qkv_b,o_w,o_b",
};

/* ---- energy-based transformers: the loop around a small network ---- */

static basin_expr ebt_energy(const void *m, basin_expr p) {
    basin_expr seen = basin_zoo_linear(p, TENSOR("e"), NULL);
    basin_expr both = basin_concat((basin_expr[]){TENSOR("context"), seen}, 2, -1);
    basin_expr hidden = gelu(affine(m, both, "w1", "b1"));
    return basin_sum(basin_mul(hidden, TENSOR("w2")), -1, 1);
}

static basin_expr ebt_move(const void *m, basin_expr force, basin_expr x, basin_expr t) {
    (void)x, (void)t;
    return basin_mul(TENSOR("alpha"), force);
}

static basin_expr ebt_begin(const void *m, basin_expr x) {
    (void)m;
    return basin_softmax(x, -1);
}

static basin_expr ebt_land(const void *m, basin_expr x, basin_expr t) {
    (void)t;
    return SETTING("loop") != 0 ? basin_softmax(x, -1) : x;
}

const basin_zoo_code basin_zoo_ebt = {
    .kind =
        {.title = "Energy-based transformers, the loop around a small network",
         .formula =
             "E(p) = w2 . gelu(w1 [context ; e p] + b1) of probabilities p [N, V]. A step gives\n"
             "logits p - alpha dE/dp; with `loop` it ends with their softmax.",
         .alpha = 1,
         TENSORS(STATE("y0", "N,V"), WEIGHT("context", "N,D", 1), WEIGHT("e", "D,V", 1),
                 WEIGHT("w1", "K,2D", 0.5), WEIGHT("b1", "K", 0.1), WEIGHT("w2", "K", 1),
                 NUMBER("alpha", "", 1)),
         SETTINGS(FLAG("loop", 0)),
         .outputs = "begin"},
    BASIN_TERMS({"network", ebt_energy, NULL}),
    .substep = {{.move = ebt_move, .project = ebt_land}},
    .output = {ebt_begin},
};

/* ---- CRATE: attention with q = k = v, then proximal steps ---- */

static basin_expr attend(const void *m, basin_expr x) {
    basin_shape shape = basin_expr_shape(x);
    double epsilon = SETTING("epsilon");
    int64_t heads = (int64_t)SETTING("heads");
    basin_expr g = norm(x, TENSOR("ln1_w"), TENSOR("ln1_b"), epsilon);
    basin_expr w = basin_zoo_linear(g, TENSOR("u"), NULL);
    int64_t all = basin_expr_shape(w).dim[1];
    if (!divides(basin_expr_graph(x), all, heads)) return NULL;
    int64_t width = all / heads;
    w = basin_reshape(w, BASIN_SHAPE(shape.dim[0], heads, width));
    basin_expr score = basin_einsum("ihy,jhy->hij", w, w);
    basin_expr a = basin_softmax(basin_scale(score, 1 / sqrt((double)width)), -1);
    basin_expr mixed = basin_reshape(basin_einsum("hij,jhy->ihy", a, w), BASIN_SHAPE(-1, all));
    return basin_add(x, affine(m, mixed, "out_w", "out_b"));
}

/* y: as bound, or of a block's tokens. */
static basin_expr code_target(const void *m, basin_expr x) {
    basin_expr y = TENSOR("y"), tokens = TENSOR("x");
    (void)x;
    if (y) return y;
    return norm(attend(m, tokens), TENSOR("ln2_w"), TENSOR("ln2_b"), SETTING("epsilon"));
}

static basin_expr code_fit(const void *m, basin_expr a) {
    basin_expr gap = basin_sub(code_target(m, a), basin_zoo_linear(a, TENSOR("d"), NULL));
    return basin_scale(basin_sum(basin_square(gap), -1, 1), 0.5);
}

/* lam |a|, with the slope lam that it has where a >= 0. */
static basin_expr code_size(const void *m, basin_expr a) {
    basin_expr held = basin_variable_source(a);
    basin_expr size = basin_add(a, basin_sub(basin_abs(held), held));
    return basin_scale(basin_sum(size, -1, 1), SETTING("lam"));
}

static basin_expr code_begin(const void *m, basin_expr a) {
    (void)m;
    return basin_relu(a);
}

const basin_zoo_code basin_zoo_crate = {
    .kind =
        {.title = "CRATE: a sparse code",
         .formula =
             "E(a) = |y - d a|^2 / 2 + lam |a| of a >= 0. A step is relu(a + alpha (d^T (y - d a)\n"
             "- lam)). A block of CRATE is one step from a = y, which is then layernorm(z), z\n"
             "attention with q = k = v among tokens x, which descends nothing.",
         .alpha = 0.1,
         TENSORS(STATE("a", "N,K"), INPUT("y", "N,D", 0, true), WEIGHT("d", "D,K", 0.35),
                 INPUT("x", "N,D", 0, true), OPTIONAL("ln1_w", "D"), OPTIONAL("ln1_b", "D"),
                 OPTIONAL("u", "U,D"), OPTIONAL("out_w", "D,U"), OPTIONAL("out_b", "D"),
                 OPTIONAL("ln2_w", "D"), OPTIONAL("ln2_b", "D")),
         SETTINGS({"lam", NULL, 0.1, 0, 1e9}, {"heads", NULL, 1, 1, 1e6},
                  {"epsilon", NULL, 1e-5, 0, 1}),
         .outputs = "begin|y"},
    BASIN_TERMS({"fit", code_fit, NULL}, {"size", code_size, NULL}),
    .substep = {{.project = basin_zoo_project}},
    .output = {code_begin, code_target},
    .needs = "y|x,ln1_w,ln1_b,u,out_w,out_b,ln2_w,ln2_b",
};
