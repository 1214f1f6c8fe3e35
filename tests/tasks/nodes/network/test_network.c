/* Networks: building, pairs, parts, samples. */
#include "tasks/nodes/network/networks.h"

#include <math.h>

#include "basin/random.h"

TEST(builds_undirected) {
    BASIN_AT_EXIT(free_network) basin_network *n = small_network(NULL);
    assert_false(n->directed);
    const basin_relation *a = &n->relation[0];
    assert_int_equal(a->edges, 8);
    ASSERT_ROW(a, 0, 1, 2);
    ASSERT_ROW(a, 1, 0, 2);
    ASSERT_ROW(a, 2, 0, 1, 3);
    ASSERT_ROW(a, 3, 2);
    assert_int_equal(a->row[4], a->row[5]);
    assert_int_equal(n->label[3], 1);
    assert_true(n->feature[7] == 7);
}

TEST(builds_directed) {
    basin_network_options o = {.directed = true};
    BASIN_AT_EXIT(free_network) basin_network *n = small_network(&o);
    assert_true(n->directed);
    ASSERT_ROW(&n->relation[0], 1, 0, 2); /* 0 -> 1 and 2 -> 1 */
    ASSERT_ROW(&n->relation[0], 2, 0, 1);
    ASSERT_ROW(&n->relation[1], 0, 3);
    assert_int_equal(n->relation[0].row[1], 0);
}

TEST(treats_loops_and_duplicates) {
    int64_t edges[] = {0, 0, 0, 1, 0, 1, 1, 0, 2, 2};
    basin_edges e = {edges, edges + 1, BASIN_I64, 2, 5};
    const struct {
        basin_network_options o;
        int64_t edges;
    } trial[] = {{{0}, 4}, {{.directed = true}, 4}}; /* 0-0, 0-1, 1-0, 2-2 */
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        basin_network *n;
        assert_int_equal(basin_network_new(&n, "t", 3, NULL), BASIN_OK);
        assert_int_equal(basin_network_add_relation(n, "e", &e, &trial[i].o, NULL), BASIN_OK);
        assert_int_equal(n->relation[0].edges, trial[i].edges);
        assert_int_equal(basin_network_check(n, NULL), BASIN_OK);
        basin_network_close(n);
    }
}

/* Rows that are too long for a sort by insertion, against a matrix. */
TEST(sorts_long_rows) {
    enum { NODES = 700, EDGES = 90000 };
    int32_t *edge = malloc(2 * EDGES * sizeof *edge);
    char *matrix = calloc(NODES, NODES);
    assert_true(edge && matrix);
    basin_random random = basin_random_start(3, 0, 0);
    for (int i = 0; i < EDGES; i++) {
        int32_t u = (int32_t)basin_random_below(&random, NODES);
        int32_t v = (int32_t)basin_random_below(&random, 1 + basin_random_below(&random, NODES));
        edge[2 * i] = u, edge[2 * i + 1] = v;
        matrix[u * NODES + v] = matrix[v * NODES + u] = 1;
    }
    basin_edges e = {edge, edge + 1, BASIN_I32, 2, EDGES};
    BASIN_AT_EXIT(free_network) basin_network *n;
    assert_int_equal(basin_network_new(&n, "t", NODES, NULL), BASIN_OK);
    assert_int_equal(basin_network_add_relation(n, "e", &e, NULL, NULL), BASIN_OK);
    const basin_relation *r = &n->relation[0];
    int64_t at = 0;
    for (int32_t u = 0; u < NODES; u++)
        for (int32_t v = 0; v < NODES; v++)
            if (matrix[u * NODES + v]) assert_int_equal(r->col[at++], v);
    assert_int_equal(at, r->edges);
    free(matrix);
    free(edge);
}

TEST(refuses_bad_numbers) {
    basin_error error;
    basin_network *n = small_network(NULL);
    int32_t edges[] = {0, 1, 2, 5};
    basin_edges e = {edges, edges + 1, BASIN_I32, 2, 2};
    assert_says(basin_network_add_relation(n, "c", &e, NULL, &failure), BASIN_BAD_VALUE,
                "small: edge 1 of 'c' joins nodes 2 and 5, expected numbers from 0 to 4");
    e.count = 1;
    assert_says(basin_network_add_relation(n, "a", &e, NULL, &failure), BASIN_BAD_VALUE,
                "small: two relations are called 'a'");
    basin_network_close(n);
    assert_int_equal(basin_network_new(&n, "t", 0, &error), BASIN_BAD_VALUE);
    assert_int_equal(basin_network_new(&n, "t", INT64_MAX, &error), BASIN_BAD_VALUE);
}

