/* Known labels of neighbours; see known.h. */
#include "task/nodes/ensemble/known.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/network.h"
#include "task/nodes/nodes.h"

/* FNV-1a. */
static uint64_t hash_of(const char *text) {
    uint64_t hash = 14695981039346656037u;
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 1099511628211u;
    return hash;
}

static uint64_t id_of(const basin_network *network, int64_t node) {
    char text[BASIN_NODE_TEXT];
    return hash_of(basin_network_id(network, node, text));
}

typedef struct entry {
    uint64_t id;
    uint8_t label;
} entry;

static int lower_first(const void *a, const void *b) {
    uint64_t x = ((const entry *)a)->id, y = ((const entry *)b)->id;
    return (x > y) - (x < y);
}

static int64_t edges_of(const basin_network *network) {
    int64_t edges = 0;
    for (int r = 0; r < network->relations; r++) edges += network->relation[r].edges;
    return edges;
}

static basin_status known_new(basin_known_labels *known, int64_t count, basin_error *error) {
    *known = (basin_known_labels){.count = count};
    known->id = basin_array_new((size_t)count, sizeof *known->id);
    known->label = basin_array_new((size_t)count, 1);
    if (known->id && known->label) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for known labels");
}

basin_status basin_known_labels_take(basin_known_labels *known, const basin_network *network,
                                     const uint8_t *part, int which, basin_error *error) {
    int64_t N = network->nodes, count = basin_split_nodes(NULL, part, N, which), n = 0;
    entry *list = basin_array_new((size_t)count, sizeof *list);
    basin_status status = known_new(known, count, error);
    if (!status && !list)
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for known labels");
    for (int64_t i = 0; i < N && !status; i++)
        if (part[i] == which) list[n++] = (entry){id_of(network, i), network->label[i] == 1};
    if (!status) qsort(list, (size_t)count, sizeof *list, lower_first);
    for (int64_t i = 0; i < count && !status; i++) {
        known->id[i] = list[i].id;
        known->label[i] = list[i].label;
    }
    known->named = network->id.count > 0;
    known->nodes = N;
    known->edges = edges_of(network);
    free(list);
    return status;
}

void basin_known_labels_free(basin_known_labels *known) {
    free(known->id);
    free(known->label);
    *known = (basin_known_labels){0};
}

