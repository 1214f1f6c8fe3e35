/* Graph models in memory: what their settings and data describe, and making one for a set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/graphs/graphs.h"

static basin_status no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a graph model");
}

/* ---- the model's configuration ---- */

static basin_adjacency adjacency_of(const char *name) {
    if (!strcmp(name, "bilinear")) return BASIN_ADJACENCY_BILINEAR;
    if (!strcmp(name, "edges")) return BASIN_ADJACENCY_EDGES;
    return strcmp(name, "none") ? BASIN_ADJACENCY_CONV : BASIN_ADJACENCY_NONE;
}

static int read_of(const basin_graphs_model *model) {
    const char *name = model->settings.readout;
    if (model->target == BASIN_NODE_CLASSES) return BASIN_READ_NODES;
    if (!strcmp(name, "auto"))
        name = model->target == BASIN_GRAPHS_VALUES ? "cls+sum" : "cls+mean+sized";
    int read = 0;
    if (strstr(name, "cls")) read |= BASIN_READ_CLS;
    if (strstr(name, "mean")) read |= BASIN_READ_MEAN;
    if (strstr(name, "sum")) read |= BASIN_READ_SUM;
    if (strstr(name, "sized")) read |= BASIN_READ_SIZED;
    return read;
}

basin_graphs_config basin_graphs_model_config(const basin_graphs_model *model, basin_expr seed) {
    const basin_graphs_settings *s = &model->settings;
    double root = 1 / sqrt((double)s->dim);
    basin_init query = {BASIN_INIT_NORMAL, s->query_deviation > 0 ? s->query_deviation : root};
    basin_init memory = {BASIN_INIT_NORMAL, s->memory_deviation > 0 ? s->memory_deviation : root};
    return (basin_graphs_config){
        .features = model->encoding.features,
        .edge_features = model->encoding.edge_features,
        .positions = s->eigenvectors + s->walks,
        .outputs = model->outputs,
        .blocks = (int)s->blocks,
        .block = {BASIN_BLOCK_OF(s), .mix = s->mix, .couplings = s->couplings,
                  .coupling_features = model->encoding.edge_features, .init_query = query,
                  .init_memory = memory},
        .descent = {BASIN_DESCENT_OF(s), .recompute = s->recompute, .seed = seed,
                    .noise = seed && !s->implicit ? s->noise : 0},
        .adjacency = adjacency_of(s->adjacency),
        .read = read_of(model),
        .hidden = s->hidden,
        .norm_head = s->norm_head,
        .drop = s->dropout,
        .reconstruct = s->reconstruct,
        .reconstruct_first = !s->reconstruct_all};
}

/* ---- making one ---- */

basin_status basin_graphs_model_start(basin_graphs_model *model, basin_error *error) {
    basin_graphs declared;
    basin_graphs_config config = basin_graphs_model_config(model, NULL);
    model->face = (basin_settings){.kind = &basin_graphs_task, .values = &model->settings};
    model->encoding.no_cls_self = !model->settings.cls_self;
    basin_status status = basin_graphs_settings_check(&model->settings, error);
    if (!status) status = basin_store_new(&model->store, model->backend, error);
    if (status) return status;
    basin_store_share_results(model->store); /* plans of all sizes run in turn */
    model->graph = basin_graph_new();
    if (!model->graph) return no_memory(error);
    basin_params_begin(&model->params, model->graph);
    basin_graphs_declare(&declared, &model->params, &config);
    const basin_error *found = basin_graph_error(model->graph);
    return found ? basin_fail(error, found->status, "%s", found->text) : BASIN_OK;
}

void basin_graphs_close(basin_graphs_model *model) {
    if (!model) return;
    if (model->one) basin_graphs_plans_free(model->one);
    free(model->one);
    free(model->class_value);
    free(model->target_mean);
    free(model->target_scale);
    basin_graphs_seen_free(model);
    basin_graphset_encoding_free(&model->encoding);
    if (model->graph) basin_params_free(&model->params);
    basin_graph_free(model->graph);
    basin_store_free(model->store);
    free(model);
}

static int64_t count_known(const basin_graphset *set, const int64_t *graph, int64_t count,
                           int64_t column) {
    int64_t known = 0;
    for (int64_t i = 0; i < count; i++)
        known += !isnan(set->target[graph[i] * set->targets + column]);
    return known;
}

/* Each value to mean 0 and deviation 1: they may be in units far apart. */
static void target_statistics(basin_graphs_model *model, const basin_graphset *set,
                              const int64_t *graph, int64_t count) {
    for (int64_t c = 0; c < set->targets; c++) {
        double sum = 0, squares = 0, n = (double)count_known(set, graph, count, c);
        for (int64_t i = 0; i < count; i++) {
            double y = (double)set->target[graph[i] * set->targets + c];
            if (!isnan(y)) sum += y, squares += y * y;
        }
        double variance = squares / n - sum / n * sum / n;
        model->target_mean[c] = sum / n;
        model->target_scale[c] = variance > 1e-12 * squares / n ? sqrt(variance) : 1;
    }
}