TEST(fills_what_is_missing) {
    float x[] = {1, NAN, 3, 4, INFINITY, 8};
    basin_tensor t = BORROW(x, BASIN_F32, 3, 2);
    basin_error error;
    for (int missing = 0; missing < 3; missing++) {
        basin_network *n;
        basin_network_options o = {.missing = (basin_missing)missing};
        assert_int_equal(basin_network_new(&n, "t", 3, NULL), BASIN_OK);
        basin_status status = basin_network_set_features(n, &t, &o, &error);
        assert_int_equal(status, missing ? BASIN_OK : BASIN_BAD_VALUE);
        if (!missing) assert_non_null(strstr(error.text, "feature 1 of node 0 is missing or NaN"));
        if (missing) assert_true(n->feature[1] == (missing == BASIN_MISSING_MEAN ? 6 : 0));
        if (missing) assert_true(n->feature[4] == (missing == BASIN_MISSING_MEAN ? 2 : 0));
        basin_network_close(n);
    }
}

TEST(reads_labels) {
    double plain[] = {0, 1, NAN, 1}, half[] = {0, 0.5, 1, 1};
    float hot[] = {1, 0, 0, 1, 0, 0, 0, 1};
    basin_tensor y = BORROW(plain, BASIN_F64, 4), z = BORROW(hot, BASIN_F32, 4, 2);
    basin_tensor bad = BORROW(half, BASIN_F64, 4);
    basin_network_options o = {.unlabelled_first = 1};
    basin_network *n;
    assert_int_equal(basin_network_new(&n, "t", 4, NULL), BASIN_OK);
    assert_int_equal(basin_network_set_label_tensor(n, &y, &o, NULL), BASIN_OK);
    const int32_t wanted[] = {-1, 1, -1, 1};
    assert_memory_equal(n->label, wanted, sizeof wanted);
    assert_non_null(strstr(n->note, "all labels are 1"));
    basin_network_close(n);
    assert_int_equal(basin_network_new(&n, "t", 4, NULL), BASIN_OK);
    assert_int_equal(basin_network_greatest_label(n), -1);
    assert_int_equal(basin_network_set_label_tensor(n, &z, NULL, NULL), BASIN_OK);
    assert_int_equal(basin_network_greatest_label(n), 1);
    const int32_t of_hot[] = {0, 1, -1, 1};
    assert_memory_equal(n->label, of_hot, sizeof of_hot);
    assert_int_equal(basin_network_count_label(n, 1), 2);
    assert_null(n->note);
    basin_network_close(n);
    assert_int_equal(basin_network_new(&n, "t", 4, NULL), BASIN_OK);
    assert_failure(basin_network_set_label_tensor(n, &bad, NULL, &failure), BASIN_BAD_VALUE,
                   "the label of node 1 is 0.5");
    basin_network_close(n);
}

TEST(unites_relations) {
    BASIN_AT_EXIT(free_network) basin_network *n = small_network(NULL);
    assert_int_equal(basin_network_main_relation(n), -1);
    assert_int_equal(basin_network_add_union(n, NULL), BASIN_OK);
    assert_int_equal(basin_network_main_relation(n), 2);
    const basin_relation *r = &n->relation[2];
    ASSERT_ROW(r, 0, 1, 2, 3);
    ASSERT_ROW(r, 3, 0, 2);
    assert_int_equal(basin_network_add_union(n, NULL), BASIN_OK);
    assert_int_equal(n->relations, 3);
}

/* The pairs of a relation are those that basin_pairs_new makes of its edges. */
TEST(makes_pairs) {
    const int flag[] = {0, BASIN_PAIRS_DROP_SELF, BASIN_PAIRS_ADD_SELF};
    int32_t edges[] = {0, 1, 2, 2, 3, 1, 1, 0, 4, 3, 3, 3};
    basin_edges e = {edges, edges + 1, BASIN_I32, 2, 6};
    for (int directed = 0; directed < 2; directed++) {
        basin_network *n;
        basin_network_options o = {.directed = directed};
        assert_int_equal(basin_network_new(&n, "t", 5, NULL), BASIN_OK);
        assert_int_equal(basin_network_add_relation(n, "e", &e, &o, NULL), BASIN_OK);
        int32_t swapped[12];
        for (int i = 0; i < 6; i++)
            swapped[2 * i] = edges[2 * i + 1], swapped[2 * i + 1] = edges[2 * i];
        for (int self = 0; self < 3; self++) {
            basin_pairs p, q;
            int flags = flag[self] | (directed ? 0 : BASIN_PAIRS_BOTH_WAYS);
            assert_ok(basin_network_pairs(&p, n, 0, (basin_self_loops)self, n->nodes, 0, NULL));
            assert_int_equal(basin_pairs_new(&q, 5, 5, swapped, 6, flags, NULL), BASIN_OK);
            assert_int_equal(p.pairs, q.pairs);
            size_t bytes = (size_t)p.pairs * sizeof(int32_t);
            assert_memory_equal(p.row, q.row, 6 * sizeof(int32_t));
            assert_memory_equal(p.column, q.column, 6 * sizeof(int32_t));
            assert_memory_equal(p.key, q.key, bytes);
            assert_memory_equal(p.query, q.query, bytes);
            assert_memory_equal(p.pair, q.pair, bytes);
            basin_pairs_free(&p);
            basin_pairs_free(&q);
        }
        basin_network_close(n);
    }
}

