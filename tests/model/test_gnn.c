/* The graph networks that detectors are compared with: gradients against finite differences, the
 * wavelets' sum, scores that would overflow, and what is refused. The golden cases of
 * tests/golden/gnn hold them against torch. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/gnn/gnn.h"
#include "support/lab.h"

enum { NODES = 6, FEATURES = 3, EDGES = 6, ARCHS = BASIN_GNN_SAGE + 1 };
static const int32_t ring[2 * EDGES] = {0, 1, 1, 2, 2, 3, 3, 0, 0, 2, 1, 3}; /* 4, 5 are alone */
static const int32_t path[2 * EDGES] = {0, 4, 4, 1, 1, 5, 5, 2, 2, 3, 3, 4};
static const char *const name[ARCHS] = {"bwgnn", "gt", "gcn", "gat", "sage"};

static basin_gnn_config small(int arch) {
    return (basin_gnn_config){.arch = (basin_gnn_arch)arch,
                              .features = FEATURES,
                              .dim = 4,
                              .heads = 2,
                              .hidden = 3,
                              .layers = 2};
}

/* Labels for one logit a node, or as distributions over classes. */
static basin_expr label_input(lab *l, int64_t classes) {
    static const double label[NODES] = {0, 1, 0, 0, 1, 0};
    static const double share[NODES * 3] = {1, 0, 0, 0, 1, 0, 0, 0.5, 0.5,
                                            0, 0, 1, 1, 0, 0, 0, 0,   1};
    if (classes) return lab_input(l, "label", BASIN_SHAPE(NODES, 3), share);
    return lab_input(l, "label", BASIN_SHAPE(NODES), label);
}

/* Loss and logits on one relation or two, with parameters of some size. */
static void open_net(lab *l, basin_expr *loss, basin_expr *logits, const char *backend,
                     basin_gnn_config config, double size) {
    static const double weight[NODES] = {1, 2.5, 0, 1, 2.5, 1};
    double features[NODES * FEATURES];
    basin_gnn net;
    lab_open(l, backend, 1);
    basin_random_fill_normal_f64(features, 9, 2, 0, NODES * FEATURES);
    if (basin_gnn_declare(&net, &l->params, &config))
        fail_msg("%s", basin_graph_error(l->graph)->text);
    basin_pattern pairs[2] = {
        lab_pairs(l, "first", NODES, ring, EDGES, BASIN_PAIRS_BOTH_WAYS, 15),
        lab_pairs(l, "second", NODES, path, EDGES, BASIN_PAIRS_BOTH_WAYS, 12)};
    basin_gnn_inputs inputs = {.features =
                                   lab_input(l, "features", BASIN_SHAPE(NODES, FEATURES), features),
                               .neighbours = pairs};
    *logits = basin_gnn_logits(&net, &inputs);
    if (config.outputs) {
        basin_smoothing how = {.steps = 2, .anchor = 0.2};
        *logits = basin_smooth(*logits, &pairs[0], &how);
    }
    *loss = basin_weighted_cross_entropy(*logits, label_input(l, config.outputs),
                                         lab_input(l, "weight", BASIN_SHAPE(NODES), weight));
    lab_fill(l, 12, size);
}

static void gradients(void **state) {
    (void)state;
    for (int i = 0; i < 2 * ARCHS; i++) {
        lab l;
        basin_expr loss, logits;
        basin_gnn_config config = small(i / 2);
        config.recompute = i % 2;
        config.relations = 1 + i % 2;
        config.merge = BASIN_MERGE_CONCAT; /* a maximum has edges, which differences cross */
        open_net(&l, &loss, &logits, "ref", config, 0.5);
        lab_check_gradients(&l, loss, 2e-6, name[i / 2]);
        lab_close(&l);
    }
}

/* Three classes, smoothed: through softmax, head and smoothing. */
static void gradients_of_classes(void **state) {
    (void)state;
    for (int arch = 0; arch < ARCHS; arch++) {
        lab l;
        basin_expr loss, logits;
        basin_gnn_config config = small(arch);
        config.outputs = 3;
        open_net(&l, &loss, &logits, "ref", config, 0.4); /* no score lies on a kink */
        lab_check_gradients(&l, loss, 2e-6, name[arch]);
        lab_close(&l);
    }
}

/* The descent of the energy is personalised PageRank: z <- a h + (1 - a) S z. Where edges go one
 * way, S is the mean of both ways. */
