/* Neighbours of nodes, whichever way edges go; see explain.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/nodes/explain/explain.h"

/* The same edges, seen from the other end. */
static basin_status turn_back(basin_relation *back, const basin_relation *from, int64_t nodes,
                              basin_error *error) {
    back->row = calloc((size_t)nodes + 2, sizeof *back->row);
    back->col = basin_array_new((size_t)from->edges, sizeof *back->col);
    back->edges = from->edges;
    if (!back->row || !back->col)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the edges of a graph");
    for (int64_t e = 0; e < from->edges; e++) back->row[from->col[e] + 2]++;
    for (int64_t i = 0; i < nodes; i++) back->row[i + 2] += back->row[i + 1];
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t e = from->row[i]; e < from->row[i + 1]; e++)
            back->col[back->row[from->col[e] + 1]++] = (int32_t)i;
    return BASIN_OK;
}

basin_status basin_vicinity_open(basin_vicinity *near, const basin_network *network,
                                 const int *relation, int relations, basin_error *error) {
    basin_status status = BASIN_OK;
    *near = (basin_vicinity){.network = network};
    for (int i = 0; i < relations && !status; i++) {
        const basin_relation *own = &network->relation[relation[i]];
        bool twice = false;
        for (int k = 0; k < near->relations; k++) twice = twice || near->relation[k] == own;
        if (twice) continue;
        near->relation[near->relations] = own;
        if (network->directed)
            status = turn_back(&near->back[near->relations], own, network->nodes, error);
        near->relations++;
    }
    return status;
}

void basin_vicinity_close(basin_vicinity *near) {
    for (int i = 0; i < near->relations; i++) free(near->back[i].row), free(near->back[i].col);
    *near = (basin_vicinity){0};
}

static int lower_first(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t degree_of(const basin_relation *r, int64_t node) {
    return r->row ? r->row[node + 1] - r->row[node] : 0;
}

static int64_t copy_row(int64_t *to, const basin_relation *r, int64_t node) {
    int64_t degree = degree_of(r, node);
    for (int64_t e = 0; e < degree; e++) to[e] = r->col[r->row[node] + e];
    return degree;
}

basin_status basin_vicinity_list(int64_t **neighbour, int64_t *count, const basin_vicinity *near,
                                 int64_t node, basin_error *error) {
    int64_t all = 0, kept = 0;
    for (int r = 0; r < near->relations; r++)
        all += degree_of(near->relation[r], node) + degree_of(&near->back[r], node);
    int64_t *list = *neighbour = basin_array_new((size_t)all, sizeof *list);
    *count = 0;
    if (!list) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for neighbours");
    for (int r = 0, at = 0; r < near->relations; r++) {
        at += (int)copy_row(list + at, near->relation[r], node);
        at += (int)copy_row(list + at, &near->back[r], node);
    }
    qsort(list, (size_t)all, sizeof *list, lower_first);
    for (int64_t i = 0; i < all; i++)
        if (list[i] != node && (!kept || list[i] != list[kept - 1])) list[kept++] = list[i];
    *count = kept;
    return BASIN_OK;
}
