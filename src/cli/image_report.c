/* basin image report: one page on one model or several, or the document that it shows; and with
 * --positions a picture of their learned positions, as in the paper's figure of how beta and weight
 * decay shape them. */
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const basin_option table[] = {
    BASIN_TEXT(data, 'd', "data", "PATH", "The pictures, as an option."),
    BASIN_TEXT(output, 'o', "output", "FILE",
               "The page; a name that ends in .json gets the document alone.", .writes = true,
               .text = "report.html"),
    BASIN_TEXT(training.log, 0, "log", "FILE",
               "The log of the (first) model's training, to draw its learning curve."),
    BASIN_CHOICE(part, "part", "test|train|all",
                 "Which half of the pictures, where they have such halves.", .needs = "hold-out=0",
                 .text = "test"),
    BASIN_INTEGER(hold_out, "hold-out", "N", 0, 1e12,
                  "The N pictures that basin image train --hold-out N kept."),
    BASIN_INTEGER(limit, "limit", "N", 0, 1e12,
                  "Score only the first N, the best and the worst are among them; 0: all.",
                  .initial = 256),
    BASIN_INTEGER(masks, "masks", "K", 1, 1000, "Masks to score each picture with.", .initial = 1),
    BASIN_INTEGER(shown, "shown", "N", 1, 100, "Completed pictures to show.", .initial = 9),
    BASIN_INTEGER(traced, "traced", "N", 1, 16, "Pictures to show step by step.", .initial = 4),
    BASIN_INTEGER(extremes, "extremes", "N", 0, 50,
                  "So many of the best and of the worst pictures.", .initial = 6),
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTION_QUIET,
    BASIN_TEXT(
        positions, 0, "positions", "FILE",
        "Instead: draw the learned positions of up to 16 MODELs side by side into this PNG. A "
        "square of maps for each model from left to right: a map per patch, at its place, "
        "that shows how its position resembles all others, in one scale of colours from the "
        "least cosine to 1. Prints how alike positions are.",
        .writes = true),
    BASIN_OPTION_JSON_FOR("output=report.html"),
    BASIN_OPTIONS_END,
};

enum { MODELS = 16 }; /* of --positions */

/* What the page is about: operands by kind, in their order. */
typedef struct job {
    basin_args *o;
    const char **model, **path;
    int models, paths;
    char name[400];             /* of the pictures */
    basin_image_model **opened; /* [models] */
    basin_image_scores *scores; /* [models] */
    basin_image_positions_of figures[MODELS];
} job;

/* The first operand is a model whatever its name; of the others, model files are. */
static void sort_operands(job *s, const basin_args *o) {
    for (int i = 0; i < o->operands; i++)
        if (i == 0 || o->positions || basin_is_model(o->operand[i]))
            s->model[s->models++] = o->operand[i];
        else
            s->path[s->paths++] = o->operand[i];
    if (o->data) s->path[s->paths++] = o->data;
}

/* All paths where there is space for them, else the first ones and how many more. */
static void name_pictures(job *s) {
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

static void print_done(const basin_args *o, const job *s) {
    const basin_image_scores *scores = s->scores;
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
    basin_args *o = s->o;
    basin_image_source source = {.path = s->path,
                                 .paths = s->paths,
                                 .split = o->hold_out         ? "train"
                                          : o->part[0] == 'a' ? NULL
                                                              : o->part,
                                 .hold_out = o->hold_out,
                                 .most = o->limit};
    BASIN_TRY(BASIN_NEW(&s->scores, s->models, "models", error));
    basin_image_reporting reporting = {.model = s->model[0],
                                       .name = s->name,
                                       .source = &source,
                                       .masks = (int)o->masks,
                                       .shown = o->shown,
                                       .traced = o->traced,
                                       .extremes = o->extremes,
                                       .log = o->training.log,
                                       .watch = &o->watch.watch,
                                       .rival = s->opened + 1,
                                       .rival_name = s->model + 1,
                                       .rivals = s->models - 1};
    return basin_image_report(o->json ? NULL : o->output, s->scores, s->opened[0], &reporting,
                              error);
}

/* ---- positions ---- */

static double setting(const job *s, int i, const char *name) {
    double value;
    const basin_settings *settings = basin_image_get_settings(s->opened[i]);
    return basin_settings_get_number(&value, settings, name, NULL) ? 0 : value;
}

static void put_positions(basin_record *r, const void *context) {
    const job *s = context;
    basin_record_text(r, "picture", s->o->positions);
    basin_record_table(r, "models",
                       "from left to right; mean cosines of the positions of patches:");
    for (int i = 0; i < s->models; i++) {
        basin_record_row(r);
        basin_record_text(r, "model", s->model[i]);
        double beta = setting(s, i, "beta");
        basin_record_number(r, beta > 0 ? "beta" : ".beta", "%.4g", beta);
        if (beta <= 0) basin_record_format(r, "|beta", "1/sqrt(%.0f)", setting(s, i, "head_dim"));
        basin_record_number(r, "decay", "%.4g", setting(s, i, "decay"));
        basin_record_number(r, "cosine_of_next_patches|next patches", "%.3f", s->figures[i].next);
        basin_record_number(r, "cosine_of_any_patches|any patches", "%.3f", s->figures[i].any);
        basin_record_number(r, ".least_cosine", "%g", s->figures[i].least);
    }
    basin_record_end(r);
}

/* ---- the command ---- */

static basin_status prepare(void *context, basin_error *error) {
    job *s = context;
    const basin_args *o = s->o;
    if (o->positions && o->operands > MODELS)
        return basin_usage(error, "--positions: at most %d models", MODELS);
    BASIN_TRY(BASIN_NEW(&s->model, o->operands, "operands", error));
    BASIN_TRY(BASIN_NEW(&s->path, o->operands + 1, "operands", error));
    sort_operands(s, o);
    name_pictures(s);
    if (!o->positions && (s->paths < 1 || (o->data && s->paths > 1)))
        return basin_usage(error, "needs pictures, after the models or as --data PATH");
    return BASIN_OK;
}

static basin_status work(void *context, basin_error *error) {
    job *s = context;
    BASIN_TRY(BASIN_NEW(&s->opened, s->models, "models", error));
    for (int i = 0; i < s->models; i++)
        BASIN_TRY(basin_image_open(&s->opened[i], s->model[i], s->o->compute, error));
    if (!s->o->positions) return report(s, error);
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = {0};
    BASIN_TRY(basin_image_positions(&picture, s->figures, s->opened, s->models, error));
    return basin_picture_write_png(s->o->positions, &picture, error);
}

static basin_status print(void *context, basin_error *error) {
    const job *s = context;
    if (s->o->positions) return basin_record_print(s->o->json, put_positions, s, error);
    if (!s->o->json) print_done(s->o, s);
    return BASIN_OK;
}

static void close_all(void *context) {
    job *s = context;
    for (int i = 0; i < s->models && s->opened; i++) basin_image_close(s->opened[i]);
    for (int i = 0; i < s->models && s->scores; i++) basin_image_scores_free(&s->scores[i]);
    BASIN_FREE(s->scores, s->opened, s->model, s->path);
}

const basin_command basin_command_image_report = {
    "image report", table,
    BASIN_USES(job, .prepare = prepare, .work = work, .finish = print, .close = close_all),
    .least = 1};
