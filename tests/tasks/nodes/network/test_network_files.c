/* Networks in files: npz, the mapped file, and what is wrong with some. */
#include "tasks/nodes/network/networks.h"

#include <math.h>

static const char *const shared = BASIN_SOURCE "/../shared/data/anomaly";

static basin_bundle *new_bundle(void) {
    basin_bundle *bundle;
    assert_int_equal(basin_bundle_new(&bundle, NULL, NULL), BASIN_OK);
    return bundle;
}

static void write_bundle(const char *path, basin_bundle *bundle) {
    assert_int_equal(basin_bundle_write(path, bundle, NULL), BASIN_OK);
    basin_bundle_free(bundle);
}

static uint8_t masks[3][10] = {
    {1, 0, 0, 0, 1, 1, 1, 0, 0, 0}, {0, 1, 0, 0, 0, 0, 0, 1, 0, 0}, {0, 0, 1, 1, 0, 0, 0, 0, 1, 1}};
static uint8_t labelled[] = {1, 1, 1, 1, 0};

static void write_npz(const char *path) {
    basin_bundle *bundle = new_bundle();
    add_tensor(bundle, "x", BORROW(small_x, BASIN_F32, 5, 2));
    add_tensor(bundle, "y", BORROW(small_y, BASIN_U8, 5));
    add_tensor(bundle, "labelled", BORROW(labelled, BASIN_U8, 5));
    add_tensor(bundle, "edges_a", BORROW(small_edges_a, BASIN_I32, 5, 2));
    add_tensor(bundle, "edges_b", BORROW(small_edges_b, BASIN_I32, 1, 2));
    add_tensor(bundle, "train_masks", BORROW(masks[0], BASIN_U8, 2, 5));
    add_tensor(bundle, "val_masks", BORROW(masks[1], BASIN_BOOL, 2, 5));
    add_tensor(bundle, "test_masks", BORROW(masks[2], BASIN_U8, 2, 5));
    write_bundle(path, bundle);
}

TEST(reads_npz) {
    char *path = folder_path(state, "small.npz");
    BASIN_AT_EXIT(free_network) basin_network *n;
    write_npz(path);
    assert_int_equal(open_one(&n, path, NULL, NULL), BASIN_OK);
    assert_int_equal(n->nodes, 5);
    assert_int_equal(n->label[4], -1);
    assert_int_equal(n->label[3], 1);
    assert_int_equal(n->splits, 2);
    ASSERT_ROW(&n->relation[basin_network_relation(n, "b")], 0, 3);
    ASSERT_ROW(&n->relation[basin_network_relation(n, "a")], 2, 0, 1, 3);
    uint8_t part[5];
    assert_int_equal(basin_split_from_masks(part, n, 1, NULL), BASIN_OK);
    const uint8_t wanted[] = {BASIN_SPLIT_TRAIN, BASIN_SPLIT_TRAIN, BASIN_SPLIT_VAL,
                              BASIN_SPLIT_TEST, BASIN_SPLIT_NONE};
    assert_memory_equal(part, wanted, sizeof wanted);
}

TEST(goes_through_files) {
    char *path = folder_path(state, "small.npz");
    BASIN_AT_EXIT(free_network) basin_network *n, *m, *o;
    write_npz(path);
    char *mapped = folder_path(state, "small.basin");
    char *npz = folder_path(state, "again.npz");
    assert_int_equal(open_one(&n, path, NULL, NULL), BASIN_OK);
    assert_int_equal(basin_network_write(mapped, n, NULL), BASIN_OK);
    assert_int_equal(open_one(&m, mapped, NULL, NULL), BASIN_OK);
    assert_non_null(m->file);
    assert_networks_equal(n, m);
    assert_int_equal(basin_network_check(m, NULL), BASIN_OK);
    assert_int_equal(basin_network_write(npz, m, NULL), BASIN_OK);
    assert_int_equal(open_one(&o, npz, NULL, NULL), BASIN_OK);
    assert_networks_equal(n, o);
    /* a mapped network takes a relation of its own beside those of the file */
    assert_int_equal(basin_network_add_union(m, NULL), BASIN_OK);
    ASSERT_ROW(&m->relation[basin_network_main_relation(m)], 0, 1, 2, 3);
}

