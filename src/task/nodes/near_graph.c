/* A base with additions; see near.h. Tables are read as additions to a small network of the nodes
 * that they name, so that everything that tables may say means what it means elsewhere. */

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/try.h"
#include "data/network/csv/table.h"
#include "task/nodes/near.h"

/* ---- opening ---- */

static basin_status open_graph(basin_near_graph *g, basin_error *error) {
    const basin_network *base = g->base;
    if (base->relations > BASIN_TREE_RELATIONS)
        return basin_fail(error, BASIN_UNSUPPORTED, "%s: %d relations; at most %d can be added to",
                          base->path, base->relations, BASIN_TREE_RELATIONS);
    if (!basin_array_reserve((void **)&g->node, &g->capacity, (size_t)base->nodes, sizeof *g->node))
        return basin_fail_memory(error, "nodes");
    memset(g->node, 0, g->capacity * sizeof *g->node);
    for (int r = 0; r < base->relations && base->directed; r++)
        BASIN_TRY(
            basin_relation_turn(&g->back[r], &g->entry[r], &base->relation[r], base->nodes, error));
    for (int64_t i = 0; i < base->id.count; i++) {
        int32_t number;
        const char *id = base->id.text + base->id.at[i];
        BASIN_TRY(basin_dictionary_add(&g->id, &number, id, error));
        if (number != i)
            return basin_fail(error, BASIN_BAD_FILE, "%s: node '%s' is there twice", base->path,
                              id);
    }
    return BASIN_OK;
}

basin_status basin_near_graph_open(basin_near_graph *graph, const basin_network *base,
                                   basin_error *error) {
    *graph = (basin_near_graph){.base = base, .nodes = base->nodes};
    return open_graph(graph, error);
}

static void list_free(basin_near_list *l) { free(l->col), free(l->entry), free(l->own); }

static void node_free(basin_near_node *node, int ways) {
    if (!node) return;
    for (int w = 0; w < ways && node->way; w++) list_free(&node->way[w]);
    for (int h = 0; h < BASIN_NEAR_LEVELS; h++) free(node->level[h]);
    free(node->way), free(node->feature), free(node->own);
    free(node);
}

void basin_near_graph_close(basin_near_graph *g) {
    for (size_t i = 0; i < g->capacity; i++)
        node_free(g->node[i], g->base->relations * BASIN_NEAR_WAYS);
    for (int r = 0; r < BASIN_TREE_RELATIONS; r++)
        basin_relation_free(&g->back[r]), free(g->entry[r]);
    free(g->node);
    basin_dictionary_free(&g->id);
    *g = (basin_near_graph){0};
}

/* ---- looking ---- */

int64_t basin_near_find(const basin_near_graph *g, const char *id) {
    int64_t number = basin_dictionary_find(&g->id, id);
    if (!g->base->id.count)
        number = number < 0 ? basin_network_find(g->base, id) : g->base->nodes + number;
    return number < g->nodes ? number : -1;
}

const char *basin_near_id(const basin_near_graph *g, int64_t node, char text[BASIN_NODE_TEXT]) {
    const basin_names *names = &g->id.names.names;
    if (node < g->base->nodes) return basin_network_id(g->base, node, text);
    return names->text + names->at[g->base->id.count ? node : node - g->base->nodes];
}

static basin_near_list base_list(const basin_near_graph *g, int relation, int64_t node, bool back) {
    const basin_relation *r = &g->base->relation[relation], *from = back ? &g->back[relation] : r;
    if (node >= g->base->nodes) return (basin_near_list){.fact = r->fact};
    int64_t at = from->row[node];
    return (basin_near_list){.count = from->row[node + 1] - at,
                             .col = from->col + at,
                             .fact = r->fact,
                             .first = at,
                             .entry = back ? g->entry[relation] + at : NULL};
}

basin_near_list basin_near_sees(const basin_near_graph *g, int relation, int64_t node, bool seen) {
    const basin_near_node *own = g->node[node];
    bool back = seen && g->base->directed;
    const basin_near_list *way =
        own && own->way ? &own->way[relation * BASIN_NEAR_WAYS + back] : NULL;
    return way && way->col ? *way : base_list(g, relation, node, back);
}

int64_t basin_near_degree(const basin_near_graph *g, int64_t node) {
    int ways = 1 + g->base->directed;
    int64_t sum = 0;
    for (int i = 0; i < g->base->relations * ways; i++)
        sum += basin_near_sees(g, i / ways, node, i % ways).count;
    return sum;
}

