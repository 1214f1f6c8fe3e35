/* The three models: the gradient of the loss with respect to every parameter against finite
 * differences, parameter counts of the paper's sizes, and predictions that do not depend on what
 * else is in a batch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pairs.h"
#include "support/lab.h"
#include "tasks/nodes/anomaly.h"
#include "tasks/pictures/net.h"

static const basin_block_config tiny = {
    .dim = 4, .heads = 2, .head_dim = 3, .memories = 5, .learn_beta = true};

static void fill(double *number, int64_t count, uint64_t stream) {
    basin_random_fill_normal_f64(number, 9, stream, 0, (size_t)count);
}

static void must_declare(lab *l, basin_status status) {
    if (status) fail_msg("%s", basin_graph_error(l->graph)->text);
}

/* ---- images ---- */

enum { B = 2, N = 4, P = 3 };

typedef struct image_scene {
    lab lab;
    basin_image_net model;
    basin_expr patches, replaced, occluded, output, loss;
} image_scene;

static void image_open(image_scene *s, const char *backend, basin_image_net_config config) {
    static const double replaced[B * N] = {1, 0, 0, 1, 0, 0, 1, 0};
    static const double occluded[B * N] = {1, 1, 0, 1, 0, 0, 1, 0};
    double patches[B * N * P];
    lab *l = &s->lab;
    lab_open(l, backend, 1);
    config.tokens = N, config.patch = P, config.block = tiny;
    must_declare(l, basin_image_net_declare(&s->model, &l->params, &config));
    fill(patches, B * N * P, 1);
    s->patches = lab_input(l, "patches", BASIN_SHAPE(B, N, P), patches);
    s->replaced = lab_input(l, "replaced", BASIN_SHAPE(B, N), replaced);
    s->occluded = lab_input(l, "occluded", BASIN_SHAPE(B, N), occluded);
    s->output = basin_image_net_forward(&s->model, s->patches, s->replaced, NULL);
    s->loss = basin_image_net_loss(s->output, s->patches, s->occluded);
    lab_fill(l, 11, 0.7);
}

TEST(image_gradients) {
    for (int i = 0; i < 4; i++) {
        image_scene s;
        basin_image_net_config config = {.descent = {.steps = 2, .alpha = 0.2, .recompute = i == 3},
                                         .cls = i % 2,
                                         .self_attention = i / 2};
        image_open(&s, "ref", config);
        assert_int_equal(s.lab.params.count, i % 2 ? 13 : 12);
        lab_check_gradients(&s.lab, s.loss, 1e-6, i % 2 ? "image with CLS" : "image");
        lab_close(&s.lab);
    }
}

/* What a replaced patch holds has no say; the loss reads the occluded patches alone. */
TEST(image_masks) {
    image_scene s;
    image_open(&s, "ref", (basin_image_net_config){.descent = {.steps = 2, .alpha = 0.1}});
    double patches[B * N * P];
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor before = lab_value(&s.lab, s.output);
    double want = 0;
    fill(patches, B * N * P, 1);
    static const int occluded[] = {0, 1, 3, 6};
    for (int i = 0; i < 4; i++)
        for (int p = 0; p < P; p++) {
            int at = occluded[i] * P + p;
            want += pow(basin_tensor_at(&before, at) - patches[at], 2) / (4 * P);
        }
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor loss = lab_value(&s.lab, s.loss);
    assert_true(fabs(basin_tensor_at(&loss, 0) - want) < 1e-12);
    patches[0] += 5; /* patch 0 of image 0 is replaced */
    lab_give(&s.lab, s.patches, patches);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor after = lab_value(&s.lab, s.output);
    lab_assert_near(&after, &before, 0, "a replaced patch");
    patches[1 * P] += 5; /* patch 1 is occluded but seen */
    lab_give(&s.lab, s.patches, patches);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor moved = lab_value(&s.lab, s.output);
    assert_true(lab_distance(&moved, &before) > 1e-3);
    basin_tensor half =
        basin_tensor_borrow((double *)moved.data + N * P, BASIN_F64, BASIN_SHAPE(N, P));
    basin_tensor other =
        basin_tensor_borrow((double *)before.data + N * P, BASIN_F64, BASIN_SHAPE(N, P));
    lab_assert_near(&half, &other, 1e-12, "the other image");
    lab_close(&s.lab);
}

