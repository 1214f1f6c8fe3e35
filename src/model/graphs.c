/* Graph classification: nodes and a CLS token tied to all of them, S blocks of T steps, attention
 * scores multiplied by the parameterised adjacency, which is computed on the edges that exist
 * (section 5 of the paper, appendix D). */
#include <stdio.h>

#include "basin/model.h"
#include "model/shapes.h"

static void declare_adjacency(basin_graphs *model, basin_params *params) {
    int64_t H = model->config.block.heads, P = model->config.edge_features;
    model->conv = basin_param_add(params, "", "conv", BASIN_SHAPE(H, 3, 3),
                                  (basin_init){BASIN_INIT_LECUN, 9});
    model->adj_w = basin_param_add(params, "", "adj_w", BASIN_SHAPE(P, H),
                                   (basin_init){BASIN_INIT_LECUN, (double)P});
    model->adj_b =
        basin_param_add(params, "", "adj_b", BASIN_SHAPE(H), (basin_init){BASIN_INIT_CONSTANT, 0});
}

basin_status basin_graphs_declare(basin_graphs *model, basin_params *params,
                                  const basin_graphs_config *config) {
    *model = (basin_graphs){.config = *config};
    if (config->blocks < 1 || config->blocks > BASIN_MAX_BLOCKS)
        basin_graph_fail(params->graph, BASIN_BAD_VALUE, "%d blocks; wanted 1 to %d",
                         config->blocks, BASIN_MAX_BLOCKS);
    int64_t D = config->block.dim, F = config->features, k = config->positions;
    basin_init zero = {BASIN_INIT_CONSTANT, 0};
    model->enc_w = basin_param_add(params, "", "enc_w", BASIN_SHAPE(F, D),
                                   (basin_init){BASIN_INIT_LECUN, (double)F});
    model->enc_b = basin_param_add(params, "", "enc_b", BASIN_SHAPE(D), zero);
    model->cls =
        basin_param_add(params, "", "cls", BASIN_SHAPE(D), (basin_init){BASIN_INIT_NORMAL, 0.02});
    model->pos_w = basin_param_add(params, "", "pos_w", BASIN_SHAPE(k, D),
                                   (basin_init){BASIN_INIT_LECUN, (double)k});
    model->pos_b = basin_param_add(params, "", "pos_b", BASIN_SHAPE(D), zero);
    declare_adjacency(model, params);
    for (int i = 0; i < config->blocks && i < BASIN_MAX_BLOCKS; i++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "block%d.", i);
        basin_block_declare(&model->block[i], params, prefix, &config->block);
    }
    model->dec_w = basin_param_add(params, "", "dec_w", BASIN_SHAPE(D, config->outputs),
                                   (basin_init){BASIN_INIT_LECUN, (double)D});
    model->dec_b = basin_param_add(params, "", "dec_b", BASIN_SHAPE(config->outputs), zero);
    const basin_error *error = basin_graph_error(params->graph);
    return error ? error->status : BASIN_OK;
}

basin_graphs_batch basin_graphs_inputs(const basin_graphs *model, basin_graph *graph,
                                       int64_t graphs, int64_t nodes, int64_t pairs) {
    const basin_graphs_config *c = &model->config;
    int64_t tokens = nodes + graphs;
    return (basin_graphs_batch){
        .nodes = basin_input(graph, "nodes", BASIN_SHAPE(nodes, c->features)),
        .positions = basin_input(graph, "positions", BASIN_SHAPE(tokens, c->positions)),
        .edge_features = basin_input(graph, "edge_features", BASIN_SHAPE(pairs, c->edge_features)),
        .source = basin_index(graph, "source", BASIN_SHAPE(tokens)),
        .before = basin_index(graph, "before", BASIN_SHAPE(tokens)),
        .after = basin_index(graph, "after", BASIN_SHAPE(tokens)),
        .first = basin_index(graph, "first", BASIN_SHAPE(graphs)),
        .pattern = basin_pairs_declare(graph, "pairs", tokens, tokens, pairs)};
}

