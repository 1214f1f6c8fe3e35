/* Settings as expressions; see net.h. */
#include "tasks/nodes/net.h"
#include "base/info.h"
#include "base/states.h"
#include "base/training.h"

/* Beyond this number of nodes a step's results are computed again in reverse rather than kept. */
enum { RECOMPUTE_NODES = 100000 };

static bool has_positions(const basin_nodes_settings *r) {
    return basin_choice_is(r->position, "learned");
}

basin_anomaly_config basin_nodes_net_config(const basin_nodes_settings *r,
                                            const basin_nodes_shape *shape) {
    basin_anomaly_config config = {
        .nodes = shape->positions,
        .features = shape->columns,
        .block = {BASIN_BLOCK_OF(r), .init_query = {BASIN_INIT_NORMAL, r->query_deviation}},
        .descent = {BASIN_DESCENT_OF(r),
                    .recompute = r->recompute ||
                                 (shape->nodes > RECOMPUTE_NODES && r->steps * r->blocks > 1)},
        .position = has_positions(r) ? BASIN_POSITION_LEARNED : BASIN_POSITION_NONE,
        .hidden = r->hidden,
        .blocks = (int)r->blocks,
        .relations = shape->relations,
        .merge = basin_choice_is(r->relations, "concat") ? BASIN_MERGE_CONCAT : BASIN_MERGE_MAX,
        .no_concat = !r->concat,
        .dropout = r->dropout,
        .outputs = r->classes,
    };
    config.facts = basin_nodes_descends(r) && r->attention ? shape->facts : 0;
    return config;
}

static basin_shape wide(int64_t nodes, int64_t width) {
    return width > 1 ? BASIN_SHAPE(nodes, width) : BASIN_SHAPE(nodes);
}

/* Features whole, or as a list of those that are not 0. */
static void declare_features(basin_nodes_net *net, const basin_nodes_shape *shape) {
    basin_graph *graph = net->graph;
    if (shape->listed) {
        net->listed.pattern =
            basin_pairs_declare(graph, "listed", shape->nodes, shape->columns, shape->listed);
        net->features = basin_input(graph, "listed_value", BASIN_SHAPE(shape->listed));
        net->listed.value = net->features;
        return;
    }
    net->features = basin_input(graph, "features", BASIN_SHAPE(shape->nodes, shape->columns));
    net->seen = net->features;
}

static void declare_inputs(basin_nodes_net *net, const basin_nodes_settings *r,
                           const basin_nodes_shape *shape, bool training) {
    basin_graph *graph = net->graph;
    char name[32];
    declare_features(net, shape);
    if (has_positions(r) && shape->placed)
        net->place = basin_index(graph, "place", BASIN_SHAPE(shape->nodes));
    for (int i = 0; i < shape->relations && basin_nodes_on_graph(r); i++) {
        snprintf(name, sizeof name, "pairs%d", i);
        net->pattern[i] = basin_pairs_declare(graph, name, shape->nodes, shape->nodes + shape->halo,
                                              shape->pairs[i]);
        net->pattern[i].halo = shape->halo;
        snprintf(name, sizeof name, "facts%d", i);
        if (basin_nodes_net_config(r, shape).facts)
            net->facts[i] = basin_input(graph, name, BASIN_SHAPE(shape->pairs[i], shape->facts));
    }
    if (!training) return;
    net->label = basin_input(graph, "label", wide(shape->nodes, basin_nodes_width(r)));
    net->weight = basin_input(graph, "weight", BASIN_SHAPE(shape->nodes));
    if (r->dropout > 0 || r->input_dropout > 0)
        net->seed = basin_index(graph, "seed", BASIN_SHAPE(2));
    if (r->input_dropout > 0) {
        basin_expr *x = net->listed.value ? &net->listed.value : &net->seen;
        *x = basin_dropout(*x, r->input_dropout, net->seed);
    }
}

static basin_expr dense(basin_params *params, basin_expr x, const char *w, const char *b,
                        int64_t units) {
    int64_t in = basin_expr_shape(x).dim[1];
    basin_init init = {units > 1 ? BASIN_INIT_LECUN : BASIN_INIT_CONSTANT,
                       units > 1 ? 0.5 * (double)in : 0};
    basin_expr weight = basin_param_add(params, "", w, BASIN_SHAPE(in, units), init);
    basin_expr bias =
        basin_param_add(params, "", b, BASIN_SHAPE(units), (basin_init){BASIN_INIT_CONSTANT, 0});
    return basin_add(basin_matmul(x, weight), bias);
}

