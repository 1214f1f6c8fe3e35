/* Walks along edges against powers of the transition matrix, computed densely. */
#include <math.h>

#include "support/test.h"
#include "tasks/graphs/set/graphset.h"
#include "tasks/graphs/set/tiny_tu.h"

enum { WALKS = 5, MOST = 204 };

/* P^t of graph g. */
static void power(double *p /* [n, n] */, const basin_graphset *set, int64_t g, int t) {
    int64_t n = set->node_start[g + 1] - set->node_start[g];
    static double one[MOST * MOST], next[MOST * MOST];
    for (int64_t i = 0; i < n * n; i++) one[i] = 0;
    for (int64_t e = set->edge_start[g]; e < set->edge_start[g + 1]; e++)
        one[set->edge[2 * e] * n + set->edge[2 * e + 1]] = 1;
    for (int64_t i = 0; i < n; i++) {
        double degree = 0;
        for (int64_t j = 0; j < n; j++) degree += one[i * n + j];
        for (int64_t j = 0; j < n && degree > 0; j++) one[i * n + j] /= degree;
    }
    for (int64_t i = 0; i < n * n; i++) p[i] = one[i];
    while (--t) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                next[i * n + j] = 0;
                for (int64_t k = 0; k < n; k++) next[i * n + j] += p[i * n + k] * one[k * n + j];
            }
        for (int64_t i = 0; i < n * n; i++) p[i] = next[i];
    }
}

static double degree(const basin_graphset *set, int64_t g, int32_t node) {
    double d = 0;
    for (int64_t e = set->edge_start[g]; e < set->edge_start[g + 1]; e++)
        d += set->edge[2 * e] == node;
    return d;
}

static void check(const basin_graphset *set, int64_t before) {
    static double p[MOST * MOST];
    assert_int_equal(set->edge_attributes, before + WALKS);
    assert_int_equal(set->edge_walks, WALKS);
    for (int64_t g = 0; g < set->graphs; g++) {
        int64_t n = set->node_start[g + 1] - set->node_start[g];
        double edges = (double)(set->edge_start[g + 1] - set->edge_start[g]);
        assert_true(n <= MOST);
        for (int t = 2; t <= WALKS + 1; t++) {
            power(p, set, g, t);
            for (int64_t e = set->edge_start[g]; e < set->edge_start[g + 1]; e++) {
                int32_t i = set->edge[2 * e], j = set->edge[2 * e + 1];
                double wanted = p[i * n + j] * edges / degree(set, g, j);
                float found = set->edge_attribute[e * (before + WALKS) + before + t - 2];
                assert_true(fabs((double)found - wanted) < 1e-5 * (1 + wanted));
            }
        }
    }
}

/* Behind the attributes that are there, which stay; a node without edges has none. */
TEST_WITH(powers, folder_new, folder_remove) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    tiny_write(state, NULL, NULL);
    assert_ok(basin_graphset_read(&set, *state, NULL, &failure));
    add_walks(&set, WALKS, 0, set.graphs);
    check(&set, 1);
    assert_true(set.edge_attribute[6 * (1 + WALKS)] == 7);
}

/* A set in a file, whose arrays are the file's. */
TEST_WITH(packed, folder_new, folder_remove) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set, again;
    char *path = folder_path(state, "packed.set");
    block_graphs(&set, 5);
    assert_ok(basin_graphset_write(path, &set, &failure));
    assert_ok(basin_graphset_read(&again, path, NULL, &failure));
    add_walks(&again, WALKS, 0, again.graphs);
    check(&again, 0);
    free(again.edge_attribute);
}

/* A part has the bits of the whole; the other graphs have zeros, and what the set had itself. */
TEST(of_a_part) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set, part;
    block_graphs(&set, 7);
    block_graphs(&part, 7);
    add_walks(&set, WALKS, 0, set.graphs);
    add_walks(&part, WALKS, 3, 2);
    assert_int_equal(part.edge_walks, WALKS);
    int64_t first = set.edge_start[3] * WALKS, end = set.edge_start[5] * WALKS;
    assert_true(end > first);
    assert_memory_equal(part.edge_attribute + first, set.edge_attribute + first,
                        (size_t)(end - first) * sizeof(float));
    for (int64_t i = 0; i < set.edges * WALKS; i++)
        if (i < first || i >= end) assert_true(part.edge_attribute[i] == 0);
}

