/* basin image eval: how well a model completes pictures it was not trained on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "basin/tasks/image.h"
#include "cli/command.h"
#include "cli/image/descent.h"
#include "cli/watch.h"
#include "io/json_writer.h"

typedef struct options {
    const char *split, *mask, *backend, *products, *dtype;
    int64_t masks, seed, batch, limit, hold_out, best, threads;
    double ratio;
    basin_descent_flags descent;
    bool json, quiet;
} options;

static const options defaults = {
    .split = "test",
    .mask = "scattered",
    .backend = "cpu",
    .products = "f32",
    .masks = 10,
    .best = 5,
};

static const basin_option table[] = {
    BASIN_INTEGER(options, masks, "masks", "K", 1, 1000, "Mask seeds to average over."),
    BASIN_CHOICE(options, mask, "mask", "scattered|holes",
                 "What is hidden: as many patches as in training, scattered, as in the paper; or "
                 "one rectangle, as image train --holes draws them."),
    BASIN_REAL(options, ratio, "ratio", "SHARE", 0, 1,
               "Share of the patches that is hidden; 0: as many as in training.",
               .needs = "mask=scattered"),
    BASIN_OPTIONS_DESCENT(options),
    BASIN_INTEGER(options, seed, "seed", "N", 0, 1e9, "Seed of the first mask; the others follow."),
    BASIN_CHOICE(options, split, "part", "test|train|all", "Which half, of sets that have two.",
                 .needs = "hold-out=0"),
    BASIN_INTEGER(options, hold_out, "hold-out", "N", 0, 1e12,
                  "The N pictures that basin image train --hold-out N kept from these paths."),
    BASIN_INTEGER(options, limit, "limit", "N", 0, 1e12, "Only the first N pictures; 0: all."),
    BASIN_INTEGER(options, batch, "batch", "N", 0, 1 << 20,
                  "Pictures at a time; 0: as many as in training."),
    BASIN_INTEGER(options, best, "best", "N", 0, 1000, "How many best and worst to list."),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

typedef struct extremes {
    int64_t *best, *worst; /* [count] */
    int64_t count;
} extremes;

static void json_pictures(basin_json *json, const char *key, const int64_t *order, int64_t count,
                          const basin_image_scores *s, const basin_pictures *pictures) {
    char name[BASIN_PICTURE_NAME];
    basin_json_array(json, key);
    for (int64_t i = 0; i < count; i++) {
        basin_json_object(json, NULL);
        basin_json_text(json, "name", basin_pictures_name(name, pictures, s->index[order[i]]));
        basin_json_number(json, "mse", s->picture_mse[order[i]]);
        basin_json_end(json);
    }
    basin_json_end(json);
}

static void print_json(const basin_image_scores *s, const extremes *e,
                       const basin_pictures *pictures) {
    basin_json json = basin_json_begin(stdout);
    basin_json_integer(&json, "pictures", s->pictures);
    basin_json_integer(&json, "unreadable", s->unreadable);
    basin_json_integer(&json, "masks", s->masks);
    if (s->trained_on >= 0) basin_json_integer(&json, "trained_on", s->trained_on);
    basin_json_number(&json, "mse", s->mse);
    basin_json_number(&json, "mse_deviation", s->mse_deviation);
    basin_json_number(&json, "mean_mse", s->mean_mse);
    basin_json_number(&json, "psnr", s->psnr);
    basin_json_number(&json, "psnr_deviation", s->psnr_deviation);
    basin_json_number(&json, "ssim", s->ssim);
    basin_json_number(&json, "ssim_deviation", s->ssim_deviation);
    json_pictures(&json, "best", e->best, e->count, s, pictures);
    json_pictures(&json, "worst", e->worst, e->count, s, pictures);
    basin_json_end(&json);
}

static void print_pictures(const char *what, const int64_t *order, int64_t count,
                           const basin_image_scores *s, const basin_pictures *pictures) {
    char name[BASIN_PICTURE_NAME];
    printf("%s:\n", what);
    for (int64_t i = 0; i < count; i++)
        printf("  %8.4f  %s\n", s->picture_mse[order[i]],
               basin_pictures_name(name, pictures, s->index[order[i]]));
}

static void print_seen(const basin_image_scores *s) {
    const char *about = s->trained_on_about ? "about " : "";
    if (s->trained_on > 0)
        printf("  %s%lld of these %lld pictures were trained on: this is no test\n", about,
               (long long)s->trained_on, (long long)s->pictures);
    else if (!s->trained_on && !s->trained_on_about)
        printf("  none of them was trained on\n");
}