/* ---- anomalies ---- */

enum { NODES = 6, FEATURES = 3, EDGES = 6 };
static const int32_t ring[2 * EDGES] = {0, 1, 1, 2, 2, 3, 3, 0, 0, 2, 1, 3}; /* 4, 5 are alone */

static void anomaly_open(lab *l, basin_expr *loss, const char *backend,
                         basin_anomaly_config config) {
    static const double label[NODES] = {0, 1, 0, 0, 1, 0}, weight[NODES] = {1, 2.5, 0, 1, 2.5, 1};
    double features[NODES * FEATURES];
    basin_anomaly model;
    lab_open(l, backend, 1);
    config.nodes = NODES, config.features = FEATURES, config.block = tiny;
    must_declare(l, basin_anomaly_declare(&model, &l->params, &config));
    fill(features, NODES * FEATURES, 2);
    basin_expr x = lab_input(l, "features", BASIN_SHAPE(NODES, FEATURES), features);
    basin_pattern pairs = lab_pairs(l, "pairs", NODES, ring, EDGES, BASIN_PAIRS_BOTH_WAYS, 15);
    basin_expr logits =
        basin_anomaly_logits(&model, &(basin_anomaly_inputs){.features = x, .neighbours = &pairs});
    *loss = basin_weighted_cross_entropy(logits, lab_input(l, "label", BASIN_SHAPE(NODES), label),
                                         lab_input(l, "weight", BASIN_SHAPE(NODES), weight));
    lab_fill(l, 12, 0.7);
}

TEST(anomaly_gradients) {
    for (int i = 0; i < 4; i++) {
        lab l;
        basin_expr loss;
        basin_anomaly_config config = {.descent = {.steps = 2, .alpha = 0.3},
                                       .position =
                                           i % 2 ? BASIN_POSITION_LEARNED : BASIN_POSITION_NONE,
                                       .hidden = i / 2 ? 3 : 0};
        anomaly_open(&l, &loss, "ref", config);
        lab_check_gradients(&l, loss, 1e-6, "anomaly");
        lab_close(&l);
    }
}

/* ---- graphs ---- */

enum { F = 3, EDGE_F = 2, K = 2, CLASSES = 3, MOST_NODES = 24, MOST_PAIRS = 120, KINDS = 5 };

/* Five graphs: a path, a triangle, nodes without edges, a star, a single node. */
static const struct {
    int nodes, edges;
    int32_t edge[10];
} kinds[KINDS] = {{4, 3, {0, 1, 1, 2, 2, 3}},
                  {3, 3, {0, 1, 1, 2, 2, 0}},
                  {2, 0, {0}},
                  {5, 4, {0, 1, 0, 2, 0, 3, 0, 4}},
                  {1, 0, {0}}};

typedef struct graphs_scene {
    lab lab;
    basin_graph_net model;
    basin_graph_net_batch batch;
    basin_expr logits;
    basin_pairs pairs;
} graphs_scene;

/* Room beyond what the graphs need. */
typedef struct room {
    int graphs, nodes, pairs;
} room;

