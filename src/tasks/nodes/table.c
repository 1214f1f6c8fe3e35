/* What trees read of a network, whole or in parts; see nodes.h. */
#include "base/hash.h"
#include "base/parallel.h"
#include "base/sha256.h"
#include "base/sort.h"
#include "tasks/nodes/near.h"

/* ---- known labels ---- */

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
    char text[BASIN_NODE_TEXT];
    uint64_t hash = basin_hash_text(BASIN_HASH_START, basin_network_id(network, node, text));
    return salted(hash, salt);
}

typedef struct entry {
    uint64_t id;
    uint8_t label;
} entry;

/* Of entries, too, which begin with their id. */
static int compare_ids(const void *a, const void *b) {
    return BASIN_COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

static int64_t edges_of(const basin_network *network) {
    int64_t edges = 0;
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
    if (!known->count) return BASIN_OK;
    basin_shape all = BASIN_SHAPE(known->count);
    key_of(key, prefix, "id");
    BASIN_TRY(basin_bundle_put(bundle, key, known->id, BASIN_I64, all, error));
    key_of(key, prefix, "label");
    if (known->label) BASIN_TRY(basin_bundle_put(bundle, key, known->label, BASIN_U8, all, error));
    key_of(key, prefix, "salt");
    if (known->salt.set)
        BASIN_TRY(
            basin_bundle_put(bundle, key, known->salt.byte, BASIN_U8, BASIN_SHAPE(SALT), error));
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

/* ---- the table ---- */

static basin_status find_relations(basin_node_table *t, const basin_nodes_ensemble *ensemble,
                                   basin_error *error) {
    const char *name = ensemble->relations;
    while (*name && t->relations < BASIN_TREE_RELATIONS) {
        char one[256];
        int length = (int)strcspn(name, "\n");
        snprintf(one, sizeof one, "%.*s", length, name);
        int found = basin_network_relation(t->network, one);
        /* A network of one relation has no other to be mistaken for. */
        if (found < 0 && !strchr(ensemble->relations, '\n'))
            found = basin_network_main_relation(t->network);
        if (found < 0)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: no relation '%s', which the detector was trained with",
                              t->network->path, one);
        t->relation[t->relations++] = found;
        name += length + (name[length] == '\n');
    }
    return BASIN_OK;
}

/* ---- shares of known labels ---- */

static int8_t label_of(const basin_tree_table *t, int64_t node) {
    return t->node.grown ? basin_near_known(t->node.grown, node) : t->label[node];
}

float *basin_known_sums(const basin_tree_table *t, int r, int64_t node) {
    return basin_node_row(&t->node, node) + t->node.own * (1 + t->node.means) + 2 * r;
}

void basin_known_sums_fill(const basin_tree_table *t, int64_t node) {
    for (int r = 0; r < t->node.relations && t->label; r++) {
        basin_near_list list = basin_node_list(&t->node, t->node.relation[r], node);
        float *sum = basin_known_sums(t, r, node);
        sum[0] = sum[1] = 0;
        for (int64_t i = 0; i < list.count; i++) {
            int8_t label = label_of(t, list.col[i]);
            if (list.col[i] != node && label >= 0) sum[0] += label, sum[1]++;
        }
    }
}

/* How often `other` is in a list, which is ascending: edges may have been kept several times. */
static int64_t times(const basin_near_list *list, int64_t other) {
    int64_t low = 0, high = list->count, end;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        *(list->col[middle] < other ? &low : &high) = middle + (list->col[middle] < other);
    }
    for (end = low; end < list->count && list->col[end] == other;) end++;
    return end - low;
}

void basin_known_shares(float share[2], const basin_tree_table *t, int r, int64_t node) {
    const double strength = 2; /* nodes of the usual rate that are added to the known ones */
    int relation = t->node.relation[r];
    basin_near_list list = basin_node_list(&t->node, relation, node);
    const float *sums = basin_known_sums(t, r, node);
    int8_t label = label_of(t, node);
    double sum = 0, count = 0;
    share[0] = (float)((sums[0] + t->rate * strength) / (sums[1] + strength));
    for (int64_t e = 0, next; e < list.count; e = next) {
        int64_t j = list.col[e];
        for (next = e + 1; next < list.count && list.col[next] == j;) next++;
        if (j == node) continue;
        double edges = (double)(next - e), own = 0;
        if (label >= 0 && t->node.network->directed) {
            basin_near_list back = basin_node_list(&t->node, relation, j);
            own = (double)times(&back, node);
        } else if (label >= 0) {
            own = edges;
        }
        const float *theirs = basin_known_sums(t, r, j);
        double anomalous = theirs[0] - own * fmax(label, 0);
        sum += edges * (anomalous + t->rate * strength) / (theirs[1] - own + strength);
        count += edges;
    }
    share[1] = (float)(count > 0 ? sum / count : t->rate);
}

/* ---- opening ---- */