/* Logits without a graph: linear, or an MLP with two hidden layers. */
static basin_expr plain_logits(basin_nodes_net *net, const basin_nodes_settings *r) {
    basin_expr h = net->seen;
    if (basin_choice_is(r->form, "mlp")) {
        h = basin_relu(dense(&net->params, h, "w1", "b1", r->hidden));
        h = basin_dropout(h, r->dropout, net->seed);
        h = basin_relu(dense(&net->params, h, "w2", "b2", r->hidden));
        h = basin_dropout(h, r->dropout, net->seed);
    }
    h = dense(&net->params, h, "w", "b", r->classes ? r->classes : 1);
    return h ? basin_reshape(h, wide(basin_expr_shape(h).dim[0], r->classes)) : NULL;
}

static basin_expr graph_logits(basin_nodes_net *net, const basin_nodes_settings *r,
                               const basin_nodes_shape *shape) {
    basin_anomaly_config config = basin_nodes_net_config(r, shape);
    basin_anomaly_inputs inputs = {.features = net->seen,
                                   .neighbours = net->pattern,
                                   .facts = net->facts[0] ? net->facts : NULL,
                                   .place = net->place,
                                   .seed = net->seed,
                                   .listed = net->listed.value ? &net->listed : NULL};
    if (basin_choice_is(r->form, "published"))
        return basin_published_declare(&net->published, &net->params, &config)
                   ? NULL
                   : basin_published_logits(&net->published, &inputs);
    return basin_anomaly_declare(&net->energy, &net->params, &config)
               ? NULL
               : basin_anomaly_logits(&net->energy, &inputs);
}

/* Log-odds of one class, [N]: its logit less the log-sum-exp of the others. */
static basin_expr odds_of(basin_expr logits, int64_t number) {
    if (!logits) return NULL;
    basin_shape shape = basin_expr_shape(logits); /* [N, C] */
    int64_t above = shape.dim[1] - number - 1;
    basin_expr own = basin_reshape(basin_slice(logits, 1, number, 1), BASIN_SHAPE(shape.dim[0]));
    basin_expr rest[2];
    int parts = 0;
    if (number) rest[parts++] = basin_slice(logits, 1, 0, number);
    if (above) rest[parts++] = basin_slice(logits, 1, number + 1, above);
    return basin_sub(own, basin_logsumexp(basin_concat(rest, parts, 1), -1));
}

static void declare_outputs(basin_nodes_net *net, const basin_nodes_settings *r,
                            const basin_nodes_shape *shape) {
    net->logits = basin_nodes_plain(r) ? plain_logits(net, r) : graph_logits(net, r, shape);
    basin_smoothing how = {(int)r->smoothing, r->anchor, basin_choice_is(r->self_loops, "add")};
    if (r->smoothing > 0) net->logits = basin_smooth(net->logits, &net->pattern[0], &how);
    if (r->focus) net->logits = odds_of(net->logits, r->focus - 1);
    bool several = basin_nodes_width(r) > 1;
    net->probability = several ? basin_softmax(net->logits, -1) : basin_sigmoid(net->logits);
}

/* Matrices only: gains, biases and temperatures are left alone. */
static void add_penalty(basin_nodes_net *net, double weight) {
    for (size_t i = 0; i < net->params.count; i++) {
        basin_expr w = net->params.param[i].state;
        if (basin_expr_shape(w).rank < 2) continue;
        net->loss = basin_add(net->loss, basin_scale(basin_sum_all(basin_square(w)), weight / 2));
    }
}

