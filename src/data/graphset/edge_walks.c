/* Walks along edges: how much likelier than in the long run is a random walk from one end of an
 * edge at the other end after t = 2 .. K + 1 steps,
 *
 *     r_t(i, j) = (P^t)_ij / pi_j = E (S^t)_ij / sqrt(d_i d_j),   S = D^-1/2 A D^-1/2,
 *
 * with E the number of (directed) edges and pi_j = d_j / E. In an undirected graph it is symmetric,
 * and tends to 1 where that is connected and not bipartite; an edge within a community has more,
 * one between two less. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/team/team.h"
#include "base/wide.h"
#include "data/graphset/graphset.h"

enum { COLUMNS = 64 }; /* ends of walks that are followed at once, side by side */

/* What one thread needs for a graph of n nodes. */
typedef struct space {
    int64_t capacity;
    int64_t *row;      /* [n + 1] edges by the node they come from */
    float *root;       /* [n] 1 / sqrt(degree) */
    float *now, *next; /* [n, COLUMNS] columns of a power of S */
} space;

static void space_free(space *s) {
    free(s->row);
    free(s->root);
    free(s->now);
    free(s->next);
    *s = (space){0};
}

static bool space_reserve(space *s, int64_t nodes) {
    if (nodes <= s->capacity) return true;
    space_free(s);
    size_t n = (size_t)nodes;
    s->row = basin_array_new(n + 1, sizeof *s->row);
    s->root = basin_array_new(n, sizeof *s->root);
    s->now = basin_array_new(n, COLUMNS * sizeof *s->now);
    s->next = basin_array_new(n, COLUMNS * sizeof *s->next);
    if (!s->row || !s->root || !s->now || !s->next) return false;
    s->capacity = nodes;
    return true;
}

static void read_rows(space *s, int64_t nodes, const int32_t *edge, int64_t edges) {
    for (int64_t i = 0, e = 0; i < nodes; i++) {
        s->row[i] = e;
        while (e < edges && edge[2 * e] == i) e++;
        s->root[i] = e > s->row[i] ? 1 / sqrtf((float)(e - s->row[i])) : 1;
    }
    s->row[nodes] = edges;
}

/* Apart from the loop over edges, which compilers would turn inside out, and scalar. */
BASIN_WIDE static void add_row(float *restrict sum, const float *restrict from, float weight) {
    for (int c = 0; c < COLUMNS; c++) sum[c] += weight * from[c];
}

/* now <- S now */
static void step(space *s, int64_t nodes, const int32_t *edge) {
    for (int64_t i = 0; i < nodes; i++) {
        float sum[COLUMNS] = {0};
        for (int64_t e = s->row[i]; e < s->row[i + 1]; e++) {
            int32_t k = edge[2 * e + 1];
            add_row(sum, s->now + k * (int64_t)COLUMNS, s->root[i] * s->root[k]);
        }
        memcpy(s->next + i * COLUMNS, sum, sizeof sum);
    }
    float *now = s->now;
    s->now = s->next, s->next = now;
}

/* Columns `column` .. of value [edges, width]. */
static void walk_graph(float *value, int64_t width, int64_t column, int64_t walks, space *s,
                       int64_t nodes, const int32_t *edge, int64_t edges) {
    read_rows(s, nodes, edge, edges);
    for (int64_t first = 0; first < nodes; first += COLUMNS) {
        memset(s->now, 0, (size_t)nodes * COLUMNS * sizeof *s->now);
        for (int64_t c = 0; c < COLUMNS && first + c < nodes; c++)
            s->now[(first + c) * COLUMNS + c] = 1;
        step(s, nodes, edge);
        for (int64_t t = 0; t < walks; t++) {
            step(s, nodes, edge);
            for (int64_t e = 0; e < edges; e++) {
                int64_t i = edge[2 * e], j = edge[2 * e + 1];
                if (j < first || j >= first + COLUMNS) continue;
                value[e * width + column + t] =
                    s->now[i * COLUMNS + j - first] * (float)edges * s->root[i] * s->root[j];
            }
        }
    }
}

typedef struct walking {
    float *value; /* [edges, width] */
    int64_t width, walks;
    const basin_graphset *set;
    int64_t start; /* graph */
} walking;

/* Returns the first graph that there was no memory for. */
static int64_t walk_graphs(const void *context, int64_t begin, int64_t end) {
    const walking *w = context;
    const basin_graphset *set = w->set;
    int64_t done = begin;
    space s = {0};
    for (; done < end; done++) {
        int64_t g = w->start + done, nodes = set->node_start[g + 1] - set->node_start[g];
        int64_t first = set->edge_start[g], edges = set->edge_start[g + 1] - first;
        if (!edges) continue; /* and perhaps no node */
        if (!space_reserve(&s, nodes)) break;
        walk_graph(w->value + first * w->width, w->width, w->width - w->walks, w->walks, &s, nodes,
                   set->edge + 2 * first, edges);
    }
    space_free(&s);
    return done;
}

static bool walk_part(float *value, int64_t width, int64_t walks, const basin_graphset *set,
                      int64_t start, int64_t end) {
    walking w = {value, width, walks, set, start};
    return basin_team_find(walk_graphs, &w, end - start, 0) == end - start;
}

/* Not cached as positions are: reading them back would save less than 0.1 s a million edges, and
 * they are large, 4 bytes a walk and edge (CLUSTER's six: 1.2 GB). */
basin_status basin_graphset_edge_walks(float **value, const basin_graphset *set, int64_t walks,
                                       int64_t first, int64_t count, basin_error *error) {
    int64_t old = set->edge_attributes, width = old + walks;
    float *all = *value = calloc((size_t)set->edges + 1, (size_t)width * sizeof *all);
    if (!all || !walk_part(all, width, walks, set, first, first + count)) {
        free(all);
        *value = NULL;
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the walks along %lld edges",
                          (long long)set->edges);
    }
    for (int64_t e = 0; e < set->edges && old; e++)
        memcpy(all + e * width, set->edge_attribute + e * old, (size_t)old * sizeof *all);
    return BASIN_OK;
}

basin_status basin_graphset_add_edge_walks_part(basin_graphset *set, int64_t walks, int64_t first,
                                                int64_t count, basin_error *error) {
    float *value;
    if (walks <= 0) return BASIN_OK;
    basin_status status = basin_graphset_edge_walks(&value, set, walks, first, count, error);
    if (status) return status;
    if (!set->file) free(set->edge_attribute);
    set->edge_attribute = set->own = value;
    set->edge_attributes += walks;
    set->edge_walks = walks;
    return BASIN_OK;
}

basin_status basin_graphset_add_edge_walks(basin_graphset *set, int64_t walks, basin_error *error) {
    return basin_graphset_add_edge_walks_part(set, walks, 0, set->graphs, error);
}
