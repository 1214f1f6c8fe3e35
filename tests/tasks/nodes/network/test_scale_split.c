/* Scaling of features and splits of nodes. */
#include "tasks/nodes/network/networks.h"

#include <math.h>

#include "basin/random.h"

TEST(scales_by_training_nodes) {
    const float x[] = {1, 5, 3, 5, 100, 7};
    const int64_t node[] = {0, 1};
    float y[6];
    basin_scaler s;
    assert_int_equal(basin_scaler_fit(&s, BASIN_SCALE_STANDARD, x, 2, node, 2, NULL), BASIN_OK);
    basin_scaler_apply(y, &s, x, 3);
    const float wanted[] = {-1, 0, 1, 0, 98, 2}; /* node 2 did not count; a constant stays itself */
    for (int i = 0; i < 6; i++) assert_true(fabsf(y[i] - wanted[i]) < 1e-6f);
    basin_scaler_free(&s);
    assert_int_equal(basin_scaler_fit(&s, BASIN_SCALE_STANDARD, x, 2, node, 0, &failure),
                     BASIN_BAD_VALUE);
    assert_int_equal(basin_scaler_fit(&s, BASIN_SCALE_NONE, x, 2, node, 0, NULL), BASIN_OK);
    basin_scaler_apply(y, &s, x, 3);
    assert_memory_equal(x, y, sizeof x);
    basin_scaler_free(&s);
}

/* Of a skewed sample the scores are normal: mean 0, deviation 1, order kept, ties together. */
TEST(turns_ranks_into_normal_scores) {
    enum { N = 4000 };
    static float x[N], y[N];
    static int64_t node[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)exp(3 * basin_random_normal_at(1, 0, (uint64_t)i));
        node[i] = i;
    }
    basin_scaler s;
    assert_int_equal(basin_scaler_fit(&s, BASIN_SCALE_QUANTILE, x, 1, node, N, NULL), BASIN_OK);
    basin_scaler_apply(y, &s, x, N);
    double mean = 0, square = 0;
    for (int i = 0; i < N; i++) mean += y[i] / N, square += (double)y[i] * y[i] / N;
    assert_true(fabs(mean) < 0.01 && fabs(square - 1) < 0.05);
    for (int i = 1; i < N; i++)
        if (x[i] > x[0]) assert_true(y[i] >= y[0]);
    const float edge[] = {-1, 1e30f, 1};
    basin_scaler_apply(y, &s, edge, 3);
    assert_true(fabs(y[0] + 5.1993376) < 1e-4 && fabs(y[1] - 5.1993376) < 1e-4);
    assert_true(fabs(y[2]) < 0.1); /* the median of a lognormal is 1 */
    basin_scaler_free(&s);
    const float tied[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 2};
    assert_int_equal(basin_scaler_fit(&s, BASIN_SCALE_QUANTILE, tied, 1, node, 10, NULL), BASIN_OK);
    basin_scaler_apply(y, &s, tied, 10);
    assert_true(fabs(y[0] + 0.2822161) < 1e-4); /* the middle of ranks 0..7 of 9: 7/18 */
    basin_scaler_free(&s);
}

TEST(keeps_scales_in_files) {
    const float x[] = {1, 5, 3, 4, 8, 7, 2, 2};
    const int64_t node[] = {0, 1, 2, 3};
    for (int kind = 0; kind <= BASIN_SCALE_ROWS; kind++) {
        basin_scaler s, t;
        basin_bundle *bundle;
        float y[8] = {0}, z[8] = {0};
        assert_ok(basin_scaler_fit(&s, (basin_scaler_kind)kind, x, 2, node, 4, &failure));
        assert_int_equal(basin_bundle_new(&bundle, NULL, NULL), BASIN_OK);
        assert_int_equal(basin_scaler_store(bundle, "scale.", &s, NULL), BASIN_OK);
        assert_int_equal(basin_scaler_load(&t, bundle, "scale.", NULL), BASIN_OK);
        assert_int_equal(t.kind, kind);
        if (kind == BASIN_SCALE_STANDARD || kind == BASIN_SCALE_QUANTILE) {
            basin_scaler_apply(y, &s, x, 4);
            basin_scaler_apply(z, &t, x, 4);
            assert_memory_equal(y, z, sizeof y);
        }
        basin_bundle_free(bundle);
        basin_scaler_free(&s);
        basin_scaler_free(&t);
    }
}

