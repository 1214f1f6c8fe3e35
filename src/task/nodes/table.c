/* What trees read of a network, whole or in parts; see ensemble.h. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/team/team.h"
#include "base/try.h"
#include "data/network/network.h"
#include "task/nodes/ensemble.h"
#include "task/nodes/inputs.h"
#include "task/nodes/nodes.h"
#include "task/nodes/parts.h"

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
    return basin_fail_memory(error, "known labels");
}

basin_status basin_known_labels_take(basin_known_labels *known, const basin_network *network,
                                     const uint8_t *part, int which, basin_error *error) {
    int64_t N = network->nodes, count = basin_split_nodes(NULL, part, N, which), n = 0;
    entry *list = basin_array_new((size_t)count, sizeof *list);
    basin_status status = known_new(known, count, error);
    if (!status && !list) status = basin_fail_memory(error, "known labels");
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

static int64_t place_of(const basin_known_labels *known, uint64_t id) {
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
        int64_t at = usable ? place_of(known, id_of(network, i)) : -1;
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
    BASIN_TRY(basin_bundle_add(bundle, key_of(key, prefix, "id"), &id, error));
    BASIN_TRY(basin_bundle_add(bundle, key_of(key, prefix, "label"), &label, error));
    BASIN_TRY(basin_bundle_meta_set(bundle, key_of(key, prefix, "by"),
                                    known->named ? "id" : "number", error));
    return basin_nodes_set_number(bundle, key_of(key, prefix, "edges"), (double)known->edges,
                                  error);
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
    BASIN_TRY(known_new(known, count, error));
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

/* ---- The table that trees read, made row by row. */

static basin_status find_relations(basin_tree_table *t, const basin_nodes_ensemble *ensemble,
                                   basin_error *error) {
    for (int i = 0; i < ensemble->relations; i++) {
        int found = -1;
        for (int r = 0; r < t->network->relations && found < 0; r++)
            if (!strcmp(t->network->relation[r].name, ensemble->relation[i])) found = r;
        /* A network of one relation has no other to be mistaken for. */
        if (found < 0 && ensemble->relations == 1) found = basin_network_main_relation(t->network);
        if (found < 0)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: no relation '%s', which the detector was trained with",
                              t->network->path, ensemble->relation[i]);
        t->relation[t->relations++] = found;
    }
    return BASIN_OK;
}

static const basin_relation *relation_of(const basin_tree_table *t, int r) {
    return &t->network->relation[t->relation[r]];
}

static void fill_raw(const basin_tree_table *t, int64_t features) {
    for (int64_t i = 0; i < t->network->nodes; i++) {
        float *row = t->raw + i * t->own;
        if (features)
            memcpy(row, t->network->feature + i * features, (size_t)features * sizeof *row);
        for (int64_t c = features; c < t->own - t->facts; c++) {
            const int64_t *at = relation_of(t, (int)(c - features))->row + i;
            row[c] = (float)log1p((double)(at[1] - at[0]));
        }
    }
}

static void fill_near(const void *context, int64_t first, int64_t last, int place) {
    const basin_tree_table *t = context;
    int64_t stride = t->relations * t->own;
    (void)place;
    for (int64_t i = first; i < last; i++)
        for (int r = 0; r < t->relations; r++)
            basin_neighbour_mean(t->near + i * stride + r * t->own, t->raw, t->own, t->own,
                                 relation_of(t, r), i);
}

/* Rows of all nodes, and of their neighbours' means. */
static basin_status allocate(basin_tree_table *t, size_t memory, basin_error *error) {
    size_t rows = (size_t)(t->network->nodes + t->halo), cells;
    bool fits = basin_size_multiply(&cells, rows, (size_t)(t->own * (1 + t->relations)));
    double gib = fits ? (double)cells * sizeof(float) / (1 << 30) : INFINITY;
    if (!fits || (memory && cells > memory / sizeof(float)))
        return basin_fail(error, BASIN_NO_MEMORY,
                          "%s: the inputs of trees take %.3g GiB of %.3g allowed; wanted more "
                          "memory, or trees 0",
                          t->network->path, gib, (double)memory / (1 << 30));
    t->raw = basin_array_new(rows * (size_t)t->own, sizeof *t->raw);
    t->near = basin_array_new(rows * (size_t)(t->own * t->relations), sizeof *t->near);
    if (t->raw && t->near) return BASIN_OK;
    return basin_fail_memory(error, "the inputs of trees");
}