/* A set that begins with graphs of no nodes, and of one. */
TEST(of_nothing) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    const int64_t nodes[] = {0, 1, 2}, from[] = {1}, to[] = {2};
    basin_graphset_arrays arrays = {
        .graphs = 3, .nodes = nodes, .edges = 1, .from = from, .to = to, .undirected = true};
    assert_ok(basin_graphset_from_arrays(&set, &arrays, &failure));
    add_walks(&set, WALKS, 0, set.graphs);
    check(&set, 0);
    assert_true(set.edge_attribute[0] == 0 && set.edge_attribute[1] == 2); /* back every 2 steps */
}

/* What the model sees of them has mean 0 and deviation 1 over the training graphs. */
TEST(standardised) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    BASIN_AT_EXIT(basin_graphset_encoding_free) basin_graphset_encoding encoding;
    const int64_t graph[] = {0, 2};
    block_graphs(&set, 5);
    add_walks(&set, WALKS, 0, set.graphs);
    basin_encoding_spec spec = {.edge_sums = true};
    assert_ok(basin_graphset_encoding_new(&encoding, &set, graph, 2, &spec, &failure));
    assert_int_equal(encoding.edge_features, WALKS);
    assert_false(encoding.edge_sums); /* the set has no other features of edges */
    for (int64_t c = 0; c < WALKS; c++) {
        double sum = 0, squares = 0, count = 0;
        for (int g = 0; g < 2; g++)
            for (int64_t e = set.edge_start[graph[g]]; e < set.edge_start[graph[g] + 1]; e++) {
                float value = set.edge_attribute[e * WALKS + c] - encoding.mean[c];
                double found = (double)(value * encoding.scale[c]);
                sum += found, squares += found * found, count += 1;
            }
        assert_true(fabs(sum / count) < 1e-4 && fabs(squares / count - 1) < 1e-3);
    }
}

/* A large graph is followed by its parts: within a long chain walks are those of a short one. */
TEST(long_chains) {
    enum { LONG = 1500, SHORT = 150 };
    static int64_t from[LONG + SHORT], to[LONG + SHORT];
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    const int64_t nodes[] = {LONG, SHORT};
    int64_t edges = 0;
    for (int64_t i = 0; i < LONG + SHORT - 1; i++)
        if (i != LONG - 1) from[edges] = i, to[edges++] = i + 1;
    basin_graphset_arrays arrays = {
        .graphs = 2, .nodes = nodes, .edges = edges, .from = from, .to = to, .undirected = true};
    assert_ok(basin_graphset_from_arrays(&set, &arrays, &failure));
    add_walks(&set, WALKS, 0, 2);
    const float *a = set.edge_attribute, *b = a + set.edge_start[1] * WALKS;
    double ratio = (double)(LONG - 1) / (SHORT - 1);
    for (int64_t e = 0; e < SHORT * WALKS; e++)
        assert_true(fabs((double)a[e] - ratio * (double)b[e]) < 1e-5 * (1 + (double)a[e]));
    const float *end = a + set.edge_start[1] * WALKS, *close = a + set.edges * WALKS;
    for (int64_t e = 1; e < SHORT * WALKS; e++)
        assert_true(fabs((double)end[-e] - ratio * (double)close[-e]) <
                    1e-4 * (1 + (double)end[-e]));
    basin_positions positions;
    basin_position_options spec = {.walks = 5};
    assert_ok(basin_positions_new(&positions, &set, &spec, 0, 2, &failure));
    assert_memory_equal(positions.value, positions.value + (LONG + 1) * 5, 100 * 5 * sizeof(float));
    basin_positions_free(&positions);
}
