/* Sets of graphs: reading TUDatasets and what is wrong with them, the packed form, folds. */
#include <math.h>

#include "basin/random.h"
#include "support/test.h"
#include "tasks/graphs/set/graphset.h"
#include "tasks/graphs/set/tiny_tu.h"

static void check_tiny(const basin_graphset *set) {
    static const int32_t edge[] = {0, 1, 0, 2, 1, 0, 1, 2, 2, 0, 2, 1,
                                   0, 1, 1, 0, 1, 2, 2, 1, 2, 3, 3, 2};
    static const int32_t label[] = {0, 0, 0, 1, 0, 1, 2, 2, 0, 0, 1, 1};
    static const int64_t node_start[] = {0, 3, 7, 8}, edge_start[] = {0, 6, 12, 12};
    assert_string_equal(set->name, "T");
    assert_int_equal(set->graphs, 3);
    assert_int_equal(set->nodes, 8);
    assert_int_equal(set->edges, 12); /* without the self loop and the repeated edge */
    assert_memory_equal(set->node_start, node_start, sizeof node_start);
    assert_memory_equal(set->edge_start, edge_start, sizeof edge_start);
    assert_memory_equal(set->edge, edge, sizeof edge);
    assert_memory_equal(set->edge_label, label, sizeof label);
    assert_int_equal(set->classes, 2);
    assert_int_equal(set->class_value[0], -1);
    assert_int_equal(set->class_value[1], 7);
    assert_int_equal(set->class_of[1], 1);
    assert_int_equal(set->node_attributes, 2);
    assert_true(set->node_attribute[2 * 6 + 1] == 14);
    assert_true(set->edge_attribute[6] == 7);
    assert_int_equal(set->node_label[7], 3);
}

TEST_WITH(reads_folder, folder_new, folder_remove) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    tiny_write(state, NULL, NULL);
    assert_ok(basin_graphset_read(&set, *state, NULL, &failure));
    check_tiny(&set);
}

/* Whatever the file is called. */
TEST_WITH(packed_form, folder_new, folder_remove) {
    basin_graphset set, again;
    tiny_write(state, NULL, NULL);
    assert_ok(basin_graphset_read(&set, *state, NULL, &failure));
    set.split[0] = 2, set.split[2] = 1;
    char *path = folder_path(state, "packed.set");
    assert_ok(basin_graphset_write(path, &set, &failure));
    assert_ok(basin_graphset_read(&again, path, NULL, &failure));
    check_tiny(&again);
    assert_non_null(again.file);
    assert_int_equal(again.split[0], 2);
    assert_int_equal(again.split[2], 1);
    basin_graphset_free(&again);
    set.split[0] = INT64_MAX, set.split[1] = INT64_MAX, set.split[2] = 2; /* 0 where it overflows */
    assert_ok(basin_graphset_write(path, &set, &failure));
    assert_failure(basin_graphset_read(&again, path, NULL, &failure), BASIN_BAD_FILE,
                   "a split into 9223372036854775807");
    set.split[0] = 2, set.split[1] = 0, set.split[2] = 1;
    set.edge[1] = 3; /* beyond the triangle */
    assert_ok(basin_graphset_write(path, &set, &failure));
    assert_failure(basin_graphset_read(&again, path, NULL, &failure), BASIN_BAD_FILE,
                   "in a graph of 3 nodes");
    basin_graphset_free(&set);
}

/* Nodes of a graph need not stand together. */
TEST_WITH(scattered_nodes, folder_new, folder_remove) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    tiny_write(state, "T_graph_indicator.txt", "2\n1\n2\n1\n2\n1\n2\n3\n");
    const char edges[] = "1, 3\n2, 4\n", some[] = "1\n2\n";
    folder_put(state, "T_A.txt", edges);
    folder_put(state, "._T_A.txt", "x"); /* macOS has these beside files */
    folder_put(state, "T_edge_labels.txt", some);
    folder_put(state, "T_edge_attributes.txt", some);
    assert_ok(basin_graphset_read(&set, *state, NULL, &failure));
    assert_int_equal(set.edges, 2);
    assert_int_equal(set.edge[0], 0); /* nodes 2 and 4 of the file are 0 and 1 of graph 1 */
    assert_int_equal(set.edge[1], 1);
    assert_int_equal(set.edge_label[0], 2);
    assert_int_equal(set.node_label[0], 5);
}