const float *basin_near_feature(const basin_near_graph *g, int64_t node) {
    const basin_near_node *own = g->node[node];
    if (own && own->feature) return own->feature;
    return g->base->feature + node * g->base->features;
}

/* ---- tables ---- */

/* The first line of a table without rows, as the schema names its columns; free it. */
static basin_status header_of(char **text, const basin_schema_table *table, const char *otherwise,
                              basin_error *error) {
    size_t size = strlen(otherwise) + 2, used = 0;
    for (size_t i = 0; i < table->columns; i++) size += 2 * strlen(table->column[i].name) + 3;
    BASIN_TRY(BASIN_NEW(text, size, "additions", error));
    for (size_t i = 0; i < table->columns; i++) {
        if (table->column[i].type == BASIN_COLUMN_DROPPED) continue;
        if (used) (*text)[used++] = ',';
        (*text)[used++] = '"';
        for (const char *c = table->column[i].name; *c; c++) {
            if (*c == '"') (*text)[used++] = '"';
            (*text)[used++] = *c;
        }
        (*text)[used++] = '"';
    }
    snprintf(*text + used, size - used, "%s\n", used ? "" : otherwise);
    return BASIN_OK;
}

/* Every field of a table that is the id of a node here, once. */
static basin_status name_known(basin_dictionary *named, const basin_near_graph *g,
                               const basin_csv_source *source, basin_error *error) {
    BASIN_AT_EXIT(basin_table_rows_close) basin_table_rows rows;
    bool more;
    BASIN_TRY(basin_table_rows_open(&rows, source, error));
    for (;;) {
        BASIN_TRY(basin_table_rows_next(&rows, &more, error));
        if (!more) return BASIN_OK;
        for (int i = 0; i < (int)rows.columns; i++) {
            const char *field = basin_table_rows_field(&rows, i);
            int32_t number;
            if (*field && basin_near_find(g, field) >= 0)
                BASIN_TRY(basin_dictionary_add(named, &number, field, error));
        }
    }
}

/* A network of the nodes that tables name, as they are here, without edges. It borrows the base's
 * schema. */
static basin_status make_small(basin_network **small, int64_t **node, const basin_near_graph *g,
                               basin_dictionary *named, basin_error *error) {
    const basin_network *base = g->base;
    const basin_names *names = &named->names.names;
    int64_t F = base->feature ? base->features : 0, n = names->count;
    static const int32_t none = 0;
    const basin_edges empty = {&none, &none, BASIN_I32, 2, 0};
    BASIN_TRY(BASIN_NEW_RAW(node, n, "additions", error));
    BASIN_TRY(basin_network_new(small, base->path, n, error));
    basin_network *s = *small;
    s->directed = base->directed;
    if (F) BASIN_TRY(basin_network_alloc_features(s, F, NULL, error));
    for (int64_t i = 0; i < n; i++) {
        (*node)[i] = basin_near_find(g, names->text + names->at[i]);
        if (F)
            memcpy(s->feature + i * F, basin_near_feature(g, (*node)[i]),
                   (size_t)F * sizeof *s->feature);
    }
    if (base->label) BASIN_TRY(BASIN_NEW_RAW(&s->label, n, "additions", error));
    for (int64_t i = 0; i < n && s->label; i++)
        s->label[i] = (*node)[i] < base->nodes ? base->label[(*node)[i]] : -1;
    BASIN_TRY(basin_names_copy(&s->id, names, error));
    BASIN_TRY(basin_names_copy(&s->column, &base->column, error));
    BASIN_TRY(basin_names_copy(&s->class_name, &base->class_name, error));
    BASIN_TRY(basin_facts_copy(&s->facts, &base->facts, error));
    basin_network_options options = {.directed = base->directed};
    for (int r = 0; r < base->relations; r++) {
        BASIN_TRY(basin_network_add_relation(s, base->relation[r].name, &empty, &options, error));
        BASIN_TRY(basin_relation_alloc_facts(&s->relation[r], &s->facts, error));
    }
    return BASIN_OK;
}

/* ---- merging ---- */

/* A merged list: what the node has, and what comes. */
typedef struct merging {
    const basin_facts *facts;
    basin_near_list old, come, to;
} merging;

/* Of an edge that was there, or comes, or both; -1: does not. What additions alone carry is summed
 * by itself, so that it does not matter in how many parts they came. */