static void smoothing_is_page_rank(void **state) {
    (void)state;
    enum { STEPS = 4 };
    for (int way = 0; way < 3; way++) {
        bool both = way != 1, loops = way == 2;
        double A[NODES][NODES] = {0}, h[NODES * 2], z[NODES * 2], next[NODES * 2], count[NODES];
        lab l;
        lab_open(&l, "ref", 1);
        for (int e = 0; e < EDGES; e++) {
            A[path[2 * e]][path[2 * e + 1]] = 1;
            if (both) A[path[2 * e + 1]][path[2 * e]] = 1;
        }
        for (int i = 0; i < NODES; i++) {
            A[i][i] = 1, count[i] = 0;
            for (int j = 0; j < NODES; j++) count[i] += A[i][j];
        }
        basin_random_fill_normal_f64(h, 4, 1, 0, NODES * 2);
        memcpy(z, h, sizeof z);
        for (int t = 0; t < STEPS; t++) {
            for (int i = 0; i < NODES * 2; i++) next[i] = 0.3 * h[i];
            for (int i = 0; i < NODES; i++)
                for (int j = 0; j < NODES; j++)
                    for (int c = 0; c < 2; c++)
                        next[2 * i + c] += 0.7 * 0.5 * (A[i][j] + A[j][i]) * z[2 * j + c] /
                                           sqrt(count[i] * count[j]);
            memcpy(z, next, sizeof z);
        }
        int flags = (both ? BASIN_PAIRS_BOTH_WAYS : 0) | (loops ? BASIN_PAIRS_ADD_SELF : 0);
        basin_pattern pairs = lab_pairs(&l, "pairs", NODES, path, EDGES, flags, 20);
        basin_smoothing how = {.steps = STEPS, .anchor = 0.3, .loops = loops};
        basin_expr out = basin_smooth(lab_input(&l, "h", BASIN_SHAPE(NODES, 2), h), &pairs, &how);
        basin_tensor value = lab_value(&l, out);
        for (int i = 0; i < NODES * 2; i++)
            assert_true(fabs(basin_tensor_at(&value, i) - z[i]) < 1e-12);
        basin_tensor_free(&value);
        lab_close(&l);
    }
}

/* The C + 1 wavelets add up to C + 1 whatever the frequency: the binomial theorem. */
static void wavelets_add_up(void **state) {
    (void)state;
    for (int order = 1; order <= BASIN_GNN_LAYERS; order++) {
        double theta[(BASIN_GNN_LAYERS + 1) * (BASIN_GNN_LAYERS + 1)];
        basin_bwgnn_wavelets(theta, order);
        for (int k = 0; k <= order; k++) {
            double sum = 0;
            for (int i = 0; i <= order; i++) sum += theta[i * (order + 1) + k];
            assert_true(fabs(sum - (k ? 0 : order + 1)) < 1e-9);
        }
    }
    double theta[9]; /* of order 2: 3 (1 - x/2)^2, 6 (x/2) (1 - x/2), 3 (x/2)^2 */
    static const double want[9] = {3, -3, 0.75, 0, 3, -1.5, 0, 0, 0.75};
    basin_bwgnn_wavelets(theta, 2);
    for (int i = 0; i < 9; i++) assert_true(fabs(theta[i] - want[i]) < 1e-12);
}

/* Scores of thousands: exp of them is beyond any float. */
static void large_scores_stay_finite(void **state) {
    (void)state;
    for (int arch = BASIN_GNN_GT; arch <= BASIN_GNN_GAT; arch += BASIN_GNN_GAT - BASIN_GNN_GT) {
        lab l;
        basin_expr loss, logits;
        open_net(&l, &loss, &logits, "cpu", small(arch), 0.5);
        for (size_t i = 0; i < l.params.count; i++) {
            const char *own = basin_expr_name(l.params.param[i].state);
            basin_shape shape = basin_expr_shape(l.params.param[i].state);
            double large[64];
            basin_random_fill_normal_f64(large, 3, i, 0, 64);
            for (int k = 0; k < 64; k++) large[k] *= 1000;
            if (strstr(own, ".wq") || strstr(own, ".source")) {
                assert_true(basin_shape_count(shape) <= 64);
                lab_set(&l, l.params.param[i].state, large);
            }
        }
        basin_tensor value = lab_value(&l, basin_grad(loss, l.params.param[0].state));
        for (int64_t i = 0; i < basin_shape_count(value.shape); i++)
            if (!isfinite(basin_tensor_at(&value, i))) fail_msg("%s: not finite", name[arch]);
        basin_tensor_free(&value);
        lab_close(&l);
    }
}

static void expect_error(basin_gnn_config config, const char *wanted) {
    basin_gnn net;
    basin_params params;
    basin_graph *graph = basin_graph_new();
    basin_params_begin(&params, graph);
    assert_int_equal(basin_gnn_declare(&net, &params, &config), BASIN_BAD_VALUE);
    if (!strstr(basin_graph_error(graph)->text, wanted))
        fail_msg("'%s', wanted '%s'", basin_graph_error(graph)->text, wanted);
    basin_params_free(&params);
    basin_graph_free(graph);
}

static void wrong_sizes_are_refused(void **state) {
    (void)state;
    basin_gnn_config config = small(BASIN_GNN_GAT);
    config.heads = 3;
    expect_error(config, "3 heads and dimension 4");
    config = small(BASIN_GNN_GCN);
    config.layers = BASIN_GNN_LAYERS + 1;
    expect_error(config, "9 layers");
    config = small(BASIN_GNN_BWGNN);
    config.dropout = 1;
    expect_error(config, "dropout 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients),
        cmocka_unit_test(gradients_of_classes),
        cmocka_unit_test(smoothing_is_page_rank),
        cmocka_unit_test(wavelets_add_up),
        cmocka_unit_test(large_scores_stay_finite),
        cmocka_unit_test(wrong_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
