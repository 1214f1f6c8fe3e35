/* Generated graphs: PATTERN and CLUSTER have the benchmark's statistics and are functions of the
 * seed; superpixels cover a picture and know their neighbours. */
#include <math.h>

#include "data/graphset/graphset.h"
#include "io/folder.h"
#include "support/test.h"

/* The share of pairs that are joined, inside a class and between classes. */
static void densities(double density[2], const basin_graphset *set) {
    double edges[2] = {0}, pairs[2] = {0};
    for (int64_t g = 0; g < set->graphs; g++) {
        const int32_t *own = set->class_of + set->node_start[g];
        int64_t n = set->node_start[g + 1] - set->node_start[g];
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                if (i != j) pairs[own[i] != own[j]]++;
        for (int64_t e = set->edge_start[g]; e < set->edge_start[g + 1]; e++)
            edges[own[set->edge[2 * e]] != own[set->edge[2 * e + 1]]]++;
    }
    for (int i = 0; i < 2; i++) density[i] = edges[i] / pairs[i];
}

TEST(cluster) {
    static const int64_t size[3] = {30, 5, 5};
    double density[2];
    basin_graphset set, again;
    assert_ok(basin_graphset_make(&set, "cluster", size, 7, &failure));
    assert_ok(basin_graphset_make(&again, "cluster", size, 7, &failure));
    assert_int_equal(set.graphs, 40);
    assert_int_equal(set.classes, 6);
    assert_int_equal(set.split[2], 5);
    assert_int_equal(set.edges, again.edges);
    assert_memory_equal(set.edge, again.edge, (size_t)set.edges * 8);
    densities(density, &set);
    assert_true(fabs(density[0] - 0.55) < 0.02);
    assert_true(fabs(density[1] - 0.25) < 0.01);
    for (int64_t g = 0; g < set.graphs; g++) {
        int seeds[7] = {0};
        for (int64_t n = set.node_start[g]; n < set.node_start[g + 1]; n++) {
            int32_t f = set.node_label[n];
            seeds[f]++;
            if (f) assert_int_equal(set.class_of[n], f - 1);
        }
        for (int c = 1; c < 7; c++) assert_int_equal(seeds[c], 1);
    }
    basin_graphset_free(&again);
    assert_ok(basin_graphset_make(&again, "cluster", size, 8, &failure));
    assert_true(again.nodes != set.nodes || again.edges != set.edges);
    basin_graphset_free(&again);
    basin_graphset_free(&set);
}

TEST(pattern) {
    static const int64_t size[3] = {100, 0, 10};
    double density[2], ones = 0;
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    assert_ok(basin_graphset_make(&set, "pattern", size, 1, &failure));
    assert_int_equal(set.classes, 2);
    for (int64_t n = 0; n < set.nodes; n++) ones += set.class_of[n];
    assert_true(fabs(ones / (double)set.nodes - 1.0 / 6) < 0.02);
    densities(density, &set);
    assert_true(fabs(density[1] - 0.5) < 0.02); /* pattern to graph */
    assert_true(fabs((double)set.nodes / 110 - 117) < 8);
    /* graphs 0 and 100 hide the same pattern */
    int64_t count[2] = {0};
    for (int k = 0; k < 2; k++)
        for (int64_t n = set.node_start[100 * k]; n < set.node_start[100 * k + 1]; n++)
            count[k] += set.class_of[n];
    assert_int_equal(count[0], count[1]);
}

/* Four flat squares are four superpixels at least, none of which crosses a border. */
TEST(slic) {
    enum { SIDE = 24 };
    float pixel[SIDE * SIDE];
    int32_t label[SIDE * SIDE];
    int64_t found;
    basin_superpixels spec = {.segments = 16, .compactness = 0.05};
    for (int p = 0; p < SIDE * SIDE; p++)
        pixel[p] = (p % SIDE < 11) * 0.3f + (p / SIDE < 13) * 0.6f;
    assert_ok(basin_slic(label, &found, pixel, SIDE, SIDE, 1, &spec, &failure));
    assert_in_range(found, 8, 24);
    float first[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) first[i] = -1;
    for (int p = 0; p < SIDE * SIDE; p++) {
        assert_in_range(label[p], 0, found - 1);
        if (first[label[p]] < 0) first[label[p]] = pixel[p];
        assert_true(first[label[p]] == pixel[p]);
    }
}

