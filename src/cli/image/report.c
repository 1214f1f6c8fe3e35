/* basin image report: one page of HTML on a model. */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/watch.h"
#include "task/image/report.h"

typedef struct options {
    const char *data, *output, *log, *split, *backend;
    int64_t limit, hold_out, masks, shown, traced, extremes, threads;
    bool quiet;
} options;

static const options defaults = {.output = "report.html",
                                 .split = "test",
                                 .backend = "cpu",
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
    BASIN_CHOICE(options, split, "split", "test|train|all",
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
    BASIN_OPTION_BACKEND(options),
    BASIN_OPTION_THREADS(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

static basin_status write_report(const options *o, const char *model, const char *source,
                                 basin_image_session *session, const basin_image_data *data,
                                 basin_image_scores *scores, basin_error *error) {
    basin_image_report report;
    basin_cli_watch watch;
    basin_cli_watch_begin(&watch, o->quiet);
    basin_image_report_spec spec = {.model = model,
                                    .source = source,
                                    .data = data,
                                    .masks = (int)o->masks,
                                    .shown = o->shown,
                                    .traced = o->traced,
                                    .extremes = o->extremes,
                                    .log = o->log,
                                    .watch = &watch.watch};
    basin_status status = basin_image_report_new(&report, session, &spec, error);
    basin_cli_watch_end(&watch);
    if (status) return status;
    status = basin_image_report_write(o->output, &report, error);
    *scores = report.scores;
    scores->index = NULL;
    scores->picture_mse = NULL;
    basin_image_report_free(&report);
    return status;
}

static void tell(const options *o, const basin_image_scores *scores) {
    struct stat file;
    printf("%s: ", o->output);
    if (stat(o->output, &file) == 0) printf("%.1f MB, ", (double)file.st_size / 1e6);
    printf("masked MSE %.4f on %lld pictures", scores->mse, (long long)scores->pictures);
    if (scores->unreadable) printf(", %lld unreadable", (long long)scores->unreadable);
    printf("\n");
}

/* The limit is on what is scored, and holding out comes first: it is applied here. */
static basin_status open_data(basin_image_data *data, const options *o,
                              const basin_image_session *session, const char *const *path,
                              int paths, basin_error *error) {
    bool all = o->split[0] == 'a';
    basin_image_source source = {.path = path,
                                 .paths = paths,
                                 .split = o->hold_out ? "train"
                                          : all       ? NULL
                                                      : o->split,
                                 .hold_out = o->hold_out,
                                 .held = true,
                                 .seed = (uint64_t)session->settings.seed};
    basin_status status = basin_image_data_open(data, &source, error);
    if (!status && o->limit && o->limit < data->items) data->items = o->limit;
    return status;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    const char *const *path = o->data ? &o->data : (const char *const *)(operand + 1);
    int paths = o->data ? 1 : operands - 1;
    if (paths < 1 || (o->data && operands > 1))
        return basin_report_usage(&basin_command_image_report,
                                  "wants pictures, after the model or as --data PATH");
    basin_backend *backend = NULL;
    basin_image_session session = {0};
    basin_image_data data = {0};
    basin_image_scores scores;
    basin_error error;
    basin_status status = basin_backend_open(&backend, o->backend, (int)o->threads, &error);
    if (!status) status = basin_image_session_open(&session, operand[0], backend, &error);
    if (!status) status = open_data(&data, o, &session, path, paths, &error);
    if (!status) status = write_report(o, operand[0], path[0], &session, &data, &scores, &error);
    basin_image_data_close(&data);
    basin_image_session_close(&session);
    basin_backend_close(backend);
    if (status) return basin_report(&error);
    tell(o, &scores);
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