static void put_entry(merging *m, int64_t old, int64_t come) {
    int64_t F = m->facts->count, at = m->to.count++;
    int64_t from = old < 0 ? -1 : basin_near_entry(&m->old, old);
    bool owned = old >= 0 && from < 0;
    m->to.col[at] = old < 0 ? m->come.col[come] : m->old.col[old];
    m->to.entry[at] = from;
    if (!F || (come < 0 && !owned)) return;
    float *fact = m->to.own + m->to.owned * 2 * F, *added = fact + F;
    const float *was = old < 0 ? NULL : basin_near_fact(&m->old, old, F);
    m->to.entry[at] = -1 - m->to.owned++;
    memset(fact, 0, 2 * (size_t)F * sizeof *fact);
    if (owned) memcpy(fact, was, 2 * (size_t)F * sizeof *fact);
    if (come < 0) return;
    const float *more = basin_near_fact(&m->come, come, F);
    if (was && !owned) basin_facts_merge(fact, was, m->facts);
    basin_facts_merge(added, more, m->facts);
    basin_facts_merge(fact, more, m->facts);
}

static basin_status merge(merging *m, basin_error *error) {
    size_t most = (size_t)(m->old.count + m->come.count);
    size_t own = (size_t)(m->old.owned + m->come.count) * 2 * (size_t)m->facts->count;
    m->to.fact = m->old.fact;
    BASIN_TRY(BASIN_NEW_RAW(&m->to.col, most, "additions", error));
    BASIN_TRY(BASIN_NEW_RAW(&m->to.entry, most, "additions", error));
    BASIN_TRY(BASIN_NEW_RAW(&m->to.own, own + 1, "additions", error));
    int64_t i = 0, k = 0;
    while (i < m->old.count || k < m->come.count) {
        int32_t a = i < m->old.count ? m->old.col[i] : INT32_MAX;
        int32_t b = k < m->come.count ? m->come.col[k] : INT32_MAX;
        put_entry(m, a <= b ? i : -1, b <= a ? k : -1);
        i += a <= b, k += b <= a;
    }
    return BASIN_OK;
}

/* Lists and features on their way in: everything that may fail comes before the first change. */
typedef struct arrival {
    int64_t node;
    int relation, way; /* of a list; -1: features */
    basin_near_list list;
    float *feature;
} arrival;

typedef struct arrivals {
    basin_near_graph *graph;
    basin_network *tables;
    int64_t *node; /* [known] numbers of the tables' first nodes; others are new */
    int64_t known;
    arrival *item;
    size_t count, capacity;
    int64_t *changed; /* ascending, each once */
    int64_t changes;
} arrivals;

static int64_t number_of(const arrivals *a, int64_t i) {
    return i < a->known ? a->node[i] : a->graph->nodes + i - a->known;
}

typedef struct other {
    int32_t number;
    int64_t edge;
} other;

static int by_number(const void *a, const void *b) {
    return BASIN_COMPARE(((const other *)a)->number, ((const other *)b)->number);
}

static basin_status push(arrivals *a, const arrival *item, basin_error *error) {
    if (!basin_array_reserve((void **)&a->item, &a->capacity, a->count + 1, sizeof *a->item))
        return basin_fail_memory(error, "additions");
    a->item[a->count++] = *item;
    return BASIN_OK;
}

/* The list of the tables' node i along their relation `r`, seen from here, as an arrival. */
static basin_status take_list(arrivals *a, int64_t i, int relation, int way,
                              const basin_relation *r, const basin_near_list *facts,
                              basin_error *error) {
    int64_t count = r->row[i + 1] - r->row[i], number = number_of(a, i);
    const basin_near_graph *g = a->graph;
    BASIN_FREE_AT_EXIT other *list = NULL;
    BASIN_FREE_AT_EXIT int32_t *col = NULL;
    BASIN_FREE_AT_EXIT int64_t *entry = NULL;
    if (!count) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&list, count, "additions", error));
    BASIN_TRY(BASIN_NEW_RAW(&col, count, "additions", error));
    BASIN_TRY(BASIN_NEW_RAW(&entry, count, "additions", error));
    for (int64_t e = 0; e < count; e++) {
        int64_t at = r->row[i] + e;
        list[e] = (other){(int32_t)number_of(a, r->col[at]), facts->entry ? facts->entry[at] : at};
    }
    qsort(list, (size_t)count, sizeof *list, by_number);
    for (int64_t e = 0; e < count; e++) col[e] = list[e].number, entry[e] = list[e].edge;
    merging m = {.facts = &g->base->facts,
                 .old = base_list(g, relation, number, way),
                 .come = {.count = count, .col = col, .fact = facts->fact, .entry = entry}};
    if (number < g->nodes) m.old = basin_near_sees(g, relation, number, way);
    basin_status status = merge(&m, error);
    arrival item = {number, relation, way, m.to, NULL};
    if (!status) status = push(a, &item, error);
    if (status) list_free(&m.to);
    return status;
}

