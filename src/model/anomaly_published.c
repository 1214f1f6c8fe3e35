/* The anomaly detector as its published code has it, where that differs from the paper: scores are
 * divided by a learned temperature and cut to [-5, 5] (so that the update is no energy's gradient),
 * each step starts anew from the normalised token, h = LN(h) + update, the layer norm has a gain
 * per dimension, the last step has weights of its own, dropout falls on the memories, and one
 * linear layer reads [h(T) || embedding], or with `no_concat` h(T) alone, as for sampled graphs.
 * Its two-class softmax is one logit here (the same functions; the optimiser sees a single weight
 * where it had two). Self loops are the caller's to add. */
#include <math.h>
#include <stdio.h>

#include "model/model.h"

static void declare_block(basin_published *m, int number, basin_params *params, const char *name) {
    const basin_block_config *c = &m->config.block;
    basin_shape heads = BASIN_SHAPE(c->heads, c->head_dim, c->dim);
    basin_init query = {BASIN_INIT_NORMAL, 0.01};
    basin_init memory = {BASIN_INIT_UNIFORM, 1 / sqrt((double)c->dim)};
    basin_init temperature = {BASIN_INIT_CONSTANT, sqrt((double)c->head_dim)};
    m->block[number].wk = basin_param_add(params, name, "wk", heads, query);
    m->block[number].wq = basin_param_add(params, name, "wq", heads, query);
    m->block[number].xi =
        basin_param_add(params, name, "xi", BASIN_SHAPE(c->dim, c->memories), memory);
    m->block[number].temperature =
        basin_param_add(params, name, "temperature", BASIN_SCALAR, temperature);
}

basin_status basin_published_declare(basin_published *model, basin_params *params,
                                     const basin_anomaly_config *config) {
    *model = (basin_published){.config = *config};
    const char *prefix = config->prefix ? config->prefix : "";
    int64_t F = config->features, D = config->block.dim;
    char name[64];
    basin_init zero = {BASIN_INIT_CONSTANT, 0}, one = {BASIN_INIT_CONSTANT, 1};
    model->emb_w = basin_param_add(params, prefix, "emb_w", BASIN_SHAPE(F, D),
                                   (basin_init){BASIN_INIT_UNIFORM, 1 / sqrt((double)F)});
    model->emb_b = basin_param_add(params, prefix, "emb_b", BASIN_SHAPE(D), zero);
    model->gain = basin_param_add(params, prefix, "gain", BASIN_SHAPE(D), one);
    model->bias = basin_param_add(params, prefix, "bias", BASIN_SHAPE(D), zero);
    for (int b = config->descent.steps > 1 ? 0 : 1; b < 2; b++) {
        snprintf(name, sizeof name, "%s%s.", prefix, b ? "last" : "shared");
        declare_block(model, b, params, name);
    }
    int64_t width = config->no_concat ? D : 2 * D;
    basin_model_head_add(&model->head_w, &model->head_b, params, prefix, width, config->outputs,
                         (basin_init){BASIN_INIT_UNIFORM, 1 / sqrt((double)width)}, zero);
    const basin_error *error = basin_graph_error(params->graph);
    return error ? error->status : BASIN_OK;
}

static basin_expr norm(const basin_published *m, basin_expr h) {
    return basin_model_norm(h, m->gain, m->bias, 1e-5);
}

/* Wq' sum over keys of w K, and Wk' sum over queries of w Q: w from scores cut to [-5, 5]. */
static basin_expr attend(const basin_published *m, int b, basin_expr g,
                         const basin_pattern *pattern) {
    const basin_block_config *c = &m->config.block;
    basin_graph *graph = basin_expr_graph(g);
    basin_expr q = basin_einsum("nd,hyd->nhy", g, m->block[b].wq);
    basin_expr k = basin_einsum("nd,hyd->nhy", g, m->block[b].wk);
    basin_expr score = basin_div(basin_pair_dot(q, k, pattern), m->block[b].temperature);
    score = basin_max(basin_min(score, basin_const(graph, 5)), basin_const(graph, -5));
    basin_expr e = basin_exp(score);
    int64_t nodes = basin_expr_shape(g).dim[0];
    basin_expr ones = basin_fill(graph, BASIN_SHAPE(nodes, c->heads, 1), 1);
    basin_expr total = basin_pair_sum(e, ones, pattern); /* [N, H, 1] */
    basin_expr w = basin_div(e, basin_offset(basin_pair_dot(total, ones, pattern), 1e-30));
    /* The same pairs by key: the roles of queries and keys change places. */
    basin_pattern by_key = {.row = pattern->column,
                            .key = pattern->query,
                            .column = pattern->row,
                            .query = pattern->key,
                            .pair = pattern->pair};
    basin_expr dq = basin_pair_sum(w, k, pattern);
    basin_expr turned = basin_gather(w, pattern->pair);
    basin_expr dk = basin_pair_sum(turned, q, &by_key);
    return basin_add(basin_einsum("nhy,hyd->nd", dq, m->block[b].wq),
                     basin_einsum("nhy,hyd->nd", dk, m->block[b].wk));
}

static basin_expr recall(const basin_published *m, int b, basin_expr g, basin_expr seed) {
    basin_expr h = basin_relu(basin_matmul(g, m->block[b].xi));
    h = basin_dropout(h, m->config.dropout, seed);
    return basin_matmul_t(h, false, m->block[b].xi, true);
}

basin_expr basin_published_logits(const basin_published *model,
                                  const basin_anomaly_inputs *inputs) {
    const basin_anomaly_config *c = &model->config;
    if (!basin_model_shape_is(inputs->features, BASIN_SHAPE(-1, c->features), "anomaly: features"))
        return NULL;
    basin_expr x = basin_add(basin_matmul(inputs->features, model->emb_w), model->emb_b);
    basin_expr merged = x;
    int relations = c->relations > 0 ? c->relations : 1;
    for (int r = 0; r < relations; r++) {
        basin_expr h = x;
        for (int t = 0; t < c->descent.steps; t++) {
            int b = t + 1 == c->descent.steps;
            basin_expr g = norm(model, h);
            h = basin_add(g, basin_add(attend(model, b, g, &inputs->neighbours[r]),
                                       recall(model, b, g, inputs->seed)));
        }
        merged = relations > 1 ? basin_max(merged, h) : h;
    }
    basin_expr read = c->no_concat ? merged : basin_concat((basin_expr[]){merged, x}, 2, 1);
    return basin_model_logits(read, model->head_w, model->head_b);
}
