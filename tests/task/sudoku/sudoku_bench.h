/* For tests of the Sudoku task: few boards with many givens, settings of a tiny model, a run that
 * stops where it is told. */
#ifndef TESTS_TASK_SUDOKU_SUDOKU_BENCH_H
#define TESTS_TASK_SUDOKU_SUDOKU_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/folder.h"
#include "task/sudoku/sudoku.h"

typedef struct bench {
    basin_settings *settings;
    basin_sudoku_settings *s; /* the same */
    basin_sudoku_boards boards;
    basin_sudoku_data data;
    basin_training training;
    basin_watch watch;
    volatile sig_atomic_t stop;
    int64_t stop_at;
    char out[PATH_TEXT];
} bench;

static inline void must(basin_status status, const basin_error *error) {
    if (status) fail_msg("%s", error->text);
}

static inline void bench_show(void *context, const basin_news *news) {
    bench *b = context;
    if (strcmp(news->what, "training") == 0 && news->done == b->stop_at) b->stop = 1;
}

/* `count` boards with 56 to 60 givens; NAME.safetensors in the folder of `state`. */
static inline void bench_open(bench *b, void **state, const char *name, int64_t count) {
    basin_error error = {0};
    char file[40];
    *b = (bench){.stop_at = -1};
    basin_sudoku_making making = {
        .size = sizeof making, .count = count, .least = 56, .most = 60, .seed = 5};
    must(basin_sudoku_generate(&b->boards, &making, &error), &error);
    must(basin_settings_new(&b->settings, "sudoku", "cells", &error), &error);
    b->s = b->settings->values;
    b->s->dim = 16, b->s->heads = 2, b->s->head_dim = 8, b->s->memories = 32, b->s->steps = 5;
    b->s->alpha = 0.3, b->s->repel = 0, b->s->reveal = 0;
    b->s->batch = 2, b->s->epochs = 4, b->s->warmup = 0, b->s->rate = 1e-2, b->s->average = 0.5;
    snprintf(file, sizeof file, "%s.safetensors", name);
    folder_path(b->out, state, file);
    b->watch = (basin_watch){.show = bench_show, .context = b, .stop = &b->stop};
    b->data =
        (basin_sudoku_data){.size = sizeof b->data, .train = &b->boards, .validation = &b->boards};
    b->training = (basin_training){
        .size = sizeof b->training, .output = b->out, .save_every = 1e9, .watch = &b->watch};
    must(basin_backend_open(&b->training.backend, &(basin_compute){.threads = 1}, &error), &error);
}

static inline void bench_candidates(bench *b) {
    b->s->tokens = "candidates", b->s->attention = b->s->hopfield = false;
    b->s->house_memories = 32, b->s->house_members = true;
}

static inline void bench_close(bench *b) {
    basin_sudoku_boards_free(&b->boards);
    basin_settings_free(b->settings);
    basin_backend_close(b->training.backend);
}

static inline basin_outcome bench_train(bench *b, int64_t stop_at, bool resume) {
    basin_error error = {0};
    basin_outcome outcome;
    b->stop = 0;
    b->stop_at = stop_at;
    b->training.resume = resume;
    must(basin_sudoku_train(NULL, &outcome, b->settings, &b->data, &b->training, &error), &error);
    return outcome;
}

/* A model that was trained in memory. */
static inline basin_sudoku_model *bench_model(bench *b) {
    basin_error error = {0};
    basin_outcome outcome;
    basin_sudoku_model *model;
    b->training.output = NULL;
    must(basin_sudoku_train(&model, &outcome, b->settings, &b->data, &b->training, &error), &error);
    return model;
}

#endif
