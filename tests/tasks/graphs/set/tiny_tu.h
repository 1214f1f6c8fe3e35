/* A TUDataset of three graphs (a triangle, a path of four, a single node) for tests, with
 * everything a set may have; any file can be replaced or left out. */
#ifndef TESTS_DATA_TINY_TU_H
#define TESTS_DATA_TINY_TU_H

#include <sys/stat.h>

#include "basin/random.h"
#include "support/folder.h"
#include "support/test.h"
#include "tasks/graphs/set/graphset.h"

typedef struct tiny_file {
    const char *name, *text;
} tiny_file;

static const tiny_file tiny_tu[] = {
    {"T_A.txt", "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4,5\n5,4\n5,6\n6,5\n6,7\n7,6\n4,4\n4,5\n"},
    {"T_graph_indicator.txt", "1\n1\n1\n2\n2\n2\n2\n3\n"},
    {"T_graph_labels.txt", "-1\n7\n-1\n"},
    {"T_node_labels.txt", "3\n5\n3\n4\n4\n4\n5\n3\n"},
    {"T_node_attributes.txt", "1, 2\n2, 4\n3, 6\n4, 8\n5, 10\n6, 12\n7, 14\n8, 16\n"},
    {"T_edge_labels.txt", "0\n0\n1\n1\n0\n0\n2\n2\n0\n0\n1\n1\n9\n1\n"},
    {"T_edge_attributes.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n"},
};
enum { TINY_FILES = sizeof tiny_tu / sizeof *tiny_tu };

/* Writes the set into the test's folder, with `text` for the file `name` (NULL: without it). */
static inline void tiny_write(void **state, const char *name, const char *text) {
    for (int i = 0; i < TINY_FILES; i++) {
        const char *content = name && !strcmp(name, tiny_tu[i].name) ? text : tiny_tu[i].text;
        char *path = folder_path(state, tiny_tu[i].name);
        unlink(path);
        if (content && file_put(path, content, strlen(content))) abort();
    }
}

/* Adds walks along the edges of graphs first .. first + count - 1. The new attributes are the
 * set's, unless it lies in a file: then free them. */
static inline void add_walks(basin_graphset *set, int64_t walks, int64_t first, int64_t count) {
    float *value;
    assert_ok(basin_graphset_edge_walks(&value, set, walks, first, count, &failure));
    if (!set->file) free(set->edge_attribute);
    set->edge_attribute = value;
    set->edge_attributes += walks;
    set->edge_walks = walks;
}

/* `graphs` graphs of four communities of 10 to 30 nodes: dense inside, sparse between them. */
static inline void block_graphs(basin_graphset *set, int graphs) {
    enum { GRAPHS = 8, COMMUNITIES = 4, MOST = 30, EDGES = GRAPHS * 120 * 119 / 2 };
    static int64_t from[EDGES], to[EDGES];
    int64_t nodes[GRAPHS], edges = 0, first = 0;
    basin_random random = basin_random_start(5, 0, 0);
    for (int g = 0; g < graphs; first += nodes[g++]) {
        int community[COMMUNITIES * MOST];
        nodes[g] = 0;
        for (int c = 0; c < COMMUNITIES; c++)
            for (int64_t n = 10 + (int64_t)basin_random_below(&random, 21); n > 0; n--)
                community[nodes[g]++] = c;
        for (int64_t i = 0; i < nodes[g]; i++)
            for (int64_t j = i + 1; j < nodes[g]; j++)
                if (basin_random_below(&random, 20) < (community[i] == community[j] ? 11u : 5u))
                    from[edges] = first + i, to[edges++] = first + j;
    }
    basin_graphset_arrays arrays = {.graphs = graphs,
                                    .nodes = nodes,
                                    .edges = edges,
                                    .from = from,
                                    .to = to,
                                    .undirected = true};
    assert_ok(basin_graphset_from_arrays(set, &arrays, &failure));
}

#endif
