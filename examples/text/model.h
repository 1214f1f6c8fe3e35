/* Two language models as expressions. Both take the ids of windows of N tokens and predict, at
 * every place, the token that follows: x = token + place, T steps, a layer norm, a linear head.
 *
 * NRGPT (Dehmamy et al. 2025) is a causal Energy Transformer. A step is x <- x - P dE/dg with
 * g = LN(x) + bias and one energy per token A,
 *
 *     E_A = -(1 / beta) sum over heads h of log sum over B <= A of exp(beta g_A . H_h g_B)
 *           - scale g_A . (W2 gelu(W1 g_A + b1) + b2)
 *
 * and all T steps use the same weights. The program states the energy (basin/zoo.h, "nrgpt");
 * Basin derives the force and, through all steps, the gradient of the loss.
 *
 * GPT (Radford et al. 2019) is what it is compared with: T layers, each with its own weights,
 *
 *     x <- x + Wo attention(LN x),  x <- x + W2 gelu(W1 LN x)
 *
 * Parameters are declared where they are used, so that a network reads from its ids to its logits.
 * Networks of any number and length of windows share parameters by their names in one store. */
#pragma once
#include <math.h>
#include <stdio.h>

#include <basin/basin.h>

enum { MAX_STEPS = 64 };
enum { FEED_1, FEED_2, FEED_2W }; /* of the feed-forward energy */

typedef struct config {
    int64_t gpt;                 /* 0: NRGPT, 1: GPT */
    int64_t vocabulary, context; /* V; the longest window */
    int64_t dim, heads, hidden;  /* D, H, U: units of the feed-forward network */
    int64_t steps;               /* T: steps of NRGPT, layers of GPT */
    int64_t tied;                /* the head is the matrix of the tokens */
    double dropout; /* NRGPT: of the pull of attention; GPT: of tokens, shares, layers */
    /* NRGPT: */
    int64_t feed;        /* 0, 1, 2: -|gelu(W1 g)|^2, -|gelu(W2 gelu(W1 g))|^2, or as above */
    int64_t strict;      /* a token does not see itself: B < A */
    double beta;         /* inverse temperature of attention */
    double dropout_step; /* of the first tokens, and of what a step adds */
    int64_t bias;        /* GPT: linear maps and norms have biases */
} config;

typedef struct network {
    config c;
    int64_t windows, tokens; /* B, N */
    basin_graph *graph;
    basin_params params;
    basin_expr ids;    /* index [B N] */
    basin_expr seed;   /* index [2] of dropout; NULL: none */
    basin_expr logits; /* [B, N, V] */
    /* NRGPT: attention and feed-forward energies [B, N] before each step and after the last */
    basin_expr energy[2 * (MAX_STEPS + 1)];
} network;

static const basin_init small = {BASIN_INIT_NORMAL, 0.02};
static const basin_init zero = {BASIN_INIT_CONSTANT, 0}, one = {BASIN_INIT_CONSTANT, 1};

/* ---- NRGPT ---- */

static basin_expr nrgpt_steps(network *n, basin_expr x) {
    const config *c = &n->c;
    basin_params *p = &n->params;
    /* ff2 has a square map first and widens in the second; the others widen at once. */
    bool square = c->feed == FEED_2;
    int64_t D = c->dim, U = c->hidden, first = square ? D : U, second = square ? U : D;
    basin_zoo_value v[16] = {
        {"h", .expr = basin_param_add(p, "", "h", BASIN_SHAPE(c->heads, D, D), small)},
        {"bias", .expr = basin_param_add(p, "", "bias", BASIN_SHAPE(D), zero)},
        {"proj", .expr = basin_param_add(p, "", "proj", BASIN_SHAPE(D, D), small)},
        {"scale", .expr = basin_param_add(p, "", "scale", BASIN_SCALAR, one)},
        {"w1", .expr = basin_param_add(p, "", "w1", BASIN_SHAPE(first, D), small)},
        {"b1", .expr = basin_param_add(p, "", "b1", BASIN_SHAPE(first), zero)},
        {"feed", .number = (double)c->feed},
        {"strict", .number = (double)c->strict},
        {"beta", .number = c->beta},
        {"dropout", .number = c->dropout},
        {"dropout_step", .number = c->dropout_step},
    };
    int count = 11;
    if (n->seed) v[count++] = (basin_zoo_value){"seed", .expr = n->seed};
    if (c->feed != FEED_1) {
        basin_expr w2 = basin_param_add(p, "", "w2", BASIN_SHAPE(second, first), small);
        basin_expr b2 = basin_param_add(p, "", "b2", BASIN_SHAPE(second), zero);
        v[count++] = (basin_zoo_value){"w2", .expr = w2};
        v[count++] = (basin_zoo_value){"b2", .expr = b2};
    }
    const basin_zoo *nrgpt = basin_zoo_build(n->graph, "nrgpt", v, count);
    if (!nrgpt) return NULL;
    /* The substeps turn a force into a step: P times it. */
    basin_descent_spec spec = {
        .steps = (int)c->steps, .alpha = 1, .substep = nrgpt->substep, .substeps = nrgpt->substeps};
    return basin_descend(&nrgpt->energy, x, &spec, n->energy);
}

/* ---- GPT ---- */

