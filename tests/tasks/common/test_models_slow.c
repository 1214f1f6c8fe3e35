/* The models at sizes where every kernel cuts its work into blocks: the loss and all gradients of
 * cpu, with one thread and with three, against ref. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/lab.h"
#include "tasks/nodes/anomaly.h"
#include "tasks/pictures/net.h"

typedef basin_expr build(lab *l);

static double *numbers(int64_t count, uint64_t stream, double size) {
    double *number = malloc((size_t)count * sizeof *number);
    assert_non_null(number);
    basin_random_fill_normal_f64(number, 31, stream, 0, (size_t)count);
    for (int64_t i = 0; i < count; i++) number[i] *= size;
    return number;
}

static basin_expr input(lab *l, const char *name, basin_shape shape, uint64_t stream) {
    double *number = numbers(basin_shape_count(shape), stream, 1);
    basin_expr made = lab_input(l, name, shape, number);
    free(number);
    return made;
}

/* Ones and zeros, about one in `of` a one. */
static basin_expr flags(lab *l, const char *name, basin_shape shape, uint64_t stream, uint64_t of) {
    int64_t count = basin_shape_count(shape);
    double *number = numbers(count, stream, 1);
    basin_random r = basin_random_start(32, stream, 0);
    for (int64_t i = 0; i < count; i++) number[i] = basin_random_below(&r, of) == 0;
    basin_expr made = lab_input(l, name, shape, number);
    free(number);
    return made;
}

static const basin_block_config block = {
    .dim = 112, .heads = 3, .head_dim = 40, .memories = 330, .learn_beta = true};
static const basin_descent_spec descent = {.steps = 3, .alpha = 0.1, .recompute = true};

static basin_expr image(lab *l) {
    basin_image_net model;
    basin_image_net_config config = {
        .tokens = 99, .patch = 60, .block = block, .descent = descent, .cls = true};
    basin_image_net_declare(&model, &l->params, &config);
    basin_expr patches = input(l, "patches", BASIN_SHAPE(3, 99, 60), 1);
    basin_expr mask = flags(l, "replaced", BASIN_SHAPE(3, 99), 2, 2);
    basin_expr output = basin_image_net_forward(&model, patches, mask, NULL);
    return basin_image_net_loss(output, patches, mask);
}

/* Random edges, a few nodes with very many of them, some with none. */
static basin_pattern random_pairs(lab *l, const char *name, int64_t tokens, int64_t count) {
    int32_t *edge = malloc((size_t)count * 2 * sizeof *edge);
    basin_random r = basin_random_start(33, 1, 0);
    assert_non_null(edge);
    for (int64_t i = 0; i < 2 * count; i++) {
        bool hub = i % 2 == 0 && i < count / 3;
        edge[i] = (int32_t)basin_random_below(&r, hub ? 3 : (uint64_t)(tokens - tokens / 50));
    }
    basin_pattern p = lab_pairs(l, name, tokens, edge, count,
                                BASIN_PAIRS_BOTH_WAYS | BASIN_PAIRS_DROP_SELF, 2 * count + 11);
    free(edge);
    return p;
}

static basin_expr anomaly(lab *l) {
    enum { NODES = 1500, EDGES = 9000 };
    basin_anomaly model;
    basin_anomaly_config config = {.nodes = NODES,
                                   .features = 25,
                                   .block = block,
                                   .descent = descent,
                                   .position = BASIN_POSITION_LEARNED,
                                   .hidden = 70};
    basin_anomaly_declare(&model, &l->params, &config);
    basin_expr features = input(l, "features", BASIN_SHAPE(NODES, 25), 3);
    basin_expr label = flags(l, "label", BASIN_SHAPE(NODES), 4, 10);
    basin_expr weight = flags(l, "weight", BASIN_SHAPE(NODES), 5, 2);
    basin_pattern pairs = random_pairs(l, "pairs", NODES, EDGES);
    return basin_weighted_cross_entropy(
        basin_anomaly_logits(&model,
                             &(basin_anomaly_inputs){.features = features, .neighbours = &pairs}),
        label, weight);
}

