/* Labels of tables that are classes by any name: how they are numbered and called, what counts as
 * none, and what a network to add to has to do with it. */
#include <string.h>

#include "tasks/nodes/network/networks.h"
#include "tasks/nodes/network/parts/parts.h"

static basin_network *read_tables(void **state, const char *nodes, const char *edges,
                                  const basin_network_options *options) {
    const char *list[2] = {folder_put(state, "nodes.csv", nodes),
                           folder_put(state, "edges.csv", edges)};
    basin_network *network;
    assert_ok(basin_network_open(&network, list, 2, options, &failure));
    return network;
}

static const char edges[] = "src,dst\na,b\nb,c\nc,d\n";

static void expect(const basin_network *n, const int32_t *label, const char *const *name) {
    char text[BASIN_MAX_NODE];
    for (int64_t i = 0; i < n->nodes; i++) {
        assert_int_equal(n->label[i], label[i]);
        if (label[i] >= 0) assert_string_equal(basin_network_class(n, n->label[i], text), name[i]);
    }
}

TEST(words_are_numbered_by_name) {
    basin_network_options options = {.table =
                                         &(basin_table_options){.classes = true, .label = "kind"}};
    BASIN_AT_EXIT(free_network)
    basin_network *n = read_tables(
        state, "id,x,kind\na,1, yes \nb,2,\"maybe, not\"\nc,3,\nd,4,no\n", edges, &options);
    expect(n, (const int32_t[]){2, 0, -1, 1}, (const char *const[]){"yes", "maybe, not", "", "no"});
    assert_int_equal(n->class_name.count, 3);
}

/* 10 is behind 9; -1 and ? are no class; 2 and 2.0 are two names. */
TEST(numbers_are_numbered_as_numbers) {
    basin_network_options options = {.table = &(basin_table_options){.classes = true}};
    BASIN_AT_EXIT(free_network)
    basin_network *n =
        read_tables(state, "id,x,label\na,1,10\nb,2,9\nc,3,-1\nd,4,?\n", edges, &options);
    expect(n, (const int32_t[]){1, 0, -1, -1}, (const char *const[]){"10", "9", "", ""});
}

/* Without the option labels are those of a detector, and other words are errors. */
TEST(detectors_read_as_before) {
    basin_network_options options = {.table = &(basin_table_options){.label = "kind"}};
    basin_network *n =
        read_tables(state, "id,x,kind\na,1,yes\nb,2,no\nc,3,\nd,4,1\n", edges, &options);
    expect(n, (const int32_t[]){1, 0, -1, 1}, (const char *const[]){"1", "0", "", "1"});
    basin_network_close(n);
    folder_put(state, "nodes.csv", "id,x,kind\na,1,oak\nb,2,no\nc,3,\nd,4,1\n");
    const char *list[2] = {folder_path(state, "nodes.csv"), folder_path(state, "edges.csv")};
    assert_failure(basin_network_open(&n, list, 2, &options, &failure), BASIN_BAD_FILE,
                   "the label 'oak', expected 0 or 1");
}

/* Classes that are there keep their numbers; new ones come behind them. */
TEST(tables_add_classes) {
    basin_network_options options = {.table =
                                         &(basin_table_options){.classes = true, .label = "kind"}};
    BASIN_AT_EXIT(free_network)
    basin_network *base =
        read_tables(state, "id,x,kind\na,1,oak\nb,2,elm\nc,3,\nd,4,oak\n", edges, &options);
    options.base = base;
    BASIN_AT_EXIT(free_network)
    basin_network *n =
        read_tables(state, "id,x,kind\ne,1,ash\nf,2,oak\n", "src,dst\ne,a\nf,b\n", &options);
    expect(n, (const int32_t[]){1, 0, -1, 1, 2, 1},
           (const char *const[]){"oak", "elm", "", "oak", "ash", "oak"});
}

/* A file that is mapped, and parts of a graph, call classes as the table does. */
TEST(files_and_parts_keep_names) {
    basin_network_options options = {.table =
                                         &(basin_table_options){.classes = true, .label = "kind"}};
    char text[BASIN_MAX_NODE];
    char *path = folder_path(state, "g.basin");
    const char *list[] = {path};
    basin_network *again,
        *n = read_tables(state, "id,x,kind\na,1,oak\nb,2,elm\nc,3,\nd,4,oak\n", edges, &options);
    basin_parts *parts;
    basin_error error;
    basin_cut_spec spec = {.parts = 2, .method = "range"};
    assert_ok(basin_parts_cut(&parts, n, &spec, NULL, &failure));
    assert_string_equal(basin_network_class(basin_parts_face(parts), 1, text), "oak");
    basin_parts_close(parts);
    assert_int_equal(basin_network_write(path, n, NULL), BASIN_OK);
    assert_int_equal(basin_network_open(&again, list, 1, NULL, NULL), BASIN_OK);
    assert_string_equal(basin_network_class(again, 0, text), "elm");
    basin_network_close(again);
    n->class_name.at[1] = INT64_C(1) << 40; /* in the middle of the file, not at its ends */
    assert_int_equal(basin_network_write(path, n, NULL), BASIN_OK);
    assert_int_equal(basin_network_open(&again, list, 1, NULL, &error), BASIN_BAD_FILE);
    assert_non_null(strstr(error.text, "class name 0 runs from byte 0 to 1099511627776"));
    basin_network_close(n);
}

int main(void) { return tests_run(folder_new, folder_remove); }
