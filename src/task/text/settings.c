/* Settings of models of text: the table of their names, the presets, what is refused. */
#include <stdio.h>
#include <string.h>

#include "task/text/text.h"

#define BASIN_SETTINGS_TYPE basin_text_settings
static const basin_setting table[] = {
    BASIN_TEXT_MODEL_SETTINGS(BASIN_SETTING_ENTRY) BASIN_TEXT_TRAINING_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

/* The protocol of NRGPT's released code for Shakespeare's characters: 40,000 steps, of which 100
 * warm up; its sweeps end at 1/10 to 1/100 of the rate. */
static const basin_text_settings published = {
    .arch = "nrgpt",
    .tokens = "characters",
    .context = 256,
    .dim = 384,
    .heads = 6,
    .steps = 6,
    .feed = "ff2w",
    .beta = 1,
    .alpha = 1,
    .dropout = 0.1,
    .epochs = 400,
    .epoch_steps = 100,
    .warmup = 1,
    .batch = 64,
    .rate = 1e-3,
    .rate_last = 1e-4,
    .decay = 0.1,
    .beta2 = 0.99,
    .clip = 1,
    .optimiser = "adamw",
    .embedding_rate = 1,
};

static basin_text_settings sized(int64_t dim, int64_t heads, int64_t steps) {
    basin_text_settings s = published;
    s.dim = dim;
    s.heads = heads;
    s.steps = steps;
    return s;
}

/* As wide as 10 million parameters allow; dropout where a GPT has it, too: so many parameters
 * remember a million characters otherwise. */
static basin_text_settings ten_million(void) {
    basin_text_settings s = sized(768, 7, 6);
    s.beta = 0.05;
    s.dropout_step = 0.2;
    s.epochs = 50;
    return s;
}

/* 2.4 million: a published size, with what it takes to learn within 3,000 steps
 * (docs/lab/2026-11-16-text.md). */
static basin_text_settings two_million(void) {
    basin_text_settings s = sized(384, 6, 6);
    s.beta = 0.15;
    s.dropout_step = 0.1;
    s.epochs = 30;
    return s;
}

/* nanoGPT's model and protocol, with a narrower perceptron: 9.9 million parameters, not 10.7. */
static basin_text_settings rival_gpt(void) {
    basin_text_settings s = published;
    s.arch = "gpt";
    s.hidden = 1344;
    s.tied = true;
    s.dropout = 0.2;
    s.epochs = 50;
    return s;
}

/* A few minutes on two cores; 0.24 million parameters. */
static basin_text_settings small(void) {
    basin_text_settings s = sized(128, 4, 4);
    s.context = 64;
    s.batch = 12;
    s.epochs = 20;
    s.dropout = 0;
    return s;
}

/* As many parameters, in four layers of their own. */
static basin_text_settings small_gpt(void) {
    basin_text_settings s = small();
    s.arch = "gpt";
    s.dim = 64;
    s.hidden = 320;
    s.tied = true;
    return s;
}

static const char *const presets[] = {
    "default",      "small",         "small-gpt",     "two-million",   "ten-million", "rival-gpt",
    "published-32", "published-128", "published-384", "published-768", NULL};

static void fill(void *values, const char *preset) {
    basin_text_settings *s = values;
    *s = small();
    if (!strcmp(preset, "small-gpt")) *s = small_gpt();
    if (!strcmp(preset, "two-million")) *s = two_million();
    if (!strcmp(preset, "ten-million")) *s = ten_million();
    if (!strcmp(preset, "rival-gpt")) *s = rival_gpt();
    if (!strcmp(preset, "published-32")) *s = sized(32, 1, 3);
    if (!strcmp(preset, "published-128")) *s = sized(128, 4, 6);
    if (!strcmp(preset, "published-384")) *s = sized(384, 6, 6);
    if (!strcmp(preset, "published-768")) *s = sized(768, 8, 8);
}

basin_status basin_text_settings_check(const basin_text_settings *s, basin_error *error) {
    if (basin_choice_is(s->arch, "gpt") && s->dim % s->heads != 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "heads is %lld, wanted a divisor of dim, %lld, in a GPT",
                          (long long)s->heads, (long long)s->dim);
    if (basin_choice_is(s->tokens, "bpe") && s->vocabulary && s->vocabulary < 257)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "vocabulary is %lld, wanted 257 or more: the bytes and a pair",
                          (long long)s->vocabulary);
    return BASIN_OK;
}

static basin_status check(const void *values, basin_error *error) {
    return basin_text_settings_check(values, error);
}

static basin_zoo_feed feed_named(const char *name) {
    if (basin_choice_is(name, "ff1")) return BASIN_ZOO_FEED_1;
    return basin_choice_is(name, "ff2") ? BASIN_ZOO_FEED_2 : BASIN_ZOO_FEED_2W;
}

basin_language_config basin_text_language(const basin_text_settings *s) {
    return (basin_language_config){
        .arch = basin_choice_is(s->arch, "gpt") ? BASIN_LANGUAGE_GPT : BASIN_LANGUAGE_NRGPT,
        .vocabulary = s->vocabulary,
        .context = s->context,
        .dim = s->dim,
        .heads = s->heads,
        .hidden = s->hidden,
        .steps = (int)s->steps,
        .tied = s->tied,
        .dropout = s->dropout,
        .dropout_step = s->dropout_step,
        .recompute = s->recompute,
        .feed = feed_named(s->feed),
        .strict = s->strict,
        .alpha = s->alpha,
        .beta = s->beta,
        .bias = s->bias,
    };
}

const basin_task_settings basin_text_task = {
    "text", table, sizeof(basin_text_settings), presets, NULL, fill, check};
