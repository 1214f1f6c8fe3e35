/* What explanations of trees and of the network share: neighbours, slots, shares; see net.h. */
#include "base/sort.h"
#include "tasks/nodes/net.h"

/* Copies a row, where `to` is not NULL; its length. */
static int64_t copy_row(int64_t *to, const basin_relation *r, int64_t node) {
    int64_t degree = r->row ? r->row[node + 1] - r->row[node] : 0;
    for (int64_t e = 0; e < degree && to; e++) to[e] = r->col[r->row[node] + e];
    return degree;
}

basin_status basin_explainer_list(int64_t **neighbour, int64_t *count, const basin_explainer *x,
                                  int64_t node, basin_error *error) {
    int64_t all = 0, kept = 0;
    for (int r = 0; r < x->relations; r++)
        all += copy_row(NULL, x->relation[r], node) + copy_row(NULL, &x->back[r], node);
    BASIN_TRY(BASIN_NEW_RAW(neighbour, all, "neighbours", error));
    int64_t *list = *neighbour, at = 0;
    for (int r = 0; r < x->relations; r++) {
        at += copy_row(list + at, x->relation[r], node);
        at += copy_row(list + at, &x->back[r], node);
    }
    qsort(list, (size_t)all, sizeof *list, basin_compare_int64);
    for (int64_t i = 0; i < all; i++)
        if (list[i] != node && (!kept || list[i] != list[kept - 1])) list[kept++] = list[i];
    *count = kept;
    return BASIN_OK;
}

static int by_node(const void *a, const void *b) {
    const basin_nodes_neighbour *x = a, *y = b;
    return BASIN_COMPARE(x->node, y->node);
}

static basin_nodes_neighbour *find(const basin_nodes_explanation *e, int64_t node) {
    const basin_nodes_neighbour key = {.node = node};
    return bsearch(&key, e->neighbour, (size_t)e->neighbours, sizeof key, by_node);
}

void basin_explainer_add(basin_nodes_explanation *e, const basin_explainer *x, int64_t slot,
                         int64_t hop, double moves) {
    e->feature[basin_int_min(hop, x->hops) * x->slots + slot].share += moves;
}

void basin_explainer_push(basin_nodes_explanation *e, int64_t neighbour, double moves) {
    basin_nodes_neighbour *at = find(e, neighbour);
    *(at ? &at->push : &e->own) += moves;
}

basin_status basin_explainer_push_between(basin_nodes_explanation *e, const basin_explainer *x,
                                          int64_t node, double moves, basin_error *error) {
    BASIN_FREE_AT_EXIT int64_t *next = NULL;
    int64_t count, between = 0;
    BASIN_TRY(basin_explainer_list(&next, &count, x, node, error));
    for (int64_t i = 0; i < count; i++) between += find(e, next[i]) != NULL;
    for (int64_t i = 0; i < count; i++) {
        basin_nodes_neighbour *at = find(e, next[i]);
        if (at) at->push += moves / (double)between;
    }
    return BASIN_OK;
}

int64_t basin_explainer_slot(const basin_explainer *x, int64_t column, const int *relation,
                             int degrees) {
    int64_t beyond = column - x->features;
    if (beyond < 0) return column;
    if (beyond < degrees) return x->features + (x->network->both ? beyond : relation[beyond]);
    beyond -= degrees;
    return basin_explainer_fact_slot(x, relation[beyond / x->facts], beyond % x->facts);
}
