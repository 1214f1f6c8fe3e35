/* Node anomaly detection: an embedding, T steps over one-hop neighbourhoods, the first and the last
 * activations side by side, a head with one logit per node (section 4 of the paper). Beyond it: a
 * logit per node and class, several blocks, several relations, dropout. */
#include <math.h>
#include <stdio.h>

#include "tasks/nodes/anomaly.h"

static int blocks_of(const basin_anomaly_config *c) { return c->blocks > 0 ? c->blocks : 1; }
static int relations_of(const basin_anomaly_config *c) {
    return c->relations > 0 ? c->relations : 1;
}

static bool check_config(const basin_anomaly_config *c, basin_graph *graph) {
    bool sized = blocks_of(c) <= BASIN_MAX_ANOMALY_BLOCKS && relations_of(c) <= BASIN_MAX_RELATIONS;
    if (sized && c->dropout >= 0 && c->dropout < 1) return true;
    return basin_graph_fail(
        graph, BASIN_BAD_VALUE,
        "anomaly: %d blocks, %d relations, dropout %g; expected at most %d, at most %d, "
        "0 to less than 1",
        blocks_of(c), relations_of(c), c->dropout, BASIN_MAX_ANOMALY_BLOCKS, BASIN_MAX_RELATIONS);
}

static void declare_embedding(basin_anomaly *m, basin_params *params, const char *prefix) {
    const basin_anomaly_config *c = &m->config;
    int64_t F = c->features, D = c->block.dim;
    basin_init zero = {BASIN_INIT_CONSTANT, 0};
    m->emb_w = basin_param_add(params, prefix, "emb_w", BASIN_SHAPE(F, D),
                               (basin_init){BASIN_INIT_LECUN, (double)F});
    m->emb_b = basin_param_add(params, prefix, "emb_b", BASIN_SHAPE(D), zero);
    if (c->position == BASIN_POSITION_LEARNED)
        m->pos = basin_param_add(params, prefix, "pos", BASIN_SHAPE(c->nodes, D),
                                 (basin_init){BASIN_INIT_NORMAL, 0.02});
}

static void declare_head(basin_anomaly *m, basin_params *params, const char *prefix) {
    const basin_anomaly_config *c = &m->config; /* W: of what the head reads */
    int last = c->merge == BASIN_MERGE_CONCAT ? relations_of(c) : 1;
    int64_t W = (last + !c->no_concat) * c->block.dim, U = c->hidden;
    basin_init zero = {BASIN_INIT_CONSTANT, 0};
    if (U > 0) {
        m->hidden_w = basin_param_add(params, prefix, "hidden_w", BASIN_SHAPE(W, U),
                                      (basin_init){BASIN_INIT_LECUN, (double)W});
        m->hidden_b = basin_param_add(params, prefix, "hidden_b", BASIN_SHAPE(U), zero);
    }
    int64_t width = U > 0 ? U : W;
    basin_model_head_add(&m->head_w, &m->head_b, params, prefix, width, m->config.outputs,
                         (basin_init){BASIN_INIT_LECUN, (double)width}, zero);
}

basin_status basin_anomaly_declare(basin_anomaly *model, basin_params *params,
                                   const basin_anomaly_config *config) {
    const char *prefix = config->prefix ? config->prefix : "";
    basin_block_graph edges = {.facts = config->facts};
    basin_block_config block = config->block;
    char name[64];
    block.graph = &edges;
    *model = (basin_anomaly){.config = *config};
    if (!check_config(config, params->graph)) return BASIN_BAD_VALUE;
    declare_embedding(model, params, prefix);
    basin_status status = basin_block_declare(&model->block, params, prefix, &block);
    for (int b = 1; b < blocks_of(config) && !status; b++) {
        snprintf(name, sizeof name, "%sblock%d.", prefix, b + 1);
        status = basin_block_declare(&model->later[b - 1], params, name, &block);
    }
    declare_head(model, params, prefix);
    return status ? status : basin_model_status(params->graph);
}

