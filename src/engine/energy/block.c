/* The Energy Transformer block: energy attention (equation 3) and the Hopfield network (equation 5)
 * over layer-normed tokens (equation 1); by token and pair. */
#include <math.h>
#include <string.h>

#include "base/sized.h"
#include "basin/lagrangian.h"
#include "engine/energy/energy.h"
#include "engine/expr/graph.h"

#define MIN_GAMMA 1e-3

/* Sums everything but the batch axis of tokens: [B, ..] -> [B], without a batch axis [..] -> []. */
static basin_expr per_sample(basin_expr a, bool batch) {
    int rank = basin_expr_shape(a).rank;
    return a ? basin_sum(a, batch ? 1 : 0, batch ? rank - 1 : rank) : NULL;
}

static bool has_batch(basin_expr g) { return basin_expr_shape(g).rank == 3; }

static bool check_tokens(basin_expr g, basin_expr weights, int last_axis, const char *what) {
    if (!g || !weights) return false;
    basin_shape s = basin_expr_shape(g), w = basin_expr_shape(weights);
    if ((s.rank == 2 || s.rank == 3) && w.rank == last_axis + 1 &&
        w.dim[last_axis] == s.dim[s.rank - 1])
        return true;
    return basin_graph_fail(
        basin_expr_graph(g), BASIN_BAD_SHAPE,
        "%s: tokens %s and weights %s; expected [B, N, D] or [N, D], and weights that end in D",
        what, basin_expr_text(g), basin_expr_text(weights));
}

/* g [.., N, D] by w [H, Y, D] -> [.., N, H, Y] */
static basin_expr project(basin_expr g, basin_expr w) {
    basin_shape s = basin_expr_shape(w), out = basin_expr_shape(g);
    basin_expr flat = basin_reshape(w, BASIN_SHAPE(s.dim[0] * s.dim[1], s.dim[2]));
    out.dim[out.rank - 1] = s.dim[0];
    out.dim[out.rank++] = s.dim[1];
    return basin_reshape(basin_matmul_t(g, false, flat, true), out);
}

basin_expr basin_energy_attention(basin_expr g, basin_expr wk, basin_expr wq, basin_expr beta,
                                  const basin_pattern *pattern, const basin_lse_options *options) {
    if (!check_tokens(g, wk, 2, "attention") || !check_tokens(g, wq, 2, "attention")) return NULL;
    basin_expr lse = basin_attention_lse(project(g, wq), project(g, wk), beta, pattern, options);
    return basin_neg(per_sample(basin_div(lse, beta), has_batch(g)));
}

basin_expr basin_energy_hopfield(basin_expr g, basin_expr xi, basin_hopfield kind, double power) {
    if (!check_tokens(g, xi, 1, "hopfield")) return NULL;
    bool batch = has_batch(g);
    basin_expr h = basin_matmul_t(g, false, xi, true);
    switch (kind) {
    case BASIN_HOPFIELD_RELU:
        return basin_scale(per_sample(basin_square(basin_relu(h)), batch), -0.5);
    case BASIN_HOPFIELD_POWER:
        return basin_scale(per_sample(basin_power_scalar(basin_relu(h), power), batch), -1 / power);
    case BASIN_HOPFIELD_SOFTMAX: return basin_neg(per_sample(basin_logsumexp(h, -1), batch));
    }
    return NULL;
}

static basin_init init_or(basin_init given, double deviation) {
    basin_init normal = {BASIN_INIT_NORMAL, deviation};
    return given.kind == BASIN_INIT_CONSTANT && given.scale == 0 ? normal : given;
}

static basin_status check_config(const basin_block_config *c, basin_graph *graph) {
    basin_error newer = {0};
    if (BASIN_SIZE_CHECK(c, "basin_block_config", &newer) ||
        BASIN_SIZE_CHECK(c->graph, "basin_block_graph", &newer))
        basin_graph_fail(graph, newer.status, "%s", newer.text);
    bool heads = c->no_attention || (c->heads > 0 && c->head_dim > 0);
    bool memories = c->no_hopfield || c->memories > 0;
    if (c->dim < 1 || !heads || !memories)
        basin_graph_fail(graph, BASIN_BAD_VALUE,
                         "a block with D %lld, H %lld, Y %lld, M %lld; expected 1 or more of each",
                         (long long)c->dim, (long long)c->heads, (long long)c->head_dim,
                         (long long)c->memories);
    else if (c->hopfield == BASIN_HOPFIELD_POWER && !c->no_hopfield && !(c->power > 1))
        basin_graph_fail(graph, BASIN_BAD_VALUE,
                         "a Hopfield network of power %g; expected more than 1", c->power);
    const basin_error *error = basin_graph_error(graph);
    return error ? error->status : BASIN_OK;
}

