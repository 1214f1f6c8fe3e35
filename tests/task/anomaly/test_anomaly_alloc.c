/* Detectors when memory is short: allocations of training, saving, going on, scoring whole and
 * streamed, and explaining fail one by one; an error each time, and nothing leaks. */
#include "io/folder.h"
#include "support/alloc_fail.h"
#include "task/anomaly/explain.h"
#include "task/anomaly/file.h"
#include "task/anomaly/fraud.h"

enum { NODES = 24 };

typedef struct scene {
    basin_network *network;
    basin_anomaly_settings settings;
    basin_anomaly_detector *detector;
    const char *path, *checkpoint;
    bool least;
    uint8_t part[NODES];
} scene;

static void scene_new(scene *s, char path[2][PATH_TEXT], void **state) {
    *s = (scene){.network = fraud_new(NODES, 3, 1, true), .settings = fraud_settings()};
    s->path = folder_path(path[0], state, "model.safetensors");
    s->checkpoint = folder_path(path[1], state, "checkpoint.safetensors");
    for (int i = 0; i < NODES; i++) {
        s->network->label[i] = i % 3 == 0;
        s->part[i] = i < 12 ? BASIN_PART_TRAIN : BASIN_PART_VAL;
    }
    s->settings.dim = 4, s->settings.heads = 1, s->settings.head_dim = 2, s->settings.memories = 3;
    s->settings.hidden = 0, s->settings.epochs = 1, s->settings.hops = 1;
}

/* Only the runs under test may leave nothing behind: the detector they use is made before. */
static void scene_train(scene *s) {
    basin_anomaly_work work = fraud_work();
    basin_error error;
    must(basin_anomaly_fit(&s->detector, s->network, s->part, &s->settings, &work, &error), &error);
    basin_backend_close(work.backend);
}

static void scene_free(scene *s) {
    basin_anomaly_free(s->detector);
    basin_network_free(s->network);
}

static basin_status open_work(basin_anomaly_work *work, const scene *s) {
    *work = (basin_anomaly_work){.least = s->least};
    return basin_backend_open(&work->backend, "cpu", 1, NULL);
}

static basin_status train(void *context) {
    const scene *s = context;
    basin_anomaly_work work;
    basin_anomaly_detector *detector = NULL;
    basin_status status = open_work(&work, s);
    work.checkpoint = s->checkpoint;
    if (!status)
        status = basin_anomaly_fit(&detector, s->network, s->part, &s->settings, &work, NULL);
    if (!status) status = basin_anomaly_write(s->path, detector, NULL);
    basin_anomaly_free(detector);
    if (work.backend) basin_backend_close(work.backend);
    return status;
}

static void training(void **state) {
    char path[2][PATH_TEXT];
    scene s;
    scene_new(&s, path, state);
    assert_true(alloc_fail_sample(train, &s, 40) > 100);
    scene_free(&s);
}

static void training_on_samples(void **state) {
    char path[2][PATH_TEXT];
    scene s;
    scene_new(&s, path, state);
    s.settings.sampling = "neighbours", s.settings.fraction = 1,
    s.settings.scaling = "both+quantile+bins";
    s.settings.batch = 8, s.settings.degree_power = 0.5;
    assert_true(alloc_fail_sample(train, &s, 40) > 100);
    scene_free(&s);
}

static basin_status go_on(void *context) {
    const scene *s = context;
    basin_anomaly_work work;
    basin_anomaly_detector *detector = NULL;
    basin_status status = open_work(&work, s);
    work.checkpoint = s->checkpoint, work.resume = true, work.save_every = 1e9;
    if (!status)
        status = basin_anomaly_fit(&detector, s->network, s->part, &s->settings, &work, NULL);
    basin_anomaly_free(detector);
    if (work.backend) basin_backend_close(work.backend);
    return status;
}

/* From the checkpoint of a run that its watcher cut. */
static void going_on(void **state) {
    char path[2][PATH_TEXT];
    scene s;
    scene_new(&s, path, state);
    s.settings.epochs = 2;
    volatile sig_atomic_t stop = 1;
    basin_watch watch = {.stop = &stop};
    basin_anomaly_work work = fraud_work();
    basin_error error;
    work.checkpoint = s.checkpoint, work.watch = &watch;
    must(basin_anomaly_fit(&s.detector, s.network, s.part, &s.settings, &work, &error), &error);
    assert_true(s.detector->stopped);
    assert_true(alloc_fail_sample(go_on, &s, 40) > 200);
    basin_backend_close(work.backend);
    scene_free(&s);
}

static basin_status score(void *context) {
    const scene *s = context;
    basin_anomaly_work work;
    double probability[NODES];
    basin_status status = open_work(&work, s);
    if (!status) status = basin_anomaly_score(probability, s->detector, s->network, &work, NULL);
    if (work.backend) basin_backend_close(work.backend);
    return status;
}

static void scoring(void **state) {
    char path[2][PATH_TEXT];
    scene s;
    scene_new(&s, path, state);
    scene_train(&s);
    assert_true(alloc_fail_sample(score, &s, 40) > 50);
    s.least = true; /* streamed */
    assert_true(alloc_fail_sample(score, &s, 40) > 50);
    scene_free(&s);
}

static basin_status read_file(void *context) {
    const scene *s = context;
    basin_anomaly_detector *detector = NULL;
    basin_status status = basin_anomaly_read(&detector, s->path, NULL);
    basin_anomaly_free(detector);
    return status;
}

static void reading(void **state) {
    char path[2][PATH_TEXT];
    scene s;
    basin_error error;
    scene_new(&s, path, state);
    s.settings.scaling = "both";
    scene_train(&s);
    must(basin_anomaly_write(s.path, s.detector, &error), &error);
    assert_true(alloc_fail_sweep(read_file, &s) > 20);
    scene_free(&s);
}

static basin_status explain(void *context) {
    const scene *s = context;
    basin_anomaly_work work;
    basin_explanation explanation = {0};
    basin_status status = open_work(&work, s);
    if (!status)
        status = basin_anomaly_explain(&explanation, s->detector, s->network, 2, &work, NULL);
    basin_explanation_free(&explanation);
    if (work.backend) basin_backend_close(work.backend);
    return status;
}

static void explaining(void **state) {
    char path[2][PATH_TEXT];
    scene s;
    scene_new(&s, path, state);
    scene_train(&s);
    assert_true(alloc_fail_sample(explain, &s, 40) > 50);
    s.least = true; /* the node's neighbourhood alone */
    assert_true(alloc_fail_sample(explain, &s, 40) > 50);
    scene_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training), cmocka_unit_test(training_on_samples),
        cmocka_unit_test(going_on), cmocka_unit_test(scoring),
        cmocka_unit_test(reading),  cmocka_unit_test(explaining),
    };
    return cmocka_run_group_tests(tests, folder_new, folder_remove);
}
