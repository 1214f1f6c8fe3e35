/* Node anomaly detection: linear embedding, T steps over one-hop neighbourhoods, the first and the
 * last activations side by side, a head with one logit a node (section 4 of the paper). */
#include "basin/model.h"
#include "model/shapes.h"

basin_status basin_anomaly_declare(basin_anomaly *model, basin_params *params,
                                   const basin_anomaly_config *config) {
    *model = (basin_anomaly){.config = *config};
    int64_t F = config->features, D = config->block.dim, U = config->hidden;
    basin_init zero = {BASIN_INIT_CONSTANT, 0};
    model->emb_w = basin_param_add(params, "", "emb_w", BASIN_SHAPE(F, D),
                                   (basin_init){BASIN_INIT_LECUN, (double)F});
    model->emb_b = basin_param_add(params, "", "emb_b", BASIN_SHAPE(D), zero);
    if (config->position == BASIN_POSITION_LEARNED)
        model->pos = basin_param_add(params, "", "pos", BASIN_SHAPE(config->nodes, D),
                                     (basin_init){BASIN_INIT_NORMAL, 0.02});
    basin_status status = basin_block_declare(&model->block, params, "", &config->block);
    if (U > 0) {
        model->hidden_w = basin_param_add(params, "", "hidden_w", BASIN_SHAPE(2 * D, U),
                                          (basin_init){BASIN_INIT_LECUN, 2.0 * (double)D});
        model->hidden_b = basin_param_add(params, "", "hidden_b", BASIN_SHAPE(U), zero);
    }
    int64_t width = U > 0 ? U : 2 * D;
    model->head_w = basin_param_add(params, "", "head_w", BASIN_SHAPE(width),
                                    (basin_init){BASIN_INIT_LECUN, (double)width});
    model->head_b = basin_param_add(params, "", "head_b", BASIN_SCALAR, zero);
    const basin_error *error = basin_graph_error(params->graph);
    return status ? status : error ? error->status : BASIN_OK;
}

static basin_expr head(const basin_anomaly *model, basin_expr h) {
    if (model->hidden_w)
        h = basin_relu(basin_add(basin_matmul(h, model->hidden_w), model->hidden_b));
    basin_shape shape = basin_expr_shape(h);
    basin_expr column = basin_reshape(model->head_w, BASIN_SHAPE(shape.dim[1], 1));
    basin_expr logits = basin_reshape(basin_matmul(h, column), BASIN_SHAPE(shape.dim[0]));
    return basin_add(logits, model->head_b);
}

basin_expr basin_anomaly_forward(const basin_anomaly *model, basin_expr features,
                                 const basin_pattern *neighbours) {
    const basin_anomaly_config *c = &model->config;
    if (!basin_model_shape_is(features, BASIN_SHAPE(model->pos ? c->nodes : -1, c->features),
                              "anomaly: features"))
        return NULL;
    basin_block_bound bound = {&model->block, neighbours, NULL};
    basin_energy energy = basin_block_energy(&bound);
    basin_expr x = basin_add(basin_matmul(features, model->emb_w), model->emb_b);
    if (model->pos) x = basin_add(x, model->pos);
    basin_expr first = basin_block_norm(&model->block, x);
    basin_expr end = basin_descend(&energy, x, &c->descent, NULL);
    basin_expr last = basin_block_norm(&model->block, end);
    basin_expr both = basin_concat((basin_expr[]){first, last}, 2, 1);
    return both ? head(model, both) : NULL;
}

basin_expr basin_weighted_cross_entropy(basin_expr logits, basin_expr label, basin_expr weight) {
    if (!basin_model_shapes_agree(logits, label, "cross entropy") ||
        !basin_model_shapes_agree(logits, weight, "weights of a cross entropy"))
        return NULL;
    /* softplus(z) - label z = -log p(label) */
    basin_expr ce = basin_sub(basin_softplus(logits), basin_mul(label, logits));
    return basin_div(basin_sum_all(basin_mul(weight, ce)), basin_sum_all(weight));
}