static basin_status allocate_labels(basin_tree_table *t, const basin_nodes_ensemble *ensemble,
                                    basin_error *error) {
    size_t N = (size_t)(t->network->nodes + t->halo);
    if (!ensemble->known.count) return BASIN_OK;
    t->rate = ensemble->rate;
    t->label = basin_array_new(N, 1);
    bool room = t->label;
    for (int r = 0; r < t->relations; r++) {
        t->sums[r].anomalous = basin_array_new(N, sizeof *t->sums[r].anomalous);
        t->sums[r].count = basin_array_new(N, sizeof *t->sums[r].count);
        room = room && t->sums[r].anomalous && t->sums[r].count;
    }
    return room ? BASIN_OK : basin_fail_memory(error, "known labels");
}

void basin_tree_table_sum_labels(basin_tree_table *t) {
    for (int r = 0; r < t->relations && t->label; r++)
        basin_known_sums_fill(&t->sums[r], t->label, relation_of(t, r), t->network->nodes);
}

void basin_tree_table_take_means(basin_tree_table *table) {
    basin_team_run_all(fill_near, table, table->network->nodes, 256);
}

basin_status basin_tree_table_begin(basin_tree_table *table, const basin_network *network,
                                    int64_t halo, const basin_nodes_ensemble *ensemble,
                                    size_t memory, basin_error *error) {
    int64_t features = network->feature ? network->features : 0;
    *table = (basin_tree_table){.network = network, .halo = halo};
    basin_status status = find_relations(table, ensemble, error);
    table->facts = ensemble->facts ? basin_node_facts_width(network, table->relations) : 0;
    table->own = features + (ensemble->degree ? table->relations : 0) + table->facts;
    table->plain = table->own * (1 + 2 * table->relations);
    table->columns = table->plain + (ensemble->known.count ? 2 * table->relations : 0);
    if (!status && table->own < 1)
        status =
            basin_fail(error, BASIN_BAD_VALUE,
                       "%s: no features; wanted some, or degree, which makes one", network->path);
    if (!status) status = allocate(table, memory, error);
    if (!status) status = allocate_labels(table, ensemble, error);
    if (!status) fill_raw(table, features);
    if (!status && table->facts)
        status = basin_node_facts_fill(table->raw + table->own - table->facts, table->own, network,
                                       table->relation, table->relations, error);
    if (status) basin_tree_table_close(table);
    return status;
}

basin_status basin_tree_table_open(basin_tree_table *table, const basin_network *network,
                                   const basin_nodes_ensemble *ensemble, size_t memory,
                                   basin_error *error) {
    BASIN_TRY(basin_tree_table_begin(table, network, 0, ensemble, memory, error));
    if (table->label)
        table->known = basin_known_labels_find(table->label, &ensemble->known, network);
    basin_tree_table_sum_labels(table);
    basin_tree_table_take_means(table);
    return BASIN_OK;
}

void basin_tree_table_close(basin_tree_table *table) {
    free(table->raw);
    free(table->near);
    free(table->label);
    for (int r = 0; r < BASIN_TREE_RELATIONS; r++)
        free(table->sums[r].anomalous), free(table->sums[r].count);
    *table = (basin_tree_table){0};
}

typedef struct rows_wanted {
    float *x;
    const basin_tree_table *table;
    const int64_t *node; /* NULL: from `first` on */
    int64_t first;
} rows_wanted;

