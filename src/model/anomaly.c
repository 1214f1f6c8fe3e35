/* Node anomaly detection: an embedding, T steps over one-hop neighbourhoods, the first and the last
 * activations side by side, a head with one logit per node (section 4 of the paper). Beyond it:
 * a logit per node and class, several blocks, several relations, nodes whose energy weighs more,
 * dropout. */
#include <stdio.h>

#include "model/model.h"

static int blocks_of(const basin_anomaly_config *c) { return c->blocks > 0 ? c->blocks : 1; }
static int relations_of(const basin_anomaly_config *c) {
    return c->relations > 0 ? c->relations : 1;
}

/* The width of what the head reads. */
static int64_t head_width(const basin_anomaly_config *c) {
    int last = c->merge == BASIN_MERGE_CONCAT ? relations_of(c) : 1;
    return (last + !c->no_concat) * c->block.dim;
}

static bool check_config(const basin_anomaly_config *c, basin_graph *graph) {
    if (blocks_of(c) <= BASIN_ANOMALY_BLOCKS && relations_of(c) <= BASIN_ANOMALY_RELATIONS &&
        c->dropout >= 0 && c->dropout < 1)
        return true;
    basin_graph_fail(graph, BASIN_BAD_VALUE,
                     "anomaly: %d blocks, %d relations, dropout %g; wanted at most %d, at most %d, "
                     "0 to less than 1",
                     blocks_of(c), relations_of(c), c->dropout, BASIN_ANOMALY_BLOCKS,
                     BASIN_ANOMALY_RELATIONS);
    return false;
}

static void declare_embedding(basin_anomaly *m, basin_params *params, const char *prefix) {
    const basin_anomaly_config *c = &m->config;
    int64_t F = c->features, D = c->block.dim, U = c->embedding;
    basin_init zero = {BASIN_INIT_CONSTANT, 0};
    if (U > 0) {
        m->input_w = basin_param_add(params, prefix, "input_w", BASIN_SHAPE(F, U),
                                     (basin_init){BASIN_INIT_LECUN, 0.5 * (double)F});
        m->input_b = basin_param_add(params, prefix, "input_b", BASIN_SHAPE(U), zero);
    }
    int64_t in = U > 0 ? U : F;
    m->emb_w = basin_param_add(params, prefix, "emb_w", BASIN_SHAPE(in, D),
                               (basin_init){BASIN_INIT_LECUN, (double)in});
    m->emb_b = basin_param_add(params, prefix, "emb_b", BASIN_SHAPE(D), zero);
    if (c->position == BASIN_POSITION_LEARNED)
        m->pos = basin_param_add(params, prefix, "pos", BASIN_SHAPE(c->nodes, D),
                                 (basin_init){BASIN_INIT_NORMAL, 0.02});
    if (c->position == BASIN_POSITION_LAPLACIAN)
        m->pos = basin_param_add(params, prefix, "pos", BASIN_SHAPE(c->eigenvectors, D),
                                 (basin_init){BASIN_INIT_LECUN, (double)c->eigenvectors});
}

static void declare_head(basin_anomaly *m, basin_params *params, const char *prefix) {
    int64_t W = head_width(&m->config), U = m->config.hidden;
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
    char name[64];
    *model = (basin_anomaly){.config = *config};
    if (!check_config(config, params->graph)) return BASIN_BAD_VALUE;
    declare_embedding(model, params, prefix);
    basin_status status = basin_block_declare(&model->block, params, prefix, &config->block);
    for (int b = 1; b < blocks_of(config) && !status; b++) {
        snprintf(name, sizeof name, "%sblock%d.", prefix, b + 1);
        status = basin_block_declare(&model->later[b - 1], params, name, &config->block);
    }
    declare_head(model, params, prefix);
    const basin_error *error = basin_graph_error(params->graph);
    return status ? status : error ? error->status : BASIN_OK;
}

const basin_block *basin_anomaly_block(const basin_anomaly *model, int number) {
    return number ? &model->later[number - 1] : &model->block;
}

