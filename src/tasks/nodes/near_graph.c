/* A base with additions; see near.h. */
#include "base/sort.h"
#include "tasks/common/table/table.h"
#include "tasks/nodes/near.h"

/* ---- opening ---- */

basin_status basin_near_graph_open(basin_near_graph *g, const basin_network *base,
                                   const basin_nodes_ensemble *ensemble, basin_error *error) {
    *g = (basin_near_graph){.base = base, .nodes = base->nodes, .now = base->facts.now};
    if (base->relations > BASIN_TREE_RELATIONS)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: %d relations; single nodes need at most %d", base->path,
                          base->relations, BASIN_TREE_RELATIONS);
    BASIN_TRY(BASIN_NEW(&g->node, base->nodes, "nodes", error));
    g->capacity = (size_t)base->nodes;
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
    if (!ensemble->known.count) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&g->known, base->nodes, "known labels", error));
    g->knows = basin_known_labels_find(g->known, &ensemble->known, base);
    return BASIN_OK;
}

static void list_free(basin_near_list *l) { free(l->col), free(l->entry), free(l->own); }

void basin_near_graph_close(basin_near_graph *g) {
    for (size_t i = 0; i < g->capacity; i++) {
        basin_near_node *node = g->node[i];
        if (!node) continue;
        for (int w = 0; w < 2 * g->base->relations && node->way; w++) list_free(&node->way[w]);
        free(node->way), free(node->feature), free(node->row), free(node);
    }
    for (int r = 0; r < BASIN_TREE_RELATIONS; r++)
        basin_relation_free(&g->back[r]), free(g->entry[r]);
    free(g->node), free(g->known);
    basin_dictionary_free(&g->id);
}

/* ---- looking ---- */

int64_t basin_near_find(const basin_near_graph *g, const char *id) {
    int64_t number = basin_dictionary_find(&g->id, id);
    if (!g->base->id.count)
        number = number < 0 ? basin_network_find(g->base, id) : g->base->nodes + number;
    return number < g->nodes ? number : -1;
}