static basin_status take_relation(arrivals *a, int relation, basin_error *error) {
    const basin_network *t = a->tables;
    int own = basin_network_relation(t, a->graph->base->relation[relation].name);
    BASIN_AT_EXIT(basin_relation_free) basin_relation back = {0};
    BASIN_FREE_AT_EXIT int64_t *entry = NULL;
    if (own < 0 || !t->relation[own].edges) return BASIN_OK;
    const basin_relation *r = &t->relation[own];
    if (t->directed) BASIN_TRY(basin_relation_turn(&back, &entry, r, t->nodes, error));
    for (int way = 0; way <= t->directed; way++) {
        basin_near_list facts = {.fact = r->fact, .entry = way ? entry : NULL};
        for (int64_t i = 0; i < t->nodes; i++)
            BASIN_TRY(take_list(a, i, relation, way, way ? &back : r, &facts, error));
    }
    return BASIN_OK;
}

/* Of new nodes, and of those whose columns the tables change. */
static basin_status take_features(arrivals *a, basin_error *error) {
    const basin_network *t = a->tables;
    size_t bytes = (size_t)(t->feature ? t->features : 0) * sizeof *t->feature;
    for (int64_t i = 0; i < t->nodes; i++) {
        const float *from = bytes ? t->feature + i * t->features : NULL;
        bool same = i < a->known &&
                    (!bytes || !memcmp(from, basin_near_feature(a->graph, a->node[i]), bytes));
        arrival item = {.node = number_of(a, i), .relation = -1};
        if (same) continue;
        BASIN_TRY(BASIN_NEW_RAW(&item.feature, bytes / sizeof *from + 1, "additions", error));
        if (bytes) memcpy(item.feature, from, bytes);
        basin_status status = push(a, &item, error);
        if (status) free(item.feature);
        BASIN_TRY(status);
    }
    return BASIN_OK;
}

/* Places for new nodes and for what arrives. */
static basin_status make_places(arrivals *a, basin_error *error) {
    basin_near_graph *g = a->graph;
    size_t nodes = (size_t)(g->nodes + a->tables->nodes - a->known), had = g->capacity;
    if (!basin_array_reserve((void **)&g->node, &g->capacity, nodes, sizeof *g->node))
        return basin_fail_memory(error, "additions");
    memset(g->node + had, 0, (g->capacity - had) * sizeof *g->node);
    BASIN_TRY(BASIN_NEW_RAW(&a->changed, a->count, "additions", error));
    for (size_t i = 0; i < a->count; i++) {
        int64_t number = a->changed[i] = a->item[i].node, ways = g->base->relations * 2;
        if (!g->node[number]) BASIN_TRY(BASIN_NEW(&g->node[number], 1, "additions", error));
        basin_near_node *node = g->node[number];
        if (!node->way) BASIN_TRY(BASIN_NEW(&node->way, ways, "additions", error));
        g->bytes += sizeof *node + (size_t)ways * sizeof *node->way;
    }
    qsort(a->changed, a->count, sizeof *a->changed, basin_compare_int64);
    for (size_t i = 0; i < a->count; i++)
        if (!i || a->changed[i] != a->changed[i - 1]) a->changed[a->changes++] = a->changed[i];
    for (int64_t i = a->known; i < a->tables->nodes; i++) {
        int32_t number;
        const char *id = a->tables->id.text + a->tables->id.at[i];
        BASIN_TRY(basin_dictionary_add(&g->id, &number, id, error));
        if (number != number_of(a, i) - (g->base->id.count ? 0 : g->base->nodes))
            return basin_fail_memory(error, "additions, earlier"); /* an id without its node */
    }
    return BASIN_OK;
}

/* What arrives changes places with what was there: done twice, all is as before. */
static void change_places(arrivals *a) {
    basin_near_graph *g = a->graph;
    for (size_t i = 0; i < a->count; i++) {
        arrival *item = &a->item[i];
        basin_near_node *node = g->node[item->node];
        basin_near_list *to =
            item->relation < 0 ? NULL : &node->way[item->relation * BASIN_NEAR_WAYS + item->way];
        float *feature = node->feature;
        if (to) {
            basin_near_list old = *to;
            *to = item->list, item->list = old;
        } else {
            node->feature = item->feature, item->feature = feature;
        }
    }
}