static basin_expr declare_scalers(const basin_block *b, basin_params *params, const char *prefix,
                                  const char *name, int64_t heads) {
    return b->graph.degree_scalers ? basin_param_add(params, prefix, name, BASIN_SHAPE(heads, 2),
                                                     (basin_init){BASIN_INIT_CONSTANT, 0})
                                   : NULL;
}

static void declare_attention(basin_block *b, basin_params *params, const char *prefix) {
    const basin_block_config *c = &b->config;
    basin_shape shape = BASIN_SHAPE(c->heads, c->head_dim, c->dim);
    basin_init init = init_or(c->init_query, 0.002);
    double beta = c->beta > 0 ? c->beta : 1 / sqrt((double)c->head_dim);
    b->wk = basin_param_add(params, prefix, "wk", shape, init);
    b->wq = basin_param_add(params, prefix, "wq", shape, init);
    b->beta = c->learn_beta ? basin_param_add(params, prefix, "beta", BASIN_SHAPE(c->heads),
                                              (basin_init){BASIN_INIT_CONSTANT, beta})
                            : basin_full(params->graph, BASIN_SHAPE(c->heads), beta);
    if (c->mix)
        b->mix = basin_param_add(params, prefix, "mix", BASIN_SHAPE(c->heads, c->heads), init);
    b->wd = declare_scalers(b, params, prefix, "wd", c->heads);
    if (b->graph.facts > 0) /* at first facts do not count */
        b->we = basin_param_add(params, prefix, "we", BASIN_SHAPE(b->graph.facts, c->heads),
                                (basin_init){BASIN_INIT_CONSTANT, 0});
}

static void declare_couplings(basin_block *b, basin_params *params, const char *prefix) {
    const basin_block_config *c = &b->config;
    basin_shape shape = BASIN_SHAPE(b->graph.couplings, c->head_dim, c->dim);
    basin_init init = init_or(c->init_query, 0.002);
    b->ck = basin_param_add(params, prefix, "ck", shape, init);
    b->cq = basin_param_add(params, prefix, "cq", shape, init);
    b->ce = basin_param_add(params, prefix, "ce",
                            BASIN_SHAPE(b->graph.pair_features, b->graph.couplings),
                            (basin_init){BASIN_INIT_LECUN, (double)b->graph.pair_features});
    b->cd = declare_scalers(b, params, prefix, "cd", b->graph.couplings);
}

static void declare_memories(basin_block *b, basin_params *params, const char *prefix) {
    const basin_block_config *c = &b->config;
    int64_t U = b->graph.neighbour_heads, seen = c->dim + U * c->head_dim;
    b->xi = basin_param_add(params, prefix, "xi", BASIN_SHAPE(c->memories, seen),
                            init_or(c->init_memory, 0.02));
    if (!U) return;
    b->nv = basin_param_add(params, prefix, "nv", BASIN_SHAPE(U, c->head_dim, c->dim),
                            init_or(c->init_query, 0.002));
    b->ne = basin_param_add(params, prefix, "ne", BASIN_SHAPE(b->graph.pair_features, U),
                            (basin_init){BASIN_INIT_LECUN, (double)b->graph.pair_features});
    b->nd = declare_scalers(b, params, prefix, "nd", U);
}

basin_status basin_block_declare(basin_block *block, basin_params *params, const char *prefix,
                                 const basin_block_config *config) {
    *block = (basin_block){.config = *config};
    if (config->graph) block->graph = *config->graph;
    block->config.graph = NULL;
    if (block->config.epsilon == 0) block->config.epsilon = 1e-5;
    basin_status status = check_config(config, params->graph);
    if (status) return status;
    if (!config->no_attention) declare_attention(block, params, prefix);
    if (!config->no_hopfield) declare_memories(block, params, prefix);
    if (block->graph.couplings > 0) declare_couplings(block, params, prefix);
    block->gamma = basin_param_add(params, prefix, "gamma", BASIN_SCALAR,
                                   (basin_init){BASIN_INIT_CONSTANT, 1});
    if (config->positive_gamma) basin_param_set_minimum(params, block->gamma, MIN_GAMMA);
    block->delta = basin_param_add(params, prefix, "delta", BASIN_SHAPE(config->dim),
                                   (basin_init){BASIN_INIT_CONSTANT, 0});
    if (block->graph.graph_norm) /* at 1 its gradient is 0 */
        block->mean_part = basin_param_add(params, prefix, "mean_part", BASIN_SHAPE(config->dim),
                                           (basin_init){BASIN_INIT_CONSTANT, 0.5});
    const basin_error *error = basin_graph_error(params->graph);
    return error ? error->status : BASIN_OK;
}