static void lay_tokens(graphs_scene *s, const int *list, int count, room spare) {
    int nodes = spare.nodes, tokens = 0, node = 0;
    for (int i = 0; i < count; i++) nodes += kinds[list[i]].nodes;
    int all = nodes + count + spare.graphs;
    int32_t source[MOST_NODES + 8], before[MOST_NODES + 8], after[MOST_NODES + 8], first[8];
    int32_t owner[MOST_NODES + 8];
    double share[8] = {0};
    double features[MOST_NODES * F] = {0}, positions[(MOST_NODES + 8) * K] = {0};
    for (int i = 0; i < count; i++) {
        int n = kinds[list[i]].nodes;
        first[i] = tokens;
        share[i] = 1.0 / n;
        fill(features + node * F, n * F, 100 + (uint64_t)list[i]);
        fill(positions + tokens * K, (n + 1) * K, 200 + (uint64_t)list[i]);
        for (int t = 0; t <= n; t++, tokens++) {
            source[tokens] = t ? node++ : -1;
            owner[tokens] = t ? i : -1;
            before[tokens] = t ? tokens - 1 : -1;
            after[tokens] = t < n ? tokens + 1 : -1;
        }
    }
    for (int i = 0; i < spare.graphs; i++) first[count + i] = tokens; /* a token without pairs */
    for (int t = tokens; t < all; t++) source[t] = before[t] = after[t] = owner[t] = -1;
    lab *l = &s->lab;
    s->batch.nodes = lab_input(l, "nodes", BASIN_SHAPE(nodes, F), features);
    s->batch.positions = lab_input(l, "positions", BASIN_SHAPE(all, K), positions);
    s->batch.source = lab_index(l, "source", source, all);
    s->batch.before = lab_index(l, "before", before, all);
    s->batch.after = lab_index(l, "after", after, all);
    s->batch.first = lab_index(l, "first", first, count + spare.graphs);
    s->batch.owner = lab_index(l, "owner", owner, all);
    s->batch.share = lab_input(l, "share", BASIN_SHAPE(count + spare.graphs), share);
}

/* Spare pairs have no strength. */
static void lay_strengths(graphs_scene *s, int64_t all) {
    double strength[MOST_PAIRS] = {0};
    for (int64_t q = 0; q < s->pairs.queries; q++)
        for (int32_t i = s->pairs.row[q]; i < s->pairs.row[q + 1]; i++)
            strength[i] = 1.0 / (s->pairs.row[q + 1] - s->pairs.row[q]);
    if (!s->model.config.graph.couplings && !s->model.config.graph.neighbour_heads) return;
    s->batch.strength = lab_input(&s->lab, "strength", BASIN_SHAPE(all), strength);
}

static void lay_edges(graphs_scene *s, const int *list, int count, room spare) {
    int32_t edge[2 * MOST_PAIRS];
    double number[MOST_PAIRS * EDGE_F];
    int64_t edges = 0, first = 0;
    int64_t tokens = basin_expr_shape(s->batch.source).dim[0];
    for (int i = 0; i < count; i++) {
        for (int n = 1; n <= kinds[list[i]].nodes; n++, edges++)
            edge[2 * edges] = (int32_t)first, edge[2 * edges + 1] = (int32_t)first + n;
        for (int e = 0; e < kinds[list[i]].edges; e++, edges++)
            for (int k = 0; k < 2; k++)
                edge[2 * edges + k] = (int32_t)first + 1 + kinds[list[i]].edge[2 * e + k];
        first += 1 + kinds[list[i]].nodes;
    }
    assert_ok(
        basin_pairs_new(&s->pairs, tokens, tokens, edge, edges, BASIN_PAIRS_BOTH_WAYS, &failure));
    int64_t all = s->pairs.pairs + spare.pairs, e = 0;
    for (int i = 0; i < all * EDGE_F; i++) number[i] = 100; /* of the spare: to be ignored */
    for (int i = 0; i < count; i++) {
        int own = kinds[list[i]].nodes + kinds[list[i]].edges;
        double feature[20 * EDGE_F];
        fill(feature, own * EDGE_F, 300 + (uint64_t)list[i]);
        for (int k = 0; k < own; k++, e++)
            for (int way = 0; way < 2; way++) {
                int64_t at = basin_pairs_find(&s->pairs, edge[2 * e + way], edge[2 * e + 1 - way]);
                memcpy(number + at * EDGE_F, feature + k * EDGE_F, EDGE_F * sizeof *number);
            }
    }
    s->batch.edge_features = lab_input(&s->lab, "edge_features", BASIN_SHAPE(all, EDGE_F), number);
    lay_strengths(s, all);
    s->batch.pattern = basin_pairs_declare(s->lab.graph, "pairs", tokens, tokens, all);
}

