/* basin image train, eval, export, import. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "cli/image.h"
#include "cli/record.h"
#include "cli/train.h"

/* ---- train ---- */

typedef struct train_options {
    basin_train_options train;
    const char *test, *keep_decoded, *cut_from;
    int64_t limit, hold_out;
} train_options;

/* Without a preset, settings come from the pictures. */
static const train_options train_defaults = {
    .train = {.training = BASIN_TRAINING_DEFAULT, .compute = BASIN_COMPUTE_DEFAULT},
    .keep_decoded = "auto",
    .cut_from = "auto"};

static const basin_option train_table[] = {
    BASIN_TRAIN_OPTIONS(train_options),
    BASIN_TEXT(train_options, test, 0, "test", "PATH",
               "Pictures to score after every epoch; they are not trained on.",
               .needs = "hold-out=0"),
    BASIN_INTEGER(train_options, hold_out, "hold-out", "N", 0, 1e12,
                  "Keep N pictures, chosen by the seed, from training and score those."),
    BASIN_INTEGER(train_options, limit, "limit", "N", 0, 1e12,
                  "Only the first N pictures; 0: all."),
    BASIN_CHOICE(train_options, keep_decoded, "keep-decoded", "auto|off|host|device",
                 "Decode pictures once and keep them: in the host's memory, or in the GPU's, which "
                 "then cuts the crops itself (of host, too). auto: where all of them fit.",
                 .more = true),
    BASIN_CHOICE(train_options, cut_from, "cut-from", "auto|files|whole|reduced",
                 "What crops are cut from: the parts of files that each needs, the picture decoded "
                 "whole, or that with its short side reduced to 8/7 of SIZE. auto: whole where "
                 "pictures are kept, reduced where they are large, else files.",
                 .more = true),
    BASIN_OPTIONS_END,
};

static basin_image_source source_of(const basin_train_job *job) {
    const train_options *o = job->options;
    return (basin_image_source){.path = (const char *const *)job->operand,
                                .paths = job->operands,
                                .split = "train",
                                .limit = o->limit,
                                .hold_out = o->hold_out};
}

/* Without --preset or --config, settings come from the pictures, or from the model of --from. */
static basin_status fit(basin_train_job *job, basin_error *error) {
    const basin_train_options *o = job->o;
    char chosen[600];
    basin_image_source source = source_of(job);
    if (o->start.preset || o->start.config) return BASIN_OK;
    BASIN_TRY(
        basin_image_fit(o->settings, chosen, sizeof chosen, &source, o->training.from, error));
    if (!o->quiet) basin_say("basin: note: %s; --preset overrides this", chosen);
    return BASIN_OK;
}

static basin_status train(basin_train_job *job, basin_error *error) {
    const train_options *o = job->options;
    basin_image_source source = source_of(job);
    basin_image_source test = {.path = &o->test, .paths = 1, .split = "test"};
    basin_image_feeding *feeding;
    BASIN_TRY(BASIN_NEW(&feeding, 1, "a run", error));
    job->more = feeding;
    basin_image_data data = {.train = &source,
                             .test = o->test ? &test : NULL,
                             .keep_decoded = o->keep_decoded,
                             .cut_from = o->cut_from,
                             .threads = job->o->training.ranks ? (int)job->o->compute.threads : 0,
                             .feeding = feeding};
    return basin_image_train(NULL, &job->outcome, job->o->settings, &data, &job->training, error);
}

static int64_t count_pictures(const basin_train_job *job) {
    return ((const basin_image_feeding *)job->more)->pictures;
}

static void put_training(basin_record *r, const basin_train_job *job) {
    const basin_image_feeding *f = job->more;
    const basin_score *best = &job->outcome.best;
    basin_record_integer(r, f->unreadable ? "unreadable" : ".unreadable", f->unreadable);
    basin_record_number(r, ".seconds_waiting_for_pictures", "%g", f->waited);
    basin_record_text(r, ".pictures_kept", f->keep_decoded);
    basin_record_text(r, ".crops_cut_from", f->cut_from);
    basin_record_bytes(r, f->kept ? "pictures_kept_bytes|pictures kept" : ".pictures_kept_bytes",
                       (int64_t)f->kept);
    basin_record_object(r, "validation");
    for (int i = 0; i < best->measures; i++)
        basin_record_number(r, best->measure[i].name, "%.4f", best->measure[i].value);
    basin_record_end(r);
}

static void close_training(basin_train_job *job) { free(job->more); }

