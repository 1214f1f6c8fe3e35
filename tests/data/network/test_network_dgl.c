/* DGL files: every form of a matrix, several node types, and damage. */
#include "data/network/networks.h"

#include "data/network/dgl.h"
#include "data/network/network.h"

static dgl file;

TEST(reads_every_form) {
    for (int form = DGL_COO; form <= DGL_CSC; form *= 2) {
        basin_network *n;
        basin_network_options o = {.directed = true};
        dgl_small(&file, form, 0);
        assert_int_equal(basin_network_dgl_parse(&n, file.bytes, file.size, "f", &o, NULL),
                         BASIN_OK);
        assert_int_equal(n->nodes, 4);
        assert_string_equal(n->relation[0].name, "homo");
        ASSERT_ROW(&n->relation[0], 1, 0);
        ASSERT_ROW(&n->relation[0], 2, 0, 3);
        assert_int_equal(n->relation[0].edges, 3);
        const int32_t label[] = {0, 1, 0, 1};
        assert_memory_equal(n->label, label, sizeof label);
        assert_true(n->feature[5] == 6);
        const uint8_t train[] = {1, 0, 0, 0, 0, 1, 0, 0}; /* a row a split */
        assert_int_equal(n->splits, 2);
        assert_memory_equal(n->train, train, sizeof train);
        basin_network_free(n);
    }
}

TEST(reads_the_labelled_type) {
    BASIN_AT_EXIT(free_network) basin_network *n;
    dgl_two_types(&file);
    assert_int_equal(basin_network_dgl_parse(&n, file.bytes, file.size, "f", NULL, NULL), BASIN_OK);
    assert_int_equal(n->nodes, 3);
    assert_int_equal(n->relations, 1);
    assert_string_equal(n->relation[0].name, "knows");
    assert_non_null(strstr(n->note, "nodes of type 'user' alone; 1 relations to others left out"));
}

static void refuse(size_t size, const char *wanted) {
    basin_network *n;
    basin_error error;
    assert_int_not_equal(basin_network_dgl_parse(&n, file.bytes, size, "f", NULL, &error),
                         BASIN_OK);
    assert_null(n);
    if (!strstr(error.text, wanted)) fail_msg("\"%s\" is not in \"%s\"", wanted, error.text);
}

TEST(refuses_damage) {
    for (int form = DGL_COO; form <= DGL_CSC; form *= 2) {
        dgl_small(&file, form, 9);
        refuse(file.size, "wanted numbers from 0 to 3");
    }
    dgl_small(&file, DGL_CSR, -5);
    refuse(file.size, "wanted numbers from 0 to 3");
    dgl_small(&file, DGL_COO, 0);
    for (size_t cut = 0; cut < file.size; cut++) refuse(cut, "f: ");
    file.bytes[8] = 1;
    refuse(file.size, "a DGL file of version 1");
    dgl_small(&file, DGL_COO, 0);
    file.bytes[24] = 0;
    refuse(file.size, "no graph is in it");
    dgl_small(&file, DGL_COO, 0);
    dgl_two_types(&file); /* two billion nodes that nothing vouches for */
    for (size_t i = 4096; i + 8 < file.size; i++) {
        if (!memcmp(file.bytes + i, "\5\0\0\0\0\0\0\0label", 13))
            memcpy(file.bytes + i + 8, "names", 5);
        if (!memcmp(file.bytes + i, "\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\2", 17))
            memcpy(file.bytes + i + 8, "\0\0\0\x70", 4);
    }
    refuse(file.size, "nodes without features or labels in");
    dgl_small(&file, DGL_COO, 0);
    for (size_t i = 0; i + 4 < file.size; i++) /* a NaN among the features */
        if (!memcmp(file.bytes + i, "\0\0\xa0\x40", 4)) memcpy(file.bytes + i, "\0\0\xc0\x7f", 4);
    refuse(file.size, "feature 0 of node 2 is missing or NaN");
}