/* Bytes, and entries of the main relation. */
static void count_up(const arrivals *a) {
    basin_near_graph *g = a->graph;
    int main = basin_network_main_relation(g->base);
    for (const arrival *item = a->item; item < a->item + a->count; item++) {
        const basin_near_list *old = &item->list;
        if (item->relation < 0) continue;
        basin_near_list now = basin_near_sees(g, item->relation, item->node, item->way);
        basin_near_list was = old->col ? *old : base_list(g, item->relation, item->node, item->way);
        g->bytes += (size_t)(now.count - (old->col ? was.count : 0)) * 12 +
                    (size_t)(now.owned - was.owned) * 2 * g->base->facts.count * sizeof(float);
        if (item->relation == (main < 0 ? 0 : main) && !item->way)
            g->added_edges += now.count - was.count;
    }
}

static void arrivals_free(arrivals *a) {
    for (size_t i = 0; i < a->count; i++) {
        list_free(&a->item[i].list);
        free(a->item[i].feature);
    }
    basin_network_free(a->tables);
    free(a->item), free(a->node), free(a->changed);
}

static basin_status read_tables(arrivals *a, const basin_csv_source source[2], basin_error *error) {
    const basin_schema *schema = a->graph->base->schema;
    BASIN_AT_EXIT(basin_dictionary_free) basin_dictionary named = {0};
    BASIN_NETWORK_AT_EXIT basin_network *small = NULL;
    for (int i = 0; i < 2; i++) BASIN_TRY(name_known(&named, a->graph, &source[i], error));
    a->known = named.names.names.count;
    if (a->known) BASIN_TRY(make_small(&small, &a->node, a->graph, &named, error));
    basin_network_options options = {.base = small, .schema = schema};
    return basin_network_csv_read(&a->tables, source, 2, &options, error);
}

/* What trees know of new nodes: they may have been trained on them elsewhere. */
static basin_status find_labels(const basin_near_rows *rows, const arrivals *a,
                                basin_error *error) {
    BASIN_FREE_AT_EXIT int8_t *label = NULL;
    if (!rows->table.label) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&label, a->tables->nodes, "known labels", error));
    basin_known_labels_find(label, &rows->model->ensemble.known, a->tables);
    for (int64_t i = a->known; i < a->tables->nodes; i++)
        a->graph->node[number_of(a, i)]->label = label[i];
    return BASIN_OK;
}

static basin_status add(basin_near_rows *rows, arrivals *a, const basin_csv_source source[2],
                        basin_error *error) {
    basin_near_graph *g = a->graph;
    BASIN_TRY(read_tables(a, source, error));
    BASIN_TRY(take_features(a, error));
    for (int r = 0; r < g->base->relations; r++) BASIN_TRY(take_relation(a, r, error));
    BASIN_TRY(make_places(a, error));
    BASIN_TRY(find_labels(rows, a, error));
    int64_t more = a->tables->nodes - a->known;
    change_places(a);
    g->nodes += more;
    basin_status status = basin_near_rows_renew(rows, a->changed, a->changes, error);
    if (!status) return count_up(a), BASIN_OK;
    change_places(a);
    g->nodes -= more;
    while (a->changes && a->changed[a->changes - 1] >= g->nodes) a->changes--;
    (void)basin_near_rows_renew(rows, a->changed, a->changes, NULL);
    return status;
}

basin_status basin_near_add(basin_near_rows *rows, const char *nodes, const char *edges,
                            basin_error *error) {
    const basin_schema *schema = rows->graph->base->schema;
    BASIN_AT_EXIT(arrivals_free) arrivals a = {.graph = rows->graph};
    BASIN_FREE_AT_EXIT char *no_nodes = NULL, *no_edges = NULL;
    if (!schema)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: a network without a schema; wanted one that was read from files",
                          rows->graph->base->path);
    BASIN_TRY(header_of(&no_nodes, &schema->nodes, "id", error));
    BASIN_TRY(header_of(&no_edges, &schema->edges, "source,target", error));
    if (!nodes) nodes = no_nodes;
    if (!edges) edges = no_edges;
    basin_csv_source source[] = {{"nodes", nodes, strlen(nodes), false},
                                 {"edges", edges, strlen(edges), false}};
    return add(rows, &a, source, error);
}
