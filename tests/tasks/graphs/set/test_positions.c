/* Positions of nodes: eigenvectors of Laplacians that are known, signs,
 * walks, the cache; and batches. */
#include <math.h>

#include "base/pairs.h"
#include "basin/random.h"
#include "support/test.h"
#include "tasks/graphs/set/graphset.h"
#include "tasks/graphs/set/tiny_tu.h"

static int32_t *ring_of(int64_t n) {
    int32_t *edge = malloc((size_t)n * 2 * sizeof *edge);
    for (int64_t i = 0; i < n; i++)
        edge[2 * i] = (int32_t)i, edge[2 * i + 1] = (int32_t)((i + 1) % n);
    return edge;
}

/* |L v - lambda v| for the column c, with lambda the Rayleigh quotient, which is returned. */
static double residual(double *lambda, const float *value, int64_t width, int64_t c, int64_t n,
                       const int32_t *edge, int64_t edges) {
    double *v = calloc((size_t)n, sizeof *v), *w = calloc((size_t)n, sizeof *w);
    double *degree = calloc((size_t)n, sizeof *degree), dot = 0, size = 0, worst = 0;
    for (int64_t i = 0; i < n; i++) v[i] = (double)value[(i + 1) * width + c];
    for (int64_t e = 0; e < edges; e++) degree[edge[2 * e]]++, degree[edge[2 * e + 1]]++;
    for (int64_t i = 0; i < n; i++) w[i] = v[i];
    for (int64_t e = 0; e < edges; e++) {
        int32_t a = edge[2 * e], b = edge[2 * e + 1];
        double s = 1 / sqrt(degree[a] * degree[b]);
        w[a] -= s * v[b], w[b] -= s * v[a];
    }
    for (int64_t i = 0; i < n; i++) dot += v[i] * w[i], size += v[i] * v[i];
    *lambda = dot / size;
    for (int64_t i = 0; i < n; i++) worst = fmax(worst, fabs(w[i] - *lambda * v[i]));
    free(v);
    free(w);
    free(degree);
    return worst * sqrt((double)n) + fabs(size - 1);
}

/* A ring's eigenvalues are 1 - cos(2 pi j / n), twice each. */
TEST(rings) {
    static const int64_t size[] = {12, 40, 200};
    enum { K = 6 };
    for (int i = 0; i < 3; i++) {
        int64_t n = size[i];
        int32_t *edge = ring_of(n);
        float *value = malloc((size_t)((n + 1) * K) * sizeof *value);
        basin_position_options spec = {.vectors = K};
        assert_ok(basin_positions_of(value, &spec, n, edge, n, &failure));
        for (int64_t c = 0; c < K; c++) {
            double lambda, want = 1 - cos(2 * acos(-1) * (double)(c / 2 + 1) / (double)n);
            double miss = residual(&lambda, value, K, c, n, edge, n);
            if (miss > 1e-3 || fabs(lambda - want) > 1e-5)
                fail_msg("n %d, vector %d: residual %g, eigenvalue %g, expected %g", (int)n, (int)c,
                         miss, lambda, want);
            assert_true(value[c] == 0); /* the CLS has no place */
        }
        free(value);
        free(edge);
    }
}

/* Two separate communities and a thin bridge between two more: the two small eigenvalues and then
 * those of random graphs, ascending. */
