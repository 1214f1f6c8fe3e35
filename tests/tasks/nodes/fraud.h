/* A small network with a planted signal for tests of anomaly detection: whether a node is anomalous
 * shows in the features of its neighbours more than in its own. */
#ifndef TESTS_TASK_FRAUD_H
#define TESTS_TASK_FRAUD_H

#include "basin/random.h"
#include "support/test.h"
#include "support/xgboost.h"
#include "tasks/nodes/nodes.h"

static inline double coin(uint64_t seed, uint64_t stream, int64_t i) {
    return basin_random_uniform_at(seed, stream, (uint64_t)i);
}

static inline void fraud_edges(basin_network *network, const char *name, uint64_t seed, int degree,
                               bool directed) {
    int64_t N = network->nodes, count = N * degree;
    int32_t *edge = calloc((size_t)(2 * count), sizeof *edge);
    for (int64_t e = 0; e < count; e++) {
        int32_t a = (int32_t)(e / degree), b = 0;
        for (int try = 0; try < 20; try++) { /* mostly of the same class */
            b = (int32_t)(coin(seed, 10, 20 * e + try) * (double)N);
            if (network->label[a] == network->label[b] || coin(seed, 11, 20 * e + try) < 0.05)
                break;
        }
        edge[2 * e] = a;
        edge[2 * e + 1] = b;
    }
    basin_edges edges = {edge, edge + 1, BASIN_I32, 2, count};
    basin_network_options options = {.directed = directed};
    assert_ok(basin_network_add_relation(network, name, &edges, &options, &failure));
    free(edge);
}

enum { FRAUD_FEATURES = 6 };

static inline basin_network *fraud_new(int64_t nodes, uint64_t seed, int relations, bool directed) {
    basin_network *network;
    assert_ok(basin_network_new(&network, "made", nodes, &failure));
    float *x = calloc((size_t)(nodes * FRAUD_FEATURES), sizeof *x);
    int32_t *y = calloc((size_t)nodes, sizeof *y);
    for (int64_t i = 0; i < nodes; i++) {
        y[i] = coin(seed, 1, i) < 0.15;
        for (int f = 0; f < FRAUD_FEATURES; f++)
            x[i * FRAUD_FEATURES + f] =
                (float)basin_random_normal_at(seed, 2, (uint64_t)(i * FRAUD_FEATURES + f)) +
                0.8f * (float)(y[i] && f < 2);
    }
    basin_tensor tx = basin_tensor_borrow(x, BASIN_F32, BASIN_SHAPE(nodes, FRAUD_FEATURES));
    basin_tensor ty = basin_tensor_borrow(y, BASIN_I32, BASIN_SHAPE(nodes));
    assert_ok(basin_network_set_features(network, &tx, NULL, &failure));
    assert_ok(basin_network_set_label_tensor(network, &ty, NULL, &failure));
    static const char *const name[] = {"homo", "first", "second"};
    for (int r = 0; r < relations; r++)
        fraud_edges(network, name[relations > 1 ? r + 1 : 0], seed + 7 * (uint64_t)r, 4, directed);
    if (relations > 1) assert_ok(basin_network_add_union(network, &failure));
    free(x);
    free(y);
    return network;
}

/* Small settings that train in a moment. */
static inline basin_nodes_settings fraud_settings(void) {
    basin_nodes_settings r;
    assert_int_equal(basin_settings_preset(&r, &basin_anomaly_task, "default", NULL), BASIN_OK);
    r.scaling = "standard", r.hops = 2, r.evaluate = 5;
    r.dim = 16, r.heads = 2, r.head_dim = 8, r.memories = 16, r.hidden = 16, r.blocks = 1;
    r.trees = 0, r.labels = false, r.teacher = false, r.calibrate = "none";
    r.epochs = 60, r.rate = 0.01, r.patience = 0, r.members = 1;
    return r;
}

static inline basin_training_options fraud_training(void) {
    basin_training_options training = {0};
    assert_ok(basin_backend_open(&training.backend, &(basin_compute){.threads = 1}, &failure));
    return training;
}

/* For BASIN_AT_EXIT: released where the test ends. */
static inline void free_training(basin_training_options *training) {
    basin_backend_close(training->backend);
}
static inline void free_model(basin_nodes_model **model) { basin_nodes_close(*model); }

/* Trains on the nodes of `part`. */
static inline basin_status fraud_try(basin_nodes_model **model, basin_training_result *outcome,
                                     const basin_network *network, const uint8_t *part,
                                     const basin_nodes_settings *settings,
                                     const basin_training_options *training, basin_error *error) {
    basin_nodes_data data = {.network = network, .part = part};
    return basin_nodes_train_with(model, outcome, &basin_anomaly_task, settings, &data, training,
                                  false, error);
}

static inline basin_nodes_model *fraud_train(const basin_network *network, const uint8_t *part,
                                             const basin_nodes_settings *settings,
                                             const basin_training_options *training) {
    basin_nodes_model *model;
    basin_training_result outcome = {.size = sizeof outcome};
    assert_ok(fraud_try(&model, &outcome, network, part, settings, training, &failure));
    return model;
}

/* A stratified split; free it. */
static inline uint8_t *fraud_split(const basin_network *network) {
    uint8_t *part = calloc((size_t)network->nodes, 1);
    assert_ok(basin_split_stratified(part, network, 0.4, 1, 0, &failure));
    return part;
}

/* A network to train on, which nodes of it, and how; a model of it or NULL. */
typedef struct fraud_scene {
    basin_network *network;
    uint8_t *part;
    basin_nodes_settings settings;
    basin_training_options training;
    basin_nodes_model *model;
    bool least;
} fraud_scene;

/* Takes the network over. */
static inline fraud_scene fraud_scene_of(basin_network *network) {
    return (fraud_scene){.network = network,
                         .part = fraud_split(network),
                         .settings = fraud_settings(),
                         .training = fraud_training()};
}

static inline void fraud_scene_free(fraud_scene *s) {
    basin_nodes_close(s->model);
    basin_network_close(s->network);
    basin_backend_close(s->training.backend);
    free(s->part);
}

/* A watcher who stops after some steps. */
typedef struct stopper {
    bool stop;
    int64_t at;
} stopper;

static inline void stop_later(void *context, const basin_progress_report *news) {
    stopper *s = context;
    if (news->done >= s->at) s->stop = true;
}

static inline bool is_stopping(void *context) { return ((stopper *)context)->stop; }

static inline void assert_same_members(const basin_nodes_model *a, const basin_nodes_model *b) {
    assert_int_equal(a->members, b->members);
    for (int64_t m = 0; m < a->members; m++)
        for (size_t i = 0; i < basin_bundle_count(a->member[m]); i++) {
            const basin_tensor *x = basin_bundle_at(a->member[m], i);
            const basin_tensor *y = basin_bundle_at(b->member[m], i);
            assert_memory_equal(x->data, y->data, basin_tensor_bytes(x));
        }
}

static inline void copy_file(const char *to, const char *from) {
    char block[4096];
    size_t count;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    if (!in || !out) fail_msg("cannot copy %s to %s", from, to);
    while ((count = fread(block, 1, sizeof block, in)) > 0)
        if (fwrite(block, 1, count, out) != count) fail_msg("cannot write %s", to);
    fclose(in);
    fclose(out);
}

#endif
