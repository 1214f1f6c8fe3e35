/* Graph classification: nodes and a CLS token tied to all of them, S blocks of T steps, attention
 * scores multiplied by the parameterised adjacency, which is computed on the edges that exist
 * (section 5 of the paper, appendix D). The head reads the CLS token, or the nodes too. */
#include <stdio.h>

#include "base/info.h"
#include "tasks/common/layers.h"

static basin_expr weight(basin_params *params, const char *name, basin_shape shape, double fan_in) {
    return basin_param_add(params, "", name, shape, (basin_init){BASIN_INIT_LECUN, fan_in});
}

static basin_expr constant(basin_params *params, const char *name, basin_shape shape,
                           double value) {
    return basin_param_add(params, "", name, shape, (basin_init){BASIN_INIT_CONSTANT, value});
}

/* The published projection of edge features starts without an offset. The other kinds start at
 * factors around 1, where the scores are those of plain attention. */
static void declare_adjacency(basin_graph_net *model, basin_params *params) {
    const basin_graph_net_config *c = &model->config;
    int64_t H = c->block.heads, P = c->edge_features, R = c->rank > 0 ? c->rank : 8;
    if (c->pair_hidden > 0) {
        model->pair_w = weight(params, "pair_w", BASIN_SHAPE(P, c->pair_hidden), (double)P / 2);
        model->pair_b = constant(params, "pair_b", BASIN_SHAPE(c->pair_hidden), 0);
    }
    if (c->adjacency >= BASIN_ADJACENCY_NONE) return;
    int64_t seen = P + c->pair_hidden;
    if (c->adjacency == BASIN_ADJACENCY_CONV)
        model->conv = weight(params, "conv", BASIN_SHAPE(H, 3, 3), 9);
    if (c->adjacency == BASIN_ADJACENCY_BILINEAR)
        model->rank_w =
            weight(params, "rank_w", BASIN_SHAPE(H, R, c->block.dim), (double)c->block.dim);
    model->adj_w = weight(params, "adj_w", BASIN_SHAPE(seen, H), (double)seen);
    model->adj_b = constant(params, "adj_b", BASIN_SHAPE(H), c->adjacency != BASIN_ADJACENCY_CONV);
    if (c->reconstruct) model->edge_w = weight(params, "edge_w", BASIN_SHAPE(H, P), (double)H);
}

static void declare_head(basin_graph_net *model, basin_params *params) {
    const basin_graph_net_config *c = &model->config;
    int parts = !!(c->read & BASIN_GRAPH_READOUT_CLS) + !!(c->read & BASIN_GRAPH_READOUT_MEAN) +
                !!(c->read & BASIN_GRAPH_READOUT_SUM) + !!(c->read & BASIN_GRAPH_READOUT_SIZED);
    int64_t width = c->block.dim * (parts ? parts : 1); /* of the vector that the head reads */
    if (c->norm_head) {
        model->head_gamma = constant(params, "head_gamma", BASIN_SCALAR, 1);
        model->head_delta = constant(params, "head_delta", BASIN_SHAPE(c->block.dim), 0);
    }
    if (c->hidden > 0) {
        model->hidden_w =
            weight(params, "hidden_w", BASIN_SHAPE(width, c->hidden), (double)width / 2);
        model->hidden_b = constant(params, "hidden_b", BASIN_SHAPE(c->hidden), 0);
        width = c->hidden;
    }
    model->dec_w = weight(params, "dec_w", BASIN_SHAPE(width, c->outputs), (double)width);
    model->dec_b = constant(params, "dec_b", BASIN_SHAPE(c->outputs), 0);
}

static void check_config(basin_graph *graph, const basin_graph_net_config *c) {
    if (c->blocks < 1 || c->blocks > BASIN_MAX_BLOCKS)
        basin_graph_fail(graph, BASIN_BAD_VALUE, "blocks is %d; expected 1 to %d", c->blocks,
                         BASIN_MAX_BLOCKS);
    if ((c->read & BASIN_GRAPH_READOUT_NODES) && c->read != BASIN_GRAPH_READOUT_NODES)
        basin_graph_fail(graph, BASIN_BAD_VALUE,
                         "one head cannot give outputs of both nodes and graphs");
    if (c->reconstruct && c->adjacency >= BASIN_ADJACENCY_NONE)
        basin_graph_fail(graph, BASIN_BAD_VALUE,
                         "edges to reconstruct from scores that have no factor");
}