BASIN_RUN(run_train) {
    static const basin_train_task task = {.things = "pictures",
                                          .prepare = fit,
                                          .train = train,
                                          .count = count_pictures,
                                          .print = put_training,
                                          .close = close_training};
    return basin_train_run(&task, values, operands, operand, error);
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
        "pictures trains for a moment and prints parameters, memory and time.",
    .example =
        "  basin image train /usr/share/datasets/fashion-mnist -o fashion.safetensors\n"
        "  basin image train photos/ --preset paper-imagenet --batch 64 --hold-out 50\n"
        "  basin image train more/ --from fashion.safetensors --epochs 5 -o tuned.safetensors\n",
    .option = train_table,
    .defaults = &train_defaults,
    BASIN_TRAIN_COMMAND(train_options, "image"),
    .run = run_train,
};

/* ---- eval ---- */

typedef struct eval_options {
    const char *split, *mask;
    basin_compute_flags compute;
    int64_t masks, seed, batch, limit, hold_out, best;
    double ratio;
    basin_descent_flags descent;
    bool json, quiet;
} eval_options;

static const eval_options eval_defaults = {
    .split = "test",
    .mask = "scattered",
    .compute = BASIN_COMPUTE_DEFAULT,
    .masks = 10,
    .best = 5,
};

static const basin_option eval_table[] = {
    BASIN_INTEGER(eval_options, masks, "masks", "K", 1, 1000, "Mask seeds to average over."),
    BASIN_CHOICE(eval_options, mask, "mask", "scattered|holes",
                 "What is hidden: as many patches as in training, scattered, as in the paper; or "
                 "one rectangle, as image train --holes draws them."),
    BASIN_REAL(eval_options, ratio, "ratio", "SHARE", 0, 1,
               "Share of the patches that is hidden; 0: as many as in training.",
               .needs = "mask=scattered"),
    BASIN_OPTIONS_DESCENT(eval_options),
    BASIN_INTEGER(eval_options, seed, "seed", "N", 0, 1e9,
                  "Seed of the first mask; the others follow."),
    BASIN_CHOICE(eval_options, split, "part", "test|train|all",
                 "Which half, of sets that have two.", .needs = "hold-out=0"),
    BASIN_INTEGER(eval_options, hold_out, "hold-out", "N", 0, 1e12,
                  "The N pictures that basin image train --hold-out N kept from these paths."),
    BASIN_INTEGER(eval_options, limit, "limit", "N", 0, 1e12, "Only the first N pictures; 0: all."),
    BASIN_INTEGER(eval_options, batch, "batch", "N", 0, 1 << 20,
                  "Pictures at a time; 0: as many as in training."),
    BASIN_INTEGER(eval_options, best, "best", "N", 0, 1000, "How many best and worst to list."),
    BASIN_COMPUTE_OPTIONS(eval_options),
    BASIN_OPTION_JSON(eval_options),
    BASIN_OPTION_QUIET(eval_options),
    BASIN_OPTIONS_END,
};

typedef struct evaluation {
    const eval_options *o;
    basin_session session;
    basin_image_model *model;
    basin_pictures *pictures;
    basin_image_scores scores;
    int64_t *best, *worst, count; /* [count] */
} evaluation;

static void put_extremes(basin_record *r, const char *key, const char *title, const evaluation *e,
                         const int64_t *order) {
    char name[BASIN_PICTURE_NAME];
    basin_record_table(r, key, title);
    for (int64_t i = 0; i < e->count; i++) {
        basin_record_row(r);
        basin_record_text(r, "name",
                          basin_pictures_name(name, e->pictures, e->scores.index[order[i]]));
        basin_record_number(r, "mse", "%.4f", e->scores.picture_mse[order[i]]);
        basin_record_end(r);
    }
    basin_record_end(r);
}

static void put_pair(basin_record *r, const char *key, const char *deviation_key,
                     const char *text_key, int decimals, double mean, double deviation) {
    if (basin_record_is_text(r)) {
        if (isfinite(mean)) basin_record_spread(r, text_key, decimals, mean, deviation);
        return;
    }
    basin_record_number(r, key, "%g", mean);
    basin_record_number(r, deviation_key, "%g", deviation);
}

