/* Labels of training nodes, found again by salted hashes of their ids; see nodes.h. */
#include "base/bundle.h"
#include "base/hash.h"
#include "base/sha256.h"
#include "base/sort.h"
#include "tasks/nodes/nodes.h"

/* FNV-1a of the id, and of salt and that, SHA-256. */
static uint64_t salted(uint64_t hash, const basin_salt *salt) {
    uint8_t bytes[sizeof salt->byte + 8], digest[BASIN_SHA256];
    if (!salt->set) return hash;
    memcpy(bytes, salt->byte, sizeof salt->byte);
    for (int i = 0; i < 8; i++) bytes[sizeof salt->byte + (size_t)i] = (uint8_t)(hash >> 8 * i);
    basin_sha256(digest, bytes, sizeof bytes);
    hash = 0;
    for (int i = 0; i < 8; i++) hash |= (uint64_t)digest[i] << 8 * i;
    return hash;
}

static uint64_t id_of(const basin_network *network, int64_t node, const basin_salt *salt) {
    char text[BASIN_MAX_NODE];
    uint64_t hash = basin_hash_text(BASIN_HASH_START, basin_network_id(network, node, text));
    return salted(hash, salt);
}

typedef struct entry {
    uint64_t id;
    uint8_t label;
} entry;

/* Also for entries, which begin with their id. */
static int compare_ids(const void *a, const void *b) {
    return BASIN_COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

static int64_t edges_of(const basin_network *network) {
    int64_t edges = 0;
    if (network->both) return network->relation[BASIN_COME].edges; /* as in what it was made from */
    for (int r = 0; r < network->relations; r++) edges += network->relation[r].edges;
    return edges;
}

static basin_status known_new(basin_known_labels *known, int64_t count, bool labels,
                              basin_error *error) {
    *known = (basin_known_labels){.count = count};
    BASIN_TRY(BASIN_NEW_RAW(&known->id, count, "known labels", error));
    return labels ? BASIN_NEW_RAW(&known->label, count, "known labels", error) : BASIN_OK;
}

basin_status basin_known_labels_take(basin_known_labels *known, const basin_network *network,
                                     const uint8_t *part, int which, bool labels,
                                     const basin_salt *salt, basin_error *error) {
    int64_t N = network->nodes, count = basin_split_nodes(NULL, part, N, which), n = 0;
    BASIN_TRY(known_new(known, count, labels, error));
    known->salt = *salt;
    BASIN_SCRATCH_RAW(entry, list, count, "known labels", error);
    for (int64_t i = 0; i < N; i++)
        if (part[i] == which) list[n++] = (entry){id_of(network, i, salt), network->label[i] == 1};
    qsort(list, (size_t)count, sizeof *list, compare_ids);
    for (int64_t i = 0; i < count; i++) {
        known->id[i] = list[i].id;
        if (labels) known->label[i] = list[i].label;
    }
    known->named = network->id.count > 0;
    known->nodes = N;
    known->edges = edges_of(network);
    return BASIN_OK;
}

basin_status basin_known_labels_join(basin_known_labels *known, bool *fits,
                                     const basin_known_labels *more, basin_error *error) {
    const basin_salt *salt = &known->salt;
    bool same = more->named || (more->nodes == known->nodes && more->edges == known->edges);
    bool hashes =
        !more->salt.set || (salt->set && !memcmp(salt->byte, more->salt.byte, sizeof salt->byte));
    basin_known_labels all = {0};
    int64_t n = 0;
    bool kind = !known->count || (more->named == known->named && same);
    *fits = !more->count || (kind && hashes);
    if (!*fits || !more->count) return BASIN_OK;
    BASIN_TRY(known_new(&all, known->count + more->count, false, error));
    for (int64_t i = 0; i < known->count; i++) all.id[n++] = known->id[i];
    for (int64_t i = 0; i < more->count; i++)
        all.id[n++] = more->salt.set ? more->id[i] : salted(more->id[i], salt);
    qsort(all.id, (size_t)n, sizeof *all.id, compare_ids);
    all.count = 0;
    for (int64_t i = 0; i < n; i++)
        if (!i || all.id[i] != all.id[i - 1]) all.id[all.count++] = all.id[i];
    all.salt = *salt, all.named = more->named, all.nodes = more->nodes, all.edges = more->edges;
    basin_known_labels_free(known);
    *known = all;
    return BASIN_OK;
}

void basin_known_labels_free(basin_known_labels *known) {
    BASIN_FREE(known->id, known->label);
    *known = (basin_known_labels){0};
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
        uint64_t id = usable ? id_of(network, i, &known->salt) : 0;
        const uint64_t *at =
            usable ? bsearch(&id, known->id, (size_t)known->count, sizeof id, compare_ids) : NULL;
        label[i] = !at ? -1 : known->label ? (int8_t)known->label[at - known->id] : 0;
        found += at != NULL;
    }
    return found;
}