TEST(superpixel_graphs) {
    enum { SIDE = 28, COUNT = 3 };
    static uint8_t pixel[COUNT * SIDE * SIDE];
    static const int32_t class_of[COUNT] = {7, 3, 7};
    static const int64_t split[3] = {2, 0, 1};
    basin_superpixels spec = {.segments = 75, .compactness = 0.25};
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    for (int i = 0; i < COUNT * SIDE * SIDE; i++)
        pixel[i] = (uint8_t)((i * 37 + i / SIDE * 11) % 256);
    assert_ok(
        basin_graphset_superpixels(&set, pixel, class_of, split, SIDE, SIDE, 1, &spec, &failure));
    assert_int_equal(set.graphs, 3);
    assert_int_equal(set.classes, 2);
    assert_int_equal(set.class_of[0], 1);
    assert_int_equal(set.node_attributes, 3);
    for (int64_t g = 0; g < 3; g++) {
        int64_t n = set.node_start[g + 1] - set.node_start[g];
        assert_in_range(n, 20, 90);
        assert_int_equal(set.edge_start[g + 1] - set.edge_start[g], 8 * n);
    }
    for (int64_t e = 0; e < set.edges; e++)
        assert_true(set.edge_attribute[e] > 0 && set.edge_attribute[e] < 1);
    for (int64_t i = 0; i < 3 * set.nodes; i++)
        assert_true(set.node_attribute[i] >= 0 && set.node_attribute[i] <= 1);
}

/* MNIST's layout: labels beside the images. */
TEST_WITH(labelled_pictures, folder_new, folder_remove) {
    enum { SIDE = 12, COUNT = 9 };
    uint8_t images[16 + COUNT * SIDE * SIDE] = {0, 0, 8, 3,    0, 0, 0, COUNT,
                                                0, 0, 0, SIDE, 0, 0, 0, SIDE};
    uint8_t labels[8 + COUNT] = {0, 0, 8, 1, 0, 0, 0, COUNT};
    char path[PATH_TEXT];
    basin_superpixels spec = {.segments = 16};
    basin_graphset set;
    for (int i = 0; i < COUNT * SIDE * SIDE; i++) images[16 + i] = (uint8_t)(i * 13);
    for (int i = 0; i < COUNT; i++) labels[8 + i] = (uint8_t)(i % 4);
    file_put(folder_path(path, state, "train-images-idx3-ubyte"), images, sizeof images);
    file_put(folder_path(path, state, "train-labels-idx1-ubyte"), labels, sizeof labels);
    file_put(folder_path(path, state, "t10k-images-idx3-ubyte"), images, sizeof images);
    file_put(folder_path(path, state, "t10k-labels-idx1-ubyte"), labels, sizeof labels);
    assert_ok(basin_graphset_read_pictures(&set, *state, &spec, 2, 7, 0, &failure));
    assert_int_equal(set.graphs, 14);
    assert_int_equal(set.split[0], 5);
    assert_int_equal(set.split[1], 2);
    assert_int_equal(set.class_of[0], 2); /* the first two are for validation */
    assert_int_equal(set.class_of[5], 0);
    assert_int_equal(set.class_of[13], 2);
    basin_graphset_free(&set);
    unlink(folder_path(path, state, "train-labels-idx1-ubyte"));
    assert_failure(basin_graphset_read_pictures(&set, *state, &spec, 2, 7, 0, &failure), BASIN_IO,
                   "train-labels-idx1-ubyte");
}