static void fill_rows(const void *context, int64_t begin, int64_t end, int place) {
    const rows_wanted *w = context;
    const basin_tree_table *t = w->table;
    int64_t own = t->own, stride = t->relations * own;
    (void)place;
    for (int64_t i = begin; i < end; i++) {
        int64_t n = w->node ? w->node[i] : w->first + i;
        float *row = w->x + i * t->columns;
        memcpy(row, t->raw + n * own, (size_t)own * sizeof *row);
        memcpy(row + own, t->near + n * stride, (size_t)stride * sizeof *row);
        for (int r = 0; r < t->relations; r++)
            basin_neighbour_mean(row + own + stride + r * own, t->near + r * own, stride, own,
                                 relation_of(t, r), n);
        for (int r = 0; r < t->relations && t->label; r++)
            basin_known_shares(row + t->plain + 2 * r, &t->sums[r], t->label, relation_of(t, r),
                               t->network->directed, n, t->rate);
    }
}

void basin_tree_table_rows(float *x, const basin_tree_table *t, const int64_t *node, int64_t first,
                           int64_t rows) {
    rows_wanted w = {x, t, node, first};
    basin_team_run_all(fill_rows, &w, rows, 64);
}

static basin_status rows_of_whole(const basin_tree_source *source, float *x, const int64_t *node,
                                  int64_t rows, basin_error *error) {
    (void)error;
    basin_tree_table_rows(x, source->table, node, 0, rows);
    return BASIN_OK;
}

basin_tree_source basin_tree_source_of(const basin_tree_table *table) {
    return (basin_tree_source){table->network, table, rows_of_whole};
}

/* ---- Trees beside the network of a graph in parts: tables of each part as those of a whole graph,
 * with rows of halos fetched in between, so that every row has the bits that it has in the whole
 * graph. Every rank grows the same trees, on rows gathered from all, and asks them about its own
 * nodes. */

struct basin_parted_trees {
    basin_tree_source source; /* first: its function finds the rest behind it */
    basin_parts *parts;
    basin_tree_table *table; /* [parts of this rank] */
    float **row;             /* [parts of this rank] what is fetched */
};

static basin_status no_memory(basin_error *error) {
    return basin_fail_memory(error, "trees of parts");
}

/* ---- tables ---- */

static basin_status fetch_raw(basin_parted_trees *t, basin_error *error) {
    for (int64_t k = 0; k < t->parts->count; k++) t->row[k] = t->table[k].raw;
    return basin_parts_fetch(t->parts, t->row, t->table[0].own, error);
}

static basin_status fetch_means(basin_parted_trees *t, basin_error *error) {
    for (int64_t k = 0; k < t->parts->count; k++) {
        basin_tree_table_take_means(&t->table[k]);
        t->row[k] = t->table[k].near;
    }
    return basin_parts_fetch(t->parts, t->row, t->table[0].relations * t->table[0].own, error);
}

/* Labels of a part's nodes travel as numbers, in the place of a sum that is not there yet. */
static basin_status fetch_labels(basin_parted_trees *t, const int8_t *all, basin_error *error) {
    for (int64_t k = 0; k < t->parts->count; k++) {
        const basin_network *n = t->table[k].network;
        t->row[k] = t->table[k].sums[0].count;
        for (int64_t i = 0; i < n->nodes; i++) t->row[k][i] = (float)all[n->origin[i]];
    }
    basin_status status = basin_parts_fetch(t->parts, t->row, 1, error);
    for (int64_t k = 0; k < t->parts->count && !status; k++) {
        const basin_tree_table *table = &t->table[k];
        for (int64_t i = 0; i < table->network->nodes + table->halo; i++)
            table->label[i] = (int8_t)t->row[k][i];
    }
    return status;
}

