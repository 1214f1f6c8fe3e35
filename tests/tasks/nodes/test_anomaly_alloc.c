/* Detectors when memory is short: allocations of training, saving, going on, scoring whole and
 * streamed, and explaining fail one by one; an error each time, and nothing leaks. */
#include "support/alloc_fail.h"
#include "support/folder.h"
#include "tasks/common/digest.h"
#include "tasks/nodes/fraud.h"

enum { NODES = 24 };

typedef struct scene {
    basin_network *network;
    basin_nodes_settings settings;
    basin_backend *backend; /* of the model */
    basin_nodes_model *model;
    const char *path, *checkpoint, *saved;
    bool least;
    uint8_t part[NODES];
} scene;

static void scene_new(scene *s, void **state) {
    *s = (scene){.network = fraud_new(NODES, 3, 1, true), .settings = fraud_settings()};
    s->path = folder_path(state, "model.safetensors");
    s->checkpoint = folder_path(state, "checkpoint.safetensors");
    for (int i = 0; i < NODES; i++) {
        s->network->label[i] = i % 3 == 0;
        s->part[i] = i < 12 ? BASIN_SPLIT_TRAIN : BASIN_SPLIT_VAL;
    }
    s->settings.dim = 4, s->settings.heads = 1, s->settings.head_dim = 2, s->settings.memories = 3;
    s->settings.hidden = 0, s->settings.epochs = 1, s->settings.hops = 1;
}

/* Only the runs under test may leave nothing behind: the model they use is made before. */
static void scene_train(scene *s) {
    basin_training_options training = fraud_training();
    s->backend = training.backend;
    s->model = fraud_train(s->network, s->part, &s->settings, &training);
}

static void scene_free(scene *s) {
    basin_nodes_close(s->model);
    basin_network_close(s->network);
    basin_backend_close(s->backend);
}

static basin_status train_with(const scene *s, basin_training_options *training) {
    basin_nodes_data data = {.network = s->network, .part = s->part};
    basin_nodes_model *model = NULL;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_status status =
        basin_backend_open(&training->backend, &(basin_compute){.threads = 1}, NULL);
    if (!status)
        status = basin_nodes_train_with(&model, &outcome, &basin_anomaly_task, &s->settings, &data,
                                        training, false, NULL);
    basin_nodes_close(model);
    basin_backend_close(training->backend);
    return status;
}

static basin_status train(void *context) {
    const scene *s = context;
    basin_training_options training = {
        .output = s->path, .checkpoint = s->checkpoint, .restart = true, .save_every = 1e-9};
    return train_with(s, &training);
}

TEST(training) { /* sampling auto would take smaller batches where memory is short */
    BASIN_AT_EXIT(scene_free) scene s;
    scene_new(&s, state);
    s.settings.sampling = "full";
    assert_true(alloc_fail_sample(train, &s, 40) > 100);
}

TEST(training_on_samples) {
    BASIN_AT_EXIT(scene_free) scene s;
    scene_new(&s, state);
    s.settings.sampling = "neighbours", s.settings.fraction = 1;
    s.settings.scaling = "quantile";
    s.settings.batch = 8;
    assert_true(alloc_fail_sample(train, &s, 40) > 100);
}

static basin_status go_on(void *context) {
    const scene *s = context;
    basin_training_options training = {
        .checkpoint = s->checkpoint, .resume = true, .save_every = 1e-9};
    copy_file(s->checkpoint, s->saved);
    return train_with(s, &training);
}

/* From the checkpoint of a run that its watcher cut. */
TEST(going_on) {
    BASIN_AT_EXIT(scene_free) scene s;
    scene_new(&s, state);
    s.saved = folder_path(state, "saved.checkpoint");
    s.settings.epochs = 2;
    stopper stop = {0, 1};
    basin_watch watch = {.show = stop_later, .context = &stop, .stop = is_stopping};
    basin_training_options training = fraud_training();
    training.checkpoint = s.saved, training.watch = &watch;
    s.model = fraud_train(s.network, s.part, &s.settings, &training);
    s.backend = training.backend;
    assert_true(stop.stop);
    assert_true(alloc_fail_sample(go_on, &s, 40) > 200);
}

static basin_status score(void *context) {
    const scene *s = context;
    basin_nodes_predict_options how = {.stream = s->least};
    double probability[NODES];
    return basin_nodes_predict(probability, s->model, s->network, &how, NULL);
}

TEST(scoring) {
    BASIN_AT_EXIT(scene_free) scene s;
    scene_new(&s, state);
    scene_train(&s);
    assert_true(alloc_fail_sample(score, &s, 40) > 50);
    s.least = true; /* streamed */
    assert_true(alloc_fail_sample(score, &s, 40) > 50);
}

static basin_status read_file(void *context) {
    const scene *s = context;
    basin_nodes_model *model = NULL;
    basin_status status = basin_nodes_open(&model, "anomaly", s->path, s->backend, NULL);
    basin_nodes_close(model);
    return status;
}

TEST(reading) {
    BASIN_AT_EXIT(scene_free) scene s;
    scene_new(&s, state);
    s.settings.scaling = "quantile";
    scene_train(&s);
    assert_ok(basin_nodes_write(s.path, s.model, &failure));
    assert_true(alloc_fail_sweep(read_file, &s) > 20);
}

/* An Energy Transformer over rows, of a file of an earlier version. */
static basin_status use_rows(void *context) {
    const float x[2 * 4] = {0, 1, 2, 3, 1, 2, 0, 1};
    float value[2 * 5];
    double logit[2];
    basin_trees *trees;
    basin_status status = basin_trees_load(&trees, context, "trees0.", NULL);
    if (!status) status = basin_trees_predict(logit, trees, x, 2, 4, NULL);
    if (!status) status = basin_trees_shapley(value, trees, x, 2, 4, NULL);
    basin_trees_free(trees);
    return status;
}

TEST(networks_of_rows) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    assert_ok(basin_model_read(&bundle, BASIN_SOURCE "/tests/files/rows.safetensors", &failure));
    assert_true(alloc_fail_sample(use_rows, bundle, 40) > 100);
}

static basin_status explain(void *context) {
    const scene *s = context;
    basin_nodes_explain_options how = {.stream = s->least};
    basin_nodes_explanation *explanation = NULL;
    basin_status status =
        basin_nodes_explain(&explanation, s->model, s->network, &(int64_t){2}, 1, &how, NULL);
    basin_nodes_explanation_free(explanation);
    return status;
}

TEST(explaining) {
    BASIN_AT_EXIT(scene_free) scene s;
    scene_new(&s, state);
    scene_train(&s);
    assert_true(alloc_fail_sample(explain, &s, 40) > 50);
    s.least = true; /* the node's neighbourhood alone */
    assert_true(alloc_fail_sample(explain, &s, 40) > 50);
}

int main(void) { return tests_run(folder_new, folder_remove); }