TEST(refuses_bad_npz) {
    float nan_x[10] = {0, 1, NAN};
    int32_t far[] = {0, 5}, below[] = {-1, 2};
    float half[] = {0.5f, 1};
    char *path = folder_path(state, "bad.npz");
    const struct {
        const char *name;
        basin_tensor tensor;
        const char *wanted;
    } trial[] = {
        {"x", BORROW(small_x, BASIN_F32, 10), "features are [10], expected [10, F]"},
        {"x", BORROW(small_x, BASIN_F32, 2, 5), "labels are [5], expected [2]"},
        {"x", BORROW(small_x, BASIN_F32, 5, 0), "0 features a node"},
        {"x", BORROW(nan_x, BASIN_F32, 5, 2), "feature 0 of node 1 is missing or NaN"},
        {"edges", BORROW(far, BASIN_I32, 1, 2),
         "joins nodes 0 and 5, expected numbers from 0 to 4"},
        {"edges", BORROW(below, BASIN_I32, 1, 2), "joins nodes -1 and 2"},
        {"edges", BORROW(half, BASIN_F32, 1, 2), "expected whole numbers"},
        {"edges", BORROW(far, BASIN_I32, 2, 1), "edges is [2, 1], expected [E, 2]"},
        {"train_mask", BORROW(small_y, BASIN_U8, 4), "the train mask is [4], expected [5]"},
        {"labelled", BORROW(small_y, BASIN_U8, 4), "labelled has 4 entries, expected 5"},
    };
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        basin_bundle *bundle = new_bundle();
        bool x = !strcmp(trial[i].name, "x"), edges = !strcmp(trial[i].name, "edges");
        if (!x) add_tensor(bundle, "x", BORROW(small_x, BASIN_F32, 5, 2));
        add_tensor(bundle, "y", BORROW(small_y, BASIN_U8, 5));
        if (!edges) add_tensor(bundle, "edges", BORROW(small_edges_a, BASIN_I32, 5, 2));
        add_tensor(bundle, trial[i].name, trial[i].tensor);
        write_bundle(path, bundle);
        assert_refused(path, trial[i].wanted);
    }
    write_bundle(path, new_bundle());
    assert_refused(path, "neither x [N, F] nor y [N] is there");
    basin_bundle *bundle = new_bundle();
    add_tensor(bundle, "x", BORROW(small_x, BASIN_F32, 5, 2));
    write_bundle(path, bundle);
    assert_refused(path, "no edges");
    bundle = new_bundle();
    add_tensor(bundle, "x", BORROW(small_x, BASIN_F32, 0, 2));
    write_bundle(path, bundle);
    assert_refused(path, "0 nodes");
}

TEST(refuses_bad_mapped_files) {
    basin_network *n = small_network(NULL);
    char *path = folder_path(state, "bad.basin");
    char *cut = folder_path(state, "cut.basin");
    n->relation[0].row[5] = 7;
    assert_int_equal(basin_network_write(path, n, NULL), BASIN_OK);
    assert_refused(path, "row.a runs from 0 to 7, expected 0 to 8");
    n->relation[0].row[5] = 8;
    basin_network_close(n);
    char bytes[4096];
    size_t size = file_get(bytes, sizeof bytes, path);
    assert_int_equal(file_put(cut, bytes, size - 5), 0);
    assert_refused(cut, "cut.basin");
    assert_int_equal(file_put(cut, "", 0), 0);
    assert_refused(cut, "cut.basin");
}

static void assert_write_refused(const char *path, const basin_network *n, const char *wanted) {
    assert_int_equal(basin_network_write(path, n, NULL), BASIN_OK);
    assert_refused(path, wanted);
}

/* Sizes that fit, numbers that do not: nothing that would crash or mislead later is let in. */
TEST(checks_all_of_a_mapped_file) {
    char *from = folder_path(state, "small.npz");
    BASIN_AT_EXIT(free_network) basin_network *n;
    write_npz(from);
    assert_int_equal(open_one(&n, from, NULL, NULL), BASIN_OK);
    char *path = folder_path(state, "bad.basin");
    basin_relation *a = &n->relation[0];
    a->col[2] = 9;
    assert_write_refused(path, n, "edge 2 of 'a' leads to node 9, expected 0 to 4");
    a->col[2] = -1;
    assert_write_refused(path, n, "edge 2 of 'a' leads to node -1");
    a->col[2] = 0, a->col[4] = 1, a->col[5] = 0;
    assert_write_refused(path, n, "neighbours of node 2 in 'a' are not in ascending order");
    a->col[4] = 0, a->col[5] = 1, a->row[1] = 5;
    assert_write_refused(path, n, "row 1 of 'a' runs from 5 to 4 of 8 edges");
    a->row[1] = 2, n->label[3] = -7;
    assert_write_refused(path, n, "the label of node 3 is -7");
    n->label[3] = 1, n->val[6] = 2;
    assert_write_refused(path, n, "node 1 of split 1 has 2 in the val mask, expected 0 or 1");
    n->val[6] = 0, n->feature[7] = NAN;
    assert_write_refused(path, n, "feature 1 of node 3 is missing or NaN");
}