basin_expr basin_block_norm(const basin_block *block, basin_expr x) {
    if (block->config.norm != BASIN_NORM_RMS)
        return basin_layernorm(x, block->gamma, block->delta, block->config.epsilon);
    double width = (double)block->config.dim;
    basin_lagrangian rms = {.name = "spherical",
                            .gamma = basin_scale(block->gamma, sqrt(width)),
                            .delta = block->delta,
                            .epsilon = width * block->config.epsilon};
    return basin_lagrangian_activation(&rms, x);
}

static const basin_block_graph_inputs *inputs_of(const basin_block_bound *bound) {
    static const basin_block_graph_inputs none = {0};
    return bound->graph ? bound->graph : &none;
}

/* Normalizes each feature over the nodes of a graph: with A = 1 - a mean, the gradient of n gamma
 * sqrt(x . A'A x / n + epsilon) + delta . x, summed over features and graphs of n nodes. */
static basin_expr graph_norm(const basin_block_bound *bound, basin_expr x) {
    const basin_block *b = bound->block;
    if (!inputs_of(bound)->owner || !inputs_of(bound)->share || has_batch(x))
        return basin_graph_fail(basin_expr_graph(x), BASIN_BAD_VALUE,
                                "a norm over graphs needs tokens [N, D] and the graph of each");
    int64_t G = basin_expr_shape(inputs_of(bound)->share).dim[0];
    basin_expr share = basin_reshape(inputs_of(bound)->share, BASIN_SHAPE(G, 1)), a = b->mean_part;
    basin_expr sum = basin_scatter(x, inputs_of(bound)->owner, G);
    basin_expr mean = basin_take(basin_mul(sum, share), 0, inputs_of(bound)->owner);
    basin_expr squares = basin_square(basin_sub(x, basin_mul(mean, a)));
    squares = basin_mul(basin_scatter(squares, inputs_of(bound)->owner, G), share);
    basin_expr root = basin_sqrt(
        basin_offset(basin_take(squares, 0, inputs_of(bound)->owner), b->config.epsilon));
    basin_expr ones = basin_full(basin_expr_graph(x), BASIN_SHAPE(G, 1), 1);
    basin_expr is_node = basin_take(ones, 0, inputs_of(bound)->owner);
    basin_expr taken = basin_mul(a, basin_offset(basin_neg(a), 2));
    basin_expr g = basin_div(basin_sub(x, basin_mul(mean, taken)), root);
    g = basin_add(basin_mul(g, b->gamma), b->delta);
    return basin_where(is_node, g, basin_block_norm(b, x));
}

/* ---- the block as an energy ---- */

static basin_expr activation(const void *context, basin_expr x) {
    const basin_block_bound *bound = context;
    return bound->block->mean_part ? graph_norm(bound, x) : basin_block_norm(bound->block, x);
}

/* How much each token's pairs count in each head [N, H], by weights [H, 2]. Its neighbours are its
 * pairs but one, that with the CLS or with itself. */
static basin_expr scalers(const basin_block_bound *bound, basin_expr g, basin_expr weight) {
    const basin_pattern *p = bound->pattern;
    basin_graph *graph = basin_expr_graph(g);
    int64_t N = basin_expr_shape(g).dim[0];
    if (!p->row || has_batch(g))
        return basin_graph_fail(graph, BASIN_BAD_VALUE,
                                "degree scalers need tokens [N, D] and a list of pairs");
    basin_expr each = basin_full(graph, BASIN_SHAPE(basin_expr_shape(p->key).dim[0], 1), 1);
    basin_expr pairs = basin_pair_sum(each, basin_full(graph, BASIN_SHAPE(N, 1, 1), 1), p);
    basin_expr degree = basin_relu(basin_offset(basin_reshape(pairs, BASIN_SHAPE(N, 1)), -1));
    basin_expr log = basin_log(basin_offset(degree, 2));
    basin_expr both = basin_concat((basin_expr[]){log, basin_reciprocal(log)}, 2, 1);
    return basin_offset(basin_matmul_t(both, false, weight, true), 1);
}