static void graphs_open_as(graphs_scene *s, const char *backend, const int *list, int count,
                           room spare, basin_graph_net_config config) {
    lab *l = &s->lab;
    basin_graph_net_config sizes = {.features = F,
                                    .edge_features = EDGE_F,
                                    .positions = K,
                                    .outputs = CLASSES,
                                    .blocks = 2,
                                    .block = tiny,
                                    .descent = {.steps = 2, .alpha = 0.2}};
    sizes.block.mix = config.block.mix;
    sizes.graph = config.graph;
    sizes.graph.pair_features = EDGE_F;
    sizes.block.norm = config.block.norm;
    sizes.adjacency = config.adjacency;
    sizes.read = config.read;
    sizes.hidden = config.hidden;
    sizes.norm_head = config.norm_head;
    config = sizes;
    *s = (graphs_scene){0};
    lab_open(l, backend, 1);
    must_declare(l, basin_graph_net_declare(&s->model, &l->params, &config));
    lay_tokens(s, list, count, spare);
    lay_edges(s, list, count, spare);
    /* the inputs are those that the model would declare */
    basin_graph_net_batch same;
    basin_graph_net_inputs(&same, &s->model, l->graph, count + spare.graphs,
                           basin_expr_shape(s->batch.nodes).dim[0],
                           basin_expr_shape(s->batch.edge_features).dim[0]);
    assert_ptr_equal(same.nodes, s->batch.nodes);
    assert_ptr_equal(same.pattern.pair, s->batch.pattern.pair);
    s->logits = basin_graph_net_forward(&s->model, &s->batch);
    lab_fill(l, 13, 0.5);
}

/* The paper's energies; or with mixed heads and couplings too; or with what GNN+ adds. */
static void graphs_open(graphs_scene *s, const char *backend, const int *list, int count,
                        room spare, int kind) {
    basin_block_graph graph = {.couplings = kind ? 3 : 0};
    if (kind > 1)
        graph =
            (basin_block_graph){.graph_norm = true, .neighbour_heads = 2, .degree_scalers = true};
    graphs_open_as(s, backend, list, count, spare,
                   (basin_graph_net_config){.block = {.mix = kind == 1}, .graph = graph});
}

static void graphs_close(graphs_scene *s) {
    basin_pairs_free(&s->pairs);
    lab_close(&s->lab);
}

static basin_tensor graphs_value(graphs_scene *s, basin_expr a) {
    basin_plan *plan = lab_plan(&s->lab, &a, 1);
    assert_ok(basin_pairs_write(plan, &s->batch.pattern, &s->pairs, &failure));
    lab_run(plan);
    basin_tensor value = lab_read(plan, a);
    basin_plan_free(plan);
    return value;
}

/* Gives the lab the pair list itself, for plans that it makes. */
static void own_pairs(graphs_scene *s) {
    const basin_pattern *p = &s->batch.pattern;
    const basin_expr part[5] = {p->row, p->key, p->column, p->query, p->pair};
    const int32_t *number[5] = {s->pairs.row, s->pairs.key, s->pairs.column, s->pairs.query,
                                s->pairs.pair};
    for (int i = 0; i < 5; i++)
        lab_index(&s->lab, basin_expr_name(part[i]), number[i], basin_expr_shape(part[i]).dim[0]);
}

static const double target[3 * CLASSES] = {0.9, 0.05, 0.05, 0.1, 0.2, 0.7, 0.3, 0.4, 0.3};

TEST(graphs_gradients) {
    static const int list[] = {1, 0};
    for (int mix = 0; mix < 2; mix++) {
        graphs_scene s;
        graphs_open(&s, "ref", list, 2, (room){0}, mix);
        own_pairs(&s);
        basin_expr want = lab_input(&s.lab, "target", BASIN_SHAPE(2, CLASSES), target);
        basin_expr loss = basin_cross_entropy(s.logits, want);
        lab_check_gradients(&s.lab, loss, 2e-6, mix ? "graphs, mixed" : "graphs");
        graphs_close(&s);
    }
}