TEST(large_graphs) {
    enum { N = 1200, PART = 400, EDGES = N * 6, K = 4 };
    int32_t *edge = malloc((EDGES + 1) * 2 * sizeof *edge);
    float *value = malloc(20002 * K * sizeof *value);
    basin_random random = basin_random_start(1, 1, 0);
    for (int e = 0; e < EDGES; e++) {
        int32_t a = e % N, part = a / PART * PART;
        int32_t other = (a - part + 1 + (int32_t)basin_random_below(&random, PART - 1)) % PART;
        edge[2 * e] = a, edge[2 * e + 1] = part + other;
    }
    edge[2 * EDGES] = 0, edge[2 * EDGES + 1] = PART;
    basin_position_options spec = {.vectors = K};
    assert_ok(basin_positions_of(value, &spec, N, edge, EDGES + 1, &failure));
    double before = -1;
    for (int c = 0; c < K; c++) {
        double squares = 0, dot = 0, other = 0;
        for (int i = 1; i <= N; i++) {
            squares += (double)(value[i * K + c] * value[i * K + c]);
            dot += (double)(value[i * K + c] * value[i * K]);
        }
        assert_true(fabs(squares - 1) < 1e-4 && (c == 0 || fabs(dot) < 1e-4));
        /* the Rayleigh quotient: sum over edges of the squared difference of v / sqrt(degree) */
        double degree[N] = {0};
        for (int e = 0; e <= EDGES; e++) degree[edge[2 * e]]++, degree[edge[2 * e + 1]]++;
        for (int e = 0; e <= EDGES; e++) {
            int32_t a = edge[2 * e], b = edge[2 * e + 1];
            double d = (double)value[(a + 1) * K + c] / sqrt(degree[a]) -
                       (double)value[(b + 1) * K + c] / sqrt(degree[b]);
            other += d * d;
        }
        assert_true(other > before - 0.02);
        if (c < 2)
            assert_true(other < 0.01);
        else
            assert_true(other > 0.2);
        before = other;
    }
    basin_status status = basin_positions_of(value, &spec, 20001, edge, EDGES + 1, &failure);
    assert_int_equal(status, BASIN_UNSUPPORTED);
    free(edge);
    free(value);
}

/* A path of two nodes has one eigenvector after the first; the rest is zero. */
TEST(short_graphs) {
    static const int32_t edge[] = {0, 1};
    float value[3 * 4];
    basin_position_options spec = {.vectors = 4};
    assert_ok(basin_positions_of(value, &spec, 2, edge, 1, &failure));
    assert_true(fabs(fabs((double)value[4]) - sqrt(0.5)) < 1e-6);
    assert_true(fabs((double)(value[4] + value[8])) < 1e-6);
    for (int r = 0; r < 3; r++)
        for (int c = 1; c < 4; c++) assert_true(value[r * 4 + c] == 0);
    assert_ok(basin_positions_of(value, &spec, 1, edge, 0, &failure));
    assert_ok(basin_positions_of(value, &spec, 0, edge, 0, &failure));
    spec.with_cls = true;
    assert_ok(basin_positions_of(value, &spec, 2, edge, 1, &failure));
    assert_true(value[0] != 0 || value[1] != 0);
}

/* The sign does not depend on the order of nodes. */
TEST(signs) {
    enum { N = 9, K = 4 };
    static const int32_t edge[] = {0, 1, 1, 2, 2, 3, 3, 0, 3, 4, 4,
                                   5, 5, 6, 6, 7, 7, 8, 0, 2, 5, 7};
    enum { EDGES = sizeof edge / sizeof *edge / 2 };
    int64_t order[N];
    int32_t moved[2 * EDGES];
    float a[(N + 1) * K], b[(N + 1) * K];
    basin_position_options spec = {.vectors = K};
    assert_ok(basin_positions_of(a, &spec, N, edge, EDGES, &failure));
    for (uint64_t seed = 0; seed < 5; seed++) {
        basin_random_permutation(order, N, seed, 3);
        for (int e = 0; e < 2 * EDGES; e++) moved[e] = (int32_t)order[edge[e]];
        assert_ok(basin_positions_of(b, &spec, N, moved, EDGES, &failure));
        for (int i = 0; i < N; i++)
            for (int c = 0; c < K; c++)
                assert_true(fabsf(a[(i + 1) * K + c] - b[(order[i] + 1) * K + c]) < 1e-5f);
    }
}