static basin_status set_targets(basin_graphs_model *model, const basin_graphset *set,
                                const int64_t *graph, int64_t count, basin_error *error) {
    for (int64_t c = 0; c < set->targets; c++)
        if (!count_known(set, graph, count, c))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: value %lld is known of none of the %lld graphs to train on; "
                              "wanted one at least",
                              set->name, (long long)c + 1, (long long)count);
    model->outputs = set->targets;
    model->target_mean = calloc((size_t)set->targets + 1, sizeof *model->target_mean);
    model->target_scale = calloc((size_t)set->targets + 1, sizeof *model->target_scale);
    if (!model->target_mean || !model->target_scale) return no_memory(error);
    for (int64_t c = 0; c < set->targets; c++) model->target_scale[c] = 1;
    if (model->settings.standardise) target_statistics(model, set, graph, count);
    return BASIN_OK;
}

static basin_status set_classes(basin_graphs_model *model, const basin_graphset *set,
                                basin_error *error) {
    int64_t outputs = model->settings.outputs;
    model->classes = set->classes;
    model->outputs = outputs > set->classes ? outputs : set->classes;
    model->class_value = basin_array_new((size_t)set->classes, sizeof *set->class_value);
    if (!model->class_value) return no_memory(error);
    memcpy(model->class_value, set->class_value, (size_t)set->classes * sizeof *set->class_value);
    return BASIN_OK;
}

static basin_status learn_encoding(basin_graphs_model *model, const basin_graphset *set,
                                   const int64_t *graph, int64_t count, basin_error *error) {
    const basin_graphs_settings *s = &model->settings;
    basin_encoding_spec spec = {s->raw, s->standardise, s->edge_sums, s->degrees};
    return basin_graphset_encoding_new(&model->encoding, set, graph, count, &spec, error);
}

basin_status basin_graphs_model_new(basin_graphs_model **model,
                                    const basin_graphs_settings *settings,
                                    const basin_graphset *set, const int64_t *graph, int64_t count,
                                    basin_backend *backend, basin_error *error) {
    basin_graphs_model *m = *model = calloc(1, sizeof *m);
    if (!m) return no_memory(error);
    m->settings = *settings;
    m->target = set->task;
    m->backend = backend;
    m->settings.epochs = basin_graphs_epochs(settings, set, graph, count);
    basin_status status = learn_encoding(m, set, graph, count, error);
    if (!status)
        status = set->task == BASIN_GRAPHS_VALUES ? set_targets(m, set, graph, count, error)
                                                  : set_classes(m, set, error);
    if (!status) status = basin_graphs_model_start(m, error);
    if (!status) return BASIN_OK;
    basin_graphs_close(m);
    *model = NULL;
    return status;
}

static bool has_class(const basin_graphs_model *model, int64_t value) {
    for (int64_t c = 0; c < model->classes; c++)
        if (model->class_value[c] == value) return true;
    return false;
}

basin_status basin_graphs_model_take_classes(basin_graphs_model *model, const basin_graphset *set,
                                             basin_error *error) {
    bool known = true;
    if (model->target == BASIN_GRAPHS_VALUES || set->task != model->target) return BASIN_OK;
    for (int64_t c = 0; c < set->classes && known; c++)
        known = has_class(model, set->class_value[c]);
    if (known) return BASIN_OK;
    if (set->classes > model->outputs)
        return basin_fail(error, BASIN_BAD_VALUE, "%s has %lld classes, the model %lld outputs",
                          set->name, (long long)set->classes, (long long)model->outputs);
    int64_t outputs = model->outputs;
    free(model->class_value);
    basin_status status = set_classes(model, set, error);
    model->outputs = outputs;
    return status;
}

/* ---- asking it ---- */

basin_graphs_info basin_graphs_about(const basin_graphs_model *model) {
    bool values = model->target == BASIN_GRAPHS_VALUES;
    basin_graphs_config config = basin_graphs_model_config(model, NULL);
    int64_t parts = 0;
    for (int flag = BASIN_READ_CLS; flag <= BASIN_READ_SIZED; flag *= 2)
        parts += (config.read & flag) > 0;
    return (basin_graphs_info){.settings = &model->face,
                               .target = model->target,
                               .columns = values ? model->outputs : model->classes,
                               .class_value = values ? NULL : model->class_value,
                               .parameters = basin_params_total(&model->params),
                               .width = config.block.dim * (parts ? parts : 1)};
}
