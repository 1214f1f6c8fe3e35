/* Which classes there are and what they are called; labels and weights for training. See classes.h.
 */
#include "task/nodes/classes/classes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "io/file.h"
#include "io/json.h"
#include "io/json_writer.h"

enum { MOST_CLASSES = 10000, MANY = 20, FEW_EACH = 3 };

bool basin_classes_several(const basin_task_settings *task) { return task != &basin_anomaly_task; }

static const char *name_at(const basin_names *names, int64_t i) {
    return names->text + names->at[i];
}

/* ---- by name ---- */

static int32_t find(const basin_names *names, const char *name) {
    for (int64_t i = 0; i < names->count; i++)
        if (!strcmp(name_at(names, i), name)) return (int32_t)i;
    return -1;
}

/* By label, then by node: there are fewer labels than nodes. */
basin_status basin_classes_of(int32_t *class_of, const basin_nodes_model *model,
                              const basin_network *network, basin_error *error) {
    int32_t most = basin_network_greatest_label(network);
    int32_t *number = basin_array_new((size_t)most + 2, sizeof *number);
    if (!number) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for classes");
    for (int32_t label = 0; label <= most; label++) {
        char text[BASIN_NODE_TEXT];
        number[label] = find(&model->class_name, basin_network_class(network, label, text));
    }
    for (int64_t i = 0; i < network->nodes; i++) {
        int32_t label = network->label ? network->label[i] : -1;
        class_of[i] = label < 0 ? -1 : number[label];
    }
    free(number);
    return BASIN_OK;
}

/* ---- training ---- */

/* Names of the labels that training nodes have, ascending. */
static basin_status name_classes(basin_nodes_fitting *f, const int64_t *count, int32_t most,
                                 basin_error *error) {
    basin_names_builder names = {0};
    basin_status status = BASIN_OK;
    for (int32_t label = 0; label <= most && !status; label++) {
        char text[BASIN_NODE_TEXT];
        const char *name = basin_network_class(f->network, label, text);
        if (count[label]) status = basin_names_add(&names, name, strlen(name), error);
    }
    f->model->class_name = names.names;
    f->settings.classes = f->model->settings.classes = names.names.count;
    if (status || (names.names.count > 1 && names.names.count <= MOST_CLASSES)) return status;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: the training nodes have %lld class%s; wanted 2 to %d", f->network->path,
                      (long long)names.names.count, names.names.count == 1 ? "" : "es",
                      MOST_CLASSES);
}

/* Whether all names are numbers that look measured: parts of one, or far more room than classes. */
static bool look_measured(const basin_names *names) {
    bool measured = false;
    for (int64_t i = 0; i < names->count; i++) {
        const char *text = name_at(names, i);
        char *end;
        double value = basin_real_read(text, &end);
        if (end == text || *end) return false;
        measured = measured || value != floor(value) || fabs(value) > 2 * (double)names->count;
    }
    return measured;
}

/* A column of amounts, or of ids, is easily taken for one of classes. */
static void note_many(const basin_nodes_fitting *f) {
    const basin_names *names = &f->model->class_name;
    if (names->count <= MANY) return;
    if (look_measured(names))
        basin_watch_note(
            f->work.watch,
            "%s: the label has %lld classes, all of them numbers ('%s' to '%s'): is it "
            "a quantity? Classes are told apart, numbers are not estimated",
            f->network->path, (long long)names->count, name_at(names, 0),
            name_at(names, names->count - 1));
    else if (f->train_count < FEW_EACH * names->count)
        basin_watch_note(f->work.watch,
                         "%s: the label has %lld classes for %lld training nodes ('%s', '%s', ..): "
                         "is it an id?",
                         f->network->path, (long long)names->count, (long long)f->train_count,
                         name_at(names, 0), name_at(names, 1));
}