TEST(induces_parts) {
    basin_network *n = small_network(NULL), *part;
    const int64_t node[] = {3, 0, 2};
    assert_int_equal(basin_network_induce(&part, n, node, 3, NULL), BASIN_OK);
    assert_int_equal(part->nodes, 3);
    ASSERT_ROW(&part->relation[0], 0, 2);
    ASSERT_ROW(&part->relation[0], 1, 2);
    ASSERT_ROW(&part->relation[0], 2, 0, 1);
    ASSERT_ROW(&part->relation[1], 0, 1);
    assert_memory_equal(part->origin, node, sizeof node);
    assert_true(part->feature[0] == 6 && part->feature[5] == 5);
    assert_int_equal(part->label[0], 1);
    char text[BASIN_MAX_NODE];
    assert_string_equal(basin_network_id(part, 2, text), "2");
    assert_string_equal(basin_network_id(part, 0, text), "3");
    basin_network_close(part);
    const int64_t twice[] = {1, 1};
    assert_int_equal(basin_network_induce(&part, n, twice, 2, &failure), BASIN_BAD_VALUE);
    assert_null(part);
    basin_network_close(n);
}

/* A ring of 40 with a hub: samples hold what their fan-outs say, repeat, and change by stream. */
TEST(samples_neighbourhoods) {
    enum { NODES = 40 };
    int32_t edge[4 * NODES];
    for (int i = 0; i < NODES; i++) { /* 7 has no loop, but an edge once more */
        edge[4 * i] = i, edge[4 * i + 1] = (i + 1) % NODES;
        edge[4 * i + 2] = i, edge[4 * i + 3] = i == 7 ? 8 : 7;
    }
    basin_edges e = {edge, edge + 1, BASIN_I32, 2, 2 * NODES};
    basin_network *n, *a, *b, *c;
    assert_int_equal(basin_network_new(&n, "t", NODES, NULL), BASIN_OK);
    assert_int_equal(basin_network_add_relation(n, "e", &e, NULL, NULL), BASIN_OK);
    const int64_t target[] = {7, 20}, fanout[] = {5, 2};
    basin_sample_spec spec = {.fanout = fanout, .steps = 2, .seed = 5, .stream = 1};
    assert_int_equal(basin_network_sample(&a, n, target, 2, &spec, NULL), BASIN_OK);
    assert_int_equal(basin_network_sample(&b, n, target, 2, &spec, NULL), BASIN_OK);
    assert_networks_equal(a, b);
    assert_memory_equal(a->origin, target, sizeof target);
    /* 7 sees five others (and 20 may see it too), 20 its three */
    const basin_relation *r = &a->relation[0];
    assert_in_range(r->row[1], 5, 6 + 2 * 3);
    assert_in_range(r->row[2] - r->row[1], 3, 5);
    for (int64_t i = 0; i < a->nodes; i++)
        for (int64_t k = r->row[i]; k < r->row[i + 1]; k++) {
            int64_t u = a->origin[i], v = a->origin[r->col[k]];
            bool near = (u + 1) % NODES == v || (v + 1) % NODES == u;
            assert_true(near || u == 7 || v == 7);
        }
    spec.stream = 2;
    assert_int_equal(basin_network_sample(&c, n, target, 2, &spec, NULL), BASIN_OK);
    bool same =
        a->nodes == c->nodes && !memcmp(a->origin, c->origin, (size_t)a->nodes * sizeof *a->origin);
    assert_false(same);
    basin_network_close(b);
    basin_network_close(c);
    const int64_t all[] = {0}; /* neighbours */
    spec = (basin_sample_spec){.fanout = all, .steps = 1};
    assert_int_equal(basin_network_sample(&b, n, target, 2, &spec, NULL), BASIN_OK);
    assert_int_equal(b->nodes, NODES);
    basin_network_close(a);
    basin_network_close(b);
    basin_network_close(n);
}

TEST(counts_equal_neighbours) {
    BASIN_AT_EXIT(free_network) basin_network *n = small_network(NULL);
    double alike, anomalies;
    basin_network_homophily(&alike, &anomalies, n, 0);
    assert_true(fabs(alike - 2.0 / 8) < 1e-12); /* 0-2 alone joins equals */
    assert_true(anomalies == 0);
}