/* Nodes encoded, a CLS vector where `source` has none, and positions. */
static basin_expr embed(const basin_graphs *model, const basin_graphs_batch *batch) {
    basin_graph *graph = basin_expr_graph(batch->nodes);
    int64_t D = model->config.block.dim, nodes = basin_expr_shape(batch->nodes).dim[0];
    int64_t tokens = basin_expr_shape(batch->source).dim[0];
    basin_expr encoded = basin_add(basin_matmul(batch->nodes, model->enc_w), model->enc_b);
    basin_expr ones = basin_fill(graph, BASIN_SHAPE(nodes, 1), 1);
    basin_expr is_node = basin_gather(ones, batch->source); /* 0 for a CLS */
    basin_expr x = basin_gather(encoded, batch->source);
    x = basin_select(is_node, x, basin_broadcast(model->cls, BASIN_SHAPE(tokens, D)));
    basin_expr where = basin_add(basin_matmul(batch->positions, model->pos_w), model->pos_b);
    return basin_add(x, where);
}

/* Element (q, k) of a 3 x 3 convolution of x x^T needs x[q + a] . x[k + b] for a, b in -1, 0, 1.
 * With the three shifts of x as three heads, each cyclic turn of the second factor gives three of
 * the nine products: heads a against a + turn. The result is [pairs, H]. */
static basin_expr convolved_gram(const basin_graphs *model, const basin_graphs_batch *batch,
                                 basin_expr x) {
    basin_shape s = basin_expr_shape(x);
    basin_shape one = BASIN_SHAPE(s.dim[0], 1, s.dim[1]);
    int64_t H = model->config.block.heads;
    basin_expr shift[3] = {basin_reshape(basin_gather(x, batch->before), one),
                           basin_reshape(x, one),
                           basin_reshape(basin_gather(x, batch->after), one)};
    basin_expr left = basin_concat(shift, 3, 1), sum = NULL;
    for (int turn = 0; turn < 3; turn++) {
        basin_expr turned[3], tap[3];
        for (int a = 0; a < 3; a++) {
            int b = (a + turn) % 3;
            turned[a] = shift[b];
            basin_expr row = basin_slice(model->conv, 1, a, 1); /* [H, 1, 3] */
            tap[a] = basin_reshape(basin_slice(row, 2, b, 1), BASIN_SHAPE(H, 1));
        }
        basin_expr right = basin_concat(turned, 3, 1);
        basin_expr gram = basin_pair_dot(left, right, &batch->pattern); /* [pairs, 3] */
        basin_expr taps = basin_concat(tap, 3, 1);                      /* [H, 3] */
        basin_expr part = basin_matmul_t(gram, false, taps, true);
        sum = sum ? basin_add(sum, part) : part;
    }
    return sum;
}

basin_expr basin_graphs_tokens(const basin_graphs *model, const basin_graphs_batch *batch) {
    basin_expr x = embed(model, batch);
    basin_expr edges = basin_add(basin_matmul(batch->edge_features, model->adj_w), model->adj_b);
    basin_expr scale = basin_mul(convolved_gram(model, batch, x), edges);
    for (int i = 0; i < model->config.blocks; i++) {
        basin_block_bound bound = {&model->block[i], &batch->pattern, scale};
        basin_energy energy = basin_block_energy(&bound);
        x = basin_descend(&energy, x, &model->config.descent, NULL);
    }
    return x;
}

basin_expr basin_graphs_forward(const basin_graphs *model, const basin_graphs_batch *batch) {
    basin_expr cls = basin_gather(basin_graphs_tokens(model, batch), batch->first);
    return basin_add(basin_matmul(cls, model->dec_w), model->dec_b);
}

basin_expr basin_cross_entropy(basin_expr logits, basin_expr target) {
    if (!basin_model_shapes_agree(logits, target, "cross entropy")) return NULL;
    basin_expr inner = basin_sum(basin_mul(target, logits), -1, 1);
    return basin_mean_all(basin_sub(basin_logsumexp(logits), inner));
}