static basin_status fetch_sums(basin_parted_trees *t, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < t->parts->count; k++) basin_tree_table_sum_labels(&t->table[k]);
    for (int r = 0; r < t->table[0].relations && !status; r++) {
        for (int64_t k = 0; k < t->parts->count; k++) t->row[k] = t->table[k].sums[r].anomalous;
        status = basin_parts_fetch(t->parts, t->row, 1, error);
        for (int64_t k = 0; k < t->parts->count; k++) t->row[k] = t->table[k].sums[r].count;
        if (!status) status = basin_parts_fetch(t->parts, t->row, 1, error);
    }
    return status;
}

/* Every rank knows the labels of all nodes, by their ids or numbers in the whole graph. */
static basin_status look_up(basin_parted_trees *t, const basin_nodes_ensemble *e,
                            basin_error *error) {
    basin_parts *p = t->parts;
    if (!e->known.count) return BASIN_OK;
    basin_status status = e->known.named ? basin_parts_name_nodes(p, error) : BASIN_OK;
    int8_t *all = basin_array_new((size_t)p->face->nodes, 1);
    if (!status && !all) status = no_memory(error);
    status = basin_ranks_agree(p->ranks, status, error);
    if (!status) {
        int64_t known = basin_known_labels_find(all, &e->known, p->face);
        for (int64_t k = 0; k < p->count; k++) t->table[k].known = known;
        status = fetch_labels(t, all, error);
    }
    free(all);
    return status ? status : fetch_sums(t, error);
}

/* Whether a node of the halo sees a part's is known where edges go both ways alone. */
static basin_status check(const basin_parts *p, const basin_nodes_ensemble *e, basin_error *error) {
    if (!e->known.count || !p->face->directed) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "%s: a directed graph in parts, and trees that look at known labels; wanted "
                      "the whole graph, or a detector that was trained with labels false",
                      p->face->path);
}

static basin_status rows_of_parts(const basin_tree_source *source, float *x, const int64_t *node,
                                  int64_t rows, basin_error *error);

basin_status basin_parted_trees_open(basin_parted_trees **trees, basin_parts *parts,
                                     const basin_nodes_ensemble *ensemble, size_t memory,
                                     basin_error *error) {
    size_t count = (size_t)parts->count;
    basin_parted_trees *t = calloc(1, sizeof *t);
    *trees = NULL;
    basin_status status = t ? check(parts, ensemble, error) : no_memory(error);
    if (t) {
        t->parts = parts;
        t->table = calloc(count, sizeof *t->table);
        t->row = calloc(count, sizeof *t->row);
        t->source = (basin_tree_source){parts->face, t->table, rows_of_parts};
        if (!status && !(t->table && t->row)) status = no_memory(error);
    }
    for (size_t k = 0; k < count && !status; k++)
        status = basin_tree_table_begin(&t->table[k], parts->part[k]->network, parts->part[k]->halo,
                                        ensemble, memory / count, error);
    status = basin_ranks_agree(parts->ranks, status, error);
    if (!status) status = fetch_raw(t, error);
    if (!status) status = fetch_means(t, error);
    if (!status) status = look_up(t, ensemble, error);
    if (status)
        basin_parted_trees_close(t);
    else
        *trees = t;
    return status;
}

void basin_parted_trees_close(basin_parted_trees *t) {
    if (!t) return;
    for (int64_t k = 0; k < t->parts->count && t->table; k++) basin_tree_table_close(&t->table[k]);
    free(t->table), free(t->row);
    free(t);
}

/* ---- rows of chosen nodes ---- */

/* Those of part k of this rank into `local`, by their numbers there; how many. */
static int64_t list_chosen(int64_t *local, const basin_parts *p, int64_t k, const uint8_t *chosen) {
    const basin_network *n = p->part[k]->network;
    int64_t count = 0;
    for (int64_t i = 0; i < n->nodes; i++)
        if (chosen[n->origin[i]]) local[count++] = i;
    return count;
}

