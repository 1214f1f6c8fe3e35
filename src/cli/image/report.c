/* basin image report: one page of HTML on one model or several. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    BASIN_TEXT(options, output, 'o', "output", "FILE", "The page.", .writes = true),
    BASIN_TEXT(options, log, 0, "log", "FILE",
               "The log of the (first) model's training, to draw its learning curve."),
    BASIN_CHOICE(options, split, "part", "test|train|all",
                 "Which half of the pictures, where they have such halves.", .needs = "hold-out=0"),
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

/* What the page is about: operands by kind, in their order. */
typedef struct subjects {
    const char **model, **path;
    int models, paths;
    char name[400]; /* of the pictures */
} subjects;

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

/* The first operand is a model whatever its name; of the others, model files are. */
static void sort_operands(subjects *s, const options *o, int operands, char **operand) {
    for (int i = 0; i < operands; i++) {
        bool model = i == 0 || ends_in(operand[i], ".safetensors") || ends_in(operand[i], ".npz");
        if (model)
            s->model[s->models++] = operand[i];
        else
            s->path[s->paths++] = operand[i];
    }
    if (o->data) s->path[s->paths++] = o->data;
}

/* All paths where there is room for them, else the first ones and how many more. */
static void name_pictures(subjects *s) {
    size_t used = 0;
    for (int i = 0; i < s->paths; i++) {
        size_t room = sizeof s->name - used;
        bool fits = strlen(s->path[i]) + 40 < room;
        if (!fits && i > 0) {
            snprintf(s->name + used, room, " and %d more", s->paths - i);
            return;
        }
        used += (size_t)snprintf(s->name + used, room, "%s%.300s", i ? ", " : "", s->path[i]);
    }
}

static void tell(const options *o, const subjects *s, const basin_image_scores *scores) {
    struct stat file;
    printf("%s: ", o->output);
    if (stat(o->output, &file) == 0) printf("%.1f MB, ", (double)file.st_size / 1e6);
    if (s->models == 1) printf("masked MSE %.4f ", scores->mse);
    printf("on %lld picture%s", (long long)scores->pictures, scores->pictures == 1 ? "" : "s");
    if (scores->unreadable) printf(", %lld unreadable", (long long)scores->unreadable);
    printf("\n");
    for (int i = 0; i < s->models && s->models > 1; i++)
        printf("  %c  %s: masked MSE %.4f\n", 'A' + i, s->model[i], scores[i].mse);
}

/* The limit is on what is scored, and holding out comes first. */
static basin_status write_report(const options *o, basin_image_scores *scores, const subjects *s,
                                 basin_image_model **model, basin_error *error) {
    basin_backend *backend = NULL;
    basin_cli_watch watch;
    basin_cli_watch_begin(&watch, o->quiet);
    basin_image_source source = {.size = sizeof source,
                                 .path = s->path,
                                 .paths = s->paths,
                                 .split = o->hold_out          ? "train"
                                          : o->split[0] == 'a' ? NULL
                                                               : o->split,
                                 .hold_out = o->hold_out,
                                 .most = o->limit};
    basin_image_reporting reporting = {.size = sizeof reporting,
                                       .model = s->model[0],
                                       .name = s->name,
                                       .source = &source,
                                       .masks = (int)o->masks,
                                       .shown = o->shown,
                                       .traced = o->traced,
                                       .extremes = o->extremes,
                                       .log = o->log,
                                       .watch = &watch.watch,
                                       .rival = model + 1,
                                       .rival_name = s->model + 1,
                                       .rivals = s->models - 1};
    basin_status status =
        basin_option_backend(&backend, o->backend, o->threads, o->products, o->dtype, error);
    for (int i = 0; i < s->models && !status; i++)
        status = basin_image_open(&model[i], s->model[i], backend, error);
    if (!status) status = basin_image_report(o->output, scores, model[0], &reporting, error);
    basin_cli_watch_end(&watch);
    for (int i = 0; i < s->models; i++) basin_image_close(model[i]);
    basin_backend_close(backend);
    return status;
}

static int report(const options *o, const subjects *s) {
    basin_image_scores *scores = calloc((size_t)s->models, sizeof *scores);
    basin_image_model **model = calloc((size_t)s->models, sizeof(*model));
    basin_error error;
    basin_status status = scores && model ? write_report(o, scores, s, model, &error)
                                          : basin_fail(&error, BASIN_NO_MEMORY,
                                                       "out of memory for %d models", s->models);
    if (!status) tell(o, s, scores);
    for (int i = 0; i < s->models && scores; i++) basin_image_scores_free(&scores[i]);
    free(scores);
    free(model);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    subjects s = {.model = calloc((size_t)operands, sizeof *s.model),
                  .path = calloc((size_t)operands + 1, sizeof *s.path)};
    basin_error error;
    int code;
    if (s.model && s.path) {
        sort_operands(&s, o, operands, operand);
        name_pictures(&s);
    }
    if (!s.model || !s.path) {
        basin_fail(&error, BASIN_NO_MEMORY, "out of memory for %d operands", operands);
        code = basin_report(&error);
    } else if (s.paths < 1 || (o->data && s.paths > 1)) {
        code = basin_report_usage(&basin_command_image_report,
                                  "wants pictures, after the models or as --data PATH");
    } else {
        code = report(o, &s);
    }
    free(s.model);
    free(s.path);
    return code;
}

const basin_command basin_command_image_report = {
    .name = "image report",
    .summary = "Write a page on image models: completed pictures, descent, attention, memories",
    .operands = "MODEL... PICTURES...",
    .operands_least = 1,
    .operands_most = INT_MAX,
    .text = "One HTML file that needs nothing else and no network: scores beside those of the mean "
            "colour; completed pictures with maps of their errors; a slider through the steps of "
            "the descent with tokens and forces decoded; where a clicked patch looks, by head and "
            "step; energies; memories, keys and queries as patches; positions; the best and the "
            "worst pictures; parameters and settings. Several models, up to 8, are compared on the "
            "same pictures and masks. The first operand is a model, and so are others that end in "
            ".safetensors or .npz; the rest are pictures, as basin image train takes them. A click "
            "shows a picture large.",
    .example = "  basin image report model.safetensors /usr/share/datasets/fashion-mnist\n"
               "  basin image report model.safetensors photos --hold-out 50 --log train.jsonl\n"
               "  basin image report full.safetensors no-hopfield.safetensors photos\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