basin_status basin_nodes_net_new(basin_nodes_net *net, const basin_nodes_settings *settings,
                                 const basin_nodes_shape *shape, bool training,
                                 basin_error *error) {
    *net = (basin_nodes_net){.graph = basin_graph_new()};
    if (!net->graph) return basin_fail_memory(error, "a model");
    basin_params_begin(&net->params, net->graph);
    declare_inputs(net, settings, shape, training);
    declare_outputs(net, settings, shape);
    if (training) /* of a part: its share of the loss over all of them */
        net->loss = shape->parts
                        ? basin_sum_all(
                              basin_mul(net->weight, basin_model_surprise(net->logits, net->label)))
                        : basin_weighted_cross_entropy(net->logits, net->label, net->weight);
    double parts = shape->parts ? (double)shape->parts : 1; /* which make up one penalty */
    if (training && settings->penalty > 0) add_penalty(net, settings->penalty / parts);
    BASIN_TRY_OR(basin_graph_check(net->graph, error), basin_nodes_net_free(net));
    return BASIN_OK;
}

void basin_nodes_net_free(basin_nodes_net *net) {
    basin_params_free(&net->params);
    basin_graph_free(net->graph);
    *net = (basin_nodes_net){0};
}

/* ---- writing ---- */

/* Rows of numbers into an input that may have more of them; the rest becomes zero. */
static basin_status write_rows(basin_plan *plan, basin_expr input, const float *data, int64_t rows,
                               basin_error *error) {
    if (!input || !data) return BASIN_OK;
    basin_shape shape = basin_expr_shape(input);
    basin_tensor whole = basin_tensor_view(data, BASIN_F32, shape);
    if (rows == shape.dim[0]) return basin_plan_write(plan, input, &whole, error);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor padded = {0};
    BASIN_TRY(basin_tensor_new(&padded, BASIN_F32, shape, error));
    int64_t width = shape.rank > 1 ? shape.dim[1] : 1;
    memcpy(padded.data, data, (size_t)(rows * width) * sizeof *data);
    return basin_plan_write(plan, input, &padded, error);
}

/* The list of a table's cells that are not 0, with their values. */
static basin_status write_listed(const basin_nodes_net *net, basin_plan *plan,
                                 const basin_nodes_net_data *data, basin_error *error) {
    int64_t columns = basin_expr_shape(net->listed.pattern.column).dim[0] - 1;
    int64_t max = basin_expr_shape(net->features).dim[0], count = 0;
    BASIN_AT_EXIT(basin_pairs_free) basin_pairs pairs = {0};
    BASIN_SCRATCH_RAW(int32_t, cell, max * 2, "a list of features", error);
    BASIN_SCRATCH(float, value, max, "a list of features", error);
    for (int64_t i = 0; i < data->nodes * columns; i++) {
        if (data->table[i] == 0) continue;
        if (count == max)
            return basin_fail(error, BASIN_BAD_SHAPE, "more than %lld features that are not 0",
                              (long long)max);
        cell[2 * count] = (int32_t)(i / columns), cell[2 * count + 1] = (int32_t)(i % columns);
        value[count++] = data->table[i];
    }
    BASIN_TRY(basin_pairs_new(&pairs, data->nodes, columns, cell, count, 0, error));
    BASIN_TRY(basin_pairs_write(plan, &net->listed.pattern, &pairs, error));
    return write_rows(plan, net->features, value, max, error);
}

/* Padding has no position. */
static basin_status write_places(basin_plan *plan, basin_expr input, const int32_t *place,
                                 int64_t rows, basin_error *error) {
    if (!input || !place) return BASIN_OK;
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor padded = {0};
    BASIN_TRY(basin_tensor_new(&padded, BASIN_I32, basin_expr_shape(input), error));
    int32_t *to = padded.data;
    for (int64_t i = 0; i < padded.shape.dim[0]; i++) to[i] = i < rows ? place[i] : -1;
    return basin_plan_write(plan, input, &padded, error);
}

static basin_status write_facts(const basin_nodes_net *net, basin_plan *plan,
                                const basin_nodes_net_data *data, int r, basin_error *error) {
    const basin_pairs *pairs = &data->pairs[r];
    BASIN_FREE_AT_EXIT float *facts = NULL;
    if (!net->facts[r]) return BASIN_OK;
    BASIN_TRY(basin_edge_facts(&facts, data->inputs, data->network, r, pairs, error));
    return write_rows(plan, net->facts[r], facts, pairs->pairs, error);
}

