/* Tables that add nodes and edges to a base; see near.h. */
#include "base/sort.h"
#include "tasks/common/table/table.h"
#include "tasks/nodes/near.h"

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
    basin_network *ordered;        /* the latter in the order of ids; NULL: it is */
    int64_t known;                 /* nodes of the tables that are here; others are new */
    arrival *item;
    size_t count, capacity;
    int64_t *changed; /* sorted, each once */
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

static basin_status read_tables(arrivals *a, const basin_csv_source *source, int sources,
                                basin_error *error) {
    const basin_network *base = a->graph->base;
    basin_network_options options = {.schema = base->schema};
    BASIN_FREE_AT_EXIT int64_t *named = NULL;
    size_t count = 0, capacity = 0;
    for (int i = 0; i < sources; i++)
        BASIN_TRY(name_known(&named, &count, &capacity, a->graph, &source[i], error));
    const int64_t any = 0; /* tables add to something */
    a->known = (int64_t)count;
    BASIN_TRY(basin_near_sort(named, &a->known, a->graph, error));
    a->known = basin_int_max(a->known, 1);
    BASIN_TRY(basin_near_part(&a->small, a->graph, count ? named : &any, a->known, error));
    if (base->both) BASIN_TRY(basin_network_one_way(a->small, base->schema->relation.text, error));
    options.base = a->small;
    BASIN_TRY(basin_network_csv_read(&a->tables, source, sources, &options, error));
    BASIN_TRY(basin_network_finish(a->tables, &options, error));
    return (base->both ? basin_network_both_ways : basin_network_ordered)(&a->ordered, a->tables,
                                                                          error);
}

/* Node i of the tables in the order of ids. */
static int64_t at_place(const arrivals *a, int64_t i) {
    return a->ordered ? a->ordered->origin[i] : i;
}

/* Whether a node that is here comes before node i of the tables. */
static bool is_before(const arrivals *a, int64_t node, int64_t i) {
    char text[2][BASIN_MAX_NODE];
    if (i < a->known) return basin_near_before(a->graph, node, number_of(a, i));
    return basin_id_compare(basin_near_id(a->graph, node, text[0]),
                            basin_network_id(a->tables, i, text[1])) < 0;
}

static basin_status push(arrivals *a, const arrival *item, basin_error *error) {
    BASIN_TRY(BASIN_GROW(&a->item, &a->capacity, a->count + 1, "additions", error));
    a->item[a->count++] = *item;
    return BASIN_OK;
}

/* What the node has, and row i of what comes: an edge of both carries the new facts. */
static basin_status merge(basin_near_list *to, const arrivals *a, const basin_near_list *old,
                          const basin_relation *come, const int64_t *entry, int64_t i,
                          const float *fact, basin_error *error) {
    int64_t k = 0, e = come->row[i], end = come->row[i + 1], F = a->graph->base->facts.count;
    size_t max = (size_t)(old->count + end - e), own = (size_t)(old->owned + end - e);
    size_t bytes = (size_t)F * sizeof(float);
    *to = (basin_near_list){.fact = old->fact};
    BASIN_TRY(BASIN_NEW_RAW(&to->col, max + 1, "additions", error));
    BASIN_TRY(BASIN_NEW_RAW(&to->entry, max + 1, "additions", error));
    BASIN_TRY(BASIN_NEW_RAW(&to->own, own * (size_t)F + 1, "additions", error));
    while (k < old->count || e < end) {
        int64_t next = e < end ? at_place(a, come->col[e]) : -1;
        int64_t x = k < old->count ? old->col[k] : -1, y = next < 0 ? -1 : number_of(a, next);
        bool both = x == y, ours = y < 0 || (x >= 0 && !both && is_before(a, x, next));
        int64_t from = !ours ? -1 : old->entry ? old->entry[k] : old->first + k;
        const float *one = !F         ? NULL
                           : !ours    ? fact + (entry ? entry[e] : e) * F
                           : from < 0 ? basin_near_fact(old, k, F)
                                      : NULL;
        if (one) memcpy(to->own + to->owned * F, one, bytes);
        to->col[to->count] = (int32_t)(ours ? x : y);
        to->entry[to->count++] = one ? -1 - to->owned++ : from;
        k += ours || both, e += !ours;
    }
    return BASIN_OK;
}

static void arrival_free(arrival *item) { basin_near_list_free(&item->list), free(item->feature); }