const basin_block *basin_anomaly_block(const basin_anomaly *model, int number) {
    return number ? &model->later[number - 1] : &model->block;
}

/* ---- forward ---- */

/* [N, F] by w [F, U], the rows as a list. */
static basin_expr listed_product(const basin_listed *x, basin_expr w) {
    if (!x->value || !w) return NULL;
    basin_shape shape = basin_expr_shape(w);
    basin_expr value = basin_reshape(x->value, BASIN_SHAPE(basin_expr_shape(x->value).dim[0], 1));
    basin_expr rows = basin_reshape(w, BASIN_SHAPE(shape.dim[0], 1, shape.dim[1]));
    basin_expr sum = basin_pair_sum(value, rows, &x->pattern); /* [N, 1, U] */
    return sum ? basin_reshape(sum, BASIN_SHAPE(basin_expr_shape(sum).dim[0], shape.dim[1])) : NULL;
}

basin_expr basin_anomaly_embed(const basin_anomaly *model, basin_expr features,
                               const basin_listed *listed, basin_expr place) {
    const basin_anomaly_config *c = &model->config;
    bool learned = c->position == BASIN_POSITION_LEARNED;
    int64_t rows = learned && !place ? c->nodes : -1;
    if (!listed &&
        !basin_model_shape_is(features, BASIN_SHAPE(rows, c->features), "anomaly: features"))
        return NULL;
    basin_expr x =
        listed ? listed_product(listed, model->emb_w) : basin_matmul(features, model->emb_w);
    x = basin_add(x, model->emb_b);
    if (learned) x = basin_add(x, place ? basin_take(model->pos, 0, place) : model->pos);
    return x;
}

/* The results of several relations, each [N, D], as one: [N, D], or [N, relations D]. */
static basin_expr model_merge(const basin_expr *result, int relations, basin_merge merge) {
    if (merge == BASIN_MERGE_CONCAT && relations > 1) return basin_concat(result, relations, 1);
    basin_expr max = result[0];
    for (int r = 1; r < relations; r++) max = basin_maximum(max, result[r]);
    return max;
}

basin_expr basin_anomaly_head(const basin_anomaly *model, basin_expr first, const basin_expr *last,
                              basin_expr seed) {
    const basin_anomaly_config *c = &model->config;
    basin_expr h = model_merge(last, relations_of(c), c->merge);
    if (!c->no_concat) h = basin_concat((basin_expr[]){first, h}, 2, 1);
    h = basin_dropout(h, c->dropout, seed);
    if (model->hidden_w) {
        h = basin_relu(basin_add(basin_matmul(h, model->hidden_w), model->hidden_b));
        h = basin_dropout(h, c->dropout, seed);
    }
    return basin_model_logits(h, model->head_w, model->head_b);
}

/* All blocks over one relation; the last activations. */
static basin_expr descend(const basin_anomaly *model, basin_expr x,
                          const basin_anomaly_inputs *inputs, int relation) {
    int blocks = blocks_of(&model->config);
    basin_block_graph_inputs edges = {.facts = inputs->facts ? inputs->facts[relation] : NULL};
    basin_block_bound bound = {.pattern = &inputs->neighbours[relation], .graph = &edges};
    for (int b = 0; b < blocks; b++) {
        bound.block = basin_anomaly_block(model, b);
        basin_energy energy = basin_block_energy(&bound);
        x = basin_descend(&energy, x, &model->config.descent, NULL);
        if (b + 1 < blocks) x = basin_dropout(x, model->config.dropout, inputs->seed);
    }
    return basin_block_norm(bound.block, x);
}

basin_expr basin_anomaly_logits(const basin_anomaly *model, const basin_anomaly_inputs *inputs) {
    basin_expr x = basin_anomaly_embed(model, inputs->features, inputs->listed, inputs->place);
    x = basin_dropout(x, model->config.dropout, inputs->seed);
    if (!x) return NULL;
    basin_expr first = basin_block_norm(&model->block, x), last[BASIN_MAX_RELATIONS];
    for (int r = 0; r < relations_of(&model->config); r++) last[r] = descend(model, x, inputs, r);
    return basin_anomaly_head(model, first, last, inputs->seed);
}