/* Rows of all nodes: own columns, with space for means and sums. */
static basin_status table_begin(basin_tree_table *table, const basin_network *network, int64_t halo,
                                const basin_nodes_ensemble *e, size_t memory, basin_error *error) {
    basin_node_table *t = &table->node;
    size_t rows = (size_t)(network->nodes + halo), cells;
    *table = (basin_tree_table){.node = {.network = network, .halo = halo, .chain = -1}};
    BASIN_TRY(find_relations(t, e, error));
    BASIN_TRY(basin_node_table_begin(t, network, e->degree, e->facts, error));
    t->means = t->relations;
    t->stride = t->own * (1 + t->means) + (e->known.count ? 2 * t->relations : 0);
    table->plain = t->own * (1 + 2 * t->relations);
    table->columns = table->plain + (e->known.count ? 2 * t->relations : 0);
    table->rate = e->rate;
    bool fits = basin_size_multiply(&cells, rows, (size_t)t->stride);
    if (!fits || (memory && cells > memory / sizeof(float)))
        return basin_fail(error, BASIN_NO_MEMORY,
                          "%s: the inputs of trees take %.3g GiB of %.3g allowed; needs more "
                          "memory, or trees 0",
                          network->path,
                          fits ? (double)cells * sizeof(float) / (1 << 30) : INFINITY,
                          (double)memory / (1 << 30));
    BASIN_TRY(BASIN_NEW_RAW(&t->row, cells, "the inputs of trees", error));
    if (e->known.count) BASIN_TRY(BASIN_NEW_RAW(&table->label, rows, "known labels", error));
    return basin_node_table_own(t->row, t->stride, t, error);
}

/* Means and sums over neighbours, whose own columns and labels are there. */
static void take_neighbours(const basin_tree_table *t) {
    for (int64_t b = 1; b <= t->node.means; b++) basin_node_table_means(&t->node, b, 0);
    for (int64_t i = 0; i < t->node.network->nodes; i++) basin_known_sums_fill(t, i);
}

basin_status basin_tree_table_open(basin_tree_table *table, const basin_network *network,
                                   const basin_nodes_ensemble *ensemble, size_t memory,
                                   basin_error *error) {
    BASIN_TRY_OR(table_begin(table, network, 0, ensemble, memory, error),
                 basin_tree_table_close(table));
    if (table->label && network->known) {
        memcpy(table->label, network->known, (size_t)network->nodes);
        table->known = network->knows;
    } else if (table->label) {
        table->known = basin_known_labels_find(table->label, &ensemble->known, network);
    }
    take_neighbours(table);
    return BASIN_OK;
}

void basin_tree_table_close(basin_tree_table *table) {
    BASIN_FREE(table->node.row, table->label);
    *table = (basin_tree_table){0};
}

typedef struct rows_needed {
    float *x;
    const basin_tree_table *table;
    const int64_t *node; /* NULL: from `first` on */
    int64_t first;
} rows_needed;

static void fill_rows(const void *context, int64_t begin, int64_t end) {
    const rows_needed *w = context;
    const basin_tree_table *t = w->table;
    int64_t own = t->node.own, R = t->node.relations;
    for (int64_t i = begin; i < end; i++) {
        int64_t n = w->node ? w->node[i] : w->first + i;
        float *row = w->x + i * t->columns;
        basin_node_table_row(row, &t->node, n);
        for (int r = 0; r < R; r++)
            basin_neighbour_mean(row + (1 + R + r) * own, &t->node, 1 + r, t->node.relation[r], n);
        for (int r = 0; r < R && t->label; r++) basin_known_shares(row + t->plain + 2 * r, t, r, n);
    }
}

void basin_tree_table_rows(float *x, const basin_tree_table *t, const int64_t *node, int64_t first,
                           int64_t rows) {
    rows_needed w = {x, t, node, first};
    basin_parallel_for(fill_rows, &w, rows, 64, 0);
}

/* ---- a graph in parts: rows of halos are fetched in between; bits are those of the whole ---- */

/* A label travels as a number, in the place of a sum that is not there yet. */
static float *label_place(const basin_tree_table *t, int64_t node) {
    return t->node.row + (node + 1) * t->node.stride - 1;
}

/* Every rank knows the labels of all nodes, by their ids or numbers in the whole graph. */
static basin_status place_labels(basin_tree_tables *t, const basin_nodes_ensemble *e,
                                 basin_error *error) {
    BASIN_FREE_AT_EXIT int8_t *all = NULL;
    if (!e->known.count) return BASIN_OK;
    basin_status status = e->known.named ? basin_parts_name_nodes(t->parts, error) : BASIN_OK;
    if (!status) status = BASIN_NEW_RAW(&all, t->network->nodes, "trees of parts", error);
    BASIN_TRY(basin_ranks_agree(t->parts->ranks, status, error));
    int64_t known = basin_known_labels_find(all, &e->known, t->network);
    for (basin_tree_table *one = t->table; one < t->table + t->count; one++) {
        const basin_network *n = one->node.network;
        one->known = known;
        for (int64_t i = 0; i < n->nodes; i++) *label_place(one, i) = (float)all[n->origin[i]];
    }
    return BASIN_OK;
}