static basin_status take_relation(arrivals *a, int relation, basin_error *error) {
    const basin_network *t = a->ordered ? a->ordered : a->tables;
    const basin_near_graph *g = a->graph;
    int own = basin_network_relation(t, g->base->relation[relation].name);
    BASIN_AT_EXIT(basin_relation_free) basin_relation back = {0};
    BASIN_FREE_AT_EXIT int64_t *entry = NULL;
    if (own < 0 || !t->relation[own].edges) return BASIN_OK;
    const basin_relation *r = &t->relation[own];
    if (t->directed) BASIN_TRY(basin_relation_turn(&back, &entry, r, t->nodes, error));
    for (int64_t i = 0; i < t->nodes * (1 + t->directed); i++) {
        int64_t at = i % t->nodes, node = number_of(a, at_place(a, at));
        bool way = i >= t->nodes;
        const basin_relation *come = way ? &back : r;
        arrival item = {.node = node, .way = relation * 2 + way};
        basin_near_list old = {.fact = g->base->relation[relation].fact};
        if (node < g->nodes) old = basin_near_sees(g, relation, node, way);
        if (come->row[at] == come->row[at + 1]) continue;
        BASIN_TRY_OR(merge(&item.list, a, &old, come, way ? entry : NULL, at, r->fact, error),
                     arrival_free(&item));
        BASIN_TRY_OR(push(a, &item, error), arrival_free(&item));
    }
    return BASIN_OK;
}

/* New nodes, and those whose columns the tables change. */
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
        BASIN_TRY_OR(push(a, &item, error), arrival_free(&item));
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
    return BASIN_OK;
}

/* Names new nodes, by which changed ones are sorted. */
static basin_status name_new(arrivals *a, basin_error *error) {
    for (int64_t i = a->known; i < a->tables->nodes; i++) {
        int32_t number;
        const char *id = a->tables->id.text + a->tables->id.at[i];
        BASIN_TRY(basin_dictionary_add(&a->graph->id, &number, id, error));
    }
    a->changes = (int64_t)a->count;
    return basin_near_sort(a->changed, &a->changes, a->graph, error);
}

/* The last things that may fail: new ids, and what the caller does before nodes and edges are here.
 */
static basin_status commit(arrivals *a, const basin_near_commit *by, basin_error *error) {
    int64_t names = a->graph->id.names.count;
    basin_status status = name_new(a, error);
    if (!status && by) status = by->run(by->context, error);
    if (status) basin_dictionary_shorten(&a->graph->id, names);
    return status;
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
    int main = g->base->both ? BASIN_COME : basin_network_main_relation(g->base);
    int counted = main < 0 ? 0 : 2 * main;
    size_t edge = (size_t)g->base->facts.count * sizeof(float);
    g->nodes += a->tables->nodes - a->known;
    g->now = fmax(g->now, a->tables->facts.now);
    g->changes += a->changes;
    g->bytes += a->count * sizeof(basin_near_node);
    for (size_t i = 0; i < a->count; i++) {
        arrival *item = &a->item[i];
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
    for (size_t i = 0; i < a->count; i++) arrival_free(&a->item[i]);
    basin_near_part_free(&a->small);
    basin_network_close(a->tables);
    basin_network_close(a->ordered);
    free(a->item), free(a->changed);
}

basin_status basin_near_add(basin_near_graph *g, const basin_near_rows *rows, const char *nodes,
                            const char *edges, const basin_near_commit *by, basin_error *error) {
    BASIN_AT_EXIT(arrivals_free) arrivals a = {.graph = g};
    basin_csv_source source[2];
    int sources = 0;
    if (!g->base->schema)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: a network without a schema; needs one that was read from files",
                          g->base->path);
    if (nodes) source[sources++] = (basin_csv_source){"nodes", nodes, strlen(nodes), false, true};
    if (edges) source[sources++] = (basin_csv_source){"edges", edges, strlen(edges), false, true};
    if (!sources) return BASIN_OK;
    BASIN_TRY(read_tables(&a, source, sources, error));
    BASIN_TRY(take_features(&a, error));
    for (int r = 0; r < g->base->relations; r++) BASIN_TRY(take_relation(&a, r, error));
    BASIN_TRY(make_places(&a, rows, error));
    BASIN_TRY(find_labels(&a, &rows->model->ensemble, error));
    BASIN_TRY(commit(&a, by, error));
    arrive(&a);
    basin_near_rows_renew(rows, a.changed, a.changes);
    return BASIN_OK;
}
