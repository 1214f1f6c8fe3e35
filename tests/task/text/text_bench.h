/* For tests of models of text: a short text, settings of a tiny model, a run that stops where it is
 * told. */
#ifndef TESTS_TASK_TEXT_TEXT_BENCH_H
#define TESTS_TASK_TEXT_TEXT_BENCH_H

#include "io/folder.h"
#include "support/files.h"
#include "task/text/text.h"

static const char VERSE[] = "the cat sat on the mat; the rat sat on the hat.\n"
                            "the cat ate the rat; the mat ate the hat.\n"
                            "a rat on a mat, a cat in a hat: that is that.\n";

/* Borrows. */
static inline basin_text text_of(const char *bytes) {
    return (basin_text){.bytes = (char *)bytes, .length = strlen(bytes)};
}

typedef struct bench {
    basin_settings *settings;
    basin_text_settings *s; /* the same */
    basin_text_data data;
    basin_training training;
    basin_watch watch;
    volatile sig_atomic_t stop;
    int64_t stop_at;
    char text[8 * sizeof VERSE];
    char out[PATH_TEXT], log[PATH_TEXT], note[300];
} bench;

static inline void bench_show(void *context, const basin_news *news) {
    bench *b = context;
    if (strcmp(news->what, "training") == 0 && news->done == b->stop_at) b->stop = 1;
}

static inline void bench_note(void *context, const char *line) {
    bench *b = context;
    if (strncmp(line, "epoch", 5) != 0) snprintf(b->note, sizeof b->note, "%s", line);
}

/* NAME.safetensors and NAME.jsonl in the folder of `state`; 4 steps an epoch, 3 epochs. */
static inline void bench_open(bench *b, void **state, const char *name, const char *backend) {
    char file[80];
    *b = (bench){.stop_at = -1};
    for (int i = 0; i < 7; i++) strcat(b->text, VERSE);
    assert_ok(basin_settings_new(&b->settings, "text", "default", &failure));
    basin_text_settings *s = b->s = b->settings->values;
    s->context = 12, s->dim = 16, s->heads = 2, s->steps = 2, s->batch = 6, s->epochs = 3;
    s->epoch_steps = 4, s->rate = 1e-2, s->dropout = 0.1, s->seed = 5;
    snprintf(file, sizeof file, "%s.safetensors", name);
    folder_path(b->out, state, file);
    snprintf(file, sizeof file, "%s.jsonl", name);
    folder_path(b->log, state, file);
    b->watch = (basin_watch){bench_show, bench_note, b, &b->stop};
    b->data = (basin_text_data){.train = text_of(b->text), .hold_out = 0.2};
    b->training =
        (basin_training){.output = b->out, .log = b->log, .save_every = 1e9, .watch = &b->watch};
    assert_ok(basin_backend_open(&b->training.backend,
                                 &(basin_compute){.backend = backend, .threads = backend[0] == 'c'},
                                 &failure));
}

static inline void bench_close(bench *b) {
    basin_settings_free(b->settings);
    basin_backend_close(b->training.backend);
}

/* Stops after step `stop_at`, goes on with `resume`. */
static inline basin_outcome bench_train(bench *b, int64_t stop_at, bool resume) {
    basin_outcome outcome;
    b->stop = 0;
    b->stop_at = stop_at;
    b->training.resume = resume;
    assert_ok(basin_text_train(NULL, &outcome, b->settings, &b->data, &b->training, &failure));
    return outcome;
}

/* A model in memory, after all steps. */
static inline basin_text_model *bench_model(bench *b) {
    basin_outcome outcome;
    basin_text_model *model;
    b->training.output = b->training.log = NULL;
    assert_ok(basin_text_train(&model, &outcome, b->settings, &b->data, &b->training, &failure));
    return model;
}

static inline void bench_refused(bench *b, basin_status status, const char *text) {
    basin_error error = {0};
    basin_outcome outcome;
    b->stop = 0;
    assert_int_equal(basin_text_train(NULL, &outcome, b->settings, &b->data, &b->training, &error),
                     status);
    if (!strstr(error.text, text)) fail_msg("\"%s\" is not in: %s", text, error.text);
}

#endif
