/* Which graphs a model has seen: fingerprints of those it was trained on and of those that chose
 * its epoch, kept in the model file, so that a score on them can say so. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sort.h"
#include "base/try.h"
#include "task/graphs/graphs.h"

static const char *const tensor_name[2] = {"seen.train", "seen.validation"};

/* ---- fingerprints ---- */

/* `columns` of the numbers [.., stride] of rows first .. end - 1, 4 bytes each. */
static void add_rows(uint64_t *hash, const void *data, int64_t first, int64_t end, int64_t stride,
                     int64_t columns) {
    for (int64_t i = first; data && i < end; i++)
        *hash = basin_hash_bytes(*hash, (const char *)data + 4 * i * stride, 4 * (size_t)columns);
}

/* FNV-1a of a graph's nodes and edges with all their columns, walks apart, which are made of the
 * edges; not of its classes and values. */
static int64_t fingerprint(const basin_graphset *s, int64_t graph) {
    int64_t node = s->node_start[graph], nodes = s->node_start[graph + 1];
    int64_t edge = s->edge_start[graph], edges = s->edge_start[graph + 1], own;
    int64_t size[2] = {nodes - node, edges - edge};
    uint64_t hash = basin_hash_bytes(BASIN_HASH_START, size, sizeof size);
    add_rows(&hash, s->edge, edge, edges, 2, 2);
    add_rows(&hash, s->node_attribute, node, nodes, s->node_attributes, s->node_attributes);
    add_rows(&hash, s->node_label, node, nodes, s->node_labels, s->node_labels);
    add_rows(&hash, s->edge_attribute, edge, edges, s->edge_attributes,
             s->edge_attributes - s->edge_walks);
    add_rows(&hash, s->edge_label, edge, edges, s->edge_labels, s->edge_labels);
    memcpy(&own, &hash, sizeof own);
    return own;
}

/* The same of what is to be learnt of a graph. */
static void add_target(uint64_t *hash, const basin_graphset *s, int64_t graph) {
    bool nodes = s->task == BASIN_NODE_CLASSES;
    int64_t first = nodes ? s->node_start[graph] : graph;
    int64_t end = nodes ? s->node_start[graph + 1] : graph + 1;
    if (s->task == BASIN_GRAPHS_VALUES)
        add_rows(hash, s->target, graph, graph + 1, s->targets, s->targets);
    else
        add_rows(hash, s->class_of, first, end, 1, 1);
}

/* A sum, so that the order does not matter. */
uint64_t basin_graphs_digest(const basin_graphset *set, const basin_fold *fold) {
    uint64_t sum = 0;
    for (int part = 0; part < 2; part++)
        for (int64_t i = 0; i < fold->count[part]; i++) {
            uint64_t own = (uint64_t)fingerprint(set, fold->item[part][i]);
            add_target(&own, set, fold->item[part][i]);
            sum += own * (uint64_t)(2 * part + 1);
        }
    return sum ? sum : 1;
}

static bool has(const basin_graphs_seen_list *list, int64_t print) {
    return list->count &&
           bsearch(&print, list->print, (size_t)list->count, sizeof print, basin_compare_int64);
}

/* ---- a model's lists ---- */

/* Graphs of an earlier run, with whose weights this one began, stay. */
basin_status basin_graphs_seen_add(basin_graphs_model *model, const basin_graphset *set,
                                   const basin_fold *fold, basin_error *error) {
    for (int part = 0; part < 2; part++) {
        basin_graphs_seen_list *list = &model->seen[part];
        size_t count = (size_t)(list->count + fold->count[part]);
        int64_t *all, kept = 0;
        BASIN_TRY(BASIN_NEW_RAW(&all, count, "the fingerprints of graphs", error));
        if (list->count) memcpy(all, list->print, (size_t)list->count * sizeof *all);
        for (int64_t i = 0; i < fold->count[part]; i++)
            all[list->count + i] = fingerprint(set, fold->item[part][i]);
        qsort(all, count, sizeof *all, basin_compare_int64);
        for (size_t i = 0; i < count; i++)
            if (!kept || all[kept - 1] != all[i]) all[kept++] = all[i];
        free(list->print);
        *list = (basin_graphs_seen_list){all, kept};
    }
    return BASIN_OK;
}

void basin_graphs_seen_free(basin_graphs_model *model) {
    for (int part = 0; part < 2; part++) free(model->seen[part].print);
}

basin_status basin_graphs_seen_write(basin_bundle *bundle, const basin_graphs_model *model,
                                     basin_error *error) {
    for (int part = 0; part < 2 && model->seen[0].count; part++) {
        const basin_graphs_seen_list *list = &model->seen[part];
        basin_tensor tensor = basin_tensor_borrow(list->print, BASIN_I64, BASIN_SHAPE(list->count));
        if (list->count) BASIN_TRY(basin_bundle_add(bundle, tensor_name[part], &tensor, error));
    }
    return BASIN_OK;
}

static basin_status read_list(basin_graphs_seen_list *list, const basin_tensor *tensor,
                              const char *path, basin_error *error) {
    if (!tensor) return BASIN_OK;
    if (tensor->dtype != BASIN_I64 || tensor->shape.rank != 1)
        return basin_fail(
            error, BASIN_BAD_FILE,
            "%s: the fingerprints of graphs are damaged; wanted whole numbers in a row", path);
    list->count = tensor->shape.dim[0];
    BASIN_TRY(BASIN_NEW_RAW(&list->print, list->count, "the fingerprints of graphs", error));
    memcpy(list->print, tensor->data, (size_t)list->count * sizeof *list->print);
    qsort(list->print, (size_t)list->count, sizeof *list->print, basin_compare_int64);
    return BASIN_OK;
}

basin_status basin_graphs_seen_read(basin_graphs_model *model, const basin_bundle *bundle,
                                    basin_error *error) {
    for (int part = 0; part < 2; part++)
        BASIN_TRY(read_list(&model->seen[part], basin_bundle_find(bundle, tensor_name[part]),
                            basin_bundle_path(bundle), error));
    return BASIN_OK;
}

/* ---- asking ---- */

basin_status basin_graphs_seen(basin_graphs_memory *memory, const basin_graphs_model *model,
                               const basin_graphset *set, const int64_t *graph, int64_t count,
                               basin_error *error) {
    if (!model->seen[0].count)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "the model's file does not say which graphs it was trained on");
    for (int64_t i = 0; i < count; i++) {
        int64_t print = fingerprint(set, graph[i]);
        memory[i] = has(&model->seen[0], print)   ? BASIN_GRAPHS_TRAINED_ON
                    : has(&model->seen[1], print) ? BASIN_GRAPHS_VALIDATED_ON
                                                  : BASIN_GRAPHS_NEW;
    }
    return BASIN_OK;
}
