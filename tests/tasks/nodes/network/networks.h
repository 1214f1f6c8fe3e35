/* Small networks for tests, made from a few numbers. */
#ifndef TESTS_DATA_NETWORKS_H
#define TESTS_DATA_NETWORKS_H

#include "support/folder.h"
#include "support/test.h"
#include "tasks/nodes/network/network.h"

#define BORROW(array, dtype, ...) basin_tensor_borrow(array, dtype, BASIN_SHAPE(__VA_ARGS__))

static inline void add_tensor(basin_bundle *bundle, const char *name, basin_tensor tensor) {
    assert_int_equal(basin_bundle_add(bundle, name, &tensor, NULL), BASIN_OK);
}

/* Five nodes: 0-1, 0-2, 1-2, 2-3 in "a" (with 2-1 once more), 3-0 in "b"; node 4 alone. */
static int32_t small_edges_a[] = {0, 1, 0, 2, 1, 2, 2, 3, 2, 1};
static int32_t small_edges_b[] = {3, 0};
static float small_x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static uint8_t small_y[] = {0, 1, 0, 1, 0};

static inline basin_network *small_network(const basin_network_options *options) {
    basin_network *n;
    basin_tensor x = BORROW(small_x, BASIN_F32, 5, 2), y = BORROW(small_y, BASIN_U8, 5);
    basin_edges a = {small_edges_a, small_edges_a + 1, BASIN_I32, 2, 5};
    basin_edges b = {small_edges_b, small_edges_b + 1, BASIN_I32, 2, 1};
    assert_int_equal(basin_network_new(&n, "small", 5, NULL), BASIN_OK);
    assert_int_equal(basin_network_set_features(n, &x, options, NULL), BASIN_OK);
    assert_int_equal(basin_network_set_label_tensor(n, &y, options, NULL), BASIN_OK);
    assert_int_equal(basin_network_add_relation(n, "a", &a, options, NULL), BASIN_OK);
    assert_int_equal(basin_network_add_relation(n, "b", &b, options, NULL), BASIN_OK);
    return n;
}

/* Row `node` of a relation equals the list, which -1 ends. */
static inline void assert_row(const basin_relation *r, int64_t node, const int32_t *wanted) {
    int64_t count = 0;
    while (wanted[count] >= 0) count++;
    assert_int_equal(r->row[node + 1] - r->row[node], count);
    for (int64_t k = 0; k < count; k++) assert_int_equal(r->col[r->row[node] + k], wanted[k]);
}
#define ASSERT_ROW(relation, node, ...)                                                            \
    assert_row(relation, node, (const int32_t[]){__VA_ARGS__, -1})

static inline void assert_networks_equal(const basin_network *a, const basin_network *b) {
    assert_int_equal(a->nodes, b->nodes);
    assert_int_equal(a->features, b->features);
    assert_int_equal(a->relations, b->relations);
    assert_int_equal(a->splits, b->splits);
    assert_int_equal(!a->feature, !b->feature);
    assert_int_equal(!a->label, !b->label);
    size_t nodes = (size_t)a->nodes;
    if (a->feature)
        assert_memory_equal(a->feature, b->feature, nodes * (size_t)a->features * sizeof(float));
    if (a->label) assert_memory_equal(a->label, b->label, nodes * sizeof(int32_t));
    const uint8_t *mask[][2] = {{a->train, b->train}, {a->val, b->val}, {a->test, b->test}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(!mask[i][0], !mask[i][1]);
        if (mask[i][0]) assert_memory_equal(mask[i][0], mask[i][1], nodes * (size_t)a->splits);
    }
    for (int r = 0; r < a->relations; r++) {
        const basin_relation *p = &a->relation[r];
        int other = basin_network_relation(b, p->name);
        assert_true(other >= 0);
        const basin_relation *q = &b->relation[other];
        assert_int_equal(p->edges, q->edges);
        assert_memory_equal(p->row, q->row, (nodes + 1) * sizeof *p->row);
        assert_memory_equal(p->col, q->col, (size_t)p->edges * sizeof *p->col);
    }
}

static inline basin_status open_one(basin_network **n, const char *path,
                                    const basin_network_options *options, basin_error *error) {
    return basin_network_open(n, &path, 1, options, error);
}

/* Opening `path` fails with one line that contains `wanted`. */
static inline void assert_refused(const char *path, const char *wanted) {
    basin_network *n;
    basin_error error;
    assert_int_not_equal(open_one(&n, path, NULL, &error), BASIN_OK);
    assert_null(n);
    assert_null(strchr(error.text, '\n'));
    if (!strstr(error.text, wanted)) fail_msg("\"%s\" is not in \"%s\"", wanted, error.text);
}

#endif