static void put_scores(basin_record *r, const void *context) {
    const evaluation *e = context;
    const basin_image_scores *s = &e->scores;
    basin_record_integer(r, "pictures", s->pictures);
    basin_record_integer(r, s->unreadable ? "unreadable" : ".unreadable", s->unreadable);
    basin_record_integer(r, "masks", s->masks);
    if (s->trained_on >= 0) basin_record_integer(r, ".trained_on", s->trained_on);
    if (!basin_record_is_text(r)) basin_record_number(r, "mse", "%g", s->mse);
    if (!basin_record_is_text(r))
        basin_record_number(r, "mse_deviation", "%g", s->mse_deviation);
    else
        basin_record_spread(r, "MSE on occluded patches", 4, s->mse, s->mse_deviation);
    basin_record_number(r, "mean_mse|MSE of the mean colour", "%.4f", s->mean_mse);
    put_pair(r, "psnr", "psnr_deviation", "PSNR (dB)", 2, s->psnr, s->psnr_deviation);
    put_pair(r, "ssim", "ssim_deviation", "SSIM", 4, s->ssim, s->ssim_deviation);
    if (s->trained_on > 0)
        basin_record_note(r, "%s%lld of these %lld pictures were trained on: this is no test",
                          s->trained_on_about ? "about " : "", (long long)s->trained_on,
                          (long long)s->pictures);
    else if (!s->trained_on && !s->trained_on_about)
        basin_record_note(r, "none of them was trained on");
    put_extremes(r, "best", "best, by their MSE:", e, e->best);
    put_extremes(r, "worst", "worst:", e, e->worst);
}

static basin_status find_extremes(evaluation *e, basin_error *error) {
    const basin_image_scores *s = &e->scores;
    e->count = e->o->best < s->pictures ? e->o->best : s->pictures;
    BASIN_TRY(BASIN_NEW(&e->best, e->count, "a list", error));
    BASIN_TRY(BASIN_NEW(&e->worst, e->count, "a list", error));
    for (int64_t i = 0; i < e->count; i++) {
        e->best[i] = s->order[i];
        e->worst[i] = s->order[s->pictures - 1 - i];
    }
    return BASIN_OK;
}

static basin_status evaluate(evaluation *e, char **operand, int operands, basin_error *error) {
    const eval_options *o = e->o;
    const char *split = o->hold_out ? "train" : o->split[0] == 'a' ? NULL : o->split;
    basin_image_descent descent = basin_descent_make(&o->descent);
    BASIN_TRY(basin_session_open(&e->session, &o->compute, o->quiet, error));
    BASIN_TRY(basin_image_open(&e->model, operand[0], e->session.backend, error));
    BASIN_TRY(basin_image_set_descent(e->model, &descent, error));
    basin_note_gamma(operand[0], o->quiet);
    BASIN_TRY(basin_pictures_open(&e->pictures, (const char *const *)operand + 1, operands - 1,
                                  split, error));
    if (split && !strcmp(o->split, "train") && !basin_pictures_divided(e->pictures) && !o->quiet)
        basin_say("basin: note: --part train has no effect: these pictures have no halves");
    basin_image_source source = {
        .pictures = e->pictures, .limit = o->limit, .hold_out = o->hold_out};
    basin_image_scoring scoring = {.source = &source,
                                   .masks = (int)o->masks,
                                   .first_mask = (uint64_t)o->seed,
                                   .batch = o->batch,
                                   .watch = &e->session.watch.watch,
                                   .holes = o->mask[0] == 'h',
                                   .ratio = o->ratio};
    BASIN_TRY(basin_image_score(&e->scores, e->model, &scoring, error));
    BASIN_TRY(find_extremes(e, error));
    basin_cli_watch_end(&e->session.watch);
    return basin_record_print(o->json, put_scores, e, error);
}

BASIN_RUN(run_eval) {
    evaluation e = {.o = values};
    basin_status status = evaluate(&e, operand, operands, error);
    free(e.best);
    free(e.worst);
    basin_image_scores_free(&e.scores);
    basin_pictures_free(e.pictures);
    basin_image_close(e.model);
    basin_session_close(&e.session);
    return status;
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
    BASIN_COMMAND_OPTIONS(eval_table, eval_defaults),
    .run = run_eval,
};

/* ---- export and import ---- */

bool basin_ends_with(const char *text, const char *end) {
    size_t length = strlen(text), size = strlen(end);
    return length >= size && !strcmp(text + length - size, end);
}

typedef struct export_options {
    const char *weights;
} export_options;

static const export_options export_defaults = {.weights = "f32"};