/* The other adjacencies and heads. */
TEST(graphs_variants) {
    static const int list[] = {1, 0};
    static const basin_graph_net_config variant[] = {
        {.adjacency = BASIN_ADJACENCY_BILINEAR,
         .read = BASIN_GRAPH_READOUT_CLS | BASIN_GRAPH_READOUT_MEAN},
        {.adjacency = BASIN_ADJACENCY_EDGES, .read = BASIN_GRAPH_READOUT_SUM, .norm_head = true},
        {.adjacency = BASIN_ADJACENCY_NONE,
         .read = BASIN_GRAPH_READOUT_CLS | BASIN_GRAPH_READOUT_SIZED,
         .hidden = 3,
         .norm_head = true},
        {.adjacency = BASIN_ADJACENCY_BILINEAR, .graph = {.couplings = 2}},
        {.adjacency = BASIN_ADJACENCY_NONE, .graph = {.neighbour_heads = 2}},
        {.block = {.norm = BASIN_NORM_RMS}},
        {.graph = {.graph_norm = true}},
        {.graph = {.couplings = 2, .neighbour_heads = 2, .degree_scalers = true}}};
    for (size_t i = 0; i < sizeof variant / sizeof *variant; i++) {
        graphs_scene s;
        graphs_open_as(&s, "ref", list, 2, (room){0}, variant[i]);
        own_pairs(&s);
        basin_expr want = lab_input(&s.lab, "target", BASIN_SHAPE(2, CLASSES), target);
        lab_check_gradients(&s.lab, basin_cross_entropy(s.logits, want), 2e-6, "graph variants");
        graphs_close(&s);
    }
}

/* The logits of graph `kind` are those it has alone, wherever it stands in a batch. */
static void check_batch(const char *backend, double tolerance, const int *list, int count,
                        room spare, int kind) {
    graphs_scene s;
    graphs_open(&s, backend, list, count, spare, kind);
    basin_tensor all = graphs_value(&s, s.logits);
    assert_int_equal(basin_tensor_first_bad(&all), -1);
    for (int i = 0; i < count; i++) {
        graphs_scene one;
        graphs_open(&one, backend, list + i, 1, (room){0}, kind);
        basin_tensor alone = graphs_value(&one, one.logits);
        basin_tensor row = basin_tensor_borrow((double *)all.data + i * CLASSES, BASIN_F64,
                                               BASIN_SHAPE(1, CLASSES));
        lab_assert_near(&row, &alone, tolerance, "a graph in a batch");
        basin_tensor_free(&alone);
        graphs_close(&one);
    }
    basin_tensor_free(&all);
    graphs_close(&s);
}

TEST(graphs_batches) {
    static const int list[][KINDS] = {{0, 1, 2, 3, 4}, {4, 3, 3, 0, 1}, {2, 2, 4, 1, 0}};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            const char *backend = k % 2 ? "cpu" : "ref";
            double tolerance = k % 2 ? 1e-6 : 1e-12;
            check_batch(backend, tolerance, list[i], KINDS, (room){0}, 1 + k / 2);
            check_batch(backend, tolerance, list[i], 3, (room){0}, 1 + k / 2);
            check_batch(backend, tolerance, list[i], 3, (room){1, 4, 9}, 1 + k / 2);
            check_batch(backend, tolerance, list[i], 1, (room){0, 0, 3}, 1 + k / 2);
        }
}