basin_status basin_graph_net_declare(basin_graph_net *model, basin_params *params,
                                     const basin_graph_net_config *config) {
    *model = (basin_graph_net){.config = *config};
    check_config(params->graph, config);
    int64_t D = config->block.dim, F = config->features, k = config->positions;
    model->enc_w = weight(params, "enc_w", BASIN_SHAPE(F, D), (double)F);
    model->enc_b = constant(params, "enc_b", BASIN_SHAPE(D), 0);
    model->cls =
        basin_param_add(params, "", "cls", BASIN_SHAPE(D), (basin_init){BASIN_INIT_NORMAL, 0.02});
    if (k > 0) {
        model->pos_w = weight(params, "pos_w", BASIN_SHAPE(k, D), (double)k);
        model->pos_b = constant(params, "pos_b", BASIN_SHAPE(D), 0);
    }
    declare_adjacency(model, params);
    basin_block_config block = config->block;
    basin_block_graph extra = config->graph;
    if (config->adjacency == BASIN_ADJACENCY_BIAS)
        extra.facts = config->edge_features + config->pair_hidden;
    block.graph = &extra;
    for (int i = 0; i < config->blocks && i < BASIN_MAX_BLOCKS; i++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "block%d.", i);
        basin_block_declare(&model->block[i], params, prefix, &block);
    }
    declare_head(model, params);
    return basin_model_status(params->graph);
}

void basin_graph_net_inputs(basin_graph_net_batch *batch, const basin_graph_net *model,
                            basin_graph *graph, int64_t graphs, int64_t nodes, int64_t pairs) {
    const basin_graph_net_config *c = &model->config;
    int64_t tokens = nodes + graphs;
    *batch = (basin_graph_net_batch){
        .nodes = basin_input(graph, "nodes", BASIN_SHAPE(nodes, c->features)),
        .positions = c->positions > 0
                         ? basin_input(graph, "positions", BASIN_SHAPE(tokens, c->positions))
                         : NULL,
        .share = basin_input(graph, "share", BASIN_SHAPE(graphs)),
        .edge_features = basin_input(graph, "edge_features", BASIN_SHAPE(pairs, c->edge_features)),
        .source = basin_index(graph, "source", BASIN_SHAPE(tokens)),
        .before = basin_index(graph, "before", BASIN_SHAPE(tokens)),
        .after = basin_index(graph, "after", BASIN_SHAPE(tokens)),
        .first = basin_index(graph, "first", BASIN_SHAPE(graphs)),
        .owner = basin_index(graph, "owner", BASIN_SHAPE(tokens)),
        .strength = c->graph.couplings > 0 || c->graph.neighbour_heads > 0
                        ? basin_input(graph, "strength", BASIN_SHAPE(pairs))
                        : NULL,
        .pattern = basin_pairs_declare(graph, "pairs", tokens, tokens, pairs)};
}

/* Nodes encoded, a CLS vector where `source` has none, and positions. */
static basin_expr embed(const basin_graph_net *model, const basin_graph_net_batch *batch) {
    basin_graph *graph = basin_expr_graph(batch->nodes);
    int64_t D = model->config.block.dim, nodes = basin_expr_shape(batch->nodes).dim[0];
    int64_t tokens = basin_expr_shape(batch->source).dim[0];
    basin_expr encoded = basin_model_affine(batch->nodes, model->enc_w, model->enc_b);
    basin_expr ones = basin_full(graph, BASIN_SHAPE(nodes, 1), 1);
    basin_expr is_node = basin_take(ones, 0, batch->source); /* 0 for a CLS */
    basin_expr x = basin_take(encoded, 0, batch->source);
    x = basin_where(is_node, x, basin_broadcast_to(model->cls, BASIN_SHAPE(tokens, D)));
    if (!model->pos_w) return x;
    basin_expr where = basin_model_affine(batch->positions, model->pos_w, model->pos_b);
    return basin_add(x, where);
}

