/* The baselines beside cross-validation: what a constant and the memory by itself reach. */
#include "tasks/graphs/graph_world.h"

enum { GRAPHS = 60 };

static basin_graphs_baseline_result baselines(basin_graphs_target target, bool gaps) {
    basin_graphset set;
    basin_folds folds;
    basin_graphs_baseline_result result;
    world_new(&set, target, GRAPHS, 4, NULL);
    for (int g = 0; g < GRAPHS && gaps; g += 4) set.target[g] = NAN;
    assert_ok(world_folds(&folds, target == BASIN_GRAPHS_CLASSES ? set.class_of : NULL, GRAPHS, 3,
                          0.1, 0, &failure));
    assert_ok(basin_graphs_baseline(&result, &set, &folds.fold[1], &failure));
    assert_int_equal(result.name[1] == NULL, target == BASIN_GRAPHS_NODE_CLASSES);
    if (result.name[1]) assert_int_equal(result.memory.items, folds.fold[1].count[2]);
    basin_folds_free(&folds);
    basin_graphset_free(&set);
    return result;
}

/* A class shows in the labels of a graph's nodes; classes of nodes have no memory. */
TEST(classes) {
    basin_graphs_baseline_result b = baselines(BASIN_GRAPHS_CLASSES, false);
    assert_true(b.constant.accuracy >= 40 && b.constant.accuracy < 70);
    assert_true(b.constant.balanced == 50);
    assert_true(b.memory.accuracy > b.constant.accuracy + 10);
    b = baselines(BASIN_GRAPHS_NODE_CLASSES, false);
    assert_true(b.constant.balanced == 50);
}

/* Values are sizes and a half where the class is 1; the mean misses by 2. Missing ones are left
 * out. */
TEST(values) {
    for (int gaps = 0; gaps < 2; gaps++) {
        basin_graphs_baseline_result b = baselines(BASIN_GRAPHS_VALUES, gaps);
        assert_true(b.constant.loss > 1 && b.constant.loss < 3);
        assert_true(b.memory.loss < b.constant.loss);
        assert_int_equal(b.memory.missing > 0, gaps);
    }
}
