/* basin image report: a page on an image model, or the document that it shows. */
#include "program/cli.h"
#include <sys/stat.h>

typedef struct options {
    BASIN_ARGS;
    const char *part;
    int64_t hold_out, limit, masks, shown;
} options;
#define OPTIONS options

static const basin_option table[] = {
    BASIN_TEXT(output, 'o', "output", "FILE", .writes = true, .text = "report.html"),
    BASIN_CHOICE(part, "part", "test|train|all", .needs = "hold-out=0", .text = "test"),
    BASIN_INTEGER(hold_out, "hold-out", "N", 0, 1e12),
    BASIN_INTEGER(limit, "limit", "N", 0, 1e12, .initial = 256),
    BASIN_INTEGER(masks, "masks", "K", 1, 1000, .initial = 1),
    BASIN_INTEGER(shown, "shown", "N", 1, 16, .initial = 6),
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTION_QUIET,
    BASIN_OPTION_JSON_FOR("output=report.html"),
    BASIN_OPTIONS_END,
};

typedef struct job {
    options *o;
    basin_image_model *model;
    basin_image_evaluate_result scores;
} job;

static basin_status prepare(void *context, basin_error *error) {
    const options *o = ((const job *)context)->o;
    for (int i = 1; i < o->operands; i++)
        if (basin_is_model(o->operand[i]))
            return basin_usage(error, "'%s' is a second model; needs MODEL PICTURES...",
                               o->operand[i]);
    return BASIN_OK;
}

/* The limit is on what is scored, and holding out comes first. */
static basin_status report(void *context, basin_error *error) {
    job *j = context;
    options *o = j->o;
    char name[400] = ""; /* as many paths as there is space for */
    for (int i = 1; i < o->operands; i++) {
        size_t used = strlen(name);
        snprintf(name + used, sizeof name - used, "%s%s", used ? ", " : "", o->operand[i]);
    }
    basin_image_source source = {.path = (const char *const *)o->operand + 1,
                                 .paths = o->operands - 1,
                                 .split = basin_split_of(o->part, o->hold_out > 0),
                                 .hold_out = o->hold_out,
                                 .max = o->limit};
    basin_image_report_options how = {.model_name = o->operand[0],
                                      .name = name,
                                      .source = &source,
                                      .masks = (int)o->masks,
                                      .shown = o->shown,
                                      .watch = &o->watch.watch};
    BASIN_TRY(basin_image_open(&j->model, o->operand[0], o->compute, error));
    return basin_image_report(o->json ? NULL : o->output, &j->scores, j->model, &how, error);
}

static basin_status print(void *context, basin_error *error) {
    const job *j = context;
    const basin_image_evaluate_result *scores = &j->scores;
    struct stat file;
    (void)error;
    if (j->o->json) return BASIN_OK;
    printf("%s: ", j->o->output);
    if (stat(j->o->output, &file) == 0) printf("%.1f MB, ", (double)file.st_size / 1e6);
    printf("masked MSE %.4f on %lld picture%s", scores->mse, (long long)scores->pictures,
           scores->pictures == 1 ? "" : "s");
    if (scores->unreadable) printf(", %lld unreadable", (long long)scores->unreadable);
    printf("\n");
    return BASIN_OK;
}

static void close_all(void *context) {
    job *j = context;
    basin_image_close(j->model);
    basin_image_evaluate_result_free(&j->scores);
}

const basin_command basin_command_image_report = {
    BASIN_COMMAND("image report", table),
    BASIN_USES(job, .prepare = prepare, .work = report, .finish = print, .close = close_all)};