/* Element (q, k) of a 3 x 3 convolution of x x^T needs x[q + a] . x[k + b] for a, b in -1, 0, 1.
 * With the three shifts of x as three heads, each cyclic turn of the second factor gives three of
 * the nine products: heads a against a + turn. The result is [pairs, H]. */
static basin_expr convolved_gram(const basin_graph_net *model, const basin_graph_net_batch *batch,
                                 basin_expr x) {
    basin_shape s = basin_expr_shape(x);
    basin_shape one = BASIN_SHAPE(s.dim[0], 1, s.dim[1]);
    int64_t H = model->config.block.heads;
    basin_expr shift[3] = {basin_reshape(basin_take(x, 0, batch->before), one),
                           basin_reshape(x, one),
                           basin_reshape(basin_take(x, 0, batch->after), one)};
    basin_expr left = basin_concat(shift, 3, 1), sum = NULL;
    for (int turn = 0; turn < 3; turn++) {
        basin_expr transposed[3], tap[3];
        for (int a = 0; a < 3; a++) {
            int b = (a + turn) % 3;
            transposed[a] = shift[b];
            basin_expr row = basin_slice(model->conv, 1, a, 1); /* [H, 1, 3] */
            tap[a] = basin_reshape(basin_slice(row, 2, b, 1), BASIN_SHAPE(H, 1));
        }
        basin_expr right = basin_concat(transposed, 3, 1);
        basin_expr gram = basin_pair_dot(left, right, &batch->pattern); /* [pairs, 3] */
        basin_expr taps = basin_concat(tap, 3, 1);                      /* [H, 3] */
        basin_expr part = basin_matmul_t(gram, false, taps, true);
        sum = sum ? basin_add(sum, part) : part;
    }
    return sum;
}

/* (U_h x_i) . (U_h x_j) / R, a symmetric function of the two tokens; [pairs, H]. */
static basin_expr bilinear(const basin_graph_net *model, const basin_graph_net_batch *batch,
                           basin_expr x) {
    basin_shape w = basin_expr_shape(model->rank_w), s = basin_expr_shape(x);
    basin_expr flat = basin_reshape(model->rank_w, BASIN_SHAPE(w.dim[0] * w.dim[1], w.dim[2]));
    basin_expr u = basin_reshape(basin_matmul_t(x, false, flat, true),
                                 BASIN_SHAPE(s.dim[0], w.dim[0], w.dim[1]));
    return basin_scale(basin_pair_dot(u, u, &batch->pattern), 1 / (double)w.dim[1]);
}

/* What scores and couplings see of a pair: its features, and hidden units that see these. */
static basin_expr pair_features(const basin_graph_net *model, const basin_graph_net_batch *batch) {
    if (!model->pair_w) return batch->edge_features;
    basin_expr hidden =
        basin_relu(basin_model_affine(batch->edge_features, model->pair_w, model->pair_b));
    return basin_concat((basin_expr[]){batch->edge_features, hidden}, 2, 1);
}

/* The factors of the scores [pairs, H], or NULL. */
static basin_expr adjacency(const basin_graph_net *model, const basin_graph_net_batch *batch,
                            basin_expr x, basin_expr features) {
    if (model->config.adjacency >= BASIN_ADJACENCY_NONE) return NULL;
    basin_expr edges = basin_model_affine(features, model->adj_w, model->adj_b);
    switch (model->config.adjacency) {
    case BASIN_ADJACENCY_CONV: return basin_mul(convolved_gram(model, batch, x), edges);
    case BASIN_ADJACENCY_BILINEAR:
        return basin_mul(basin_offset(bilinear(model, batch, x), 1), edges);
    default: return edges;
    }
}

basin_expr basin_graph_net_edges(const basin_graph_net *model, const basin_graph_net_batch *batch) {
    basin_expr scale = adjacency(model, batch, embed(model, batch), pair_features(model, batch));
    return basin_matmul(scale, model->edge_w);
}

