/* Parts of a graph around nodes; see around.h. */
#include "task/nodes/explain/around.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/network.h"

/* Neighbours at most, of one node and where there are many; nodes and edges that a batch may have
 * before it is closed. */
enum { FIRSTS = 128, FIRSTS_OF_MANY = 32, MANY = 16, NODES = 20000, EDGES = 400000 };

static basin_status no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the surroundings of a node");
}

/* ---- one node ---- */

typedef struct chooser {
    const basin_explainer *x;
    basin_surroundings *to;
    int64_t *mark, stamp; /* [N] nodes that are in it already */
} chooser;

static void take(chooser *c, int64_t node) {
    if (c->mark[node] == c->stamp) return;
    c->mark[node] = c->stamp;
    c->to->node[c->to->count++] = node;
}

/* Some neighbours of neighbours, as many of each. */
static basin_status take_seconds(chooser *c, int64_t each, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t i = 1; i <= c->to->firsts && !status; i++) {
        int64_t *next, count;
        status = basin_vicinity_list(&next, &count, &c->x->near, c->to->node[i], error);
        int64_t taken = count < each ? count : each;
        for (int64_t k = 0; k < taken && !status; k++) take(c, next[k * count / taken]);
        free(next);
    }
    return status;
}

static basin_status choose(chooser *c, const basin_told *told, basin_error *error) {
    bool graph = basin_nodes_on_graph(&c->x->model->settings);
    int64_t most = c->x->count < MANY ? FIRSTS : FIRSTS_OF_MANY;
    int64_t firsts = told->neighbours < most ? told->neighbours : most;
    if (!graph) firsts = 0;
    int64_t each = firsts ? (most / 2 + firsts - 1) / firsts : 0; /* half as many of theirs */
    *c->to = (basin_surroundings){.firsts = firsts};
    c->to->node = basin_array_new((size_t)(1 + firsts * (1 + each)), sizeof *c->to->node);
    if (!c->to->node) return no_memory(error);
    c->stamp = told->node + 1;
    take(c, told->node);
    for (int64_t i = 0; i < firsts; i++) take(c, told->neighbour[i * told->neighbours / firsts]);
    return take_seconds(c, each, error);
}

/* ---- side by side ---- */

/* What edges carry, in their order. */
static basin_status join_facts(basin_relation *to, const basin_around *a,
                               basin_network *const *part, int r, basin_error *error) {
    int64_t width = a->network->facts.count, at = 0;
    if (!part[0]->relation[r].fact) return BASIN_OK;
    basin_status status = basin_relation_alloc_facts(to, &a->network->facts, error);
    for (int64_t i = 0; i < a->count && !status; i++) {
        const basin_relation *from = &part[i]->relation[r];
        if (from->edges)
            memcpy(to->fact + at, from->fact, (size_t)(from->edges * width) * sizeof *to->fact);
        at += from->edges * width;
    }
    return status;
}

/* Relation `r` of all parts, one behind the other. */
static basin_status join_relation(basin_around *a, basin_network *const *part, int r,
                                  basin_error *error) {
    basin_relation *to;
    basin_status status =
        basin_network_new_relation(&to, a->network, part[0]->relation[r].name, error);
    if (status) return status;
    for (int64_t i = 0; i < a->count; i++) to->edges += part[i]->relation[r].edges;
    to->row = calloc((size_t)a->network->nodes + 1, sizeof *to->row);
    to->col = basin_array_new((size_t)to->edges, sizeof *to->col);
    if (!to->row || !to->col) return no_memory(error);
    int64_t at = 0;
    for (int64_t i = 0; i < a->count; i++) {
        const basin_relation *from = &part[i]->relation[r];
        for (int64_t n = 0; n < part[i]->nodes; n++) to->row[a->start[i] + n] = at + from->row[n];
        for (int64_t e = 0; e < from->edges; e++)
            to->col[at++] = (int32_t)(from->col[e] + a->start[i]);
    }
    to->row[a->network->nodes] = at;
    return join_facts(to, a, part, r, error);
}

static basin_status join(basin_around *a, basin_network *const *part, const basin_network *whole,
                         basin_error *error) {
    int64_t nodes = a->start[a->count];
    basin_status status = basin_network_new(&a->network, whole->path, nodes, error);
    if (status) return status;
    a->network->directed = whole->directed;
    status = basin_facts_copy(&a->network->facts, &whole->facts, error);
    if (status) return status;
    a->network->origin = basin_array_new((size_t)nodes, sizeof *a->network->origin);
    if (!a->network->origin) return no_memory(error);
    for (int64_t i = 0; i < a->count; i++)
        memcpy(a->network->origin + a->start[i], a->of[i].node,
               (size_t)a->of[i].count * sizeof *a->of[i].node);
    for (int r = 0; r < whole->relations && !status; r++) status = join_relation(a, part, r, error);
    return status;
}

static int64_t edges_of(const basin_network *network) {
    int64_t edges = 0;
    for (int r = 0; r < network->relations; r++) edges += network->relation[r].edges;
    return edges;
}

/* Parts until the batch is full. */
static basin_status take_parts(basin_around *a, basin_network **part, chooser *c, int64_t first,
                               basin_error *error) {
    const basin_explainer *x = c->x;
    basin_status status = BASIN_OK;
    for (int64_t edges = 0; first + a->count < x->count && !status;) {
        int64_t i = a->count;
        bool full = i && (a->start[i] > NODES || edges > EDGES);
        if (full) break;
        c->to = &a->of[i];
        a->count++;
        status = choose(c, &x->told[first + i], error);
        if (!status)
            status = basin_network_induce(&part[i], x->network, c->to->node, c->to->count, error);
        if (status) break;
        a->start[i + 1] = a->start[i] + c->to->count;
        edges += edges_of(part[i]);
    }
    return status;
}

basin_status basin_around_open(basin_around *around, const basin_explainer *x, int64_t first,
                               basin_error *error) {
    size_t left = (size_t)(x->count - first);
    basin_network **part = calloc(left + 1, sizeof *part);
    chooser c = {.x = x, .mark = calloc((size_t)x->network->nodes + 1, sizeof *c.mark)};
    *around = (basin_around){0};
    around->of = calloc(left + 1, sizeof *around->of);
    around->start = calloc(left + 1, sizeof *around->start);
    basin_status status =
        part && c.mark && around->of && around->start ? BASIN_OK : no_memory(error);
    if (!status) status = take_parts(around, part, &c, first, error);
    if (!status) status = join(around, part, x->network, error);
    for (size_t i = 0; i < left && part; i++) basin_network_free(part[i]);
    free(part);
    free(c.mark);
    return status;
}

void basin_around_close(basin_around *around) {
    for (int64_t i = 0; i < around->count; i++) free(around->of[i].node);
    free(around->of);
    free(around->start);
    basin_network_free(around->network);
    *around = (basin_around){0};
}