basin_expr basin_model_surprise(basin_expr logits, basin_expr label) {
    basin_expr agreed = basin_mul(label, logits);
    if (basin_expr_shape(logits).rank == 1) return basin_sub(basin_softplus(logits), agreed);
    return basin_sub(basin_logsumexp(logits, -1), basin_sum(agreed, -1, 1));
}

basin_expr basin_weighted_cross_entropy(basin_expr logits, basin_expr label, basin_expr weight) {
    if (!basin_model_shapes_agree(logits, label, "cross entropy")) return NULL;
    basin_expr ce = basin_model_surprise(logits, label);
    if (!basin_model_shapes_agree(ce, weight, "weights of a cross entropy")) return NULL;
    return basin_div(basin_sum_all(basin_mul(weight, ce)), basin_sum_all(weight));
}

/* ---- The detector as its published code has it, where that differs from the paper: scores are
 * divided by a learned temperature and cut to [-5, 5] (so that the update is not the gradient of an
 * energy), each step starts anew from the normalised token, h = LN(h) + update, the layer norm has
 * a gain per dimension, the last step has separate weights, dropout falls on the memories, and one
 * linear layer reads [h(T) || embedding], or with `no_concat` only h(T), as for sampled graphs.
 * Its two-class softmax is one logit here (the same functions; the optimiser sees a single weight
 * where it had two). Self loops are the caller's to add. ---- */

basin_status basin_published_declare(basin_published *model, basin_params *params,
                                     const basin_anomaly_config *config) {
    *model = (basin_published){.config = *config};
    const char *prefix = config->prefix ? config->prefix : "";
    const basin_block_config *c = &config->block;
    int64_t F = config->features, D = c->dim, width = config->no_concat ? D : 2 * D;
    basin_shape heads = BASIN_SHAPE(c->heads, c->head_dim, D);
    basin_init zero = {BASIN_INIT_CONSTANT, 0}, one = {BASIN_INIT_CONSTANT, 1};
    basin_init query = {BASIN_INIT_NORMAL, 0.01}, uniform = {BASIN_INIT_UNIFORM, 0};
    basin_init temperature = {BASIN_INIT_CONSTANT, sqrt((double)c->head_dim)};
    char name[64];
    uniform.scale = 1 / sqrt((double)F);
    model->emb_w = basin_param_add(params, prefix, "emb_w", BASIN_SHAPE(F, D), uniform);
    model->emb_b = basin_param_add(params, prefix, "emb_b", BASIN_SHAPE(D), zero);
    model->gain = basin_param_add(params, prefix, "gain", BASIN_SHAPE(D), one);
    model->bias = basin_param_add(params, prefix, "bias", BASIN_SHAPE(D), zero);
    uniform.scale = 1 / sqrt((double)D);
    for (int b = config->descent.steps > 1 ? 0 : 1; b < 2; b++) {
        snprintf(name, sizeof name, "%s%s.", prefix, b ? "last" : "shared");
        model->block[b].wk = basin_param_add(params, name, "wk", heads, query);
        model->block[b].wq = basin_param_add(params, name, "wq", heads, query);
        model->block[b].xi =
            basin_param_add(params, name, "xi", BASIN_SHAPE(D, c->memories), uniform);
        model->block[b].temperature =
            basin_param_add(params, name, "temperature", BASIN_SCALAR, temperature);
    }
    uniform.scale = 1 / sqrt((double)width);
    basin_model_head_add(&model->head_w, &model->head_b, params, prefix, width, config->outputs,
                         uniform, zero);
    return basin_model_status(params->graph);
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
    score = basin_maximum(basin_minimum(score, basin_scalar(graph, 5)), basin_scalar(graph, -5));
    basin_expr e = basin_exp(score);
    int64_t nodes = basin_expr_shape(g).dim[0];
    basin_expr ones = basin_full(graph, BASIN_SHAPE(nodes, c->heads, 1), 1);
    basin_expr total = basin_pair_sum(e, ones, pattern); /* [N, H, 1] */
    basin_expr w = basin_div(e, basin_offset(basin_pair_dot(total, ones, pattern), 1e-30));
    /* The same pairs by key: the roles of queries and keys change places. */
    basin_pattern by_key = {.row = pattern->column,
                            .key = pattern->query,
                            .column = pattern->row,
                            .query = pattern->key,
                            .pair = pattern->pair};
    basin_expr dq = basin_pair_sum(w, k, pattern);
    basin_expr reversed = basin_take(w, 0, pattern->pair);
    basin_expr dk = basin_pair_sum(reversed, q, &by_key);
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
    for (int r = 0; r < relations_of(c); r++) {
        basin_expr h = x;
        for (int t = 0; t < c->descent.steps; t++) {
            int b = t + 1 == c->descent.steps;
            basin_expr g = norm(model, h);
            h = basin_add(g, basin_add(attend(model, b, g, &inputs->neighbours[r]),
                                       recall(model, b, g, inputs->seed)));
        }
        merged = relations_of(c) > 1 ? basin_maximum(merged, h) : h;
    }
    basin_expr read = c->no_concat ? merged : basin_concat((basin_expr[]){merged, x}, 2, 1);
    return basin_model_logits(read, model->head_w, model->head_b);
}