/* a [N, H, Y] by the scalers of each token and head, where there are some. */
static basin_expr scale_heads(const basin_block_bound *bound, basin_expr a, basin_expr g,
                              basin_expr weight) {
    basin_shape s = basin_expr_shape(a);
    if (!weight || !a) return a;
    s.dim[2] = 1;
    return basin_mul(a, basin_reshape(scalers(bound, g, weight), s));
}

static bool check_facts(const basin_block_bound *bound, basin_expr g) {
    if (!bound->block->we == !inputs_of(bound)->facts && !(inputs_of(bound)->facts && bound->scale))
        return true;
    return basin_graph_fail(
        basin_expr_graph(g), BASIN_BAD_VALUE,
        "attention: facts of pairs are %s; expected them where the block has weights "
        "for them, without multipliers",
        inputs_of(bound)->facts ? basin_expr_text(inputs_of(bound)->facts) : "absent");
}

/* The log-sum-exps of every token's scores and head at activations g: [.., N, H]. */
static basin_expr block_lse(const basin_block_bound *bound, basin_expr g) {
    const basin_block *b = bound->block;
    if (!check_tokens(g, b->wk, 2, "attention") || !check_facts(bound, g)) return NULL;
    basin_expr k = project(g, b->wk), q = project(g, b->wq);
    basin_lse_options options = {.scale = bound->scale, .mix = b->mix};
    if (inputs_of(bound)->facts) options.bias = basin_matmul(inputs_of(bound)->facts, b->we);
    return basin_attention_lse(q, k, b->beta, bound->pattern, &options);
}

/* Minus the energies of tokens and heads: [.., N, H]. */
static basin_expr attention_by_token(const basin_block_bound *bound, basin_expr g) {
    const basin_block *b = bound->block;
    basin_expr lse = basin_div(block_lse(bound, g), b->beta);
    return b->wd && lse ? basin_mul(lse, scalers(bound, g, b->wd)) : lse;
}

static basin_expr attention_term(const void *context, basin_expr g) {
    const basin_block_bound *bound = context;
    return basin_neg(per_sample(attention_by_token(bound, g), has_batch(g)));
}

/* How much pairs count in each head, [pairs, H'], by weights [P, H'] of their features. */
static basin_expr pair_strength(const basin_block_bound *bound, basin_expr weight) {
    basin_shape pairs = basin_expr_shape(inputs_of(bound)->strength);
    basin_expr strength = basin_reshape(inputs_of(bound)->strength, BASIN_SHAPE(pairs.dim[0], 1));
    return basin_mul(basin_matmul(inputs_of(bound)->features, weight), strength);
}

/* What memories see of each token: itself, and its neighbours where the block has heads for them.
 */
static basin_expr seen_by_memories(const basin_block_bound *bound, basin_expr g) {
    const basin_block *b = bound->block;
    if (!b->nv || !check_tokens(g, b->nv, 2, "sums over neighbours")) return g;
    if (!inputs_of(bound)->strength || !bound->pattern->row || has_batch(g))
        return basin_graph_fail(basin_expr_graph(g), BASIN_BAD_VALUE,
                                "sums over neighbours require tokens [N, D] and a list of pairs");
    basin_expr sum = basin_pair_sum(pair_strength(bound, b->ne), project(g, b->nv), bound->pattern);
    basin_shape s = basin_expr_shape(sum);
    sum = scale_heads(bound, sum, g, b->nd);
    sum = basin_reshape(sum, BASIN_SHAPE(s.dim[0], s.dim[1] * s.dim[2]));
    return basin_concat((basin_expr[]){g, sum}, 2, 1);
}

static basin_expr hopfield_term(const void *context, basin_expr g) {
    const basin_block *b = ((const basin_block_bound *)context)->block;
    return basin_energy_hopfield(seen_by_memories(context, g), b->xi, b->config.hopfield,
                                 b->config.power);
}

/* Attention without its log-sum-exp: E = -sum over pairs (C, B) and heads of c[pair, h] Q_C . K_B,
 * so that the pulls of the pairs add up; the terms of the sum [pairs, H']. */
static basin_expr couplings_by_pair(const basin_block_bound *bound, basin_expr g) {
    const basin_block *b = bound->block;
    if (!check_tokens(g, b->ck, 2, "couplings") || !check_tokens(g, b->cq, 2, "couplings"))
        return NULL;
    if (!bound->pattern || !bound->pattern->row || has_batch(g))
        return basin_graph_fail(basin_expr_graph(g), BASIN_BAD_VALUE,
                                "couplings require tokens [N, D] and a list of pairs");
    basin_expr q = scale_heads(bound, project(g, b->cq), g, b->cd);
    return basin_mul(basin_pair_dot(q, project(g, b->ck), bound->pattern),
                     pair_strength(bound, b->ce));
}