/* Tables of edges may be there and empty. */
TEST_WITH(no_edges, folder_new, folder_remove) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    tiny_write(state, "T_A.txt", "");
    folder_put(state, "T_edge_labels.txt", "");
    folder_put(state, "T_edge_attributes.txt", "");
    assert_ok(basin_graphset_read(&set, *state, NULL, &failure));
    assert_int_equal(set.edges, 0);
}

/* An error is one line that names the file and the line. */
TEST_WITH(malformed, folder_new, folder_remove) {
    static const struct {
        const char *name, *text, *wanted;
    } bad[] = {
        {"T_A.txt", NULL, "no file DS_A.txt"},
        {"T_graph_indicator.txt", NULL, "no file DS_graph_indicator.txt"},
        {"T_graph_indicator.txt", "1\n1\n1\n2\n2\n2\n2\n4\n", "names graph 4; expected 1 to 3"},
        {"T_graph_indicator.txt", "1\n1\n0\n2\n2\n2\n2\n3\n",
         "line 3: graph 0; expected at least 1"},
        {"T_graph_indicator.txt", "1\n1\n1\n1\n2\n2\n2\n3\n", "expected both in one graph"},
        {"T_A.txt", "1, 9\n", "line 1: node 9; expected 1 to 8"},
        {"T_A.txt", "1, 2\n0, 1\n", "line 2: node 0; expected 1 to 8"},
        {"T_A.txt", "1\n2\n", "expected two nodes"},
        {"T_A.txt", "1, x\n", "line 1: 'x' is not a number"},
        {"T_node_attributes.txt", "1, 2\n2\n", "line 2: 1 numbers; expected 2"},
        {"T_node_attributes.txt", "1, 2\n", "has 1 lines; expected 8, one for each node"},
        {"T_node_attributes.txt", "1,,2\n", "line 1: '' is not a number"},
        {"T_node_attributes.txt", "1, nan\n", "'nan' is not a number"},
        {"T_node_attributes.txt", "1, -4e38\n", "'-4e38' is not a number"}, /* a float's end */
        {"T_node_labels.txt", "1\n", "has 1 lines; expected 8"},
        {"T_node_labels.txt", "1.5\n1\n1\n1\n1\n1\n1\n1\n", "1.5; expected an integer"},
        {"T_edge_labels.txt", "1\n", "expected 14, one for each edge"},
        {"T_graph_labels.txt", "a\n", "'a' is not a number"},
        {"T_graph_labels.txt", "", "is empty"},
        {"T_graph_labels.txt", "1 0\n7 0\n1 1\n", "2 numbers; expected one, the graph's class"},
        {"T_graph_indicator.txt", "1 1\n1 2\n", "2 numbers; expected one, the node's graph"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        basin_graphset set;
        basin_error error = {0};
        tiny_write(state, bad[i].name, bad[i].text);
        if (basin_graphset_read(&set, *state, NULL, &error) == BASIN_OK)
            fail_msg("%s '%s' was taken", bad[i].name, bad[i].text ? bad[i].text : "absent");
        if (!strstr(error.text, bad[i].wanted))
            fail_msg("'%s' is not in: %s", bad[i].wanted, error.text);
        assert_null(strchr(error.text, '\n'));
        assert_null(set.node_start);
    }
}

/* Bytes changed at random: a set or one line, never a crash. */
TEST_WITH(mutated, folder_new, folder_remove) {
    static const char letter[] = "0123456789,-.\n x";
    char text[400];
    basin_random random = basin_random_start(3, 3, 0);
    int taken = 0, refused = 0;
    tiny_write(state, NULL, NULL);
    for (int round = 0; round < 400; round++) {
        const tiny_file *file = &tiny_tu[basin_random_below(&random, TINY_FILES)];
        size_t length = strlen(file->text);
        memcpy(text, file->text, length);
        for (int k = 0; k < 3; k++)
            text[basin_random_below(&random, length)] =
                letter[basin_random_below(&random, sizeof letter - 1)];
        char *path = folder_path(state, file->name);
        file_put(path, text, round % 3 ? length : (size_t)basin_random_below(&random, length));
        basin_graphset set;
        basin_error error = {0};
        if (basin_graphset_read(&set, *state, NULL, &error) == BASIN_OK) {
            taken++;
            basin_graphset_free(&set);
        } else {
            refused++;
            assert_true(error.text[0] && !strchr(error.text, '\n'));
        }
        file_put(path, file->text, length);
    }
    assert_true(taken > 10 && refused > 100);
}

TEST_WITH(targets, folder_new, folder_remove) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    const char values[] = "0.5\n-1.25\n2e-3\n";
    tiny_write(state, "T_graph_labels.txt", NULL);
    char *path = folder_path(state, "T_graph_attributes.txt");
    file_put(path, values, strlen(values));
    assert_ok(basin_graphset_read(&set, *state, NULL, &failure));
    assert_int_equal(set.task, BASIN_GRAPHS_VALUES);
    assert_int_equal(set.targets, 1);
    assert_true(set.target[1] == -1.25f);
    unlink(path);
}

