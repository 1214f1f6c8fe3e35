/* basin image train: trains a model that completes masked pictures. */
#include <math.h>

#include "basin/tasks/image.h"
#include "cli/training.h"
#include "io/json_writer.h"

typedef struct options {
    basin_settings *settings;
    basin_start start;
    basin_training_flags training;
    const char *test, *backend, *products, *dtype, *keep_decoded, *cut_from;
    int64_t threads, limit, hold_out;
    bool json, quiet;
} options;

static const options defaults = {
    .training = BASIN_TRAINING_DEFAULT,
    .backend = "cpu",
    .products = "f32",
    .keep_decoded = "auto",
    .cut_from = "auto",
};

static const basin_option table[] = {
    BASIN_TRAINING_OPTIONS(options),
    BASIN_OPTION_DIVIDE(options),
    BASIN_OPTIONS_START(options),
    BASIN_TEXT(options, test, 0, "test", "PATH",
               "Pictures to score after every epoch; they are not trained on.",
               .needs = "hold-out=0"),
    BASIN_INTEGER(options, hold_out, "hold-out", "N", 0, 1e12,
                  "Keep N pictures, chosen by the seed, from training and score those."),
    BASIN_INTEGER(options, limit, "limit", "N", 0, 1e12, "Only the first N pictures; 0: all."),
    BASIN_CHOICE(options, keep_decoded, "keep-decoded", "auto|off|host|device",
                 "Decode pictures once and keep them: in the host's memory, or in the GPU's, which "
                 "then cuts the crops itself (of host, too). auto: where all of them fit."),
    BASIN_CHOICE(options, cut_from, "cut-from", "auto|files|whole|reduced",
                 "What crops are cut from: the parts of files that each needs, the picture decoded "
                 "whole, or that with its short side reduced to 8/7 of SIZE. auto: whole where "
                 "pictures are kept, reduced where they are large, else files."),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

static void print_json(const basin_outcome *r, const basin_image_feeding *f, const options *o) {
    basin_json json = basin_json_begin(stdout);
    basin_training_fields(&json, r, &o->training, f->pictures, "pictures");
    basin_json_integer(&json, "unreadable", f->unreadable);
    basin_json_number(&json, "seconds_waiting_for_pictures", f->waited);
    basin_json_text(&json, "pictures_kept", f->keep_decoded);
    basin_json_text(&json, "crops_cut_from", f->cut_from);
    basin_json_integer(&json, "pictures_kept_bytes", (int64_t)f->kept);
    basin_json_object(&json, "validation");
    for (int i = 0; i < r->best.measures; i++)
        basin_json_number(&json, r->best.measure[i].name, r->best.measure[i].value);
    basin_json_end(&json);
    basin_json_end(&json);
}

static void print_text(const basin_outcome *r, const basin_image_feeding *f, const options *o) {
    double mse = basin_score_get(&r->best, "test_mse");
    basin_training_line(r, &o->training, "", f->pictures, "pictures", "images");
    if (isfinite(mse)) printf("; test MSE %.4f", mse);
    if (r->best_epoch) printf(" (epoch %lld)", (long long)r->best_epoch);
    printf("\n");
    if (f->kept)
        printf("pictures kept decoded (%s, %s): %.2f GiB\n", f->keep_decoded, f->cut_from,
               (double)f->kept / (1 << 30));
    if (f->unreadable) printf("%lld unreadable pictures skipped\n", (long long)f->unreadable);
}

/* Without --preset or --config, settings come from the pictures, or from the model of --from. */
static basin_status fit(const options *o, const basin_image_source *source, basin_error *error) {
    char told[600];
    if (o->start.preset || o->start.config) return BASIN_OK;
    basin_status status =
        basin_image_fit(o->settings, told, sizeof told, source, o->training.from, error);
    if (!status && !o->quiet) basin_say("basin: note: %s; --preset says otherwise", told);
    return status;
}

/* Trains, or with --print-config tries what training would take. */
static basin_status train(basin_outcome *outcome, basin_image_feeding *feeding, const options *o,
                          const char *const *path, int paths, basin_error *error) {
    basin_image_source source = {.size = sizeof source,
                                 .path = path,
                                 .paths = paths,
                                 .split = "train",
                                 .limit = o->limit,
                                 .hold_out = o->hold_out};
    basin_image_source test = {.size = sizeof test, .path = &o->test, .paths = 1, .split = "test"};
    basin_image_data data = {.size = sizeof data,
                             .train = &source,
                             .test = o->test ? &test : NULL,
                             .keep_decoded = o->keep_decoded,
                             .cut_from = o->cut_from,
                             .threads = o->training.ranks ? (int)o->threads : 0,
                             .feeding = feeding};
    basin_training_work work;
    basin_status status = fit(o, &source, error);
    if (!status)
        status = basin_training_open(&work, &o->training, o->backend, o->threads, o->products,
                                     o->dtype, o->quiet, o->start.print_config, error);
    if (status) return status;
    status = basin_image_train(NULL, outcome, o->settings, &data, &work.training, error);
    basin_training_close(&work);
    return status;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    basin_outcome outcome;
    basin_image_feeding feeding;
    if (!operands && o->start.print_config) return basin_print_config(o->settings, NULL);
    if (!operands) return basin_report_usage(&basin_command_image_train, "wants PICTURES...");
    if (train(&outcome, &feeding, o, (const char *const *)operand, operands, &error))
        return basin_report(&error);
    if (o->start.print_config) return basin_print_config(o->settings, &outcome);
    if (basin_training_is_told(&outcome, o->json))
        (o->json ? print_json : print_text)(&outcome, &feeding, o);
    if (!basin_ranks_rank(o->training.ranks)) basin_note_gamma(o->training.output, o->quiet);
    return basin_training_end(&outcome, &o->training);
}

const basin_command basin_command_image_train = {
    .name = "image train",
    .summary = "Train a model that completes masked pictures",
    .operands = "PICTURES...",
    .operands_least = 0,
    .operands_most = 1000,
    .text =
        "Without --preset, settings that fit are chosen by the pictures (or are those of the "
        "--from model) and printed. PICTURES are folders of JPEG, PNG and WebP files, archives of "
        "them, idx files, CIFAR "
        "binaries or the folder of MNIST's or Fashion-MNIST's files; shapes: needs no file. "
        "The model file holds its whole configuration. A checkpoint stands beside it while it "
        "is trained: after a kill, the same command with --resume goes on. --print-config with "
        "pictures trains for a moment and tells parameters, memory and time.",
    .example =
        "  basin image train /usr/share/datasets/fashion-mnist -o fashion.safetensors\n"
        "  basin image train photos/ --preset paper-imagenet --batch 64 --hold-out 50\n"
        "  basin image train more/ --from fashion.safetensors --epochs 5 -o tuned.safetensors\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof(options),
    .task = "image",
    .settings_at = offsetof(options, settings),
    .start_at = offsetof(options, start),
    .ranks_at = offsetof(options, training.ranks),
    .run = run,
};