/* One graph after another of 30 nodes each; the edges may join any two tokens, which the model does
 * not mind. */
static basin_expr graphs(lab *l) {
    enum { GRAPHS = 40, EACH = 30, NODES = GRAPHS * EACH, TOKENS = NODES + GRAPHS, EDGES = 6000 };
    basin_graph_net model;
    int32_t source[TOKENS], before[TOKENS], after[TOKENS], first[GRAPHS];
    basin_graph_net_config config = {.features = 9,
                                     .edge_features = 3,
                                     .positions = 15,
                                     .outputs = 10,
                                     .blocks = 2,
                                     .block = block,
                                     .descent = descent};
    config.block.mix = true;
    basin_graph_net_declare(&model, &l->params, &config);
    for (int t = 0; t < TOKENS; t++) {
        int place = t % (EACH + 1);
        source[t] = place ? t - t / (EACH + 1) - 1 : -1;
        before[t] = place ? t - 1 : -1;
        after[t] = place < EACH ? t + 1 : -1;
        if (!place) first[t / (EACH + 1)] = t;
    }
    basin_graph_net_batch batch = {.nodes = input(l, "nodes", BASIN_SHAPE(NODES, 9), 6),
                                   .positions = input(l, "positions", BASIN_SHAPE(TOKENS, 15), 7),
                                   .source = lab_index(l, "source", source, TOKENS),
                                   .before = lab_index(l, "before", before, TOKENS),
                                   .after = lab_index(l, "after", after, TOKENS),
                                   .first = lab_index(l, "first", first, GRAPHS),
                                   .pattern = random_pairs(l, "pairs", TOKENS, EDGES)};
    int64_t pairs = basin_expr_shape(batch.pattern.key).dim[0];
    batch.edge_features = input(l, "edge_features", BASIN_SHAPE(pairs, 3), 8);
    basin_expr target = flags(l, "target", BASIN_SHAPE(GRAPHS, 10), 9, 10);
    return basin_cross_entropy(basin_graph_net_forward(&model, &batch), target);
}

enum { MOST = 40 };

/* The loss and all gradients. */
static int compute(basin_tensor *value, char name[MOST][64], build *make, const char *backend,
                   int threads) {
    lab l = lab_new(backend, threads);
    basin_expr output[MOST], state[MOST];
    output[0] = make(&l);
    int count = (int)l.params.count;
    lab_fill(&l, 34, 0.12);
    for (int i = 0; i < count; i++) {
        state[i] = l.params.param[i].state;
        snprintf(name[i + 1], 64, "gradient of %s", basin_expr_name(state[i]));
    }
    snprintf(name[0], 64, "loss");
    basin_vjp(output + 1, output[0], NULL, state, count);
    basin_plan *plan = lab_plan(&l, output, count + 1);
    lab_run(plan);
    for (int i = 0; i <= count; i++) value[i] = lab_read(plan, output[i]);
    basin_plan_free(plan);
    lab_close(&l);
    return count + 1;
}

static void compare(build *make, double tolerance) {
    static char name[MOST][64];
    basin_tensor exact[MOST], fast[MOST], team[MOST];
    double worst = 0;
    int count = compute(exact, name, make, "ref", 1), at = 0;
    compute(fast, name, make, "cpu", 1);
    compute(team, name, make, "cpu", 3);
    for (int i = 0; i < count; i++) {
        lab_assert_near(&fast[i], &exact[i], tolerance, name[i]);
        lab_assert_near(&team[i], &fast[i], 0, name[i]);
        double distance = lab_distance(&fast[i], &exact[i]);
        if (distance > worst) worst = distance, at = i;
        basin_tensor_free(&exact[i]);
        basin_tensor_free(&fast[i]);
        basin_tensor_free(&team[i]);
    }
    print_message("worst: %s, %.2g\n", name[at], worst);
}

TEST(images) { compare(image, 1e-4); }
TEST(anomalies) { compare(anomaly, 1e-4); }
TEST(graph_batches) { compare(graphs, 1e-4); }