/* A value may be missing: nan, or nothing between commas. Nothing else may. */
TEST_WITH(missing_targets, folder_new, folder_remove) {
    static const char text[] = "1,,3\nnan, 5,6\n,8,\n";
    static const float wanted[] = {1, NAN, 3, NAN, 5, 6, NAN, 8, NAN};
    basin_graphset set;
    tiny_write(state, "T_graph_labels.txt", NULL);
    char *path = folder_path(state, "T_graph_attributes.txt");
    file_put(path, text, strlen(text));
    assert_ok(basin_graphset_read(&set, *state, NULL, &failure));
    char *packed = folder_path(state, "packed.safetensors");
    assert_ok(basin_graphset_write(packed, &set, &failure));
    basin_graphset_free(&set);
    assert_ok(basin_graphset_read(&set, packed, NULL, &failure));
    assert_int_equal(set.targets, 3);
    for (int i = 0; i < 9; i++)
        assert_true(isnan(wanted[i]) ? isnan(set.target[i]) : set.target[i] == wanted[i]);
    basin_graphset_free(&set);
    unlink(packed);
    file_put(path, "1\ninf\n2\n", 8);
    assert_failure(basin_graphset_read(&set, *state, NULL, &failure), BASIN_BAD_FILE,
                   "'inf' is not a number; expected one, or nan");
    unlink(path);
    tiny_write(state, "T_node_attributes.txt", "1,2\nnan,2\n3,4\n5,6\n7,8\n9,9\n1,1\n2,2\n");
    assert_int_equal(basin_graphset_read(&set, *state, NULL, &failure), BASIN_BAD_FILE);
}

/* To predict with, labels may be anything; they say how many graphs there are. */
TEST_WITH(reads_without_labels, folder_new, folder_remove) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    tiny_write(state, "T_graph_labels.txt", "1.75\nred\n\n?\n4\n");
    assert_int_equal(basin_graphset_read(&set, *state, NULL, &failure), BASIN_BAD_FILE);
    assert_ok(basin_graphset_read(&set, *state, &(basin_graphset_options){.bare = true}, &failure));
    assert_int_equal(set.graphs, 4);
    assert_int_equal(set.nodes, 8);
    assert_null(set.class_of);
    assert_null(set.target);
}

