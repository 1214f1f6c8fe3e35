/* ZINC's arrays as a set of molecules, and what is wrong with them. */
#include <math.h>

#include "engine/io/bundle.h"
#include "support/folder.h"
#include "support/test.h"
#include "tasks/graphs/set/graphset.h"

static void put(basin_bundle *bundle, const char *split, const char *name, const void *data,
                basin_dtype dtype, basin_shape shape) {
    char full[64];
    basin_tensor from = basin_tensor_view(data, dtype, shape);
    snprintf(full, sizeof full, "%s_%s", split, name);
    assert_ok(basin_bundle_add(bundle, full, &from, &failure));
}

/* Two molecules a split, with `edge` [3, 2] (or, `turned`, [2, 3]), `atom` [5] and `y` [2]. */
static void write_zinc(const char *path, const int64_t *edge, const int64_t *atom, const float *y,
                       bool turned) {
    static const char *const split[3] = {"train", "val", "test"};
    static const int32_t node_ptr[] = {0, 2, 5}, edge_ptr[] = {0, 1, 3};
    static const uint8_t bond[] = {1, 2, 3};
    basin_bundle *bundle;
    assert_ok(basin_bundle_new(&bundle, NULL, &failure));
    for (int i = 0; i < 3; i++) {
        put(bundle, split[i], "node_ptr", node_ptr, BASIN_I32, BASIN_SHAPE(3));
        put(bundle, split[i], "edge_ptr", edge_ptr, BASIN_I32, BASIN_SHAPE(3));
        put(bundle, split[i], "atom", atom, BASIN_I64, BASIN_SHAPE(5));
        put(bundle, split[i], "bond", bond, BASIN_U8, BASIN_SHAPE(3));
        put(bundle, split[i], "edge", edge, BASIN_I64,
            turned ? BASIN_SHAPE(2, 3) : BASIN_SHAPE(3, 2));
        put(bundle, split[i], "y", y, BASIN_F32, BASIN_SHAPE(2));
    }
    assert_ok(basin_npz_write(path, bundle, &failure));
    basin_bundle_free(bundle);
}

static const int64_t zinc_atom[] = {3, 0, 1, 1, 27}, zinc_edge[] = {0, 1, 0, 1, 1, 2};
static const float zinc_y[] = {0.5f, -2};

/* Ends that overflow, lie in another molecule, or fit only their lowest 32 bits. */
TEST_WITH(molecules_that_lie, folder_new, folder_remove) {
    static const int64_t end[] = {2, -1, INT64_MAX, INT64_MIN, (INT64_C(1) << 32) + 1};
    basin_graphset set;
    int64_t edge[6], atom[5];
    char *path = folder_path(state, "zinc.npz");
    for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
        memcpy(edge, zinc_edge, sizeof edge);
        edge[1] = end[i];
        write_zinc(path, edge, zinc_atom, zinc_y, false);
        assert_failure(basin_graphset_read(&set, path, NULL, &failure), BASIN_BAD_FILE,
                       "a bond must join two atoms of its molecule");
    }
    memcpy(atom, zinc_atom, sizeof atom);
    atom[4] = (INT64_C(1) << 32) + 27;
    write_zinc(path, zinc_edge, atom, zinc_y, false);
    assert_failure(basin_graphset_read(&set, path, NULL, &failure), BASIN_BAD_FILE,
                   "must lie between 0 and 2^31 - 1");
}

/* Ends in two rows, as other libraries have them, are read as other bonds where all fit. */
TEST_WITH(arrays_that_are_turned, folder_new, folder_remove) {
    static const int64_t edge[] = {0, 0, 1, 1, 1, 1};
    char *path = folder_path(state, "zinc.npz");
    basin_graphset set;
    write_zinc(path, edge, zinc_atom, zinc_y, true);
    assert_failure(basin_graphset_read(&set, path, NULL, &failure), BASIN_BAD_FILE,
                   "'train' do not fit: edge must have one row per bond");
}

TEST_WITH(targets_without_end, folder_new, folder_remove) {
    static const float y[2][2] = {{0.5f, INFINITY}, {NAN, 1}};
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    char *path = folder_path(state, "zinc.npz");
    write_zinc(path, zinc_edge, zinc_atom, y[0], false);
    assert_failure(basin_graphset_read(&set, path, NULL, &failure), BASIN_BAD_FILE,
                   "targets must be finite, or nan");
    write_zinc(path, zinc_edge, zinc_atom, y[1], false);
    assert_ok(basin_graphset_read(&set, path, NULL, &failure));
    assert_true(isnan(set.target[0]) && set.target[1] == 1);
}

TEST_WITH(molecules, folder_new, folder_remove) {
    char *path = folder_path(state, "zinc.npz");
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    write_zinc(path, zinc_edge, zinc_atom, zinc_y, false);
    assert_ok(basin_graphset_read(&set, path, NULL, &failure));
    assert_int_equal(set.task, BASIN_GRAPHS_VALUES);
    assert_int_equal(set.graphs, 6);
    assert_int_equal(set.split[1], 2);
    assert_int_equal(set.edges, 18); /* both ways */
    assert_int_equal(set.node_label[4], 27);
    assert_true(set.target[3] == -2);
    assert_int_equal(set.edge_label[set.edge_start[1]], 2);
    assert_int_equal(set.edge[2 * set.edge_start[5]], 0);
}

/* The file has an array of strings beside its numbers. */
TEST(real_zinc) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    FILE *file = fopen(BASIN_SOURCE "/../shared/data/zinc/zinc12k.npz", "rb");
    if (!file) skip();
    fclose(file);
    assert_ok(
        basin_graphset_read(&set, BASIN_SOURCE "/../shared/data/zinc/zinc12k.npz", NULL, &failure));
    assert_int_equal(set.graphs, 12000);
    assert_int_equal(set.nodes, 231464 + 23083 + 23117);
    assert_int_equal(set.edges, 2 * (248891 + 24846 + 24860));
}