TEST(fills_and_forgets_in_a_mapped_file) {
    char *path = folder_path(state, "gap.basin");
    BASIN_AT_EXIT(free_network) basin_network *n = small_network(NULL), *m;
    n->feature[7] = NAN;
    assert_int_equal(basin_network_write(path, n, NULL), BASIN_OK);
    basin_network_options o = {.missing = BASIN_MISSING_MEAN, .unlabelled_first = 2, .unite = true};
    assert_int_equal(open_one(&m, path, &o, NULL), BASIN_OK);
    assert_true(m->feature[7] == 4.5f && m->feature[6] == 6); /* of 1, 3, 5, 9 */
    assert_int_equal(m->label[1], -1);
    assert_int_equal(m->label[3], 1);
    ASSERT_ROW(&m->relation[basin_network_main_relation(m)], 0, 1, 2, 3);
}

/* The real sets, where they are. */
TEST(reads_real_npz) {
    char path[PATH_TEXT];
    basin_network *n;
    const struct {
        const char *name;
        int64_t nodes, features, edges, splits, anomalous;
    } set[] = {{"amazon_upu.npz", 10224, 25, 351216, 0, 693},
               {"tolokers.npz", 11758, 10, 1038000, 10, 2566},
               {"fdcompcn.npz", 5317, 57, 0, 1, 559}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        snprintf(path, sizeof path, "%s/%s", shared, set[i].name);
        FILE *file = fopen(path, "rb");
        if (!file) {
            print_message("%s is not there\n", path);
            skip();
        }
        fclose(file);
        assert_int_equal(open_one(&n, path, NULL, NULL), BASIN_OK);
        assert_int_equal(n->nodes, set[i].nodes);
        assert_int_equal(n->features, set[i].features);
        if (set[i].edges) assert_int_equal(n->relation[0].edges, set[i].edges);
        assert_int_equal(n->splits, set[i].splits);
        assert_int_equal(basin_network_count_label(n, 1), set[i].anomalous);
        basin_network_close(n);
    }
}

/* The same set from its DGL file, by share/basin/dgl.py, and from npz, which has no self loops. */
TEST(reads_real_dgl) {
    BASIN_AT_EXIT(free_network) basin_network *a = NULL, *b = NULL;
    const char *dgl = BASIN_SOURCE "/../shared/data/anomaly/fdcompcn.dgl";
    const char *npz = BASIN_SOURCE "/../shared/data/anomaly/fdcompcn.npz";
    char line[3 * PATH_TEXT];
    char *path = folder_path(state, "made.npz");
    snprintf(line, sizeof line, "python3 -c 'import numpy' 2>/dev/null && test -f '%s'", dgl);
    if (system(line) != 0) {
        print_message("%s or NumPy is not there\n", dgl);
        skip();
    }
    assert_failure(open_one(&a, dgl, NULL, &failure), BASIN_UNSUPPORTED, "a graph file of DGL");
    snprintf(line, sizeof line, "python3 '%s/share/basin/dgl.py' '%s' '%s'", BASIN_SOURCE, dgl,
             path);
    assert_int_equal(system(line), 0);
    snprintf(line, sizeof line, /* DGL's file has a loop at every node */
             "python3 -c 'import numpy; p = \"%s\"; d = dict(numpy.load(p)); numpy.savez(p, **{k: "
             "v[v[:, 0] != v[:, 1]] if k.startswith(\"edges\") else v for k, v in d.items()})'",
             path);
    assert_int_equal(system(line), 0);
    assert_int_equal(open_one(&a, path, NULL, NULL), BASIN_OK);
    assert_int_equal(open_one(&b, npz, NULL, NULL), BASIN_OK);
    static const char *const name[][2] = {
        {"invest_bc2bc", "invest"}, {"provide_bc2bc", "provide"}, {"sale_bc2bc", "sale"}};
    for (int i = 0; i < 3; i++) { /* so that they can be compared by name */
        int r = basin_network_relation(a, name[i][0]);
        assert_true(r >= 0);
        strcpy(a->relation[r].name, name[i][1]);
    }
    assert_networks_equal(a, b);
}

int main(void) { return tests_run(folder_new, folder_remove); }