/* Activations are the gradient of a Lagrangian: their Jacobian is symmetric, and steps go down. */
TEST(graphs_norms) {
    static const int list[] = {1, 0};
    for (int norm = 0; norm < 3; norm++) { /* of layers, without means, of graphs */
        graphs_scene s;
        basin_graph_net_config config = {
            .block = {.norm = norm == 1 ? BASIN_NORM_RMS : BASIN_NORM_LAYER},
            .graph = {.graph_norm = norm == 2, .neighbour_heads = 2, .degree_scalers = true}};
        graphs_open_as(&s, "ref", list, 2, (room){0}, config);
        own_pairs(&s);
        int64_t tokens = basin_expr_shape(s.batch.source).dim[0], D = tiny.dim;
        basin_block_graph_inputs inputs = {.features = s.batch.edge_features,
                                           .strength = s.batch.strength,
                                           .owner = s.batch.owner,
                                           .share = s.batch.share};
        basin_block_bound bound = {
            .block = &s.model.block[0], .pattern = &s.batch.pattern, .graph = &inputs};
        basin_energy energy = basin_block_energy(&bound);
        basin_expr x = lab_state(&s.lab, "x", BASIN_SHAPE(tokens, D));
        basin_expr u = lab_state(&s.lab, "u", BASIN_SHAPE(tokens, D));
        basin_expr w = lab_state(&s.lab, "w", BASIN_SHAPE(tokens, D));
        basin_descent_spec small = {.steps = 1, .alpha = 0.02};
        lab_fill(&s.lab, 17, 0.7);
        basin_expr g = basin_energy_activation(&energy, x);
        basin_expr one = basin_mul(basin_grad(basin_sum_all(basin_mul(g, u)), x), w);
        basin_expr other = basin_mul(basin_grad(basin_sum_all(basin_mul(g, w)), x), u);
        basin_expr next = basin_energy_activation(&energy, basin_descend(&energy, x, &small, NULL));
        basin_expr number[4] = {basin_sum_all(one), basin_sum_all(other),
                                basin_energy_total(&energy, g), basin_energy_total(&energy, next)};
        double value[4];
        for (int i = 0; i < 4; i++) {
            basin_tensor t = graphs_value(&s, number[i]);
            value[i] = basin_tensor_at(&t, 0);
            basin_tensor_free(&t);
        }
        assert_true(fabs(value[0] - value[1]) < 1e-10 && fabs(value[0]) > 1e-3);
        assert_true(value[3] < value[2]);
        graphs_close(&s);
    }
}

/* Room in a batch changes no gradient either. */
TEST(graphs_padded_gradients) {
    static const int list[] = {0, 3, 2};
    for (int k = 0; k < 4; k++) {
        basin_tensor gradient[2][60];
        int count = 0, cpu = k % 2;
        for (int padded = 0; padded < 2; padded++) {
            graphs_scene s;
            graphs_open(&s, cpu ? "cpu" : "ref", list, 3, padded ? (room){2, 3, 7} : (room){0},
                        1 + k / 2);
            basin_expr want = lab_input(&s.lab, "target", BASIN_SHAPE(3, CLASSES), target);
            basin_expr loss = basin_cross_entropy(basin_slice(s.logits, 0, 0, 3), want);
            count = (int)s.lab.params.count;
            for (int i = 0; i < count; i++) {
                basin_expr slope = basin_grad(loss, s.lab.params.param[i].state);
                gradient[padded][i] = graphs_value(&s, slope);
            }
            graphs_close(&s);
        }
        for (int i = 0; i < count; i++) {
            lab_assert_near(&gradient[1][i], &gradient[0][i], cpu ? 2e-5 : 1e-11, "padded");
            basin_tensor_free(&gradient[0][i]);
            basin_tensor_free(&gradient[1][i]);
        }
    }
}

/* ---- the paper's sizes ---- */

TEST(image_counts) {
    BASIN_AT_EXIT(lab_close) lab l;
    basin_image_net model;
    lab_open(&l, "ref", 1);
    basin_image_net_config config = {
        .tokens = 196,
        .patch = 768,
        .block = {.dim = 768, .heads = 12, .head_dim = 64, .memories = 3072},
        .cls = true};
    must_declare(&l, basin_image_net_declare(&model, &l.params, &config));
    int64_t block = 0;
    const basin_expr part[3] = {model.block.wk, model.block.wq, model.block.xi};
    for (int i = 0; i < 3; i++) block += basin_shape_count(basin_expr_shape(part[i]));
    assert_int_equal(block, 3538944);
    assert_int_equal(basin_params_total(&l.params), 4873729);
}

