/* Tables whose edges lie in files while they are read: the network is that of tables which are
 * held, in whatever ranges its rows are made, and the files are gone with it. */
#include <dirent.h>

#include "data/network/networks.h"
#include "support/test.h"

enum { NODES = 200, EDGES = 3000 };

/* Three relations; edges that repeat, and lead from a node to itself. */
static void write_table(const char *path, const char *third) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "source,target,%s\n", third);
    for (int i = 0; i < EDGES; i++) fprintf(file, "a%d,a%d,%d\n", i * i % NODES, i * 7 % 50, i % 3);
    fclose(file);
}

static void same_relations(const basin_network *a, const basin_network *b) {
    assert_int_equal(a->nodes, b->nodes);
    assert_int_equal(a->relations, b->relations);
    for (int r = 0; r < a->relations; r++) {
        const basin_relation *x = &a->relation[r], *y = &b->relation[r];
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->edges, y->edges);
        assert_memory_equal(x->row, y->row, (size_t)(a->nodes + 1) * sizeof *x->row);
        assert_memory_equal(x->col, y->col, (size_t)x->edges * sizeof *x->col);
        assert_null(x->scratch);
        assert_non_null(y->scratch);
    }
}

static int count_files(const char *folder) {
    int count = 0;
    DIR *at = opendir(folder);
    assert_non_null(at);
    while (readdir(at)) count++;
    closedir(at);
    return count - 2;
}

TEST(edges_in_files_are_the_same) {
    char table[PATH_TEXT], folder[PATH_TEXT];
    const char *path = folder_path(table, state, "edges.csv");
    write_table(path, "relation");
    folder_path(folder, state, "scratch");
    for (int how = 0; how < 12; how++) {
        basin_network_options o = {.directed = how % 2,
                                   .keep_duplicates = how / 2 % 2,
                                   .self = (basin_self_loops)(how % 3),
                                   .unite = true};
        basin_network *held, *filed;
        assert_ok(basin_network_open(&held, &path, 1, &o, &failure));
        o.scratch = folder;
        o.memory = how < 6 ? 0 : 24000 + 16 * NODES; /* a range of all rows, or of some */
        assert_ok(basin_network_open(&filed, &path, 1, &o, &failure));
        same_relations(held, filed);
        assert_int_equal(count_files(folder), 0); /* also if the process were killed now */
        basin_network_free(held);
        basin_network_free(filed);
    }
    rmdir(folder);
    remove(path);
}

TEST(what_edges_carry_is_refused) {
    char table[PATH_TEXT], folder[PATH_TEXT];
    const char *path = folder_path(table, state, "edges.csv");
    basin_network_options o = {.scratch = folder_path(folder, state, "scratch")};
    basin_network *n;
    write_table(path, "amount");
    assert_failure(basin_network_open(&n, &path, 1, &o, &failure), BASIN_UNSUPPORTED,
                   "edges carry more than their ends");
    o.drop = "amount";
    assert_ok(basin_network_open(&n, &path, 1, &o, &failure));
    basin_network_free(n);
    o.scratch = "/nowhere/at/all";
    assert_failure(basin_network_open(&n, &path, 1, &o, &failure), BASIN_IO,
                   "/nowhere/at/all: cannot make the folder");
    rmdir(folder);
    remove(path);
}

int main(void) { return tests_run(folder_new, folder_remove); }