static const basin_option export_table[] = {
    BASIN_CHOICE(export_options, weights, "weights", "f32|bf16",
                 "Type of the weights in a .safetensors file; bf16 halves it."),
    BASIN_OPTIONS_END,
};

static bool is_off(const basin_image_model *model, const char *setting) {
    double on;
    return !basin_settings_get_number(&on, basin_image_get_settings(model), setting, NULL) && !on;
}

/* What the published code would do otherwise than this model. */
static void note_differences(const basin_image_model *model) {
    if (is_off(model, "self_attention"))
        basin_say("basin: note: tokens of this model do not attend to themselves; those of the "
                  "published code do");
    if (is_off(model, "cls"))
        basin_say("basin: note: this model has no CLS token; the published code needs one");
}

typedef struct opened {
    basin_backend *backend;
    basin_image_model *model;
} opened;

static basin_status open_plain(opened *at, const char *path, basin_error *error) {
    static const basin_compute_flags one = {.backend = "cpu", .threads = 1};
    BASIN_TRY(basin_compute_open(&at->backend, &one, error));
    return basin_image_open(&at->model, path, at->backend, error);
}

static void close_plain(opened *at) {
    basin_image_close(at->model);
    basin_backend_close(at->backend);
}

BASIN_RUN(run_export) {
    const export_options *o = values;
    BASIN_AT_EXIT(close_plain) opened at = {0};
    const char *path = operand[1];
    bool ours = basin_ends_with(path, ".safetensors");
    if (!ours && !basin_ends_with(path, ".npz"))
        return basin_usage(error, "%s: needs a name that ends in .npz or .safetensors", path);
    if (!ours && strcmp(o->weights, "f32") != 0)
        return basin_usage(error, "%s: npz has no bf16; --weights is for .safetensors", path);
    BASIN_TRY(open_plain(&at, operand[0], error));
    BASIN_TRY(basin_image_write(path, at.model, basin_option_dtype(o->weights), error));
    if (!ours) note_differences(at.model);
    return BASIN_OK;
}

const basin_command basin_command_image_export = {
    .name = "image export",
    .summary = "Write an image model under the published names, or with narrower weights",
    .operands = "MODEL OUT.npz|OUT.safetensors",
    .operands_least = 2,
    .operands_most = 2,
    .text = "A .safetensors file is a model as any other, with weights of the type that --weights "
            "names. An npz file holds Wk, Wq, Xi, Wenc, Benc, Wdec, Bdec, POS_embed, CLS_token, "
            "MASK_token, "
            "LNORM_gamma and LNORM_bias, as the authors' checkpoint does, and the settings as "
            "metadata. Only Energy Transformers with attention and a relu Hopfield network have "
            "such names, and not those that learn or set beta.",
    .example = "  basin image export model.safetensors weights.npz\n"
               "  basin image export model.safetensors small.safetensors --weights bf16\n",
    BASIN_COMMAND_OPTIONS(export_table, export_defaults),
    .run = run_export,
};

static void print_model(const char *path, const basin_image_model *model) {
    static const char *const name[] = {"size",  "channels", "patch",    "dim",
                                       "heads", "head_dim", "memories", "steps"};
    printf("%s: %lld parameters", path, (long long)basin_image_parameters(model));
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        char text[40];
        basin_error error;
        if (!basin_settings_get(text, sizeof text, basin_image_get_settings(model), name[i],
                                &error))
            printf(", %s %s", name[i], text);
    }
    printf("\n");
}

BASIN_RUN(run_import) {
    BASIN_AT_EXIT(close_plain) opened at = {0};
    BASIN_TRY(open_plain(&at, operand[0], error));
    BASIN_TRY(basin_image_write(operand[1], at.model, BASIN_F32, error));
    print_model(operand[1], at.model);
    return BASIN_OK;
}

static const basin_option import_table[] = {BASIN_OPTIONS_END};

const basin_command basin_command_image_import = {
    .name = "image import",
    .summary = "Make a model file of published image weights",
    .operands = "IN.npz MODEL",
    .operands_least = 2,
    .operands_most = 2,
    .text = "Reads the keys of the authors' checkpoint. The sizes follow from the shapes; what the "
            "file does not say is as in the paper: 12 steps of 0.1, beta 1 / sqrt(Y), tokens may "
            "attend to themselves, ImageNet's means and deviations. Such a file may also be given "
            "to the other commands in place of a model.",
    .example = "  basin image import weights.npz model.safetensors\n",
    .option = import_table,
    .run = run_import,
};
