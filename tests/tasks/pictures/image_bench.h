/* For tests of training on pictures: settings of a tiny model, a run that stops where it is told.
 */
#ifndef TESTS_TASK_IMAGE_IMAGE_BENCH_H
#define TESTS_TASK_IMAGE_IMAGE_BENCH_H

#include "support/files.h"
#include "support/folder.h"
#include "tasks/pictures/image.h"

typedef struct bench {
    basin_settings *settings;
    basin_image_settings *s; /* the same */
    basin_image_source train, test;
    basin_image_data data;
    basin_training_options training;
    basin_image_data_result read;
    basin_watch watch;
    bool stop;
    int64_t stop_at;
    int skipped;
    char *out, *log, note[200];
} bench;

static inline void bench_show(void *context, const basin_progress_report *news) {
    bench *b = context;
    if (strcmp(news->what, "training") == 0 && news->done == b->stop_at) b->stop = true;
}

static inline bool bench_stop(void *context) { return ((bench *)context)->stop; }

static inline void bench_note(void *context, const char *line) {
    bench *b = context;
    b->skipped += strncmp(line, "skipped: ", 9) == 0;
    if (strstr(line, "learning rate")) snprintf(b->note, sizeof b->note, "%s", line);
}

/* NAME.safetensors and NAME.jsonl in the folder of `state`; 80 generated pictures, 16 held out. */
static inline void bench_open(bench *b, void **state, const char *name, const char *backend) {
    static const char *const shapes[] = {"shapes:96:3:16x16x1"};
    char file[40];
    *b = (bench){.stop_at = -1};
    assert_ok(basin_settings_new(&b->settings, "image", "fashion", &failure));
    b->s = b->settings->values;
    snprintf(file, sizeof file, "%s.safetensors", name);
    b->out = folder_path(state, file);
    snprintf(file, sizeof file, "%s.jsonl", name);
    b->log = folder_path(state, file);
    b->watch =
        (basin_watch){.show = bench_show, .note = bench_note, .stop = bench_stop, .context = b};
    b->train = (basin_image_source){.path = shapes, .paths = 1, .hold_out = 16};
    b->data = (basin_image_data){.train = &b->train, .threads = 2};
    b->read.size = sizeof b->read;
    b->training = (basin_training_options){
        .output = b->out, .log = b->log, .save_every = 1e9, .watch = &b->watch};
    assert_ok(basin_backend_open(&b->training.backend,
                                 &(basin_compute){.backend = backend, .threads = backend[1] == 'p'},
                                 &failure));
}

static inline void bench_close(bench *b) {
    basin_settings_free(b->settings);
    basin_backend_close(b->training.backend);
}

/* 5 steps an epoch, 4 epochs. */
static inline void bench_tiny(bench *b, void **state, const char *name) {
    bench_open(b, state, name, "cpu");
    basin_image_settings *s = b->s;
    s->size = 16, s->dim = 16, s->heads = 2, s->head_dim = 8, s->memories = 32, s->steps = 3;
    s->occlude = 6, s->keep = 1, s->batch = 16, s->epochs = 4, s->warmup = 1, s->rate = 5e-3;
    s->crop = "random", s->flip = true, s->jitter = 0.2, s->seed = 1;
}

/* Stops after step `stop_at`, goes on with `resume`. */
static inline basin_training_result bench_train(bench *b, int64_t stop_at, bool resume) {
    basin_training_result outcome = {.size = sizeof outcome};
    b->stop = false;
    b->stop_at = stop_at;
    b->training.resume = resume;
    assert_ok(
        basin_image_train(NULL, &outcome, &b->read, b->settings, &b->data, &b->training, &failure));
    return outcome;
}

static inline void bench_refused(bench *b, basin_status status, const char *text) {
    basin_training_result outcome = {.size = sizeof outcome};
    b->stop = false;
    assert_failure(
        basin_image_train(NULL, &outcome, &b->read, b->settings, &b->data, &b->training, &failure),
        status, text);
}

#endif