/* x W + b with W of that shape, [in, out]. */
static basin_expr linear(network *n, basin_expr x, const char *layer, const char *weight,
                         const char *bias, basin_shape shape, basin_init init) {
    x = basin_matmul(x, basin_param_add(&n->params, layer, weight, shape, init));
    if (!n->c.bias) return x;
    return basin_add(x, basin_param_add(&n->params, layer, bias, BASIN_SHAPE(shape.dim[1]), zero));
}

static basin_expr norm(network *n, basin_expr x, const char *layer, const char *gain,
                       const char *bias, bool biased) {
    basin_shape D = BASIN_SHAPE(n->c.dim);
    basin_expr gamma = basin_param_add(&n->params, layer, gain, D, one);
    basin_expr delta = biased ? basin_param_add(&n->params, layer, bias, D, zero) : NULL;
    return basin_layernorm(x, gamma, delta, 1e-5);
}

/* z Phi(z), Phi the normal distribution function. */
static basin_expr gelu(basin_expr z) {
    basin_expr gate = basin_offset(basin_erf(basin_scale(z, sqrt(0.5))), 1);
    return basin_scale(basin_mul(z, gate), 0.5);
}

/* softmax(q k' / sqrt(Y)) v of each head over the tokens up to each, all [B, N, H, Y]. */
static basin_expr attention(const network *n, basin_expr q, basin_expr k, basin_expr v) {
    basin_softmax_options options = {.dropout = n->c.dropout, .seed = n->seed};
    return basin_softmax_attention(q, k, v, &BASIN_CAUSAL_PAIRS, &options);
}

/* First values as in GPT-2: what is added to the tokens is drawn smaller, so that their variance
 * does not grow with depth. */
static basin_expr gpt_layer(network *n, basin_expr x, int64_t number) {
    const config *c = &n->c;
    int64_t B = n->windows, N = n->tokens, D = c->dim, U = c->hidden;
    basin_shape square = BASIN_SHAPE(D, D), all = BASIN_SHAPE(B, N, D);
    basin_shape heads = BASIN_SHAPE(B, N, c->heads, D / c->heads);
    basin_init added = {BASIN_INIT_NORMAL, 0.02 / sqrt(2.0 * (double)c->steps)};
    char layer[32];
    snprintf(layer, sizeof layer, "layer%d.", (int)number);
    basin_expr g = norm(n, x, layer, "norm1_w", "norm1_b", c->bias);
    basin_expr q = basin_reshape(linear(n, g, layer, "wq", "bq", square, small), heads);
    basin_expr k = basin_reshape(linear(n, g, layer, "wk", "bk", square, small), heads);
    basin_expr v = basin_reshape(linear(n, g, layer, "wv", "bv", square, small), heads);
    basin_expr mixed = basin_reshape(attention(n, q, k, v), all);
    mixed = linear(n, mixed, layer, "wo", "bo", square, added);
    x = basin_add(x, basin_dropout(mixed, c->dropout, n->seed));
    g = norm(n, x, layer, "norm2_w", "norm2_b", c->bias);
    g = gelu(linear(n, g, layer, "mlp_w1", "mlp_b1", BASIN_SHAPE(D, U), small));
    g = linear(n, g, layer, "mlp_w2", "mlp_b2", BASIN_SHAPE(U, D), added);
    return basin_add(x, basin_dropout(g, c->dropout, n->seed));
}

/* ---- either ---- */

/* For B windows of N tokens, N at most the context; errors are in its graph. */
static void network_new(network *n, const config *c, int64_t windows, int64_t tokens, bool train) {
    *n = (network){.c = *c, .windows = windows, .tokens = tokens, .graph = basin_graph_new()};
    basin_params *p = &n->params;
    basin_params_begin(p, n->graph);
    n->ids = basin_index(n->graph, "ids", BASIN_SHAPE(windows * tokens));
    if (train) n->seed = basin_index(n->graph, "seed", BASIN_SHAPE(2));
    basin_shape table = BASIN_SHAPE(c->vocabulary, c->dim);
    basin_expr tok = basin_param_add(p, "", "tok", table, small);
    basin_expr pos = basin_param_add(p, "", "pos", BASIN_SHAPE(c->context, c->dim), small);
    basin_expr x = basin_reshape(basin_take(tok, 0, n->ids), BASIN_SHAPE(windows, tokens, c->dim));
    x = basin_add(x, basin_slice(pos, 0, 0, tokens));
    x = basin_dropout(x, c->gpt ? c->dropout : c->dropout_step, n->seed);
    if (!c->gpt) x = nrgpt_steps(n, x);
    for (int64_t i = 0; i < c->steps && c->gpt; i++) x = gpt_layer(n, x, i);
    bool biased = !c->gpt || c->bias;
    x = norm(n, x, "", "lnf_w", "lnf_b", biased);
    basin_expr head = c->tied ? tok : basin_param_add(p, "", "head_w", table, small);
    n->logits = basin_matmul_t(x, false, head, true);
    if (!biased) return;
    n->logits =
        basin_add(n->logits, basin_param_add(p, "", "head_b", BASIN_SHAPE(c->vocabulary), zero));
}

/* -log p of each token, [B N], the labels being an index [B N]; 0 where a label is -1. */
static basin_expr network_loss(const network *n, basin_expr label) {
    basin_shape rows = BASIN_SHAPE(n->windows * n->tokens, n->c.vocabulary);
    return basin_cross_entropy_labels(basin_reshape(n->logits, rows), label);
}

static void network_free(network *n) {
    basin_params_free(&n->params);
    basin_graph_free(n->graph);
}