/* A packed set with this split and these starts of two graphs (or of none). */
static basin_status read_packed(void **state, const char *split, const int64_t *start, int starts,
                                basin_error *error) {
    static const int64_t edge_start[] = {0, 1, 1};
    static const int32_t edge[] = {0, 1};
    struct {
        const char *name;
        basin_tensor tensor;
    } part[] = {{"node_start", basin_tensor_view(start, BASIN_I64, BASIN_SHAPE(starts))},
                {"edge_start", basin_tensor_view(edge_start, BASIN_I64, BASIN_SHAPE(starts))},
                {"edge", basin_tensor_view(edge, BASIN_I32, BASIN_SHAPE(starts ? 1 : 0, 2))}};
    char *path = folder_path(state, "packed.set");
    basin_bundle *bundle;
    basin_graphset set;
    assert_ok(basin_bundle_new(&bundle, NULL, &failure));
    for (int i = 0; i < 3; i++)
        assert_ok(basin_bundle_add(bundle, part[i].name, &part[i].tensor, &failure));
    assert_ok(basin_bundle_meta_set(bundle, "format", "basin graph set 1", &failure));
    assert_ok(basin_bundle_meta_set(bundle, "split", split, &failure));
    assert_ok(basin_bundle_write(path, bundle, &failure));
    basin_bundle_free(bundle);
    basin_status status = basin_graphset_read(&set, path, NULL, error);
    if (!status) basin_graphset_free(&set);
    return status;
}

/* The tiny set, packed, after a change to what it claims. */
static basin_status read_changed(void **state, const basin_graphset *set, basin_error *error) {
    char *path = folder_path(state, "changed.set");
    basin_graphset again;
    assert_ok(basin_graphset_write(path, set, &failure));
    basin_status status = basin_graphset_read(&again, path, NULL, error);
    if (!status) basin_graphset_free(&again);
    return status;
}

TEST_WITH(packed_columns_that_lie, folder_new, folder_remove) {
    static int32_t labels[8 * 40];
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    tiny_write(state, NULL, NULL);
    assert_ok(basin_graphset_read(&set, *state, NULL, &failure));
    assert_ok(read_changed(state, &set, &failure));
    basin_graphset wide = set;
    wide.node_labels = 40; /* an encoding has room for 32 */
    wide.node_label = labels;
    assert_failure(read_changed(state, &wide, &failure), BASIN_BAD_FILE,
                   "40 columns of node labels");
    set.node_attribute[3] = NAN;
    assert_failure(read_changed(state, &set, &failure), BASIN_BAD_FILE, "node_attribute[3] is nan");
}

TEST_WITH(packed_sets_that_lie, folder_new, folder_remove) {
    static const int64_t good[] = {0, 2, 3}, huge[] = {0, 2, INT64_C(1) << 40};
    assert_ok(read_packed(state, "1 0 1", good, 3, &failure));
    assert_ok(read_packed(state, "0 0 0", good, 3, &failure));
    static const char *const split[] = {"1 0 2", "-1 2 1", "1 0 0",
                                        "9223372036854775807 9223372036854775807 4",
                                        ("4611686018427387904 4611686018427387904 "
                                         "-9223372036854775806")};
    for (size_t i = 0; i < sizeof split / sizeof *split; i++) {
        assert_failure(read_packed(state, split[i], good, 3, &failure), BASIN_BAD_FILE,
                       "a split into");
    }
    assert_failure(read_packed(state, "0 0 0", good, 0, &failure), BASIN_BAD_FILE, "has no graphs");
    assert_failure(read_packed(state, "0 0 0", huge, 3, &failure), BASIN_BAD_FILE,
                   "1099511627776 nodes");
}

