/* Detectors: made, scored with, written to one safetensors file and read back. The file alone is
 * enough to score: weights of all members ("0.emb_w", ...), the scale of the features, and in its
 * metadata settings, relations, sizes and threshold. */
#include "task/anomaly/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

basin_status basin_detector_new(basin_anomaly_detector **detector,
                                const basin_anomaly_settings *settings,
                                const basin_network *network, basin_error *error) {
    basin_anomaly_detector *d = *detector = calloc(1, sizeof *d);
    if (d) d->member = calloc((size_t)settings->members + 1, sizeof *d->member);
    if (!d || !d->member) {
        free(d);
        *detector = NULL;
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for a detector");
    }
    d->settings = *settings;
    d->threshold = 0.5;
    if (network) {
        d->nodes = network->nodes;
        d->features = network->feature ? network->features : 0;
    }
    return BASIN_OK;
}

void basin_anomaly_free(basin_anomaly_detector *detector) {
    if (!detector) return;
    for (int64_t m = 0; m < detector->settings.members; m++)
        basin_bundle_free(detector->member[m].weights);
    for (int r = 0; r < detector->relations; r++) free(detector->relation[r]);
    free(detector->relation);
    free(detector->score);
    free(detector->member);
    basin_scaler_free(&detector->scale);
    free(detector);
}

static basin_status add_relation(basin_anomaly_detector *d, const char *name, basin_error *error) {
    if (!d->relation) d->relation = calloc(BASIN_ANOMALY_RELATIONS, sizeof *d->relation);
    char *copy = basin_string_copy(name);
    if (!d->relation || !copy) {
        free(copy);
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for a relation's name");
    }
    d->relation[d->relations++] = copy;
    return BASIN_OK;
}

basin_status basin_detector_name(basin_anomaly_detector *detector, const basin_node_inputs *inputs,
                                 basin_error *error) {
    basin_status status = BASIN_OK;
    for (int r = 0; r < inputs->shape.relations && !status; r++)
        status = add_relation(detector, inputs->network->relation[inputs->relation[r]].name, error);
    return status;
}

/* ---- scoring ---- */

basin_status basin_anomaly_mean(double *probability, const basin_anomaly_detector *detector,
                                basin_anomaly_scorer *scorer, int64_t nodes,
                                const basin_anomaly_work *work, basin_error *error) {
    basin_status status = BASIN_OK;
    double *one = basin_array_new((size_t)nodes, sizeof *one);
    if (!one) return basin_fail(error, BASIN_NO_MEMORY, "no memory for scores");
    for (int64_t i = 0; i < nodes; i++) probability[i] = 0;
    for (int64_t m = 0; m < detector->members && !status; m++) {
        basin_store *store = NULL;
        status = basin_store_new(&store, work->backend, error);
        if (!status) status = basin_states_write(store, detector->member[m].weights, error);
        if (!status) status = basin_anomaly_scorer_run(scorer, one, m, store, "", error);
        for (int64_t i = 0; i < nodes && !status; i++)
            probability[i] += one[i] / (double)detector->members;
        basin_store_free(store);
    }
    free(one);
    return status;
}

static basin_status check_network(const basin_anomaly_detector *d, const basin_network *network,
                                  basin_error *error) {
    int64_t features = network->feature ? network->features : 0;
    if (features != d->features)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: %lld features a node; the detector was trained on %lld",
                          network->path, (long long)features, (long long)d->features);
    if (basin_choice_is(d->settings.position, "learned") && network->nodes != d->nodes)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: %lld nodes; the detector has learned positions of %lld nodes and "
                          "can score no other (train with --position none)",
                          network->path, (long long)network->nodes, (long long)d->nodes);
    return BASIN_OK;
}

/* What the network leaves of the memory allowed. */
static size_t left(const basin_node_inputs *inputs, const basin_anomaly_work *work) {
    size_t limit = basin_anomaly_memory_limit(work), taken = basin_node_inputs_bytes(inputs);
    return limit > taken ? limit - taken : 0;
}

basin_status basin_anomaly_score(double *probability, const basin_anomaly_detector *detector,
                                 const basin_network *network, const basin_anomaly_work *work,
                                 basin_error *error) {
    basin_node_inputs inputs = {0};
    basin_anomaly_scorer *scorer = NULL;
    basin_status status = check_network(detector, network, error);
    if (!status) status = basin_node_inputs_open(&inputs, network, &detector->settings, error);
    if (!status) status = basin_node_inputs_scale(&inputs, &detector->scale, error);
    if (!status)
        status = basin_anomaly_scorer_new(&scorer, &inputs, left(&inputs, work), work, error);
    if (!status)
        status = basin_anomaly_mean(probability, detector, scorer, network->nodes, work, error);
    basin_anomaly_scorer_free(scorer);
    basin_node_inputs_close(&inputs);
    return status;
}

/* ---- files ---- */

static basin_status add_members(basin_bundle *bundle, const basin_anomaly_detector *d,
                                basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t m = 0; m < d->members; m++)
        for (size_t i = 0; i < basin_bundle_count(d->member[m].weights) && !status; i++) {
            const basin_tensor *tensor = basin_bundle_at(d->member[m].weights, i);
            char name[300];
            snprintf(name, sizeof name, "%lld.%s", (long long)m,
                     basin_bundle_name(d->member[m].weights, i));
            basin_tensor borrowed = basin_tensor_borrow(tensor->data, tensor->dtype, tensor->shape);
            status = basin_bundle_add(bundle, name, &borrowed, error);
        }
    return status;
}