static void print_text(const basin_image_scores *s, const extremes *e,
                       const basin_pictures *pictures) {
    printf("%lld pictures, %d mask seed%s; mean +- population deviation over masks\n",
           (long long)s->pictures, s->masks, s->masks == 1 ? "" : "s");
    printf("  MSE on occluded patches  %.4f +- %.4f\n", s->mse, s->mse_deviation);
    printf("  of the mean colour       %.4f\n", s->mean_mse);
    printf("  PSNR                     %.2f +- %.2f dB\n", s->psnr, s->psnr_deviation);
    if (isfinite(s->ssim))
        printf("  SSIM                     %.4f +- %.4f\n", s->ssim, s->ssim_deviation);
    print_seen(s);
    if (s->unreadable) printf("  %lld unreadable pictures skipped\n", (long long)s->unreadable);
    if (e->count) {
        print_pictures("best, by their MSE", e->best, e->count, s, pictures);
        print_pictures("worst", e->worst, e->count, s, pictures);
    }
}

static basin_status find_extremes(extremes *e, const basin_image_scores *s, int64_t count,
                                  basin_error *error) {
    e->count = count < s->pictures ? count : s->pictures;
    e->best = calloc((size_t)e->count + 1, sizeof *e->best);
    e->worst = calloc((size_t)e->count + 1, sizeof *e->worst);
    if (!e->best || !e->worst)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a list");
    basin_status status = basin_image_scores_rank(e->best, s, e->count, false, error);
    return status ? status : basin_image_scores_rank(e->worst, s, e->count, true, error);
}

static basin_status evaluate(const options *o, basin_backend *backend, char **operand, int operands,
                             const basin_watch *watch, basin_error *error) {
    basin_image_model *model;
    basin_pictures *pictures = NULL;
    basin_image_scores scores = {0};
    extremes e = {0};
    const char *split = o->hold_out ? "train" : o->split[0] == 'a' ? NULL : o->split;
    basin_image_descent descent = basin_descent_make(&o->descent);
    basin_status status = basin_image_open(&model, operand[0], backend, error);
    if (!status) status = basin_image_set_descent(model, &descent, error);
    if (!status) basin_note_gamma(operand[0], o->quiet);
    if (!status)
        status = basin_pictures_open(&pictures, (const char *const *)operand + 1, operands - 1,
                                     split, error);
    if (!status && split && !strcmp(o->split, "train") && !basin_pictures_divided(pictures) &&
        !o->quiet)
        basin_say("basin: note: --part train has no effect: these pictures have no halves");
    basin_image_source source = {
        .size = sizeof source, .pictures = pictures, .limit = o->limit, .hold_out = o->hold_out};
    basin_image_scoring scoring = {.size = sizeof scoring,
                                   .source = &source,
                                   .masks = (int)o->masks,
                                   .first_mask = (uint64_t)o->seed,
                                   .batch = o->batch,
                                   .watch = watch,
                                   .holes = o->mask[0] == 'h',
                                   .ratio = o->ratio};
    if (!status) status = basin_image_score(&scores, model, &scoring, error);
    if (!status) status = find_extremes(&e, &scores, o->best, error);
    if (!status) (o->json ? print_json : print_text)(&scores, &e, pictures);
    free(e.best);
    free(e.worst);
    basin_image_scores_free(&scores);
    basin_pictures_free(pictures);
    basin_image_close(model);
    return status;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    basin_backend *backend;
    basin_cli_watch watch;
    if (basin_option_backend(&backend, o->backend, o->threads, o->products, o->dtype, &error))
        return basin_report(&error);
    basin_cli_watch_begin(&watch, o->quiet);
    basin_status status = evaluate(o, backend, operand, operands, &watch.watch, &error);
    basin_cli_watch_end(&watch);
    basin_backend_close(backend);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_image_eval = {
    .name = "image eval",
    .summary = "Score how well a model completes pictures",
    .operands = "MODEL PICTURES...",
    .operands_least = 2,
    .operands_most = 1000,
    .text = "The mean squared error over the pixels of occluded patches, in units of the training "
            "pictures' deviation, and PSNR and SSIM of the completed pictures; mean over pictures, "
            "mean and population deviation over mask seeds. Every occluded patch is replaced by "
            "MASK. Beside it stands the error of an answer without a model: the mean colour of "
            "what is shown.",
    .example = "  basin image eval fashion.safetensors /usr/share/datasets/fashion-mnist\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
