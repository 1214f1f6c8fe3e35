/* Small sets of random graphs for tests of the graph task. */
#ifndef TESTS_TASK_GRAPH_WORLD_H
#define TESTS_TASK_GRAPH_WORLD_H

#include <math.h>

#include "basin/random.h"
#include "data/graphset/graphset.h"
#include "support/test.h"
#include "task/graphs/graphs.h"

/* `graphs` rings of 3 to 10 nodes with a few chords and labels 0 .. kinds - 1. Graphs of class 1
 * have every other label raised by one, so that classes can be learnt. `order` moves the nodes of
 * graph 0: node i becomes order[i]. */
static inline void world_new(basin_graphset *set, basin_graphs_target target, int64_t graphs,
                             int32_t kinds, const int64_t *order) {
    basin_random random = basin_random_start(5, 5, 0);
    *set = (basin_graphset){.task = target, .graphs = graphs, .name = "world", .node_labels = 1};
    int32_t *edge = malloc((size_t)graphs * 100 * sizeof *edge);
    int64_t *class_of = malloc((size_t)graphs * 10 * sizeof *class_of), edges = 0;
    set->node_start = malloc((size_t)(graphs + 1) * sizeof *set->node_start);
    set->node_label = malloc((size_t)graphs * 10 * sizeof *set->node_label);
    set->target = malloc((size_t)graphs * sizeof *set->target);
    for (int64_t g = 0; g < graphs; g++) {
        int32_t n = 3 + (int32_t)basin_random_below(&random, 8), first = (int32_t)set->nodes;
        int64_t own = (int64_t)basin_random_below(&random, 2);
        set->node_start[g] = first;
        set->target[g] = (float)n + (own ? 0.5f : 0);
        if (target != BASIN_NODE_CLASSES) class_of[g] = own;
        for (int32_t i = 0; i < n; i++) {
            int32_t label = (int32_t)basin_random_below(&random, (uint64_t)kinds - 1);
            int32_t chord = (int32_t)basin_random_below(&random, (uint64_t)n);
            int32_t place = g == 0 && order ? (int32_t)order[i] : i;
            int32_t next = g == 0 && order ? (int32_t)order[(i + 1) % n] : (i + 1) % n;
            int32_t across = g == 0 && order ? (int32_t)order[chord] : chord;
            set->node_label[first + place] = label + (own && i % 2);
            if (target == BASIN_NODE_CLASSES)
                class_of[first + place] = set->node_label[first + place] % 2;
            const int32_t both[8] = {first + place, first + next,   first + next,   first + place,
                                     first + place, first + across, first + across, first + place};
            memcpy(edge + 2 * edges, both, sizeof both);
            edges += 4;
        }
        set->nodes += n;
    }
    set->node_start[graphs] = set->nodes;
    set->targets = target == BASIN_GRAPHS_VALUES;
    if (target != BASIN_GRAPHS_VALUES)
        assert_ok(basin_graphset_set_classes(
            set, class_of, target == BASIN_NODE_CLASSES ? set->nodes : graphs, &failure));
    assert_ok(basin_graphset_set_edges(set, edge, edges, "world", "edges", &failure));
    free(edge);
    free(class_of);
}

/* Small settings of the default preset. */
static inline basin_graphs_settings world_settings(void) {
    basin_graphs_settings s;
    assert_int_equal(basin_settings_preset(&s, &basin_graphs_task, "default", NULL), BASIN_OK);
    s.dim = 16, s.heads = 2, s.head_dim = 8, s.memories = 24, s.blocks = 2, s.hidden = 12;
    s.couplings = 2;
    s.eigenvectors = 0, s.walks = 4, s.batch = 8, s.epochs = 4, s.warmup = 1, s.rate = 5e-3;
    return s;
}

static inline size_t world_weights(const basin_bundle *bundle) {
    size_t count = 0;
    for (size_t i = 0; i < basin_bundle_count(bundle); i++)
        count += strncmp(basin_bundle_name(bundle, i), "seen.", 5) != 0;
    return count;
}

/* The same weights in two files, each number up to `tolerance`. */
static inline void world_same_files(const char *a, const char *b, double tolerance) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *x, *y;
    assert_ok(basin_bundle_read(&x, a, &failure));
    assert_ok(basin_bundle_read(&y, b, &failure));
    assert_int_equal(world_weights(x), world_weights(y));
    for (size_t i = 0; i < basin_bundle_count(x); i++) {
        const basin_tensor *t = basin_bundle_at(x, i), *other;
        assert_ok(basin_bundle_get(&other, y, basin_bundle_name(x, i), &failure));
        assert_true(basin_shape_equal(t->shape, other->shape));
        for (int64_t k = 0; k < basin_shape_count(t->shape); k++)
            assert_true(fabs(basin_tensor_at(t, k) - basin_tensor_at(other, k)) <= tolerance);
    }
}

#endif