/* Walks on a triangle: no return after 1 step, 1/2 after 2, 1/4 after 3, 3/8 after 4. */
TEST(walks) {
    static const int32_t edge[] = {0, 1, 1, 2, 2, 0};
    static const float want[] = {0, 0.5f, 0.25f, 0.375f, 0.3125f};
    float value[4 * 5];
    basin_position_options spec = {.walks = 5};
    assert_ok(basin_positions_of(value, &spec, 3, edge, 3, &failure));
    for (int i = 0; i < 3; i++)
        for (int t = 0; t < 5; t++) assert_true(fabsf(value[(i + 1) * 5 + t] - want[t]) < 1e-6f);
}

/* A part has the bits of the whole. */
TEST(parts) {
    basin_graphset set;
    basin_positions all, part;
    basin_position_options spec = {.vectors = 2, .walks = 3};
    block_graphs(&set, 7);
    assert_ok(basin_positions_new(&part, &set, &spec, 3, 2, &failure));
    assert_ok(basin_positions_new(&all, &set, &spec, 0, set.graphs, &failure));
    assert_int_equal(part.first, 3);
    assert_int_equal(part.tokens, set.node_start[5] - set.node_start[3] + 2);
    size_t bytes = (size_t)(part.tokens * part.width) * sizeof(float);
    assert_memory_equal(part.value, all.value + all.start[3] * all.width, bytes);
    basin_positions_free(&part);
    basin_positions_free(&all);
    basin_graphset_free(&set);
}

/* ---- batches ---- */

TEST_WITH(batch_of_tiny, folder_new, folder_remove) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    basin_positions positions;
    BASIN_AT_EXIT(basin_graphset_encoding_free) basin_graphset_encoding e;
    basin_graphset_batch b = {0};
    basin_position_options spec = {.vectors = 2};
    basin_encoding_spec how = {.degrees = 3, .edge_sums = true, .standardise = true};
    static const int64_t all[] = {0, 1, 2}, two[] = {1, 0};
    tiny_write(state, NULL, NULL);
    assert_ok(basin_graphset_read(&set, *state, NULL, &failure));
    assert_ok(basin_positions_new(&positions, &set, &spec, 0, set.graphs, &failure));
    assert_ok(basin_graphset_encoding_new(&e, &set, all, 3, &how, &failure));
    assert_int_equal(e.edge_features, 1 + 3);
    assert_int_equal(e.features, 2 + 3 + 3 + 4); /* attributes, labels 3 .. 5, degrees, edge sums */
    assert_ok(basin_graphset_batch_fill(&b, &set, &e, &positions, two, 2, false, 1, 1, &failure));
    assert_int_equal(b.tokens, 9);
    assert_int_equal(b.pairs.pairs, 9 + 6 + 7 + 6);
    assert_int_equal(b.first[1], 5);
    assert_int_equal(b.source[5], -1);
    assert_int_equal(b.source[6], 4);
    assert_int_equal(b.owner[8], 1);
    assert_true(b.share[0] == 0.25f);
    /* node 3 of the path: attributes standardised, label 5, degree 1, its edge's features / 4 */
    const float *f = b.feature + 3 * e.features;
    assert_true(fabsf(f[0] - (7 - 4.5f) / sqrtf(5.25f)) < 1e-5f);
    assert_true(f[2] == 0 && f[3] == 0 && f[4] == 1);
    assert_true(f[5] == 0 && f[6] == 1 && f[7] == 0);
    assert_true(f[8] == 12 * 0.25f && f[9] == 0 && f[10] == 0.25f && f[11] == 0);
    for (int64_t q = 0; q < b.tokens; q++)
        for (int64_t i = b.pairs.row[q]; i < b.pairs.row[q + 1]; i++)
            assert_int_equal(q < 5, b.pairs.key[i] < 5);
    for (int64_t i = 0; i < b.pairs.pairs; i++) {
        int64_t at = basin_pairs_find(&b.pairs, b.pairs.query[i], b.pairs.key[b.pairs.pair[i]]);
        assert_int_equal(at, b.pairs.pair[i]);
    }
    basin_graphset_batch_free(&b);
    basin_positions_free(&positions);
}