/* ---- smoothing, as the descent of an energy ---- */

typedef struct smoothness {
    basin_expr own;  /* h [N, C] */
    basin_expr root; /* [N, 1] one over the root of the number of neighbours */
    const basin_pattern *pattern;
    const basin_smoothing *how;
} smoothness;

/* The sum of x [N, D] over each node's neighbours. */
static basin_expr neighbour_sum(basin_expr x, const basin_pattern *pattern) {
    if (!x) return NULL;
    basin_shape shape = basin_expr_shape(x);
    basin_expr one = basin_reshape(x, BASIN_SHAPE(shape.dim[0], 1, shape.dim[1]));
    int64_t pairs = basin_expr_shape(pattern->key).dim[0];
    basin_expr ones = basin_full(basin_expr_graph(x), BASIN_SHAPE(pairs, 1), 1);
    return basin_reshape(basin_pair_sum(ones, one, pattern), shape);
}

/* One over the root of the numbers of neighbours, each node being its own. */
static basin_expr roots(basin_expr h, const basin_pattern *pattern, bool loops) {
    basin_graph *graph = basin_expr_graph(h);
    basin_expr one = basin_full(graph, BASIN_SHAPE(basin_expr_shape(h).dim[0], 1), 1);
    basin_expr count = neighbour_sum(one, pattern);
    count = loops ? basin_maximum(count, one) : basin_add(count, one);
    return basin_power_scalar(count, -0.5);
}

/* S z */
static basin_expr spread(const smoothness *s, basin_expr z) {
    basin_expr sent = basin_mul(z, s->root);
    basin_expr heard = neighbour_sum(sent, s->pattern);
    if (!s->how->loops) heard = basin_add(heard, sent);
    return basin_mul(heard, s->root);
}

static basin_expr own(const void *context, basin_expr z) {
    const smoothness *s = context;
    return basin_scale(basin_sum_all(basin_square(basin_sub(z, s->own))), 0.5 * s->how->anchor);
}

static basin_expr neighbours(const void *context, basin_expr z) {
    const smoothness *s = context;
    basin_expr rough = basin_mul(z, basin_sub(z, spread(s, z)));
    return basin_scale(basin_sum_all(rough), 0.5 * (1 - s->how->anchor));
}

basin_expr basin_smooth(basin_expr h, const basin_pattern *pattern, const basin_smoothing *how) {
    if (!h || how->steps < 1) return h;
    smoothness s = {h, roots(h, pattern, how->loops), pattern, how};
    basin_energy energy = {BASIN_TERMS({"own", own, &s}, {"neighbours", neighbours, &s})};
    basin_descent_spec spec = {.steps = how->steps, .alpha = 1};
    return basin_descend(&energy, h, &spec, NULL);
}
