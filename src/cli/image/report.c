/* basin image report: one page of HTML on a model. */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "basin/tasks/image.h"
#include "cli/command.h"
#include "cli/watch.h"

typedef struct options {
    const char *data, *output, *log, *split, *backend, *products, *dtype;
    int64_t limit, hold_out, masks, shown, traced, extremes, threads;
    bool quiet;
} options;

static const options defaults = {.output = "report.html",
                                 .split = "test",
                                 .backend = "cpu",
                                 .products = "f32",
                                 .limit = 256,
                                 .masks = 1,
                                 .shown = 9,
                                 .traced = 4,
                                 .extremes = 6};

static const basin_option table[] = {
    BASIN_TEXT(options, data, 'd', "data", "PATH", "The pictures, as an option."),
    BASIN_TEXT(options, output, 'o', "output", "FILE", "The page."),
    BASIN_TEXT(options, log, 0, "log", "FILE",
               "The log of the training, to draw its learning curve."),
    BASIN_CHOICE(options, split, "part", "test|train|all",
                 "Which half of the pictures, where they have such halves."),
    BASIN_INTEGER(options, hold_out, "hold-out", "N", 0, 1e12,
                  "The N pictures that basin image train --hold-out N kept."),
    BASIN_INTEGER(options, limit, "limit", "N", 0, 1e12,
                  "Score only the first N, the best and the worst are among them; 0: all."),
    BASIN_INTEGER(options, masks, "masks", "K", 1, 1000, "Masks to score each picture with."),
    BASIN_INTEGER(options, shown, "shown", "N", 1, 100, "Completed pictures to show."),
    BASIN_INTEGER(options, traced, "traced", "N", 1, 16, "Pictures to show step by step."),
    BASIN_INTEGER(options, extremes, "extremes", "N", 0, 50,
                  "So many of the best and of the worst pictures."),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

static void tell(const options *o, const basin_image_scores *scores) {
    struct stat file;
    printf("%s: ", o->output);
    if (stat(o->output, &file) == 0) printf("%.1f MB, ", (double)file.st_size / 1e6);
    printf("masked MSE %.4f on %lld pictures", scores->mse, (long long)scores->pictures);
    if (scores->unreadable) printf(", %lld unreadable", (long long)scores->unreadable);
    printf("\n");
}

/* The limit is on what is scored, and holding out comes first. */
static basin_status write_report(const options *o, basin_image_scores *scores, const char *file,
                                 const char *const *path, int paths, basin_error *error) {
    basin_backend *backend = NULL;
    basin_image_model *model = NULL;
    basin_cli_watch watch;
    basin_cli_watch_begin(&watch, o->quiet);
    basin_image_source source = {.size = sizeof source,
                                 .path = path,
                                 .paths = paths,
                                 .split = o->hold_out          ? "train"
                                          : o->split[0] == 'a' ? NULL
                                                               : o->split,
                                 .hold_out = o->hold_out,
                                 .most = o->limit};
    basin_image_reporting reporting = {.size = sizeof reporting,
                                       .model = file,
                                       .name = path[0],
                                       .source = &source,
                                       .masks = (int)o->masks,
                                       .shown = o->shown,
                                       .traced = o->traced,
                                       .extremes = o->extremes,
                                       .log = o->log,
                                       .watch = &watch.watch};
    basin_status status =
        basin_option_backend(&backend, o->backend, o->threads, o->products, o->dtype, error);
    if (!status) status = basin_image_open(&model, file, backend, error);
    if (!status) status = basin_image_report(o->output, scores, model, &reporting, error);
    basin_cli_watch_end(&watch);
    basin_image_close(model);
    basin_backend_close(backend);
    return status;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    const char *const *path = o->data ? &o->data : (const char *const *)(operand + 1);
    int paths = o->data ? 1 : operands - 1;
    basin_image_scores scores;
    basin_error error;
    if (paths < 1 || (o->data && operands > 1))
        return basin_report_usage(&basin_command_image_report,
                                  "wants pictures, after the model or as --data PATH");
    if (write_report(o, &scores, operand[0], path, paths, &error)) return basin_report(&error);
    tell(o, &scores);
    basin_image_scores_free(&scores);
    return BASIN_EXIT_OK;
}

const basin_command basin_command_image_report = {
    .name = "image report",
    .summary = "Write a page on an image model: completed pictures, descent, memories",
    .operands = "MODEL PICTURES...",
    .operands_least = 1,
    .operands_most = INT_MAX,
    .text = "One HTML file that needs nothing else and no network: completed pictures; a slider "
            "through the steps of the descent with tokens and forces decoded; energies; "
            "memories, keys and queries as patches; positions; the best and the worst pictures; "
            "parameters and settings. PICTURES are what basin image train takes.",
    .example = "  basin image report model.safetensors /usr/share/datasets/fashion-mnist\n"
               "  basin image report model.safetensors photos --hold-out 50 --log train.jsonl\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
