/* The image task when memory is short: training, completing, a report. Each says so; a report is
 * never written with parts left out. */
#include "support/alloc_fail.h"
#include "tasks/pictures/image_bench.h"

enum { COUNT = 4, SIDE = 8 };

typedef struct scene {
    basin_picture picture[COUNT];
    basin_settings *settings;
    char *model, *page, *log;
} scene;

static int scene_open(void **state) {
    static scene s;
    void *folder;
    if (folder_new(&folder)) return -1;
    s = (scene){0};
    s.model = folder_path(&folder, "m.safetensors");
    s.page = folder_path(&folder, "page.html");
    s.log = folder_path(&folder, "m.jsonl");
    assert_ok(basin_settings_new(&s.settings, "image", "fashion", &failure));
    basin_image_settings *v = s.settings->values;
    v->size = SIDE, v->dim = 4, v->heads = 1, v->head_dim = 2, v->memories = 3, v->steps = 2;
    v->occlude = 2, v->keep = 0, v->batch = 2, v->epochs = 1, v->warmup = 0, v->average = 0.9;
    for (int i = 0; i < COUNT; i++) {
        float value[SIDE * SIDE];
        for (int k = 0; k < SIDE * SIDE; k++) value[k] = (float)((k * (i + 1)) % 9) / 9;
        assert_ok(basin_picture_from_floats(&s.picture[i], value, SIDE, SIDE, 1, &failure));
    }
    free(folder);
    *state = &s;
    return 0;
}

static int scene_close(void **state) {
    scene *s = *state;
    char *folder = s->model;
    *strrchr(folder, '/') = 0;
    void *copy = strdup(folder);
    basin_settings_free(s->settings);
    for (int i = 0; i < COUNT; i++) basin_picture_free(&s->picture[i]);
    return folder_remove(&copy);
}

static basin_status train(void *context) {
    scene *s = context;
    basin_backend *backend = NULL;
    basin_pictures *pictures = NULL;
    basin_image_model *model = NULL;
    basin_training_result outcome = {.size = sizeof outcome};
    unlink(s->model);
    basin_status status = basin_backend_open(&backend, &(basin_compute){.threads = 1}, NULL);
    if (!status) status = basin_pictures_from_memory(&pictures, s->picture, COUNT, NULL);
    basin_image_source source = {.pictures = pictures, .hold_out = 1};
    basin_image_data data = {.train = &source, .threads = 1};
    basin_training_options training = {.backend = backend, .log = s->log, .log_every = 1};
    if (!status)
        status = basin_image_train(&model, &outcome, NULL, s->settings, &data, &training, NULL);
    if (!status) status = basin_image_write(s->model, model, BASIN_F32, NULL);
    basin_image_close(model);
    basin_pictures_close(pictures);
    if (backend) basin_backend_close(backend);
    return status;
}

static basin_status complete(void *context) {
    scene *s = context;
    basin_backend *backend = NULL;
    basin_image_model *model = NULL;
    basin_image_complete_result done[COUNT] = {0};
    basin_image_complete_options how = {.rectangle = {1, 1, 4, 4}};
    basin_status status = basin_backend_open(&backend, &(basin_compute){.threads = 1}, NULL);
    if (!status) status = basin_image_open(&model, s->model, backend, NULL);
    if (!status) status = basin_image_complete(done, model, s->picture, COUNT, &how, NULL);
    for (int i = 0; i < COUNT; i++) basin_image_complete_result_free(&done[i]);
    basin_image_close(model);
    if (backend) basin_backend_close(backend);
    return status;
}

static basin_status report(void *context) {
    scene *s = context;
    basin_backend *backend = NULL;
    basin_pictures *pictures = NULL;
    basin_image_model *model = NULL;
    unlink(s->page);
    basin_status status = basin_backend_open(&backend, &(basin_compute){.threads = 1}, NULL);
    if (!status) status = basin_image_open(&model, s->model, backend, NULL);
    if (!status) status = basin_pictures_from_memory(&pictures, s->picture, COUNT, NULL);
    basin_image_source source = {.pictures = pictures};
    basin_image_report_options reporting = {
        .model_name = "m", .name = "pictures", .source = &source};
    if (!status) status = basin_image_report(s->page, NULL, model, &reporting, NULL);
    if (status && access(s->page, F_OK) == 0) status = BASIN_IO; /* no page, or a whole one */
    basin_image_close(model);
    basin_pictures_close(pictures);
    if (backend) basin_backend_close(backend);
    return status;
}

TEST_WITH(training, scene_open, scene_close) {
    assert_true(alloc_fail_sample(train, *state, 250) > 100);
}

TEST_WITH(completing, scene_open, scene_close) {
    assert_int_equal(train(*state), BASIN_OK);
    assert_true(alloc_fail_sample(complete, *state, 150) > 100);
}

TEST_WITH(reporting, scene_open, scene_close) {
    assert_int_equal(train(*state), BASIN_OK);
    assert_true(alloc_fail_sample(report, *state, 400) > 100);
}