/* ---- the energy, with weights of the nodes ---- */

static basin_expr activation(const void *context, basin_expr x) {
    return basin_block_norm(((const basin_anomaly_bound *)context)->block, x);
}

/* -sum over heads and queries C of weight[C] / beta log sum over keys of exp(beta K . Q + bias) */
static basin_expr attention(const void *context, basin_expr g) {
    const basin_anomaly_bound *bound = context;
    const basin_block *b = bound->block;
    basin_block_bound plain = {.block = b, .pattern = bound->pattern, .facts = bound->facts};
    basin_expr lse = basin_block_lse(&plain, g);
    if (!lse) return NULL;
    basin_expr each = basin_div(lse, b->beta);
    if (bound->weight)
        each = basin_mul(basin_reshape(bound->weight, BASIN_SHAPE(basin_expr_shape(g).dim[0], 1)),
                         each);
    return basin_neg(basin_sum_all(each));
}

static basin_expr hopfield(const void *context, basin_expr g) {
    const basin_block *b = ((const basin_anomaly_bound *)context)->block;
    return basin_energy_hopfield(g, b->xi, b->config.hopfield, b->config.power);
}

basin_energy basin_anomaly_energy(const basin_anomaly_bound *bound) {
    const basin_block_config *c = &bound->block->config;
    static const basin_term term[] = {{"attention", attention, NULL}, {"hopfield", hopfield, NULL}};
    return (basin_energy){.term = term + c->no_attention,
                          .terms = !c->no_attention + !c->no_hopfield,
                          .activation = activation,
                          .context = bound};
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
                               const basin_listed *listed, basin_expr where) {
    const basin_anomaly_config *c = &model->config;
    bool learned = c->position == BASIN_POSITION_LEARNED;
    int64_t rows = learned && !where ? c->nodes : -1;
    basin_expr w = model->input_w ? model->input_w : model->emb_w;
    if (!listed &&
        !basin_model_shape_is(features, BASIN_SHAPE(rows, c->features), "anomaly: features"))
        return NULL;
    basin_expr x = listed ? listed_product(listed, w) : basin_matmul(features, w);
    if (model->input_w) x = basin_matmul(basin_relu(basin_add(x, model->input_b)), model->emb_w);
    x = basin_add(x, model->emb_b);
    if (learned) x = basin_add(x, where ? basin_gather(model->pos, where) : model->pos);
    if (c->position == BASIN_POSITION_LAPLACIAN) x = basin_add(x, basin_matmul(where, model->pos));
    return x;
}

basin_expr basin_anomaly_head(const basin_anomaly *model, basin_expr first, const basin_expr *last,
                              basin_expr seed) {
    const basin_anomaly_config *c = &model->config;
    basin_expr h = basin_model_merge(last, relations_of(c), c->merge);
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
    basin_anomaly_bound bound = {.pattern = &inputs->neighbours[relation],
                                 .weight = inputs->weight ? inputs->weight[relation] : NULL,
                                 .facts = inputs->facts ? inputs->facts[relation] : NULL};
    for (int b = 0; b < blocks; b++) {
        bound.block = basin_anomaly_block(model, b);
        basin_energy energy = basin_anomaly_energy(&bound);
        x = basin_descend(&energy, x, &model->config.descent, NULL);
        if (b + 1 < blocks) x = basin_dropout(x, model->config.dropout, inputs->seed);
    }
    return basin_block_norm(bound.block, x);
}

basin_expr basin_anomaly_logits(const basin_anomaly *model, const basin_anomaly_inputs *inputs) {
    bool learned = model->config.position == BASIN_POSITION_LEARNED;
    basin_expr x = basin_anomaly_embed(model, inputs->features, inputs->listed,
                                       learned ? inputs->place : inputs->eigenvectors);
    x = basin_dropout(x, model->config.dropout, inputs->seed);
    if (!x) return NULL;
    basin_expr first = basin_block_norm(&model->block, x), last[BASIN_ANOMALY_RELATIONS];
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