/* Without labels nothing but the indicator says how many graphs there are. */
TEST_WITH(indicator_that_lies, folder_new, folder_remove) {
    basin_graphset set;
    char *path = folder_path(state, "T_graph_labels.txt");
    tiny_write(state, "T_graph_indicator.txt", "1\n1\n1\n2\n2\n2\n2\n400000000\n");
    unlink(path);
    assert_failure(basin_graphset_read(&set, *state, NULL, &failure), BASIN_BAD_FILE,
                   "names graph 400000000 and has 8 lines");
    tiny_write(state, NULL, NULL);
    assert_int_equal(file_put(path = folder_path(state, "T_A.txt"), "1, 2\n\0002, 3\n", 11), 0);
    assert_failure(basin_graphset_read(&set, *state, NULL, &failure), BASIN_BAD_FILE,
                   "T_A.txt holds a zero byte");
    unlink(path);
    assert_int_equal(mkfifo(path, 0666), 0);
    assert_int_equal(basin_graphset_read(&set, *state, NULL, &failure), BASIN_IO);
    assert_failure(basin_graphset_read(&set, path, NULL, &failure), BASIN_IO,
                   "is not a regular file");
    unlink(path);
}

TEST(real_tu) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    FILE *file = fopen(BASIN_SOURCE "/../shared/data/tudataset/MUTAG.zip", "rb");
    if (!file) skip();
    fclose(file);
    assert_ok(basin_graphset_read(&set, BASIN_SOURCE "/../shared/data/tudataset/MUTAG.zip", NULL,
                                  &failure));
    assert_string_equal(set.name, "MUTAG");
    assert_int_equal(set.graphs, 188);
    assert_int_equal(set.nodes, 3371);
    assert_int_equal(set.edges, 7442);
}

/* ---- folds ---- */

TEST(stratified) {
    enum { COUNT = 103 };
    int32_t class_of[COUNT];
    for (int i = 0; i < COUNT; i++) class_of[i] = i < 30 ? 0 : 1;
    basin_folds folds;
    basin_folds_options options = {.count = COUNT, .folds = 10, .inner = 0.1, .seed = 4};
    options.class_of = class_of;
    assert_ok(basin_folds_new(&folds, &options, &failure));
    int tested[COUNT] = {0};
    for (int64_t f = 0; f < 10; f++) {
        const basin_fold *fold = &folds.fold[f];
        int ones[3] = {0}, all[COUNT] = {0};
        assert_int_equal(fold->count[0] + fold->count[1] + fold->count[2], COUNT);
        for (int part = 0; part < 3; part++)
            for (int64_t i = 0; i < fold->count[part]; i++) {
                ones[part] += class_of[fold->item[part][i]] == 0;
                all[fold->item[part][i]]++;
                if (part == 2) tested[fold->item[part][i]]++;
            }
        for (int i = 0; i < COUNT; i++) assert_int_equal(all[i], 1);
        assert_int_equal(ones[2], 3);
        assert_in_range(ones[1], 2, 3);
    }
    for (int i = 0; i < COUNT; i++) assert_int_equal(tested[i], 1);
    basin_folds_free(&folds);
    options.count = 5;
    assert_int_equal(basin_folds_new(&folds, &options, &failure), BASIN_BAD_VALUE);
}

/* Graphs of 6 nodes: a hexagon, another one with its nodes in another order, two triangles, which
 * colours cannot tell from it, a hexagon with another label; arrows one way, and its mirror. */
TEST(copies_are_found) {
    enum { GRAPHS = 6, NODES = 6 * GRAPHS };
    static const int64_t mixed[] = {3, 0, 5, 1, 4, 2}, expected[] = {0, 0, 2, 3, 4, 4};
    int64_t nodes[GRAPHS] = {6, 6, 6, 6, 6, 6}, from[NODES], to[NODES], first[GRAPHS];
    int32_t label[NODES] = {0};
    for (int64_t i = 0; i < 6; i++) {
        from[i] = i, to[i] = (i + 1) % 6;
        from[6 + i] = 6 + mixed[i], to[6 + i] = 6 + mixed[(i + 1) % 6];
        from[12 + i] = 12 + i, to[12 + i] = 12 + i / 3 * 3 + (i + 1) % 3;
        from[18 + i] = 18 + i, to[18 + i] = 18 + (i + 1) % 6;
        from[24 + i] = 24 + i, to[24 + i] = 24 + (i ? i - 1 : 1);
        from[30 + i] = 30 + 5 - i, to[30 + i] = 30 + (i ? 5 - i + 1 : 4);
    }
    label[20] = 1;
    for (int ways = 1; ways < 3; ways++) {
        BASIN_AT_EXIT(basin_graphset_free) basin_graphset set = {0};
        basin_graphset_arrays a = {.graphs = GRAPHS, .nodes = nodes, .edges = NODES, .from = from};
        a.to = to, a.node_label = label, a.node_labels = 1, a.undirected = ways > 1;
        assert_ok(basin_graphset_from_arrays(&set, &a, &failure));
        assert_ok(basin_graphset_copies(first, &set, &failure));
        for (int g = 0; g < GRAPHS; g++) assert_int_equal(first[g], expected[g]);
    }
}