const char *basin_near_id(const basin_near_graph *g, int64_t node, char text[BASIN_NODE_TEXT]) {
    const basin_names *names = &g->id.names;
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
    const basin_near_list *way = own && own->way ? &own->way[relation * 2 + back] : NULL;
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

int8_t basin_near_known(const basin_near_graph *g, int64_t node) {
    return node < g->base->nodes ? g->known[node] : g->node[node]->known;
}

/* ---- parts ---- */

static basin_status induce(basin_network *part, const basin_near_graph *g, int r,
                           basin_error *error) {
    int64_t n = part->nodes, F = g->base->facts.count, most = 0, at = 0;
    basin_relation *to;
    BASIN_TRY(basin_network_new_relation(&to, part, g->base->relation[r].name, error));
    BASIN_TRY(BASIN_NEW(&to->row, n + 1, "a neighbourhood", error));
    for (int64_t i = 0; i < n; i++)
        most += basin_int_min(n, basin_near_sees(g, r, part->origin[i], false).count);
    to->edges = most;
    BASIN_TRY(BASIN_NEW_RAW(&to->col, most + 1, "a neighbourhood", error));
    BASIN_TRY(basin_relation_alloc_facts(to, &part->facts, error));
    for (int64_t i = 0; i < n; i++) {
        basin_near_list list = basin_near_sees(g, r, part->origin[i], false);
        for (int64_t k = 0, p = 0; k < list.count && p < n;) {
            if (list.col[k] != part->origin[p]) {
                *(list.col[k] < part->origin[p] ? &k : &p) += 1;
                continue;
            }
            if (F)
                memcpy(to->fact + at * F, basin_near_fact(&list, k, F),
                       (size_t)F * sizeof *to->fact);
            to->col[at++] = (int32_t)p, k++;
        }
        to->row[i + 1] = at;
    }
    to->edges = at;
    return BASIN_OK;
}

static basin_status fill_part(basin_network *s, const basin_near_graph *g, basin_error *error) {
    const basin_network *base = g->base;
    int64_t F = base->feature ? base->features : 0, n = s->nodes;
    s->directed = base->directed, s->schema = base->schema;
    if (F) BASIN_TRY(basin_network_alloc_features(s, F, NULL, error));
    if (base->label) BASIN_TRY(BASIN_NEW_RAW(&s->label, n, "a neighbourhood", error));
    if (g->known) BASIN_TRY(BASIN_NEW_RAW(&s->known, n, "known labels", error));
    s->knows = g->knows;
    for (int64_t i = 0; i < n; i++) {
        int64_t node = s->origin[i];
        char text[BASIN_NODE_TEXT];
        if (F) memcpy(s->feature + i * F, basin_near_feature(g, node), (size_t)F * sizeof(float));
        if (s->label) s->label[i] = node < base->nodes ? base->label[node] : -1;
        if (s->known) s->known[i] = basin_near_known(g, node);
        BASIN_TRY(basin_names_add(&s->id, basin_near_id(g, node, text), error));
    }
    BASIN_TRY(basin_names_copy(&s->column, &base->column, error));
    BASIN_TRY(basin_names_copy(&s->class_name, &base->class_name, error));
    BASIN_TRY(basin_facts_copy(&s->facts, &base->facts, error));
    s->facts.now = g->now;
    for (int r = 0; r < base->relations; r++) BASIN_TRY(induce(s, g, r, error));
    return BASIN_OK;
}

void basin_near_part_free(basin_network **part) {
    if (*part) (*part)->schema = NULL;
    basin_network_free(*part);
    *part = NULL;
}

basin_status basin_near_part(basin_network **part, const basin_near_graph *g, const int64_t *node,
                             int64_t count, basin_error *error) {
    BASIN_TRY(basin_network_new(part, g->base->path, count, error));
    basin_status status = BASIN_NEW_RAW(&(*part)->origin, count, "a neighbourhood", error);
    if (!status) memcpy((*part)->origin, node, (size_t)count * sizeof *node);
    if (!status) status = fill_part(*part, g, error);
    if (status) basin_near_part_free(part);
    return status;
}

/* ---- additions ---- */

/* A list or features on their way in: everything that may fail comes before the first change. */
typedef struct arrival {
    int64_t node;
    int way; /* of a list; -1: features */
    basin_near_list list;
    float *feature;
} arrival;

typedef struct arrivals {
    basin_near_graph *graph;
    basin_network *small, *tables; /* what the tables name, without and with them */
    int64_t known;                 /* nodes of the tables that are here; others are new */
    arrival *item;
    size_t count, capacity;
    int64_t *changed; /* ascending, each once */
    int64_t changes;
} arrivals;

static int64_t number_of(const arrivals *a, int64_t i) {
    return i < a->known ? a->small->origin[i] : a->graph->nodes + i - a->known;
}

/* Every field of a table that is the id of a node here. */
static basin_status name_known(int64_t **node, size_t *count, size_t *capacity,
                               const basin_near_graph *g, const basin_csv_source *source,
                               basin_error *error) {
    BASIN_AT_EXIT(basin_table_rows_close) basin_table_rows rows;
    bool more;
    BASIN_TRY(basin_table_rows_open(&rows, source, error));
    for (;;) {
        BASIN_TRY(basin_table_rows_next(&rows, &more, error));
        if (!more) return BASIN_OK;
        BASIN_TRY(BASIN_GROW(node, capacity, *count + rows.columns, "additions", error));
        for (int i = 0; i < (int)rows.columns; i++) {
            const char *field = basin_table_rows_field(&rows, i);
            int64_t number = *field ? basin_near_find(g, field) : -1;
            if (number >= 0) (*node)[(*count)++] = number;
        }
    }
}

static int64_t sort_once(int64_t *list, size_t count) {
    int64_t kept = 0;
    if (count) qsort(list, count, sizeof *list, basin_compare_int64);
    for (size_t i = 0; i < count; i++)
        if (!kept || list[i] != list[kept - 1]) list[kept++] = list[i];
    return kept;
}

static basin_status read_tables(arrivals *a, const basin_csv_source *source, int sources,
                                basin_error *error) {
    basin_network_options options = {.schema = a->graph->base->schema};
    BASIN_FREE_AT_EXIT int64_t *named = NULL;
    size_t count = 0, capacity = 0;
    for (int i = 0; i < sources; i++)
        BASIN_TRY(name_known(&named, &count, &capacity, a->graph, &source[i], error));
    const int64_t any = 0; /* tables add to something */
    a->known = basin_int_max(sort_once(named, count), 1);
    BASIN_TRY(basin_near_part(&a->small, a->graph, count ? named : &any, a->known, error));
    options.base = a->small;
    BASIN_TRY(basin_network_csv_read(&a->tables, source, sources, &options, error));
    return basin_network_finish(a->tables, &options, error);
}

static basin_status push(arrivals *a, const arrival *item, basin_error *error) {
    BASIN_TRY(BASIN_GROW(&a->item, &a->capacity, a->count + 1, "additions", error));
    a->item[a->count++] = *item;
    return BASIN_OK;
}

/* What the node has, and row i of what comes: edges of both carry what comes says. */
static basin_status merge(basin_near_list *to, const arrivals *a, const basin_near_list *old,
                          const basin_relation *come, const int64_t *entry, int64_t i,
                          const float *fact, basin_error *error) {
    int64_t k = 0, e = come->row[i], end = come->row[i + 1], F = a->graph->base->facts.count;
    size_t most = (size_t)(old->count + end - e), own = (size_t)(old->owned + end - e);
    size_t bytes = (size_t)F * sizeof(float);
    *to = (basin_near_list){.fact = old->fact};
    BASIN_TRY(BASIN_NEW_RAW(&to->col, most + 1, "additions", error));
    BASIN_TRY(BASIN_NEW_RAW(&to->entry, most + 1, "additions", error));
    BASIN_TRY(BASIN_NEW_RAW(&to->own, own * (size_t)F + 1, "additions", error));
    while (k < old->count || e < end) {
        int64_t x = k < old->count ? old->col[k] : INT64_MAX;
        int64_t y = e < end ? number_of(a, come->col[e]) : INT64_MAX;
        int64_t from = x > y ? -1 : old->entry ? old->entry[k] : old->first + k;
        const float *one = y <= x     ? fact + (entry ? entry[e] : e) * F
                           : from < 0 ? basin_near_fact(old, k, F)
                                      : NULL;
        if (one && F) memcpy(to->own + to->owned * F, one, bytes);
        to->col[to->count] = (int32_t)(x < y ? x : y);
        to->entry[to->count++] = one ? -1 - to->owned++ : from;
        k += x <= y, e += y <= x;
    }
    return BASIN_OK;
}

static basin_status take_relation(arrivals *a, int relation, basin_error *error) {
    const basin_network *t = a->tables;
    const basin_near_graph *g = a->graph;
    int own = basin_network_relation(t, g->base->relation[relation].name);
    BASIN_AT_EXIT(basin_relation_free) basin_relation back = {0};
    BASIN_FREE_AT_EXIT int64_t *entry = NULL;
    if (own < 0 || !t->relation[own].edges) return BASIN_OK;
    const basin_relation *r = &t->relation[own];
    if (t->directed) BASIN_TRY(basin_relation_turn(&back, &entry, r, t->nodes, error));
    for (int64_t i = 0; i < t->nodes * (1 + t->directed); i++) {
        int64_t at = i % t->nodes, node = number_of(a, at);
        bool way = i >= t->nodes;
        const basin_relation *come = way ? &back : r;
        arrival item = {.node = node, .way = relation * 2 + way};
        basin_near_list old = node < g->nodes ? basin_near_sees(g, relation, node, way)
                                              : base_list(g, relation, node, way);
        if (come->row[at] == come->row[at + 1]) continue;
        basin_status status =
            merge(&item.list, a, &old, come, way ? entry : NULL, at, r->fact, error);
        if (!status) status = push(a, &item, error);
        if (status) list_free(&item.list);
        BASIN_TRY(status);
    }
    return BASIN_OK;
}

/* Of new nodes, and of those whose columns the tables change. */
static basin_status take_features(arrivals *a, basin_error *error) {
    const basin_network *t = a->tables;
    size_t bytes = (size_t)(t->feature ? t->features : 0) * sizeof *t->feature;
    for (int64_t i = 0; i < t->nodes; i++) {
        const float *from = bytes ? t->feature + i * t->features : NULL;
        arrival item = {.node = number_of(a, i), .way = -1};
        if (i < a->known && (!bytes || !memcmp(from, a->small->feature + i * t->features, bytes)))
            continue;
        BASIN_TRY(BASIN_NEW_RAW(&item.feature, bytes / sizeof *from + 1, "additions", error));
        if (bytes) memcpy(item.feature, from, bytes);
        basin_status status = push(a, &item, error);
        if (status) free(item.feature);
        BASIN_TRY(status);
    }
    return BASIN_OK;
}

static basin_status make_places(arrivals *a, const basin_near_rows *rows, basin_error *error) {
    basin_near_graph *g = a->graph;
    size_t nodes = (size_t)(g->nodes + a->tables->nodes - a->known), had = g->capacity;
    int64_t ways = 2 * g->base->relations, size = basin_near_rows_size(rows);
    BASIN_TRY(BASIN_GROW(&g->node, &g->capacity, nodes, "additions", error));
    memset(g->node + had, 0, (g->capacity - had) * sizeof *g->node);
    BASIN_TRY(BASIN_NEW_RAW(&a->changed, a->count, "additions", error));
    for (size_t i = 0; i < a->count; i++) {
        basin_near_node **node = &g->node[a->changed[i] = a->item[i].node];
        if (!*node) BASIN_TRY(BASIN_NEW(node, 1, "additions", error));
        if (!(*node)->way) BASIN_TRY(BASIN_NEW(&(*node)->way, ways, "additions", error));
        if ((*node)->row || !size) continue;
        float *row = NULL;
        BASIN_TRY(BASIN_NEW(&row, size, "additions", error));
        basin_near_rows_begin(row, rows, a->item[i].node);
        (*node)->row = row;
    }
    a->changes = sort_once(a->changed, a->count);
    for (int64_t i = a->known; i < a->tables->nodes; i++) {
        int32_t number;
        const char *id = a->tables->id.text + a->tables->id.at[i];
        BASIN_TRY(basin_dictionary_add(&g->id, &number, id, error));
        if (number != number_of(a, i) - (g->base->id.count ? 0 : g->base->nodes))
            return basin_fail_memory(error, "additions, earlier"); /* an id without its node */
    }
    return BASIN_OK;
}

/* What trees know of new nodes: they may have been trained on them elsewhere. */
static basin_status find_labels(const arrivals *a, const basin_nodes_ensemble *e,
                                basin_error *error) {
    if (!a->graph->known) return BASIN_OK;
    BASIN_SCRATCH_RAW(int8_t, label, a->tables->nodes, "known labels", error);
    basin_known_labels_find(label, &e->known, a->tables);
    for (int64_t i = a->known; i < a->tables->nodes; i++)
        a->graph->node[number_of(a, i)]->known = label[i];
    return BASIN_OK;
}

static void arrive(arrivals *a) {
    basin_near_graph *g = a->graph;
    int main = basin_network_main_relation(g->base), counted = main < 0 ? 0 : 2 * main;
    size_t edge = (size_t)g->base->facts.count * sizeof(float);
    g->nodes += a->tables->nodes - a->known;
    g->now = fmax(g->now, a->tables->facts.now);
    g->changes += a->changes;
    g->bytes += a->count * sizeof(basin_near_node);
    for (arrival *item = a->item; item < a->item + a->count; item++) {
        basin_near_node *node = g->node[item->node];
        if (item->way < 0) {
            float *old = node->feature;
            node->feature = item->feature, item->feature = old;
            continue;
        }
        basin_near_list was = basin_near_sees(g, item->way / 2, item->node, item->way % 2);
        basin_near_list *to = &node->way[item->way], old = *to;
        if (item->way == counted) g->added_edges += item->list.count - was.count;
        g->bytes += (size_t)(item->list.count - old.count) * 12 +
                    (size_t)(item->list.owned - old.owned) * edge;
        *to = item->list, item->list = old;
    }
}

static void arrivals_free(arrivals *a) {
    for (size_t i = 0; i < a->count; i++) list_free(&a->item[i].list), free(a->item[i].feature);
    basin_near_part_free(&a->small);
    basin_network_free(a->tables);
    free(a->item), free(a->changed);
}

basin_status basin_near_add(basin_near_graph *g, const basin_near_rows *rows, const char *nodes,
                            const char *edges, basin_error *error) {
    BASIN_AT_EXIT(arrivals_free) arrivals a = {.graph = g};
    basin_csv_source source[2];
    int sources = 0;
    if (!g->base->schema)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: a network without a schema; needs one that was read from files",
                          g->base->path);
    if (nodes) source[sources++] = (basin_csv_source){"nodes", nodes, strlen(nodes), false};
    if (edges) source[sources++] = (basin_csv_source){"edges", edges, strlen(edges), false};
    if (!sources) return BASIN_OK;
    BASIN_TRY(read_tables(&a, source, sources, error));
    BASIN_TRY(take_features(&a, error));
    for (int r = 0; r < g->base->relations; r++) BASIN_TRY(take_relation(&a, r, error));
    BASIN_TRY(make_places(&a, rows, error));
    BASIN_TRY(find_labels(&a, &rows->model->ensemble, error));
    arrive(&a);
    basin_near_rows_renew(rows, a.changed, a.changes);
    return BASIN_OK;
}