static void graphs_count(int64_t features, int64_t outputs, int blocks, int64_t wanted) {
    BASIN_AT_EXIT(lab_close) lab l;
    basin_graph_net model;
    basin_graph_net_config config = {.features = features,
                                     .edge_features = 1,
                                     .positions = 15,
                                     .outputs = outputs,
                                     .blocks = blocks,
                                     .block = {.dim = 128,
                                               .heads = 12,
                                               .head_dim = 64,
                                               .memories = 512,
                                               .learn_beta = true,
                                               .mix = true}};
    lab_open(&l, "ref", 1);
    must_declare(&l, basin_graph_net_declare(&model, &l.params, &config));
    assert_int_equal(basin_params_total(&l.params), wanted);
}

TEST(graphs_counts) {
    lab l;
    basin_block block;
    basin_block_config config = {
        .dim = 128, .heads = 12, .head_dim = 64, .memories = 512, .learn_beta = true, .mix = true};
    lab_open(&l, "ref", 1);
    must_declare(&l, basin_block_declare(&block, &l.params, "", &config));
    assert_int_equal(basin_params_total(&l.params), 262429);
    lab_close(&l);
    graphs_count(89, 10, 4, 1064834); /* DD */
    graphs_count(3, 10, 2, 528968);   /* MNIST */
    graphs_count(5, 10, 2, 529224);   /* CIFAR10 */
    graphs_count(3, 2, 2, 527936);    /* PATTERN */
    graphs_count(7, 6, 2, 528964);    /* CLUSTER */
    graphs_count(1, 1, 4, 1052409);   /* ZINC */
}

/* ---- first values ---- */

typedef struct promise {
    basin_expr state;
    double deviation, most;
} promise;

/* Deviations as promised, nothing beyond two of them where the normal is cut. */
static void keeps(lab *l, const promise *wanted, size_t count) {
    for (size_t i = 0; i < count; i++) {
        basin_tensor value = lab_value(l, wanted[i].state);
        int64_t numbers = basin_shape_count(value.shape);
        double squares = 0;
        for (int64_t k = 0; k < numbers; k++) {
            double x = basin_tensor_at(&value, k);
            squares += x * x;
            assert_true(fabs(x) <= wanted[i].most * 1.0001);
        }
        assert_true(fabs(sqrt(squares / (double)numbers) - wanted[i].deviation) <=
                    0.05 * wanted[i].deviation);
        basin_tensor_free(&value);
    }
}

TEST(first_values) {
    for (int published = 0; published < 2; published++) {
        lab l;
        basin_image_net m;
        basin_image_net_config config = {
            .tokens = 40,
            .patch = 100,
            .block = {.dim = 100, .heads = 4, .head_dim = 25, .memories = 200},
            .published_init = published};
        lab_open(&l, "ref", 1);
        must_declare(&l, basin_image_net_declare(&m, &l.params, &config));
        assert_int_equal(basin_params_init(&l.params, l.store, 3, NULL), BASIN_OK);
        const promise paper[] = {{m.enc_w, 0.02, 1},    {m.dec_w, 0.02, 1}, {m.block.wk, 0.02, 1},
                                 {m.block.xi, 0.02, 1}, {m.pos, 0.02, 1},   {m.enc_b, 0, 0}};
        const promise code[] = {{m.enc_w, 0.1, 0.2 / 0.8796},
                                {m.dec_w, 0.1, 0.2 / 0.8796},
                                {m.block.wk, 0.002, 1},
                                {m.block.xi, 0.02, 1},
                                {m.pos, 0.002, 1},
                                {m.enc_b, 0, 0}};
        keeps(&l, published ? code : paper, 6);
        lab_close(&l);
    }
}

/* ---- errors ---- */

static void expect(lab *l, const char *a, const char *b) {
    assert_misbuilt(l->graph, a), assert_misbuilt(l->graph, b);
    lab_close(l);
}