enum { KEY = 64, SALT = sizeof((basin_salt *)NULL)->byte };

/* "known.id" */
static const char *key_of(char text[KEY], const char *prefix, const char *name) {
    snprintf(text, KEY, "%s%s", prefix, name);
    return text;
}

basin_status basin_known_labels_store(basin_bundle *bundle, const char *prefix,
                                      const basin_known_labels *known, basin_error *error) {
    char key[KEY];
    const struct {
        const char *name;
        const void *data;
        basin_dtype dtype;
        int64_t count;
    } tensor[] = {{"id", known->id, BASIN_I64, known->count},
                  {"label", known->label, BASIN_U8, known->count},
                  {"salt", known->salt.set ? known->salt.byte : NULL, BASIN_U8, SALT}};
    if (!known->count) return BASIN_OK;
    for (int i = 0; i < 3; i++)
        if (tensor[i].data)
            BASIN_TRY(basin_bundle_put(bundle, key_of(key, prefix, tensor[i].name), tensor[i].data,
                                       tensor[i].dtype, BASIN_SHAPE(tensor[i].count), error));
    BASIN_TRY(basin_bundle_meta_set(bundle, key_of(key, prefix, "by"),
                                    known->named ? "id" : "number", error));
    BASIN_TRY(
        basin_nodes_set_number(bundle, key_of(key, prefix, "nodes"), (double)known->nodes, error));
    return basin_nodes_set_number(bundle, key_of(key, prefix, "edges"), (double)known->edges,
                                  error);
}

basin_status basin_known_labels_load(basin_known_labels *known, const basin_bundle *bundle,
                                     const char *prefix, basin_error *error) {
    char key[KEY];
    const char *by = basin_bundle_meta(bundle, key_of(key, prefix, "by"));
    const basin_tensor *id, *salt, *label = NULL;
    double nodes, edges;
    if (!by) return BASIN_OK;
    key_of(key, prefix, "id");
    BASIN_TRY(basin_bundle_expect(&id, bundle, key, BASIN_I64, BASIN_SHAPE(-1), error));
    key_of(key, prefix, "label");
    if (basin_bundle_find(bundle, key))
        BASIN_TRY(basin_bundle_expect(&label, bundle, key, BASIN_U8, id->shape, error));
    int64_t count = id->shape.dim[0];
    BASIN_TRY(known_new(known, count, label != NULL, error));
    key_of(key, prefix, "salt");
    known->salt.set = basin_bundle_find(bundle, key) != NULL; /* else an earlier version's */
    if (known->salt.set) {
        BASIN_TRY(basin_bundle_expect(&salt, bundle, key, BASIN_U8, BASIN_SHAPE(SALT), error));
        memcpy(known->salt.byte, salt->data, SALT);
    }
    memcpy(known->id, id->data, (size_t)count * sizeof *known->id);
    for (int64_t i = 0; i < count && label; i++)
        known->label[i] = ((const uint8_t *)label->data)[i] != 0;
    bool own = basin_bundle_meta(bundle, key_of(key, prefix, "nodes")) != NULL;
    BASIN_TRY(basin_bundle_number(&nodes, bundle, own ? key : "nodes", 0, 1e15, error));
    BASIN_TRY(basin_bundle_number(&edges, bundle, key_of(key, prefix, "edges"), 0, 1e15, error));
    known->named = !strcmp(by, "id");
    known->nodes = (int64_t)nodes;
    known->edges = (int64_t)edges;
    return BASIN_OK;
}