static basin_network *labelled(int64_t nodes, int every, int unknown) {
    basin_network *n;
    int32_t *y = malloc((size_t)nodes * sizeof *y);
    assert_non_null(y);
    for (int64_t i = 0; i < nodes; i++) y[i] = i % unknown == 3 ? -1 : i % every == 0;
    basin_tensor t = basin_tensor_borrow(y, BASIN_I32, BASIN_SHAPE(nodes));
    assert_int_equal(basin_network_new(&n, "t", nodes, NULL), BASIN_OK);
    assert_int_equal(basin_network_set_label_tensor(n, &t, NULL, NULL), BASIN_OK);
    free(y);
    return n;
}

TEST(splits_by_class) {
    enum { N = 3000 };
    static uint8_t part[N], again[N], other[N];
    BASIN_AT_EXIT(free_network) basin_network *n = labelled(N, 10, 5);
    assert_int_equal(basin_split_stratified(part, n, 0.4, 1, 0, NULL), BASIN_OK);
    assert_int_equal(basin_split_stratified(again, n, 0.4, 1, 0, NULL), BASIN_OK);
    assert_int_equal(basin_split_stratified(other, n, 0.4, 1, 1, NULL), BASIN_OK);
    assert_memory_equal(part, again, N);
    assert_memory_not_equal(part, other, N);
    int64_t count[2][4] = {{0}};
    for (int i = 0; i < N; i++) {
        if (n->label[i] < 0) assert_int_equal(part[i], BASIN_SPLIT_NONE);
        if (n->label[i] >= 0) count[n->label[i]][part[i]]++;
    }
    assert_int_equal(count[1][BASIN_SPLIT_TRAIN], 120); /* of 300 */
    assert_int_equal(count[1][BASIN_SPLIT_VAL], 60);
    assert_int_equal(count[1][BASIN_SPLIT_TEST], 120);
    assert_int_equal(count[0][BASIN_SPLIT_TRAIN], 840); /* of 2100 */
    assert_int_equal(count[0][BASIN_SPLIT_VAL], 420);
    assert_int_equal(count[0][BASIN_SPLIT_NONE], 0);
    int64_t train = basin_split_nodes(NULL, part, N, BASIN_SPLIT_TRAIN);
    assert_int_equal(train, 960);
}

TEST(refuses_bad_splits) {
    uint8_t part[20];
    uint8_t mask[20] = {1};
    basin_network *n = labelled(20, 2, 10);
    assert_int_equal(basin_split_stratified(part, n, 1, 1, 0, &failure), BASIN_BAD_VALUE);
    assert_failure(basin_split_from_masks(part, n, 0, &failure), BASIN_BAD_VALUE, "no masks");
    basin_tensor t = BORROW(mask, BASIN_U8, 20);
    assert_int_equal(basin_network_set_masks(n, "train", &t, NULL), BASIN_OK);
    assert_int_equal(basin_network_set_masks(n, "val", &t, NULL), BASIN_OK);
    assert_int_equal(basin_network_set_masks(n, "test", &t, NULL), BASIN_OK);
    assert_failure(basin_split_from_masks(part, n, 0, &failure), BASIN_BAD_VALUE,
                   "node 0 is in two parts of split 0");
    assert_int_equal(basin_split_from_masks(part, n, 1, &failure), BASIN_BAD_VALUE);
    basin_network_close(n);
    assert_int_equal(basin_network_new(&n, "t", 20, NULL), BASIN_OK);
    assert_int_equal(basin_split_stratified(part, n, 0.5, 1, 0, &failure), BASIN_BAD_VALUE);
    basin_network_close(n);
}