/* Nodes that validate or test, and whose class none trains on, can only be mistakes. */
static void note_strangers(const basin_nodes_fitting *f) {
    int64_t strangers = 0;
    for (int64_t i = 0; i < f->network->nodes; i++)
        strangers += f->part[i] != BASIN_PART_NONE && f->class_of[i] < 0;
    if (strangers)
        basin_watch_note(f->work.watch,
                         "%s: %lld nodes to validate or test on have a class that no training node "
                         "has: they count as mistakes",
                         f->network->path, (long long)strangers);
}

basin_status basin_classes_take(basin_nodes_fitting *f, basin_error *error) {
    int32_t most = basin_network_greatest_label(f->network);
    int64_t *count = calloc((size_t)most + 2, sizeof *count);
    f->class_of = basin_array_new((size_t)f->network->nodes, sizeof *f->class_of);
    basin_status status = count && f->class_of ? BASIN_OK : BASIN_NO_MEMORY;
    if (status) basin_fail(error, status, "out of memory for classes");
    for (int64_t i = 0; i < f->train_count && !status; i++) {
        int32_t label = f->network->label[f->train[i]];
        if (label < 0)
            status = basin_fail(error, BASIN_BAD_VALUE,
                                "%s: node %lld is to be trained on and has no label",
                                f->network->path, (long long)f->train[i]);
        else
            count[label]++;
    }
    if (!status) status = name_classes(f, count, most, error);
    if (!status) status = basin_classes_of(f->class_of, f->model, f->network, error);
    if (!status) note_many(f);
    if (!status) note_strangers(f);
    free(count);
    return status;
}

/* A class weighs as its nodes are rare: n / (C n_c), its root, or 1. */
static double weight_of(const char *balance, int64_t all, int64_t classes, int64_t own) {
    double ratio = (double)all / ((double)classes * (double)own);
    if (basin_choice_is(balance, "none")) return 1;
    return basin_choice_is(balance, "root") ? sqrt(ratio) : ratio;
}

void basin_classes_weigh(basin_nodes_fitting *f) {
    int64_t C = f->settings.classes, count[MOST_CLASSES] = {0};
    for (int64_t i = 0; i < f->train_count; i++) count[f->class_of[f->train[i]]]++;
    for (int64_t i = 0; i < f->train_count; i++) {
        int64_t node = f->train[i], its = f->class_of[node];
        f->label[node * C + its] = 1;
        f->weight[node] = (float)weight_of(f->settings.balance, f->train_count, C, count[its]);
    }
}

/* ---- in model files ---- */

basin_status basin_classes_store(basin_bundle *bundle, const basin_nodes_model *model,
                                 basin_error *error) {
    basin_memory_file memory;
    if (!basin_memory_file_open(&memory))
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the names of classes");
    basin_json json = basin_json_begin_line(memory.file);
    basin_json_array(&json, "names");
    for (int64_t i = 0; i < model->class_name.count; i++)
        basin_json_text(&json, NULL, name_at(&model->class_name, i));
    basin_json_end(&json);
    basin_json_end(&json);
    char *text = basin_memory_file_close(&memory);
    if (!text) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the names of classes");
    text[strcspn(text, "\n")] = 0;
    basin_status status = basin_bundle_meta_set(bundle, "classes", text, error);
    free(text);
    return status;
}

basin_status basin_classes_load(basin_nodes_model *model, const basin_bundle *bundle,
                                basin_error *error) {
    const char *text = basin_bundle_meta(bundle, "classes");
    cJSON *root = text ? cJSON_Parse(text) : NULL;
    basin_names_builder names = {0};
    basin_status status = BASIN_OK;
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "names")) {
        const char *name = cJSON_GetStringValue(item);
        if (name && !status) status = basin_names_add(&names, name, strlen(name), error);
    }
    cJSON_Delete(root);
    model->class_name = names.names;
    model->settings.classes = names.names.count;
    if (status || (names.names.count > 1 && names.names.count <= MOST_CLASSES)) return status;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %lld names of classes; wanted 2 to %d",
                      basin_bundle_path(bundle), (long long)names.names.count, MOST_CLASSES);
}