TEST(errors) {
    basin_image_net_config image = {.descent = {.steps = 1, .alpha = 0.1}};
    for (int i = 0; i < 3; i++) {
        image_scene s;
        image_open(&s, "ref", image);
        basin_expr narrow = lab_state(&s.lab, "narrow", BASIN_SHAPE(B, 1, P));
        basin_expr flat = lab_state(&s.lab, "flat", BASIN_SHAPE(N, P));
        assert_null(i == 0   ? basin_image_net_forward(&s.model, narrow, s.replaced, NULL)
                    : i == 1 ? basin_image_net_forward(&s.model, flat, s.replaced, NULL)
                             : basin_image_net_loss(s.output, flat, s.occluded));
        expect(&s.lab, i == 0 ? "[2, 1, 3]" : "[4, 3]", i < 2 ? "[-1, 4, 3]" : "[-1, -1, -1]");
    }
    lab l = lab_new("ref", 1);
    basin_expr logits = lab_state(&l, "logits", BASIN_SHAPE(4));
    basin_expr column = lab_state(&l, "column", BASIN_SHAPE(4, 1));
    assert_null(basin_weighted_cross_entropy(logits, column, logits));
    expect(&l, "[4]", "[4, 1]");
    lab_open(&l, "ref", 1);
    logits = lab_state(&l, "logits", BASIN_SHAPE(4, 3));
    assert_null(basin_cross_entropy(logits, lab_state(&l, "row", BASIN_SHAPE(1, 3))));
    expect(&l, "[4, 3]", "[1, 3]");
    lab_open(&l, "ref", 1);
    basin_graph_net model;
    basin_graph_net_config many = {.features = 1,
                                   .edge_features = 1,
                                   .positions = 1,
                                   .outputs = 1,
                                   .blocks = 17,
                                   .block = tiny};
    assert_int_equal(basin_graph_net_declare(&model, &l.params, &many), BASIN_BAD_VALUE);
    expect(&l, "blocks is 17", "1 to 16");
}

/* ---- smoothing ---- */

enum { ENDS = 6, LINKS = 6 };
static const int32_t path[2 * LINKS] = {0, 4, 4, 1, 1, 5, 5, 2, 2, 3, 3, 4};

/* The descent of the energy is personalised PageRank: z <- a h + (1 - a) S z. Where edges go one
 * way, S is the mean of both ways. */
TEST(smoothing_is_page_rank) {
    enum { STEPS = 4 };
    for (int way = 0; way < 3; way++) {
        bool both = way != 1, loops = way == 2;
        double A[ENDS][ENDS] = {0}, h[ENDS * 2], z[ENDS * 2], next[ENDS * 2], count[ENDS];
        lab l = lab_new("ref", 1);
        for (int e = 0; e < LINKS; e++) {
            A[path[2 * e]][path[2 * e + 1]] = 1;
            if (both) A[path[2 * e + 1]][path[2 * e]] = 1;
        }
        for (int i = 0; i < ENDS; i++) {
            A[i][i] = 1, count[i] = 0;
            for (int j = 0; j < ENDS; j++) count[i] += A[i][j];
        }
        basin_random_fill_normal_f64(h, 4, 1, 0, ENDS * 2);
        memcpy(z, h, sizeof z);
        for (int t = 0; t < STEPS; t++) {
            for (int i = 0; i < ENDS * 2; i++) next[i] = 0.3 * h[i];
            for (int i = 0; i < ENDS; i++)
                for (int j = 0; j < ENDS; j++)
                    for (int c = 0; c < 2; c++)
                        next[2 * i + c] += 0.7 * 0.5 * (A[i][j] + A[j][i]) * z[2 * j + c] /
                                           sqrt(count[i] * count[j]);
            memcpy(z, next, sizeof z);
        }
        int flags = (both ? BASIN_PAIRS_BOTH_WAYS : 0) | (loops ? BASIN_PAIRS_ADD_SELF : 0);
        basin_pattern pairs = lab_pairs(&l, "pairs", ENDS, path, LINKS, flags, 20);
        basin_smoothing how = {.steps = STEPS, .anchor = 0.3, .loops = loops};
        basin_expr out = basin_smooth(lab_input(&l, "h", BASIN_SHAPE(ENDS, 2), h), &pairs, &how);
        basin_tensor value = lab_value(&l, out);
        for (int i = 0; i < ENDS * 2; i++)
            assert_true(fabs(basin_tensor_at(&value, i) - z[i]) < 1e-12);
        basin_tensor_free(&value);
        lab_close(&l);
    }
}
