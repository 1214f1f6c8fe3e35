/* Graph networks as a whole: what is checked, the layers one after the other over each relation,
 * the head. The kinds are in bwgnn.c, gt.c and conv.c. */
#include <math.h>
#include <stdio.h>

#include "model/gnn/gnn.h"
#include "model/parts.h"
#include "model/shapes.h"

/* ---- parameters ---- */

basin_init basin_gnn_uniform(int64_t in) {
    return (basin_init){BASIN_INIT_UNIFORM, 1 / sqrt((double)in)};
}

basin_init basin_gnn_glorot(int64_t in, int64_t out) {
    return (basin_init){BASIN_INIT_UNIFORM, sqrt(6 / (double)(in + out))};
}

void basin_gnn_affine_add(basin_expr *weight, basin_expr *bias, basin_params *params,
                          const char *prefix, const char *name, int64_t in, int64_t out) {
    char text[32];
    snprintf(text, sizeof text, "%s_w", name);
    *weight = basin_param_add(params, prefix, text, BASIN_SHAPE(in, out), basin_gnn_uniform(in));
    snprintf(text, sizeof text, "%s_b", name);
    *bias = basin_param_add(params, prefix, text, BASIN_SHAPE(out), basin_gnn_uniform(in));
}

static int relations_of(const basin_gnn_config *c) { return c->relations > 0 ? c->relations : 1; }

static bool has_heads(const basin_gnn_config *c) {
    return c->arch == BASIN_GNN_GT || c->arch == BASIN_GNN_GAT;
}

static bool check_config(const basin_gnn_config *c, basin_graph *graph) {
    if (c->layers < 1 || c->layers > BASIN_GNN_LAYERS ||
        relations_of(c) > BASIN_ANOMALY_RELATIONS || !(c->dropout >= 0 && c->dropout < 1))
        basin_graph_fail(graph, BASIN_BAD_VALUE,
                         "a graph network of %d layers, %d relations, dropout %g; wanted 1 to %d, "
                         "at most %d, 0 to less than 1",
                         c->layers, relations_of(c), c->dropout, BASIN_GNN_LAYERS,
                         BASIN_ANOMALY_RELATIONS);
    else if (has_heads(c) && (c->heads < 1 || c->dim % c->heads))
        basin_graph_fail(graph, BASIN_BAD_VALUE,
                         "%lld heads and dimension %lld; wanted a number of heads that divides it",
                         (long long)c->heads, (long long)c->dim);
    return !basin_graph_error(graph);
}

static void declare_head(basin_gnn *net, basin_params *params, const char *prefix) {
    const basin_gnn_config *c = &net->config;
    int64_t width = c->dim * (c->merge == BASIN_MERGE_CONCAT ? relations_of(c) : 1);
    if (c->hidden > 0) {
        basin_gnn_affine_add(&net->hidden_w, &net->hidden_b, params, prefix, "hidden", width,
                             c->hidden);
        width = c->hidden;
    }
    basin_init init = basin_gnn_uniform(width);
    basin_model_head_add(&net->head_w, &net->head_b, params, prefix, width, c->outputs, init, init);
}

static void declare_layers(basin_gnn *net, basin_params *params, const char *prefix) {
    const basin_gnn_config *c = &net->config;
    bool transformer = c->arch == BASIN_GNN_GT;
    char name[64];
    if (transformer)
        basin_gnn_affine_add(&net->emb_w, &net->emb_b, params, prefix, "emb", c->features, c->dim);
    for (int i = 0; i < c->layers; i++) {
        snprintf(name, sizeof name, "%slayer%d.", prefix, i);
        if (transformer)
            basin_gt_declare(&net->layer[i], c, params, name);
        else
            basin_gnn_conv_declare(&net->layer[i], c, params, name, i ? c->dim : c->features);
    }
}

basin_status basin_gnn_declare(basin_gnn *net, basin_params *params,
                               const basin_gnn_config *config) {
    const char *prefix = config->prefix ? config->prefix : "";
    *net = (basin_gnn){.config = *config};
    if (!check_config(config, params->graph)) return BASIN_BAD_VALUE;
    if (config->arch == BASIN_GNN_BWGNN)
        basin_bwgnn_declare(net, params, prefix);
    else
        declare_layers(net, params, prefix);
    declare_head(net, params, prefix);
    const basin_error *error = basin_graph_error(params->graph);
    return error ? error->status : BASIN_OK;
}

/* ---- forward ---- */

static basin_expr embed(const basin_gnn *net, basin_expr features) {
    if (net->config.arch == BASIN_GNN_BWGNN) return basin_bwgnn_embed(net, features);
    if (net->config.arch == BASIN_GNN_GT)
        return basin_model_affine(features, net->emb_w, net->emb_b);
    return features;
}

/* All layers over one relation, [N, D]. */
static basin_expr run_layers(const basin_gnn *net, basin_expr h, const basin_pattern *pattern,
                             basin_expr seed) {
    const basin_gnn_config *c = &net->config;
    basin_graph *graph = basin_expr_graph(net->head_w);
    if (c->arch == BASIN_GNN_BWGNN) return basin_bwgnn_forward(net, h, pattern);
    for (int i = 0; i < c->layers; i++) {
        if (i) h = basin_dropout(h, c->dropout, seed);
        if (c->recompute) basin_recompute_begin(graph);
        h = basin_keep(c->arch == BASIN_GNN_GT
                           ? basin_gt_forward(&net->layer[i], c, h, pattern)
                           : basin_gnn_conv_forward(&net->layer[i], c, h, pattern));
        if (c->recompute) basin_recompute_end(graph);
    }
    return h;
}

basin_expr basin_gnn_logits(const basin_gnn *net, const basin_gnn_inputs *inputs) {
    const basin_gnn_config *c = &net->config;
    if (!basin_model_shape_is(inputs->features, BASIN_SHAPE(-1, c->features),
                              "graph network: features"))
        return NULL;
    basin_expr first = embed(net, inputs->features), result[BASIN_ANOMALY_RELATIONS];
    for (int r = 0; r < relations_of(c); r++)
        result[r] = run_layers(net, first, &inputs->neighbours[r], inputs->seed);
    basin_expr h = basin_model_merge(result, relations_of(c), c->merge);
    h = basin_dropout(h, c->dropout, inputs->seed);
    if (net->hidden_w) {
        h = basin_relu(basin_model_affine(h, net->hidden_w, net->hidden_b));
        h = basin_dropout(h, c->dropout, inputs->seed);
    }
    return basin_model_logits(h, net->head_w, net->head_b);
}
