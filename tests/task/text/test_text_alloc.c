/* Models of text when memory is short: training, scoring and writing say so, and leak nothing. */
#include "support/alloc_fail.h"
#include "task/text/text_bench.h"

typedef struct scene {
    basin_settings *settings;
    char model[PATH_TEXT];
} scene;

static int scene_open(void **state) {
    static scene s;
    void *folder;
    if (folder_new(&folder)) return -1;
    s = (scene){0};
    folder_path(s.model, &folder, "m.safetensors");
    assert_ok(basin_settings_new(&s.settings, "text", "default", &failure));
    basin_text_settings *v = s.settings->values;
    v->context = 5, v->dim = 4, v->heads = 1, v->steps = 2, v->batch = 2, v->epochs = 1;
    v->epoch_steps = 2, v->dropout = 0.1;
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
    return folder_remove(&copy);
}

static basin_status train(void *context) {
    scene *s = context;
    basin_backend *backend = NULL;
    basin_text_model *model = NULL;
    basin_outcome outcome;
    unlink(s->model);
    basin_status status = basin_backend_open(&backend, &(basin_compute){.threads = 1}, NULL);
    basin_text_data data = {.train = text_of(VERSE), .hold_out = 0.2};
    basin_training training = {.backend = backend};
    if (!status) status = basin_text_train(&model, &outcome, s->settings, &data, &training, NULL);
    if (!status) status = basin_text_write(s->model, model, NULL);
    basin_text_close(model);
    if (backend) basin_backend_close(backend);
    return status;
}

static basin_status use(void *context) {
    scene *s = context;
    basin_backend *backend = NULL;
    basin_text_model *model = NULL;
    basin_text_scores scores = {0};
    basin_text verse = text_of(VERSE), cat = text_of("cat");
    basin_text_scoring scoring = {0};
    basin_text_generation wish = {.tokens = 2, .temperature = 1, .energies = true};
    basin_status status = basin_backend_open(&backend, &(basin_compute){.threads = 1}, NULL);
    if (!status) status = basin_text_open(&model, s->model, backend, NULL);
    if (!status) status = basin_text_score(&scores, model, &verse, &scoring, NULL);
    if (!status) status = basin_text_generate(NULL, model, &cat, &wish, NULL);
    basin_text_scores_free(&scores);
    basin_text_close(model);
    if (backend) basin_backend_close(backend);
    return status;
}

TEST_WITH(training, scene_open, scene_close) {
    assert_true(alloc_fail_sample(train, *state, 250) > 100);
}

TEST_WITH(using, scene_open, scene_close) {
    assert_int_equal(train(*state), BASIN_OK);
    assert_true(alloc_fail_sample(use, *state, 250) > 100);
}