static basin_expr couplings_term(const void *context, basin_expr g) {
    basin_expr each = couplings_by_pair(context, g);
    return each ? basin_neg(basin_sum_all(each)) : NULL;
}

/* Any of them in this order: some neighbours of a list. */
basin_energy basin_block_energy(const basin_block_bound *bound) {
    static const basin_term all[] = {{"attention", attention_term, NULL},
                                     {"couplings", couplings_term, NULL},
                                     {"attention", attention_term, NULL},
                                     {"hopfield", hopfield_term, NULL},
                                     {"couplings", couplings_term, NULL}};
    const basin_block_config *c = &bound->block->config;
    bool couplings = bound->block->graph.couplings > 0;
    int first = c->no_hopfield ? (c->no_attention ? 1 : 0) : (c->no_attention ? 3 : 2);
    return (basin_energy){.term = all + first,
                          .terms = !c->no_attention + !c->no_hopfield + couplings,
                          .activation = activation,
                          .context = bound};
}

/* ---- the block token by token ---- */

/* Scores of the pairs [pairs, H], as in basin_attention_lse. */
static basin_expr scores(const basin_block_bound *bound, basin_expr q, basin_expr k) {
    const basin_block *b = bound->block;
    basin_expr z = basin_mul(basin_pair_dot(q, k, bound->pattern), b->beta);
    if (b->mix) z = basin_matmul(z, b->mix);
    if (inputs_of(bound)->facts) return basin_add(z, basin_matmul(inputs_of(bound)->facts, b->we));
    return bound->scale ? basin_mul(z, bound->scale) : z;
}

static basin_expr pair_shares(const basin_block_bound *bound, basin_expr g) {
    const basin_block *b = bound->block;
    if (b->config.no_attention || !bound->pattern->row || !g) return NULL;
    basin_expr q = project(g, b->wq), k = project(g, b->wk);
    basin_expr lse = block_lse(bound, g);
    if (!lse) return NULL;
    int64_t N = basin_expr_shape(g).dim[0], H = b->config.heads;
    basin_expr ones = basin_full(basin_expr_graph(g), BASIN_SHAPE(N, H, 1), 1);
    basin_expr norm =
        basin_pair_dot(basin_reshape(lse, BASIN_SHAPE(N, H, 1)), ones, bound->pattern);
    return basin_mean(basin_exp(basin_sub(scores(bound, q, k), norm)), 1, 1);
}

static basin_expr couplings_of(const basin_block_bound *bound, basin_expr g) {
    int64_t pairs = basin_expr_shape(inputs_of(bound)->strength).dim[0];
    basin_expr z = couplings_by_pair(bound, g);
    basin_expr each = basin_reshape(basin_sum(z, 1, 1), BASIN_SHAPE(pairs, 1));
    int64_t N = basin_expr_shape(g).dim[0];
    basin_expr ones = basin_full(basin_expr_graph(g), BASIN_SHAPE(N, 1, 1), 1);
    return basin_neg(basin_reshape(basin_pair_sum(each, ones, bound->pattern), BASIN_SHAPE(N)));
}

static void token_energies(basin_expr energy[3], const basin_block_bound *bound, basin_expr g) {
    const basin_block *b = bound->block;
    basin_shape s = basin_expr_shape(g);
    energy[0] = energy[1] = energy[2] = NULL;
    if (!g) return;
    if (!b->config.no_attention)
        energy[0] = basin_neg(basin_sum(attention_by_token(bound, g), 1, 1));
    if (!b->config.no_hopfield) {
        basin_expr seen = seen_by_memories(bound, g); /* one token per sample */
        basin_expr one =
            basin_reshape(seen, BASIN_SHAPE(s.dim[0], 1, basin_expr_shape(seen).dim[1]));
        energy[1] = basin_energy_hopfield(one, b->xi, b->config.hopfield, b->config.power);
    }
    if (b->graph.couplings > 0) energy[2] = couplings_of(bound, g);
}

void basin_block_inspect(basin_block_view *view, const basin_block_bound *bound, basin_expr g) {
    basin_block_view all = {.share = pair_shares(bound, g)};
    token_energies(all.energy, bound, g);
    basin_info_fill(view, &all, sizeof all);
}