static basin_status rows_of_parts(const basin_tree_source *source, float *x, const int64_t *node,
                                  int64_t rows, basin_error *error) {
    const basin_parted_trees *t = (const basin_parted_trees *)(const void *)source;
    basin_parts *p = t->parts;
    int64_t columns = source->table->columns, own = 0;
    uint8_t *chosen = calloc((size_t)p->face->nodes + 1, 1);
    int64_t *local = basin_array_new((size_t)p->most_nodes, sizeof *local);
    for (int64_t i = 0; i < rows && chosen; i++) chosen[node[i]] = 1;
    for (int64_t k = 0; k < p->count && chosen && local; k++)
        own += list_chosen(local, p, k, chosen);
    float *mine = basin_array_new((size_t)own, (size_t)columns * sizeof *mine);
    basin_status status = chosen && local && mine ? BASIN_OK : no_memory(error);
    status = basin_ranks_agree(p->ranks, status, error);
    own = 0;
    for (int64_t k = 0; k < p->count && !status; k++) {
        int64_t count = list_chosen(local, p, k, chosen);
        basin_tree_table_rows(mine + own * columns, &t->table[k], local, 0, count);
        own += count;
    }
    if (!status)
        status = basin_parts_gather_packed(x, p, mine, chosen, (size_t)columns * sizeof *x, error);
    free(chosen), free(local), free(mine);
    return status;
}

basin_status basin_parted_trees_grow(basin_nodes_ensemble *ensemble, int64_t fits, uint64_t seed,
                                     const basin_parted_trees *trees, const uint8_t *part,
                                     const basin_watch *watch, basin_error *error) {
    return basin_nodes_ensemble_grow(ensemble, fits, seed, &trees->source, part, watch, error);
}

/* ---- logits ---- */

/* to [columns, rows] = the transpose of from. */
static void transpose(double *to, const double *from /* [rows, columns] */, int64_t rows,
                      int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < columns; c++) to[c * rows + i] = from[i * columns + c];
}

/* Of all nodes: `find` gives those of a part. */
static basin_status gather_logits(double *logit /* [width, N] */, const basin_nodes_ensemble *e,
                                  const basin_parted_trees *t, int64_t width,
                                  basin_status (*find)(double *, const basin_nodes_ensemble *,
                                                       const basin_tree_table *, basin_error *),
                                  basin_error *error) {
    basin_parts *p = t->parts;
    int64_t own = 0, at = 0;
    for (int64_t k = 0; k < p->count; k++) own += p->part[k]->network->nodes;
    size_t row = (size_t)width * sizeof(double);
    double *one = basin_array_new((size_t)p->most_nodes, row);
    double *mine = basin_array_new((size_t)own, row);
    double *all = basin_array_new((size_t)p->face->nodes, row);
    basin_status status = one && mine && all ? BASIN_OK : no_memory(error);
    for (int64_t k = 0; k < p->count && !status; k++) {
        int64_t n = p->part[k]->network->nodes;
        status = find(one, e, &t->table[k], error);
        if (!status) transpose(mine + at * width, one, width, n);
        at += n;
    }
    status = basin_ranks_agree(p->ranks, status, error);
    if (!status) status = basin_parts_gather_packed(all, p, mine, NULL, row, error);
    if (!status) transpose(logit, all, p->face->nodes, width);
    free(one), free(mine), free(all);
    return status;
}

basin_status basin_parted_trees_views(double *logit, const basin_nodes_ensemble *ensemble,
                                      const basin_parted_trees *trees, basin_error *error) {
    return gather_logits(logit, ensemble, trees, BASIN_TREE_VIEWS, basin_nodes_ensemble_views,
                         error);
}

basin_status basin_parted_trees_score(double *logit, const basin_nodes_ensemble *ensemble,
                                      basin_parts *parts, size_t memory, const basin_watch *watch,
                                      basin_error *error) {
    basin_parted_trees *t;
    BASIN_TRY(basin_parted_trees_open(&t, parts, ensemble, memory, error));
    basin_status status = basin_nodes_ensemble_check(ensemble, &t->table[0], watch, error);
    if (!status) status = gather_logits(logit, ensemble, t, 1, basin_nodes_ensemble_logits, error);
    basin_parted_trees_close(t);
    return status;
}