static basin_expr descend(const basin_graph_net *model, const basin_graph_net_batch *batch) {
    basin_expr x = embed(model, batch);
    basin_expr features = pair_features(model, batch);
    basin_expr scale = adjacency(model, batch, x, features);
    for (int i = 0; i < model->config.blocks; i++) {
        basin_block_graph_inputs inputs = {.facts = model->block[i].we ? features : NULL,
                                           .features = features,
                                           .strength = batch->strength,
                                           .owner = batch->owner,
                                           .share = batch->share};
        basin_block_bound bound = {.block = &model->block[i],
                                   .pattern = &batch->pattern,
                                   .scale = scale,
                                   .graph = &inputs};
        basin_energy energy = basin_block_energy(&bound);
        x = basin_descend(&energy, x, &model->config.descent, NULL);
    }
    return x;
}

/* Zeros a share of the numbers and scales up the others; nothing without a seed. As basin_dropout,
 * but the factor comes last, where the product that follows absorbs it: results of trained models
 * depend on that order. */
static basin_expr drop(const basin_graph_net_config *c, basin_expr a) {
    if (!(c->drop > 0) || !c->descent.seed) return a;
    basin_expr draw = basin_uniform(c->descent.seed, basin_expr_shape(a));
    basin_expr keep = basin_greater(draw, basin_scalar(basin_expr_graph(a), c->drop));
    return basin_scale(basin_mul(a, keep), 1 / (1 - c->drop));
}

/* What the head sees of each graph: its CLS token, and its nodes' mean, sum, mean by size. */
static basin_expr read_graphs(const basin_graph_net *model, const basin_graph_net_batch *batch,
                              basin_expr x) {
    int read = model->config.read, parts = 0;
    int64_t graphs = basin_expr_shape(batch->first).dim[0];
    basin_expr part[4];
    if (!read || (read & BASIN_GRAPH_READOUT_CLS)) part[parts++] = basin_take(x, 0, batch->first);
    if (read & (BASIN_GRAPH_READOUT_MEAN | BASIN_GRAPH_READOUT_SUM | BASIN_GRAPH_READOUT_SIZED)) {
        basin_expr sum = basin_scatter(x, batch->owner, graphs);
        basin_expr share = basin_reshape(batch->share, BASIN_SHAPE(graphs, 1));
        basin_expr mean = basin_mul(sum, share);
        if (read & BASIN_GRAPH_READOUT_MEAN) part[parts++] = mean;
        if (read & BASIN_GRAPH_READOUT_SIZED) /* log(1 + n) from 1 / n; finite for padding, where it
                                                 is 0 */
            part[parts++] = basin_scale(
                basin_mul(mean, basin_log1p(basin_reciprocal(basin_offset(share, 1e-9)))), 0.25);
        if (read & BASIN_GRAPH_READOUT_SUM) part[parts++] = basin_scale(sum, 1.0 / 16);
    }
    return parts == 1 ? part[0] : basin_concat(part, parts, 1);
}

/* Outputs of each graph, or with BASIN_GRAPH_READOUT_NODES of each token. */
basin_expr basin_graph_net_forward(const basin_graph_net *model,
                                   const basin_graph_net_batch *batch) {
    const basin_graph_net_config *c = &model->config;
    basin_expr x = descend(model, batch);
    if (c->norm_head) x = basin_layernorm(x, model->head_gamma, model->head_delta, 1e-5);
    x = drop(c, c->read == BASIN_GRAPH_READOUT_NODES ? x : read_graphs(model, batch, x));
    if (model->hidden_w)
        x = drop(c, basin_relu(basin_model_affine(x, model->hidden_w, model->hidden_b)));
    return basin_model_affine(x, model->dec_w, model->dec_b);
}

basin_expr basin_cross_entropy(basin_expr logits, basin_expr target) {
    if (!basin_model_shapes_agree(logits, target, "cross entropy")) return NULL;
    basin_expr inner = basin_sum(basin_mul(target, logits), -1, 1);
    return basin_mean_all(basin_sub(basin_logsumexp(logits, -1), inner));
}