static basin_status set_number(basin_bundle *bundle, const char *key, double value,
                               basin_error *error) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    return basin_bundle_meta_set(bundle, key, text, error);
}

static basin_status add_meta(basin_bundle *bundle, const basin_anomaly_detector *d,
                             basin_error *error) {
    char names[1024] = "";
    for (int r = 0; r < d->relations; r++) {
        size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", r ? "\n" : "", d->relation[r]);
    }
    char *config = basin_settings_print(&d->settings, basin_anomaly_task.table, false);
    if (!config) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a configuration");
    basin_status status = basin_bundle_meta_set(bundle, "basin.model", "anomaly", error);
    if (!status) status = basin_bundle_meta_set(bundle, "basin.config", config, error);
    if (!status) status = basin_bundle_meta_set(bundle, "relations", names, error);
    if (!status) status = set_number(bundle, "nodes", (double)d->nodes, error);
    if (!status) status = set_number(bundle, "features", (double)d->features, error);
    if (!status) status = set_number(bundle, "members", (double)d->members, error);
    if (!status) status = set_number(bundle, "threshold", d->threshold, error);
    free(config);
    return status;
}

basin_status basin_anomaly_write(const char *path, const basin_anomaly_detector *detector,
                                 basin_error *error) {
    basin_bundle *bundle;
    basin_status status = basin_bundle_new(&bundle, error);
    if (!status) status = add_meta(bundle, detector, error);
    if (!status) status = add_members(bundle, detector, error);
    if (!status) status = basin_scaler_store(bundle, "scale.", &detector->scale, error);
    if (!status) status = basin_bundle_write(path, bundle, error);
    basin_bundle_free(bundle);
    return status;
}

static basin_status get_number(double *value, const basin_bundle *bundle, const char *key,
                               double low, double high, basin_error *error) {
    const char *text = basin_bundle_meta(bundle, key);
    char *end = NULL;
    *value = text ? strtod(text, &end) : NAN;
    if (text && end != text && !*end && *value >= low && *value <= high) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s is '%s'; wanted a number from %g to %g",
                      basin_bundle_path(bundle), key, text ? text : "absent", low, high);
}

static basin_status read_relations(basin_anomaly_detector *d, const basin_bundle *bundle,
                                   basin_error *error) {
    const char *text = basin_bundle_meta(bundle, "relations");
    basin_status status = BASIN_OK;
    while (text && *text && !status && d->relations < BASIN_ANOMALY_RELATIONS) {
        char name[256];
        int length = (int)strcspn(text, "\n");
        snprintf(name, sizeof name, "%.*s", length, text);
        status = add_relation(d, name, error);
        text += length + (text[length] == '\n');
    }
    return status;
}

/* Tensors "M.NAME" go to member M. */
static basin_status read_members(basin_anomaly_detector *d, const basin_bundle *bundle,
                                 basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t m = 0; m < d->members && !status; m++)
        status = basin_bundle_new(&d->member[m].weights, error);
    for (size_t i = 0; i < basin_bundle_count(bundle) && !status; i++) {
        const char *name = basin_bundle_name(bundle, i);
        char *rest;
        long member = strtol(name, &rest, 10);
        if (rest == name || *rest != '.' || member < 0 || member >= d->members) continue;
        const basin_tensor *from = basin_bundle_at(bundle, i);
        basin_tensor copy;
        status = basin_tensor_new(&copy, BASIN_F32, from->shape, error);
        if (!status) status = basin_tensor_convert(&copy, from, error);
        if (!status) status = basin_bundle_add(d->member[member].weights, rest + 1, &copy, error);
        basin_tensor_free(&copy);
    }
    return status;
}

static basin_status read_numbers(basin_anomaly_detector *d, const basin_bundle *bundle,
                                 basin_error *error) {
    double nodes, features, members;
    basin_status status = get_number(&nodes, bundle, "nodes", 0, 1e15, error);
    if (!status) status = get_number(&features, bundle, "features", 0, 1e12, error);
    if (!status)
        status = get_number(&members, bundle, "members", 1, (double)d->settings.members, error);
    if (!status) status = get_number(&d->threshold, bundle, "threshold", -1e300, 1e300, error);
    if (status) return status;
    d->nodes = (int64_t)nodes;
    d->features = (int64_t)features;
    d->members = (int64_t)members;
    return BASIN_OK;
}

basin_status basin_anomaly_read(basin_anomaly_detector **detector, const char *path,
                                basin_error *error) {
    basin_bundle *bundle;
    basin_anomaly_settings settings = {0};
    *detector = NULL;
    basin_status status = basin_bundle_read(&bundle, path, error);
    if (status) return status;
    const char *kind = basin_bundle_meta(bundle, "basin.model");
    const char *config = basin_bundle_meta(bundle, "basin.config");
    if (!kind || strcmp(kind, "anomaly") || !config)
        status = basin_fail(error, BASIN_BAD_FILE, "%s: the model is '%s', wanted 'anomaly'", path,
                            kind ? kind : "absent");
    if (!status)
        status =
            basin_settings_parse(&settings, basin_anomaly_task.table, config, true, path, error);
    if (!status) status = basin_detector_new(detector, &settings, NULL, error);
    basin_anomaly_detector *d = *detector;
    if (!status) status = read_numbers(d, bundle, error);
    if (!status) status = read_relations(d, bundle, error);
    if (!status) status = read_members(d, bundle, error);
    if (!status) status = basin_scaler_load(&d->scale, bundle, "scale.", error);
    basin_bundle_free(bundle);
    if (status && d) {
        basin_anomaly_free(d);
        *detector = NULL;
    }
    return status;
}