static int64_t find(const basin_known_labels *known, uint64_t id) {
    int64_t low = 0, high = known->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (known->id[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < known->count && known->id[low] == id ? low : -1;
}

/* Older models have no ids of a table whose ids are 0, 1, .. */
bool basin_known_labels_fit(const basin_known_labels *known, const basin_network *network) {
    if (known->named) return network->id.count > 0;
    bool same = network->nodes == known->nodes && edges_of(network) == known->edges;
    return same && basin_names_are_numbers(&network->id);
}

int64_t basin_known_labels_find(int8_t *label, const basin_known_labels *known,
                                const basin_network *network) {
    bool usable = known->count && basin_known_labels_fit(known, network);
    int64_t found = 0;
    for (int64_t i = 0; i < network->nodes; i++) {
        int64_t at = usable ? find(known, id_of(network, i)) : -1;
        label[i] = at < 0 ? -1 : (int8_t)known->label[at];
        found += at >= 0;
    }
    return found;
}

/* ---- rows ---- */

void basin_known_sums_fill(basin_known_sums *sums, const int8_t *label,
                           const basin_relation *relation, int64_t nodes) {
    for (int64_t i = 0; i < nodes; i++) {
        sums->anomalous[i] = sums->count[i] = 0;
        for (int64_t e = relation->row[i]; e < relation->row[i + 1]; e++) {
            int64_t j = relation->col[e];
            if (j == i || label[j] < 0) continue;
            sums->anomalous[i] += label[j];
            sums->count[i]++;
        }
    }
}

/* How often `other` is among those whom a node sees: edges may have been kept several times. */
static int64_t times(const basin_relation *relation, int64_t node, int64_t other) {
    int64_t at = basin_relation_find(relation, node, (int32_t)other), end = at;
    while (at >= 0 && end < relation->row[node + 1] && relation->col[end] == other) end++;
    return end - at;
}

void basin_known_shares(float share[2], const basin_known_sums *sums, const int8_t *label,
                        const basin_relation *relation, bool directed, int64_t node, double rate) {
    const double strength = 2; /* nodes of the usual rate that stand beside the known ones */
    double sum = 0, count = 0;
    share[0] = (float)((sums->anomalous[node] + rate * strength) / (sums->count[node] + strength));
    for (int64_t e = relation->row[node], next; e < relation->row[node + 1]; e = next) {
        int64_t j = relation->col[e];
        for (next = e + 1; next < relation->row[node + 1] && relation->col[next] == j;) next++;
        if (j == node) continue;
        double edges = (double)(next - e), own = 0;
        if (label[node] >= 0) own = directed ? (double)times(relation, j, node) : edges;
        double anomalous = sums->anomalous[j] - own * fmax(label[node], 0);
        sum += edges * (anomalous + rate * strength) / (sums->count[j] - own + strength);
        count += edges;
    }
    share[1] = (float)(count > 0 ? sum / count : rate);
}

/* ---- files ---- */

enum { KEY = 64 };

/* "known.id" */
static const char *key_of(char text[KEY], const char *prefix, const char *name) {
    snprintf(text, KEY, "%s%s", prefix, name);
    return text;
}

basin_status basin_known_labels_store(basin_bundle *bundle, const char *prefix,
                                      const basin_known_labels *known, basin_error *error) {
    char key[KEY];
    if (!known->count) return BASIN_OK;
    basin_tensor id = basin_tensor_borrow(known->id, BASIN_I64, BASIN_SHAPE(known->count));
    basin_tensor label = basin_tensor_borrow(known->label, BASIN_U8, BASIN_SHAPE(known->count));
    basin_status status = basin_bundle_add(bundle, key_of(key, prefix, "id"), &id, error);
    if (!status) status = basin_bundle_add(bundle, key_of(key, prefix, "label"), &label, error);
    if (!status)
        status = basin_bundle_meta_set(bundle, key_of(key, prefix, "by"),
                                       known->named ? "id" : "number", error);
    if (!status)
        status = basin_nodes_set_number(bundle, key_of(key, prefix, "edges"), (double)known->edges,
                                        error);
    return status;
}

static basin_status load_tensors(basin_known_labels *known, const basin_bundle *bundle,
                                 const char *prefix, basin_error *error) {
    const basin_tensor *id, *label;
    char key[KEY];
    basin_status status = basin_bundle_get(&id, bundle, key_of(key, prefix, "id"), error);
    if (!status) status = basin_bundle_get(&label, bundle, key_of(key, prefix, "label"), error);
    if (status) return status;
    int64_t count = basin_shape_count(id->shape);
    if (id->dtype != BASIN_I64 || label->dtype != BASIN_U8 ||
        basin_shape_count(label->shape) != count || count < 1)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: %sid and %slabel do not fit; wanted as many I64 as U8",
                          basin_bundle_path(bundle), prefix, prefix);
    status = known_new(known, count, error);
    if (status) return status;
    memcpy(known->id, id->data, (size_t)count * sizeof *known->id);
    for (int64_t i = 0; i < count; i++) known->label[i] = ((const uint8_t *)label->data)[i] != 0;
    return BASIN_OK;
}

basin_status basin_known_labels_load(basin_known_labels *known, const basin_bundle *bundle,
                                     const char *prefix, basin_error *error) {
    char key[KEY];
    const char *by = basin_bundle_meta(bundle, key_of(key, prefix, "by"));
    double nodes, edges;
    if (!by) return BASIN_OK;
    basin_status status = load_tensors(known, bundle, prefix, error);
    if (!status) status = basin_nodes_get_number(&nodes, bundle, "nodes", 0, 1e15, error);
    if (!status)
        status =
            basin_nodes_get_number(&edges, bundle, key_of(key, prefix, "edges"), 0, 1e15, error);
    if (status) return status;
    known->named = !strcmp(by, "id");
    known->nodes = (int64_t)nodes;
    known->edges = (int64_t)edges;
    return BASIN_OK;
}
