/* A base with additions; see near.h. */
#include "base/sort.h"
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

void basin_near_list_free(basin_near_list *l) { free(l->col), free(l->entry), free(l->own); }

void basin_near_graph_close(basin_near_graph *g) {
    for (size_t i = 0; i < g->capacity; i++) {
        basin_near_node *node = g->node[i];
        if (!node) continue;
        for (int w = 0; w < 2 * g->base->relations && node->way; w++)
            basin_near_list_free(&node->way[w]);
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

const char *basin_near_id(const basin_near_graph *g, int64_t node, char text[BASIN_MAX_NODE]) {
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
    int64_t sum = 0;
    for (int i = 0; i < basin_near_ways(g); i++) sum += basin_near_way(g, i, node).count;
    return sum;
}

/* ---- the order of ids ---- */

bool basin_near_before(const basin_near_graph *g, int64_t node, int64_t other) {
    char text[2][BASIN_MAX_NODE];
    if (node < g->base->nodes && other < g->base->nodes) return node < other;
    return basin_id_compare(basin_near_id(g, node, text[0]), basin_near_id(g, other, text[1])) < 0;
}

int64_t basin_near_place(const basin_near_graph *g, const basin_near_list *list, int64_t node) {
    int64_t low = 0, high = list->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2, at = list->col[middle];
        bool before = g ? basin_near_before(g, at, node) : at < node;
        *(before ? &low : &high) = middle + before;
    }
    return low;
}

typedef struct sorted_node {
    const basin_near_graph *graph;
    int64_t node;
} sorted_node;

static int by_order(const void *a, const void *b) {
    const sorted_node *x = a, *y = b;
    return basin_near_before(y->graph, y->node, x->node) -
           basin_near_before(x->graph, x->node, y->node);
}

basin_status basin_near_sort(int64_t *node, int64_t *count, const basin_near_graph *g,
                             basin_error *error) {
    int64_t kept = 0;
    BASIN_SCRATCH_RAW(sorted_node, list, *count, "a neighbourhood", error);
    for (int64_t i = 0; i < *count; i++) list[i] = (sorted_node){g, node[i]};
    if (*count) qsort(list, (size_t)*count, sizeof *list, by_order);
    for (int64_t i = 0; i < *count; i++)
        if (!kept || list[i].node != node[kept - 1]) node[kept++] = list[i].node;
    *count = kept;
    return BASIN_OK;
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
    int64_t n = part->nodes, F = g->base->facts.count, max = 0, at = 0;
    basin_relation *to;
    BASIN_TRY(basin_network_new_relation(&to, part, g->base->relation[r].name, error));
    BASIN_TRY(BASIN_NEW(&to->row, n + 1, "a neighbourhood", error));
    for (int64_t i = 0; i < n; i++)
        max += basin_int_min(n, basin_near_sees(g, r, part->origin[i], false).count);
    to->edges = max;
    BASIN_TRY(BASIN_NEW_RAW(&to->col, max + 1, "a neighbourhood", error));
    BASIN_TRY(basin_relation_alloc_facts(to, &part->facts, error));
    for (int64_t i = 0; i < n; i++) {
        basin_near_list list = basin_near_sees(g, r, part->origin[i], false);
        for (int64_t k = 0, p = 0; k < list.count && p < n;) {
            if (list.col[k] != part->origin[p]) {
                *(basin_near_before(g, list.col[k], part->origin[p]) ? &k : &p) += 1;
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
    s->directed = base->directed, s->both = base->both, s->schema = base->schema;
    if (F) BASIN_TRY(basin_network_alloc_features(s, F, NULL, error));
    if (base->label) BASIN_TRY(BASIN_NEW_RAW(&s->label, n, "a neighbourhood", error));
    if (g->known) BASIN_TRY(BASIN_NEW_RAW(&s->known, n, "known labels", error));
    s->knows = g->knows;
    for (int64_t i = 0; i < n; i++) {
        int64_t node = s->origin[i];
        char text[BASIN_MAX_NODE];
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
    basin_network_close(*part);
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