TEST(copies_stay_in_one_part) {
    enum { COUNT = 120 };
    int64_t copy[COUNT];
    int32_t class_of[COUNT];
    for (int64_t i = 0; i < COUNT; i++) copy[i] = i % 37, class_of[i] = i % 3 == 0;
    for (int kind = 0; kind < 3; kind++) {
        basin_folds folds;
        basin_folds_options options = {.count = COUNT, .folds = 5, .inner = 0.1, .copy = copy};
        options.class_of = class_of;
        options.kind = (basin_folds_kind)kind;
        if (kind == BASIN_FOLDS_GROUPED) options.group = copy;
        if (kind == BASIN_FOLDS_ORDERED) options.folds = 1;
        assert_ok(basin_folds_new(&folds, &options, &failure));
        for (int64_t f = 0; f < folds.folds; f++) {
            const basin_fold *fold = &folds.fold[f];
            int part_of[COUNT] = {0};
            assert_true(fold->count[1] > 0 && fold->count[2] > 0);
            for (int part = 0; part < 3; part++)
                for (int64_t i = 0; i < fold->count[part]; i++) {
                    int *own = &part_of[copy[fold->item[part][i]]];
                    assert_true(!*own || *own == part + 1);
                    *own = part + 1;
                }
        }
        basin_folds_free(&folds);
    }
}

TEST_WITH(given_folds, folder_new, folder_remove) {
    basin_folds folds;
    char *name = folder_path(state, "S");
    folder_put(state, "S_train.index", "0,1,2\n3,4,5\n");
    folder_put(state, "S_val.index", "3\n0\n");
    folder_put(state, "S_test.index", "4,5\n1,2\n");
    basin_folds_options options = {.kind = BASIN_FOLDS_READ, .count = 6, .inner = 0.1};
    options.path = name;
    assert_ok(basin_folds_new(&folds, &options, &failure));
    assert_int_equal(folds.folds, 2);
    assert_int_equal(folds.fold[1].count[0], 3);
    assert_int_equal(folds.fold[1].item[1][0], 0);
    assert_int_equal(folds.fold[0].item[2][1], 5);
    basin_folds_free(&folds);
    folder_put(state, "S_test.index", "4,5\n1,3\n");
    assert_failure(basin_folds_new(&folds, &options, &failure), BASIN_BAD_FILE,
                   "fold 2 has graph 3 twice");
    options.count = 5;
    assert_failure(basin_folds_new(&folds, &options, &failure), BASIN_BAD_FILE,
                   "expected a number from 0 to 4");
}

/* A small archive of repeated lines would take minutes and gigabytes. */
TEST_WITH(refuses_what_unpacks_to_too_much, folder_new, folder_remove) {
    char line[2 * PATH_TEXT + 200];
    basin_graphset set;
    snprintf(line, sizeof line,
             "cd '%s' && mkdir -p big && yes 1 | head -c 70000000 >big/B_graph_indicator.txt && "
             "echo 1, 1 >big/B_A.txt && tar czf big.tgz big && rm -r big",
             (const char *)*state);
    assert_int_equal(system(line), 0);
    char *path = folder_path(state, "big.tgz");
    assert_failure(basin_graphset_read(&set, path, NULL, &failure), BASIN_BAD_FILE,
                   "unpack to more than 100 times as many");
}
