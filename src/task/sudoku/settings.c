/* Settings of the Sudoku task: the table of their names, the presets, what is refused. */
#include <string.h>

#include "task/sudoku/sudoku.h"

#define BASIN_SETTINGS_TYPE basin_sudoku_settings
static const basin_setting table[] = {
    BASIN_SUDOKU_MODEL_SETTINGS(BASIN_SETTING_ENTRY) BASIN_SUDOKU_TRAINING_SETTINGS(
        BASIN_SETTING_ENTRY) BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

/* Candidates as tokens, small enough for a processor; docs/lab/2026-11-16-sudoku.md. */
static const basin_sudoku_settings usual = {
    .arch = "et",
    .tokens = "candidates",
    .pairs = "houses",
    .house_memories = 48,
    .house_members = true,
    .inject = true,
    .leak = true,
    .dim = 24,
    .heads = 4,
    .head_dim = 16,
    .memories = 256,
    .steps = 12,
    .alpha = 0.5,
    .hopfield_kind = "relu",
    .hopfield_power = 3,
    .positive_gamma = true,
    .augment = true,
    .average = 0.99,
    .epochs = 5,
    .warmup = 1,
    .batch = 16,
    .rate = 3e-3,
    .rate_first = 0,
    .rate_last = 1e-4,
    .decay = 0.01,
    .beta2 = 0.99,
    .clip = 1,
};

/* For a GPU: as trained for docs/sudoku.md. */
static basin_sudoku_settings large(void) {
    basin_sudoku_settings s = usual;
    s.dim = 32;
    s.house_memories = 64;
    s.steps = 16;
    s.ahead = 16;
    s.batch = 64;
    s.average = 0.995;
    s.epochs = 22;
    s.rate_last = 5e-5;
    return s;
}

/* Cells as tokens, which attend to those of their houses; half of the heads push (the same page has
 * what that is worth). For a GPU. */
static basin_sudoku_settings cells(void) {
    basin_sudoku_settings s = usual;
    s.tokens = "cells";
    s.house_memories = 0;
    s.house_members = false;
    s.attention = true;
    s.hopfield = true;
    s.dim = 128;
    s.heads = 8;
    s.repel = 4;
    s.memories = 512;
    s.steps = 24;
    s.reveal = 0.5;
    s.batch = 256;
    s.rate = 2e-3;
    s.rate_last = 2e-5;
    s.average = 0.995;
    s.epochs = 100;
    return s;
}

/* Every cell sees every other one, as the authors' rival of that name had it. */
static basin_sudoku_settings all_pairs(void) {
    basin_sudoku_settings s = cells();
    s.pairs = "all";
    s.places = true;
    s.dim = 64;
    s.heads = 4;
    s.repel = 0;
    s.memories = 256;
    s.steps = 16;
    s.alpha = 0.3;
    s.reveal = 0;
    s.batch = 64;
    s.average = 0.999;
    return s;
}

/* The authors' Hyper-SET at a width with less than a million parameters: cross entropy after the
 * last step alone, no symmetries drawn. */
static basin_sudoku_settings hyperset(void) {
    basin_sudoku_settings s = all_pairs();
    s.arch = "hyperset";
    s.dim = 256;
    s.heads = 8;
    s.head_dim = 32;
    s.memories = 1024;
    s.steps = 24;
    s.supervise = 1;
    s.augment = false;
    s.average = 0;
    s.epochs = 200;
    s.rate = 1e-4;
    s.rate_last = 1e-4;
    s.decay = 0.1;
    s.beta2 = 0.999;
    return s;
}

static const char *const presets[] = {
    "default", "large", "cells", "all-pairs", "published-hyperset", NULL};

static void fill(void *values, const char *preset) {
    basin_sudoku_settings *s = values;
    *s = usual;
    if (!strcmp(preset, "large")) *s = large();
    if (!strcmp(preset, "cells")) *s = cells();
    if (!strcmp(preset, "all-pairs")) *s = all_pairs();
    if (!strcmp(preset, "published-hyperset")) *s = hyperset();
}

static basin_status check(const void *values, basin_error *error) {
    const basin_sudoku_settings *s = values;
    bool hyper = basin_sudoku_is_hyperset(s);
    if (!s->attention && !s->house_memories && !hyper)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "neither attention nor memories of houses: no cell would see another");
    if (s->repel > s->heads)
        return basin_fail(error, BASIN_BAD_VALUE, "repel is %lld, wanted at most %lld: heads",
                          (long long)s->repel, (long long)s->heads);
    if ((hyper || !strcmp(s->pairs, "all")) && !s->places)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s is %s and places is off: nothing would say where a cell is",
                          hyper ? "arch" : "pairs", hyper ? "hyperset" : "all");
    if (hyper && s->heads * s->head_dim != s->dim)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%lld heads of %lld, wanted %lld numbers in all for arch hyperset: dim",
                          (long long)s->heads, (long long)s->head_dim, (long long)s->dim);
    if (hyper && s->ahead)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "ahead is %lld, wanted 0 for arch hyperset: its steps are numbered",
                          (long long)s->ahead);
    if (s->house_members && !s->house_memories && !hyper)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "house_members is on and house_memories is 0, wanted 1 or more");
    if (basin_sudoku_is_candidates(s) && (s->attention || s->places))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "tokens is candidates and %s is on, wanted off: cells alone have it",
                          s->attention ? "attention" : "places");
    if (s->implicit)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "implicit is on, wanted off: boards are answered after every step");
    if (s->supervise > s->steps)
        return basin_fail(error, BASIN_BAD_VALUE, "supervise is %lld, wanted at most %lld: steps",
                          (long long)s->supervise, (long long)s->steps);
    return BASIN_OK;
}

const basin_task_settings basin_sudoku_task = {"sudoku", table, sizeof(basin_sudoku_settings),
                                               presets,  fill,  check};
