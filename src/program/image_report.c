/* basin image report: one page on one model or several, or the document that it shows. */
#include "program/cli.h"
#include <sys/stat.h>

typedef struct options {
    BASIN_ARGS;
    const char *part;
    int64_t hold_out, limit, masks, shown, traced, extremes;
} options;
#define OPTIONS options

static const basin_option table[] = {
    BASIN_TEXT(output, 'o', "output", "FILE", .writes = true, .text = "report.html"),
    BASIN_CHOICE(part, "part", "test|train|all", .needs = "hold-out=0", .text = "test"),
    BASIN_INTEGER(hold_out, "hold-out", "N", 0, 1e12),
    BASIN_INTEGER(limit, "limit", "N", 0, 1e12, .initial = 256),
    BASIN_INTEGER(masks, "masks", "K", 1, 1000, .initial = 1),
    BASIN_INTEGER(shown, "shown", "N", 1, 100, .initial = 9),
    BASIN_INTEGER(traced, "traced", "N", 1, 16, .initial = 4),
    BASIN_INTEGER(extremes, "extremes", "N", 0, 50, .initial = 6),
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTION_QUIET,
    BASIN_OPTION_JSON_FOR("output=report.html"),
    BASIN_OPTIONS_END,
};

/* What the page is about: operands by kind, in their order. */
typedef struct job {
    options *o;
    const char **model, **path;
    int models, paths;
    char name[400];                      /* of the pictures */
    basin_image_model **opened;          /* [models] */
    basin_image_evaluate_result *scores; /* [models] */
} job;

/* The first operand is a model whatever its name; others are models by their names. */
static void sort_operands(job *s, const options *o) {
    for (int i = 0; i < o->operands; i++)
        if (i == 0 || basin_is_model(o->operand[i]))
            s->model[s->models++] = o->operand[i];
        else
            s->path[s->paths++] = o->operand[i];
}

/* As many paths as there is space for. */
static void name_pictures(job *s) {
    size_t used = 0, size = sizeof s->name;
    for (int i = 0; i < s->paths && used < size; i++)
        used += (size_t)snprintf(s->name + used, size - used, "%s%s", i ? ", " : "", s->path[i]);
}

static void print_done(const options *o, const job *s) {
    const basin_image_evaluate_result *scores = s->scores;
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
static basin_status report(job *s, basin_error *error) {
    options *o = s->o;
    basin_image_source source = {.path = s->path,
                                 .paths = s->paths,
                                 .split = basin_split_of(o->part, o->hold_out > 0),
                                 .hold_out = o->hold_out,
                                 .max = o->limit};
    BASIN_TRY(BASIN_NEW(&s->scores, s->models, "models", error));
    basin_image_report_options how = {.model_name = s->model,
                                      .name = s->name,
                                      .source = &source,
                                      .masks = (int)o->masks,
                                      .shown = o->shown,
                                      .traced = o->traced,
                                      .extremes = o->extremes,
                                      .watch = &o->watch.watch};
    return basin_image_report(o->json ? NULL : o->output, s->scores, s->opened, s->models, &how,
                              error);
}

/* ---- the command ---- */

static basin_status prepare(void *context, basin_error *error) {
    job *s = context;
    const options *o = s->o;
    BASIN_TRY(BASIN_NEW(&s->model, o->operands, "operands", error));
    BASIN_TRY(BASIN_NEW(&s->path, o->operands, "operands", error));
    sort_operands(s, o);
    name_pictures(s);
    return s->paths ? BASIN_OK : basin_usage(error, "no pictures given after the models");
}

static basin_status work(void *context, basin_error *error) {
    job *s = context;
    BASIN_TRY(BASIN_NEW(&s->opened, s->models, "models", error));
    for (int i = 0; i < s->models; i++)
        BASIN_TRY(basin_image_open(&s->opened[i], s->model[i], s->o->compute, error));
    return report(s, error);
}

static basin_status print(void *context, basin_error *error) {
    const job *s = context;
    (void)error;
    if (!s->o->json) print_done(s->o, s);
    return BASIN_OK;
}

static void close_all(void *context) {
    job *s = context;
    for (int i = 0; i < s->models && s->opened; i++) basin_image_close(s->opened[i]);
    for (int i = 0; i < s->models && s->scores; i++)
        basin_image_evaluate_result_free(&s->scores[i]);
    BASIN_FREE(s->scores, s->opened, s->model, s->path);
}

const basin_command basin_command_image_report = {
    BASIN_COMMAND("image report", table),
    BASIN_USES(job, .prepare = prepare, .work = work, .finish = print, .close = close_all),
    .min_operands = 1};
