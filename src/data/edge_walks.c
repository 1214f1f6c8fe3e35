/* Walks along edges: how much likelier than in the long run is a random walk from one end of an
 * edge at the other end after t = 2 .. K + 1 steps,
 *
 *     r_t(i, j) = (P^t)_ij / pi_j = E (S^t)_ij / sqrt(d_i d_j),   S = D^-1/2 A D^-1/2,
 *
 * with E the number of (directed) edges and pi_j = d_j / E. It is symmetric, and tends to 1 in a
 * connected graph that is not bipartite; an edge within a community has more, one between two
 * less. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "basin/graphset.h"

/* What one thread needs for a graph of n nodes. */
typedef struct space {
    int64_t capacity;
    int64_t *row;         /* [n + 1] edges by the node they come from */
    double *root;         /* [n] 1 / sqrt(degree) */
    double *now, *next;   /* [n] where the walk is */
    int32_t *here, *then; /* [n] the nodes where that is not 0 */
} space;

static void space_free(space *s) {
    free(s->row);
    free(s->root);
    free(s->now);
    free(s->next);
    free(s->here);
    free(s->then);
    *s = (space){0};
}

static bool space_reserve(space *s, int64_t nodes) {
    if (nodes <= s->capacity) return true;
    space_free(s);
    size_t n = (size_t)nodes;
    s->row = basin_array_new(n + 1, sizeof *s->row);
    s->root = basin_array_new(n, sizeof *s->root);
    s->now = calloc(n, sizeof *s->now);
    s->next = calloc(n, sizeof *s->next);
    s->here = basin_array_new(n, sizeof *s->here);
    s->then = basin_array_new(n, sizeof *s->then);
    if (!s->row || !s->root || !s->now || !s->next || !s->here || !s->then) return false;
    s->capacity = nodes;
    return true;
}

/* next <- S now; both are zero but on their lists. Returns the length of the list of next. */
static int64_t step(space *s, int64_t count, const int32_t *edge) {
    int64_t found = 0;
    for (int64_t k = 0; k < count; k++) {
        int32_t at = s->here[k];
        double value = s->now[at] * s->root[at];
        s->now[at] = 0;
        for (int64_t e = s->row[at]; e < s->row[at + 1]; e++) {
            int32_t to = edge[2 * e + 1];
            double moved = value * s->root[to];
            if (moved < DBL_MIN) continue; /* a 0 on the list would be there twice */
            if (s->next[to] == 0) s->then[found++] = to;
            s->next[to] += moved;
        }
    }
    double *now = s->now;
    int32_t *here = s->here;
    s->now = s->next, s->next = now;
    s->here = s->then, s->then = here;
    return found;
}

/* Columns `first` .. of value [edges, width]. */
static void walk_graph(float *value, int64_t width, int64_t first, int64_t walks, space *s,
                       int64_t nodes, const int32_t *edge, int64_t edges) {
    for (int64_t i = 0, e = 0; i < nodes; i++) {
        s->row[i] = e;
        while (e < edges && edge[2 * e] == i) e++;
        s->root[i] = e > s->row[i] ? 1 / sqrt((double)(e - s->row[i])) : 1;
    }
    s->row[nodes] = edges;
    for (int64_t i = 0; i < nodes; i++) {
        if (s->row[i] == s->row[i + 1]) continue;
        s->now[i] = 1;
        s->here[0] = (int32_t)i;
        int64_t count = step(s, 1, edge);
        for (int64_t t = 0; t < walks; t++) {
            count = step(s, count, edge);
            for (int64_t e = s->row[i]; e < s->row[i + 1]; e++) {
                int32_t j = edge[2 * e + 1];
                double chance = 1 / ((double)edges * s->root[i] * s->root[j]);
                value[e * width + first + t] = (float)(s->now[j] / chance);
            }
        }
        for (int64_t k = 0; k < count; k++) s->now[s->here[k]] = 0;
    }
}

static bool walk_all(float *value, int64_t width, int64_t walks, const basin_graphset *set) {
    bool fine = true;
#pragma omp parallel
    {
        space s = {0};
#pragma omp for schedule(dynamic, 8)
        for (int64_t g = 0; g < set->graphs; g++) {
            int64_t nodes = set->node_start[g + 1] - set->node_start[g];
            int64_t first = set->edge_start[g], edges = set->edge_start[g + 1] - first;
            if (space_reserve(&s, nodes))
                walk_graph(value + first * width, width, width - walks, walks, &s, nodes,
                           set->edge + 2 * first, edges);
            else {
#pragma omp atomic write
                fine = false;
            }
        }
        space_free(&s);
    }
    return fine;
}

basin_status basin_graphset_add_edge_walks(basin_graphset *set, int64_t walks, basin_error *error) {
    if (walks <= 0) return BASIN_OK;
    int64_t old = set->edge_attributes, width = old + walks;
    float *value = basin_array_new((size_t)set->edges, (size_t)width * sizeof *value);
    if (!value || !walk_all(value, width, walks, set)) {
        free(value);
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for the walks along %lld edges",
                          (long long)set->edges);
    }
    for (int64_t e = 0; e < set->edges && old; e++)
        memcpy(value + e * width, set->edge_attribute + e * old, (size_t)old * sizeof *value);
    if (!set->file) free(set->edge_attribute);
    set->edge_attribute = set->own = value;
    set->edge_attributes = width;
    set->edge_walks = walks;
    return BASIN_OK;
}
