/* PATTERN and CLUSTER of Dwivedi et al., "Benchmarking graph neural networks": stochastic block
 * models whose nodes are to be classified. Every graph is a pure function of (seed, number).
 *
 * PATTERN: five communities of 5 to 34 nodes, edges with probability 0.5 inside and 0.35 between,
 * features 0, 1, 2 at random; hidden in it one of 100 patterns, a graph of 5 to 34 nodes with its
 * own features, which is joined to everything else with probability 0.5. Class 1: the pattern.
 * CLUSTER: six communities, 0.55 inside and 0.25 between; one node of each has the community's
 * number + 1 for a feature, all others 0. The class is the community. */
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "basin/random.h"
#include "data/graphset/graphset.h"

enum {
    STREAM_GRAPH = 51,
    STREAM_PATTERN = 52,
    PATTERNS = 100,
    SMALLEST = 5,
    LARGEST = 34,
    MOST = 6 * LARGEST
};

/* A graph being drawn: classes, features and which pairs i < j are joined. */
typedef struct drawing {
    int nodes;
    int32_t class_of[MOST], feature[MOST];
    bool joined[MOST][MOST];
} drawing;

static bool chance(basin_random *random, double probability) {
    return (double)basin_random_next(random) < probability * 4294967296.0;
}

static int between(basin_random *random, int low, int high) {
    return low + (int)basin_random_below(random, (uint64_t)(high - low + 1));
}

/* Communities with their edges; class_of holds the community. */
static void draw_blocks(drawing *d, int communities, double inside, double outside,
                        basin_random *random) {
    d->nodes = 0;
    for (int c = 0; c < communities; c++)
        for (int n = between(random, SMALLEST, LARGEST); n > 0; n--) d->class_of[d->nodes++] = c;
    for (int i = 0; i < d->nodes; i++)
        for (int j = i + 1; j < d->nodes; j++)
            d->joined[i][j] = chance(random, d->class_of[i] == d->class_of[j] ? inside : outside);
}

/* The pattern of a number: always the same graph and features. */
static void add_pattern(drawing *d, uint64_t seed, uint64_t number, basin_random *random) {
    basin_random own = basin_random_start(seed, STREAM_PATTERN + (number << 8), 0);
    int first = d->nodes, size = between(&own, SMALLEST, LARGEST);
    for (int i = 0; i < size; i++) {
        d->feature[first + i] = between(&own, 0, 2);
        d->class_of[first + i] = 1;
        for (int j = i + 1; j < size; j++) d->joined[first + i][first + j] = chance(&own, 0.5);
    }
    for (int i = 0; i < first; i++)
        for (int j = first; j < first + size; j++) d->joined[i][j] = chance(random, 0.5);
    d->nodes += size;
}

static void draw_pattern(drawing *d, uint64_t seed, uint64_t pattern, basin_random *random) {
    draw_blocks(d, 5, 0.5, 0.35, random);
    for (int i = 0; i < d->nodes; i++) {
        d->class_of[i] = 0;
        d->feature[i] = between(random, 0, 2);
    }
    add_pattern(d, seed, pattern, random);
}

static void draw_cluster(drawing *d, basin_random *random) {
    draw_blocks(d, 6, 0.55, 0.25, random);
    memset(d->feature, 0, sizeof d->feature);
    for (int c = 0, first = 0; c < 6; c++) {
        int size = 0;
        while (first + size < d->nodes && d->class_of[first + size] == c) size++;
        d->feature[first + between(random, 0, size - 1)] = c + 1;
        first += size;
    }
}

/* What the set grows in while it is drawn. */
typedef struct growth {
    int32_t *edge;
    int64_t *class_of;
    size_t edge_capacity, class_capacity, label_capacity;
    int64_t edges;
} growth;

static bool reserve(basin_graphset *set, growth *g, int nodes) {
    void *edge = g->edge, *class_of = g->class_of, *label = set->node_label;
    size_t need = (size_t)(set->nodes + nodes);
    bool fine = basin_array_reserve(
        &edge, &g->edge_capacity, (size_t)(g->edges + (int64_t)nodes * nodes), 2 * sizeof *g->edge);
    g->edge = edge;
    fine = fine && basin_array_reserve(&class_of, &g->class_capacity, need, sizeof *g->class_of);
    g->class_of = class_of;
    fine = fine && basin_array_reserve(&label, &g->label_capacity, need, sizeof *set->node_label);
    set->node_label = label;
    return fine;
}

/* Appends the drawing with its nodes in a random order. */
static bool append(basin_graphset *set, growth *g, const drawing *d, basin_random *random) {
    int64_t place[MOST];
    if (!reserve(set, g, d->nodes)) return false;
    for (int i = 0; i < d->nodes; i++) place[i] = i;
    basin_random_shuffle(place, (size_t)d->nodes, random);
    for (int i = 0; i < d->nodes; i++) {
        set->node_label[set->nodes + place[i]] = d->feature[i];
        g->class_of[set->nodes + place[i]] = d->class_of[i];
        for (int j = i + 1; j < d->nodes; j++) {
            if (!d->joined[i][j]) continue;
            int32_t *to = g->edge + 2 * g->edges;
            to[0] = to[3] = (int32_t)(set->nodes + place[i]);
            to[1] = to[2] = (int32_t)(set->nodes + place[j]);
            g->edges += 2;
        }
    }
    set->nodes += d->nodes;
    return true;
}

static basin_status draw_set(basin_graphset *set, growth *g, drawing *d, bool pattern,
                             uint64_t seed, basin_error *error) {
    for (int64_t i = 0; i < set->graphs; i++) {
        basin_random random = basin_random_start(seed, STREAM_GRAPH + ((uint64_t)i << 8), 0);
        if (pattern)
            draw_pattern(d, seed, (uint64_t)(i % PATTERNS), &random);
        else
            draw_cluster(d, &random);
        set->node_start[i] = set->nodes;
        if (!append(set, g, d, &random) || g->edges > INT32_MAX - MOST * MOST)
            return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld graphs",
                              (long long)set->graphs);
    }
    set->node_start[set->graphs] = set->nodes;
    BASIN_TRY(basin_graphset_set_classes(set, g->class_of, set->nodes, error));
    return basin_graphset_set_edges(set, g->edge, g->edges, set->name, "edges", error);
}

basin_status basin_graphset_make(basin_graphset *set, const char *name, const int64_t size[3],
                                 uint64_t seed, basin_error *error) {
    growth g = {0};
    bool pattern = !strcmp(name, "pattern");
    *set = (basin_graphset){.task = BASIN_NODE_CLASSES, .node_labels = 1};
    if (!pattern && strcmp(name, "cluster") != 0)
        return basin_fail(error, BASIN_BAD_VALUE, "no generator '%.40s'; wanted pattern or cluster",
                          name);
    basin_graphset_set_name(set, pattern ? "PATTERN" : "CLUSTER", 7);
    for (int i = 0; i < 3; i++) {
        if (size[i] < 0 || size[i] > 1 << 24)
            return basin_fail(error, BASIN_BAD_VALUE, "%lld graphs; wanted 0 to %d",
                              (long long)size[i], 1 << 24);
        set->split[i] = size[i];
        set->graphs += size[i];
    }
    drawing *d = malloc(sizeof *d);
    set->node_start = basin_array_new((size_t)set->graphs + 1, sizeof *set->node_start);
    basin_status status = d && set->node_start
                              ? draw_set(set, &g, d, pattern, seed, error)
                              : basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld graphs",
                                           (long long)set->graphs);
    free(d);
    free(g.edge);
    free(g.class_of);
    if (status) basin_graphset_free(set);
    return status;
}
