/* basin image train: trains a model that completes masked pictures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/training.h"
#include "cli/watch.h"
#include "io/json_writer.h"
#include "task/image/train.h"

typedef struct options {
    basin_settings *settings;
    basin_start start;
    const char *out, *log, *test, *backend, *products, *dtype, *keep, *cut;
    int64_t threads, limit, hold_out, log_every, test_every;
    double save_every;
    bool resume, json, quiet;
} options;

static const options defaults = {
    .start = {.preset = "default"},

    .out = "model.safetensors",
    .backend = "cpu",
    .products = "f32",
    .dtype = "f32",
    .keep = "auto",
    .cut = "auto",
    .log_every = 20,
    .test_every = 1,
    .save_every = 60,
};

static const basin_option table[] = {
    BASIN_TEXT(options, out, 'o', "output", "FILE", "The model file to write."),
    BASIN_OPTIONS_START(options),
    BASIN_TEXT(options, test, 0, "test", "PATH",
               "Pictures to score after every epoch; they are not trained on."),
    BASIN_INTEGER(options, hold_out, "hold-out", "N", 0, 1e12,
                  "Keep N pictures, chosen by the seed, from training and score those."),
    BASIN_INTEGER(options, test_every, "test-every", "EPOCHS", 1, 1 << 24,
                  "Score them after so many epochs only, and after the last."),
    BASIN_INTEGER(options, limit, "limit", "N", 0, 1e12, "Only the first N pictures; 0: all."),
    BASIN_TEXT(options, log, 0, "log", "FILE", "Write a log, one JSON object a line."),
    BASIN_INTEGER(options, log_every, "log-every", "STEPS", 1, 1 << 24,
                  "Steps that a line of the log stands for; 1: the loss of every step."),
    BASIN_CHOICE(options, keep, "keep-decoded", BASIN_IMAGE_KEEPS,
                 "Decode pictures once and keep them: in the host's memory, or in the GPU's, which "
                 "then cuts the crops itself (of host, too). auto: where all of them fit."),
    BASIN_CHOICE(options, cut, "cut-from", BASIN_IMAGE_CUTS,
                 "What crops are cut from: the parts of files that each needs, the picture decoded "
                 "whole, or that with its short side reduced to 8/7 of SIZE. auto: whole where "
                 "pictures are kept, reduced where they are large, else files."),
    BASIN_FLAG(options, resume, 0, "resume",
               "Go on from the checkpoint that an interrupted run left. Ends with the same bits as "
               "a run that was never cut."),
    BASIN_REAL(options, save_every, "save-every", "SECONDS", 0, 1e9,
               "How often a checkpoint is written."),
    BASIN_OPTION_BACKEND(options),
    BASIN_OPTION_PRODUCTS(options),
    BASIN_OPTION_DTYPE(options),
    BASIN_OPTION_THREADS(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

static void print_json(const basin_image_outcome *r, const options *o) {
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "model", o->out);
    basin_json_boolean(&json, "finished", !r->stopped);
    basin_json_integer(&json, "parameters", r->parameters);
    basin_json_integer(&json, "pictures", r->pictures);
    basin_json_integer(&json, "unreadable", r->unreadable);
    basin_json_integer(&json, "steps", r->steps);
    basin_json_number(&json, "train_mse", r->loss);
    basin_json_number(&json, "test_mse", r->test_mse);
    basin_json_number(&json, "seconds", r->seconds);
    basin_json_number(&json, "images_per_second", r->images_per_second);
    basin_json_number(&json, "seconds_waiting_for_pictures", r->waited);
    basin_json_integer(&json, "memory_bytes", (int64_t)r->memory);
    basin_json_text(&json, "pictures_kept", r->keep);
    basin_json_text(&json, "crops_cut_from", r->cut);
    basin_json_integer(&json, "pictures_kept_bytes", (int64_t)r->kept);
    basin_json_end(&json);
}

static void print_text(const basin_image_outcome *r, const options *o) {
    if (r->stopped) {
        printf("interrupted at step %lld of %lld; the checkpoint is %s.checkpoint; to go on, give "
               "the same command with --resume\n",
               (long long)r->steps, (long long)r->steps_wanted, o->out);
        return;
    }
    printf("%s: %lld parameters, trained on %lld pictures for %lld epochs: loss %.4f", o->out,
           (long long)r->parameters, (long long)r->pictures, (long long)r->settings.epochs,
           r->loss);
    if (isfinite(r->test_mse)) printf(", test MSE %.4f", r->test_mse);
    printf("\n%.0f s, %.0f images/s, %.2f GiB", r->seconds, r->images_per_second,
           (double)r->memory / 1073741824.0);
    if (r->kept)
        printf("; pictures kept decoded (%s, %s): %.2f GiB", r->keep, r->cut,
               (double)r->kept / 1073741824.0);
    if (r->unreadable) printf("; %lld unreadable pictures skipped", (long long)r->unreadable);
    printf("\n");
}

static basin_image_run make_run(const options *o, const char *const *path, int paths,
                                const char *const *test) {
    basin_image_source train = {
        .path = path,
        .paths = paths,
        .split = "train",
        .limit = o->limit,
        .hold_out = o->hold_out,
        .seed = (uint64_t)((const basin_image_settings *)o->settings->values)->seed};
    basin_image_run run = {
        .settings = *(const basin_image_settings *)o->settings->values,
        .train = train,
        .out = o->out,
        .log = o->log,
        .resume = o->resume,
        .log_every = o->log_every,
        .test_every = o->test_every,
        .keep = o->keep,
        .cut = o->cut,
        .save_every = o->save_every,
    };
    if (o->hold_out) {
        run.test = train;
        run.test.held = true;
    } else if (o->test)
        run.test = (basin_image_source){.path = test, .paths = 1, .split = "test"};
    return run;
}

static int run(const void *values, int operands, char **operand) {
    options o = *(const options *)values;
    basin_error error;
    basin_image_outcome outcome;
    basin_cli_watch watch;
    if (o.start.print_config) return basin_print_config((&o)->settings, NULL);
    if (!operands) return basin_report_usage(&basin_command_image_train, "wants PICTURES...");
    if (o.hold_out && o.test)
        return basin_report_usage(&basin_command_image_train, "--hold-out and --test exclude each "
                                                              "other");
    basin_image_run job = make_run(&o, (const char *const *)operand, operands, &o.test);
    if (basin_option_backend(&job.backend, o.backend, o.threads, o.products, o.dtype, &error))
        return basin_report(&error);
    basin_cli_watch_begin(&watch, o.quiet);
    job.watch = &watch.watch;
    basin_status status = basin_image_train(&outcome, &job, &error);
    basin_cli_watch_end(&watch);
    basin_backend_close(job.backend);
    if (status) return basin_report(&error);
    if (outcome.finished_before)
        printf("%s is finished; there is no checkpoint to go on from\n", o.out);
    else if (o.json)
        print_json(&outcome, &o);
    else
        print_text(&outcome, &o);
    return outcome.stopped ? BASIN_EXIT_FAILURE : BASIN_EXIT_OK;
}

const basin_command basin_command_image_train = {
    .name = "image train",
    .summary = "Train a model that completes masked pictures",
    .operands = "PICTURES...",
    .operands_least = 0,
    .operands_most = 1000,
    .text = "PICTURES are folders of JPEG and PNG files, archives of them, idx files, CIFAR "
            "binaries or the folder of MNIST's or Fashion-MNIST's files; shapes: needs no file. "
            "The model file holds its whole configuration. A checkpoint stands beside it while it "
            "is trained: after a kill, the same command with --resume goes on.",
    .example = "  basin image train /usr/share/datasets/fashion-mnist -o fashion.safetensors\n"
               "  basin image train photos/ --preset imagenet --batch 64 --hold-out 50\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof(options),
    .task = "image",
    .settings_at = offsetof(options, settings),
    .start_at = offsetof(options, start),
    .run = run,
};