/* Whether a node of the halo sees a part's is known only where edges go both ways. */
static basin_status begin_parts(basin_tree_tables *t, const basin_nodes_ensemble *e, size_t memory,
                                basin_error *error) {
    const basin_parts *p = t->parts;
    if (e->known.count && p->face->directed)
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "%s: a directed graph in parts, and trees that look at known labels; needs "
            "the whole graph, or a detector that was trained with labels false",
            p->face->path);
    BASIN_TRY(BASIN_NEW(&t->table, p->count, "trees of parts", error));
    for (; t->count < p->count; t->count++)
        BASIN_TRY(table_begin(&t->table[t->count], p->part[t->count]->network,
                              p->part[t->count]->halo, e, memory / (size_t)p->count, error));
    return BASIN_OK;
}

static basin_status open_parts(basin_tree_tables *t, const basin_nodes_ensemble *e, size_t memory,
                               basin_error *error) {
    basin_status status = begin_parts(t, e, memory, error);
    BASIN_TRY(basin_ranks_agree(t->parts->ranks, status, error));
    BASIN_TRY(place_labels(t, e, error));
    BASIN_TRY(basin_node_tables_fetch(t->parts, &t->table->node, sizeof *t->table, error));
    for (basin_tree_table *one = t->table; one < t->table + t->count; one++) {
        for (int64_t i = 0; i < one->node.network->nodes + one->node.halo && one->label; i++)
            one->label[i] = (int8_t)*label_place(one, i);
        take_neighbours(one);
    }
    return basin_node_tables_fetch(t->parts, &t->table->node, sizeof *t->table, error);
}

basin_status basin_tree_tables_open(basin_tree_tables *t, const basin_network *network,
                                    basin_parts *parts, const basin_nodes_ensemble *ensemble,
                                    size_t memory, basin_error *error) {
    basin_status status;
    *t = (basin_tree_tables){.network = parts ? parts->face : network, .parts = parts};
    if (parts) {
        status = open_parts(t, ensemble, memory, error);
    } else {
        status = BASIN_NEW(&t->table, 1, "the inputs of trees", error);
        if (!status) status = basin_tree_table_open(t->table, network, ensemble, memory, error);
        t->count = 1;
    }
    if (status) basin_tree_tables_close(t);
    return status;
}

/* The table whose opening failed counts, too. */
void basin_tree_tables_close(basin_tree_tables *t) {
    int64_t most = t->parts ? t->parts->count : t->count;
    for (int64_t k = 0; k < most && t->table; k++) basin_tree_table_close(&t->table[k]);
    free(t->table);
    *t = (basin_tree_tables){0};
}

/* Rows of this rank's chosen nodes, one part after the other; free both. */
static basin_status pack_rows(float **mine, uint8_t **chosen, const basin_tree_tables *t,
                              const int64_t *node, int64_t rows, basin_error *error) {
    int64_t columns = t->table[0].columns, own = 0;
    BASIN_TRY(BASIN_NEW(chosen, t->network->nodes, "trees of parts", error));
    BASIN_SCRATCH_RAW(int64_t, local, t->parts->most_nodes, "trees of parts", error);
    for (int64_t i = 0; i < rows; i++) (*chosen)[node[i]] = 1;
    for (int pass = 0; pass < 2; pass++) {
        if (pass) BASIN_TRY(BASIN_NEW_RAW(mine, own * columns, "trees of parts", error));
        own = 0;
        for (int64_t k = 0; k < t->count; k++) {
            const basin_network *n = t->table[k].node.network;
            int64_t count = 0;
            for (int64_t i = 0; i < n->nodes; i++)
                if ((*chosen)[n->origin[i]]) local[count++] = i;
            if (pass) basin_tree_table_rows(*mine + own * columns, &t->table[k], local, 0, count);
            own += count;
        }
    }
    return BASIN_OK;
}

basin_status basin_tree_tables_rows(float *x, const basin_tree_tables *t, const int64_t *node,
                                    int64_t rows, basin_error *error) {
    BASIN_FREE_AT_EXIT uint8_t *chosen = NULL;
    BASIN_FREE_AT_EXIT float *mine = NULL;
    if (!t->parts) {
        basin_tree_table_rows(x, t->table, node, 0, rows);
        return BASIN_OK;
    }
    basin_status status = pack_rows(&mine, &chosen, t, node, rows, error);
    BASIN_TRY(basin_ranks_agree(t->parts->ranks, status, error));
    return basin_parts_gather_packed(x, t->parts, mine, chosen,
                                     (size_t)t->table[0].columns * sizeof *x, error);
}