basin_status basin_nodes_net_write(const basin_nodes_net *net, basin_plan *plan,
                                   const basin_nodes_net_data *data, basin_error *error) {
    int64_t n = data->nodes;
    BASIN_TRY(net->listed.value ? write_listed(net, plan, data, error)
                                : write_rows(plan, net->features, data->table, n, error));
    BASIN_TRY(write_places(plan, net->place, data->place, n, error));
    for (int r = 0; r < BASIN_MAX_RELATIONS && net->pattern[r].row; r++) {
        BASIN_TRY(basin_pairs_write(plan, &net->pattern[r], &data->pairs[r], error));
        BASIN_TRY(write_facts(net, plan, data, r, error));
    }
    BASIN_TRY(write_rows(plan, net->label, data->label, n, error));
    return write_rows(plan, net->weight, data->weight, n, error);
}

basin_status basin_nodes_net_write_seed(const basin_nodes_net *net, basin_plan *plan, uint64_t seed,
                                        basin_error *error) {
    int32_t word[2] = {(int32_t)(uint32_t)seed, (int32_t)(uint32_t)(seed >> 32)};
    return basin_values_write(plan, net->seed, word, BASIN_I32, error);
}

/* ---- memory ---- */

basin_optimizer_config basin_nodes_net_adamw(const basin_nodes_settings *r) {
    return (basin_optimizer_config){.beta1 = 0.9,
                                    .beta2 = r->beta2,
                                    .epsilon = 1e-8,
                                    .weight_decay = r->decay,
                                    .clip = r->clip};
}

size_t basin_plan_work_bytes(const basin_plan *plan) {
    basin_plan_stats stats = basin_plan_stats_of(plan);
    return stats.arena_bytes + stats.input_bytes;
}

static void free_plan(basin_plan **plan) { basin_plan_free(*plan); }
static void free_store(basin_store **store) { basin_store_free(*store); }

static basin_status small_memory(size_t *bytes, const basin_nodes_settings *settings,
                                 const basin_nodes_shape *shape, bool training, basin_store *store,
                                 basin_error *error) {
    BASIN_AT_EXIT(basin_nodes_net_free) basin_nodes_net net = {0};
    BASIN_AT_EXIT(basin_trainer_free_at) basin_trainer *trainer = NULL;
    BASIN_AT_EXIT(free_plan) basin_plan *plan = NULL;
    BASIN_TRY(basin_nodes_net_new(&net, settings, shape, training, error));
    basin_trainer_spec spec = {.optimizer = basin_nodes_net_adamw(settings)};
    basin_plan_spec scoring = {.output = &net.probability, .outputs = 1};
    BASIN_TRY(training ? basin_trainer_new(&trainer, store, &net.params, net.loss, &spec, error)
                       : basin_plan_new(&plan, store, &scoring, error));
    *bytes = basin_plan_work_bytes(training ? basin_trainer_plan(trainer) : plan);
    return BASIN_OK;
}

size_t basin_nodes_position_bytes(const basin_nodes_settings *settings,
                                  const basin_nodes_shape *shape, bool training) {
    if (!has_positions(settings)) return 0;
    size_t row = (size_t)settings->dim * sizeof(float);
    return (size_t)shape->positions * row * (training ? 3 : 1);
}

basin_status basin_nodes_net_memory(size_t *bytes, const basin_nodes_settings *settings,
                                    const basin_nodes_shape *shape, bool training,
                                    basin_backend *backend, basin_error *error) {
    const int64_t part = shape->nodes > 20000 ? shape->nodes / 10000 : 1;
    basin_nodes_shape small = *shape;
    BASIN_AT_EXIT(free_store) basin_store *store = NULL;
    small.nodes = small.positions = shape->nodes / part + 1;
    small.listed = shape->listed ? shape->listed / part + 1 : 0;
    small.halo = shape->halo ? shape->halo / part + 1 : 0;
    int64_t pairs = 0;
    for (int r = 0; r < shape->relations; r++)
        small.pairs[r] = shape->pairs[r] / part + 1, pairs += shape->pairs[r];
    BASIN_TRY(basin_store_new(&store, backend, error));
    BASIN_TRY(small_memory(bytes, settings, &small, training, store, error));
    /* The list that is written, besides the plan's own copy of it. */
    *bytes = *bytes * (size_t)part + (size_t)pairs * 3 * sizeof(int32_t);
    *bytes += basin_nodes_position_bytes(settings, shape, training);
    return BASIN_OK;
}