/* Where nodes have nothing else, degrees are told apart further. */
TEST_WITH(bare_nodes, folder_new, folder_remove) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    basin_graphset_encoding e;
    static const int64_t wanted[][2] = {{-1, 32}, {0, 0}, {8, 32}, {40, 40}}, all[] = {0, 1, 2};
    tiny_write(state, "T_node_labels.txt", NULL);
    unlink(folder_path(state, "T_node_attributes.txt"));
    assert_ok(basin_graphset_read(&set, *state, NULL, &failure));
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        basin_encoding_spec how = {.degrees = wanted[i][0]};
        assert_ok(basin_graphset_encoding_new(&e, &set, all, 3, &how, &failure));
        assert_int_equal(e.degrees, wanted[i][1]);
        basin_graphset_encoding_free(&e);
    }
}

/* Attributes in metres, of 1e-10, are standardised as those in angstroms are; a constant stays. */
TEST_WITH(small_units, folder_new, folder_remove) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    BASIN_AT_EXIT(basin_graphset_encoding_free) basin_graphset_encoding e;
    basin_encoding_spec how = {.standardise = true};
    static const int64_t all[] = {0, 1, 2};
    tiny_write(state, NULL, NULL);
    assert_ok(basin_graphset_read(&set, *state, NULL, &failure));
    for (int i = 0; i < 8; i++) {
        set.node_attribute[2 * i] *= 1e-10f;
        set.node_attribute[2 * i + 1] = 0.3f;
    }
    assert_ok(basin_graphset_encoding_new(&e, &set, all, 3, &how, &failure));
    assert_true(fabsf(e.scale[0] * 1e-10f * sqrtf(5.25f) - 1) < 1e-4f);
    assert_true(e.scale[1] == 1 && e.mean[1] == 0.3f);
}

/* A flip turns whole eigenvectors, of each graph its own, the same in any batch. */
TEST_WITH(flips, folder_new, folder_remove) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    basin_positions positions;
    BASIN_AT_EXIT(basin_graphset_encoding_free) basin_graphset_encoding e;
    basin_graphset_batch a = {0}, b = {0};
    basin_position_options spec = {.vectors = 2, .walks = 1};
    basin_encoding_spec how = {.degrees = 0};
    static const int64_t one[] = {1}, two[] = {0, 1};
    tiny_write(state, NULL, NULL);
    assert_ok(basin_graphset_read(&set, *state, NULL, &failure));
    assert_ok(basin_positions_new(&positions, &set, &spec, 0, set.graphs, &failure));
    assert_ok(basin_graphset_encoding_new(&e, &set, two, 2, &how, &failure));
    int turned = 0;
    for (uint64_t epoch = 0; epoch < 40; epoch++) {
        assert_ok(
            basin_graphset_batch_fill(&a, &set, &e, &positions, one, 1, true, 1, epoch, &failure));
        assert_ok(
            basin_graphset_batch_fill(&b, &set, &e, &positions, two, 2, true, 1, epoch, &failure));
        assert_memory_equal(a.position, b.position + 4 * 3, 5 * 3 * sizeof *a.position);
        for (int c = 0; c < 3; c++) {
            const float *plain = positions.value + 4 * 3 + c;
            float sign = a.position[3 + c] * plain[3] < 0 ? -1 : 1;
            for (int t = 0; t < 5; t++) assert_true(a.position[3 * t + c] == sign * plain[3 * t]);
            turned += sign < 0;
            if (c == 2) assert_true(sign > 0); /* walks have no sign to lose */
        }
    }
    assert_in_range(turned, 20, 60);
    basin_graphset_batch_free(&a);
    basin_graphset_batch_free(&b);
    basin_positions_free(&positions);
}
