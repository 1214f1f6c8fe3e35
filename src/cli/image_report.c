/* basin image report: one page on one model or several, or the document that it shows; and with
 * --positions a picture of their learned positions, as in the paper's figure of how beta and weight
 * decay shape them. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/try.h"
#include "cli/image.h"
#include "cli/record.h"
#include "cli/watch.h"

typedef struct options {
    const char *data, *output, *log, *split, *positions;
    basin_compute_flags compute;
    int64_t limit, hold_out, masks, shown, traced, extremes;
    bool json, quiet;
} options;

static const options defaults = {.output = "report.html",
                                 .split = "test",
                                 .compute = BASIN_COMPUTE_DEFAULT,
                                 .limit = 256,
                                 .masks = 1,
                                 .shown = 9,
                                 .traced = 4,
                                 .extremes = 6};

static const basin_option table[] = {
    BASIN_TEXT(options, data, 'd', "data", "PATH", "The pictures, as an option."),
    BASIN_TEXT(options, output, 'o', "output", "FILE",
               "The page; a name that ends in .json gets the document alone.", .writes = true),
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
    BASIN_COMPUTE_OPTIONS(options),
    BASIN_OPTION_QUIET(options),
    BASIN_TEXT(
        options, positions, 0, "positions", "FILE",
        "Instead: draw the learned positions of up to 16 MODELs side by side into this PNG. A "
        "square of maps for each model from left to right: a map per patch, at its place, "
        "that shows how its position resembles all others, in one scale of colours from the "
        "least cosine to 1. Prints how alike positions are.",
        .writes = true),
    BASIN_OPTION_JSON_FOR(options, "output=report.html"),
    BASIN_OPTIONS_END,
};

/* What the page is about: operands by kind, in their order. */
typedef struct subjects {
    const char **model, **path;
    int models, paths;
    char name[400]; /* of the pictures */
} subjects;

/* The first operand is a model whatever its name; of the others, model files are. */
static void sort_operands(subjects *s, const options *o, int operands, char **operand) {
    for (int i = 0; i < operands; i++) {
        bool model = i == 0 || basin_ends_with(operand[i], ".safetensors") ||
                     basin_ends_with(operand[i], ".npz");
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

static void print_done(const options *o, const subjects *s, const basin_image_scores *scores) {
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
                                 basin_image_model **model, basin_session *session,
                                 basin_error *error) {
    BASIN_TRY(basin_session_open(session, &o->compute, o->quiet, error));
    basin_image_source source = {.path = s->path,
                                 .paths = s->paths,
                                 .split = o->hold_out          ? "train"
                                          : o->split[0] == 'a' ? NULL
                                                               : o->split,
                                 .hold_out = o->hold_out,
                                 .most = o->limit};
    basin_image_reporting reporting = {.model = s->model[0],
                                       .name = s->name,
                                       .source = &source,
                                       .masks = (int)o->masks,
                                       .shown = o->shown,
                                       .traced = o->traced,
                                       .extremes = o->extremes,
                                       .log = o->log,
                                       .watch = &session->watch.watch,
                                       .rival = model + 1,
                                       .rival_name = s->model + 1,
                                       .rivals = s->models - 1};
    for (int i = 0; i < s->models; i++)
        BASIN_TRY(basin_image_open(&model[i], s->model[i], session->backend, error));
    return basin_image_report(o->json ? NULL : o->output, scores, model[0], &reporting, error);
}

static basin_status report(const options *o, const subjects *s, basin_error *error) {
    BASIN_FREE_AT_EXIT basin_image_scores *scores = NULL;
    BASIN_FREE_AT_EXIT basin_image_model **model = NULL;
    basin_session session = {0};
    BASIN_TRY(BASIN_NEW(&scores, s->models, "models", error));
    BASIN_TRY(BASIN_NEW(&model, s->models, "models", error));
    basin_status status = write_report(o, scores, s, model, &session, error);
    basin_cli_watch_end(&session.watch);
    if (!status && !o->json) print_done(o, s, scores);
    for (int i = 0; i < s->models; i++) basin_image_close(model[i]);
    for (int i = 0; i < s->models; i++) basin_image_scores_free(&scores[i]);
    basin_session_close(&session);
    return status;
}

/* ---- positions ---- */

enum { MODELS = 16 };

typedef struct gallery {
    basin_backend *backend;
    basin_image_model *model[MODELS];
    basin_image_positions_of figures[MODELS];
    int count;
    const char *output;
    char **path;
} gallery;

static double setting(const gallery *g, int i, const char *name) {
    double value;
    const basin_settings *settings = basin_image_get_settings(g->model[i]);
    return basin_settings_get_number(&value, settings, name, NULL) ? 0 : value;
}

static void put_positions(basin_record *r, const void *context) {
    const gallery *g = context;
    basin_record_text(r, "picture", g->output);
    basin_record_table(r, "models",
                       "from left to right; mean cosines of the positions of patches:");
    for (int i = 0; i < g->count; i++) {
        basin_record_row(r);
        basin_record_text(r, "model", g->path[i]);
        double beta = setting(g, i, "beta");
        if (beta > 0 || !basin_record_is_text(r))
            basin_record_number(r, "beta", "%.4g", beta);
        else
            basin_record_format(r, "beta", "1/sqrt(%.0f)", setting(g, i, "head_dim"));
        basin_record_number(r, "decay", "%.4g", setting(g, i, "decay"));
        basin_record_number(r, "cosine_of_next_patches|next patches", "%.3f", g->figures[i].next);
        basin_record_number(r, "cosine_of_any_patches|any patches", "%.3f", g->figures[i].any);
        basin_record_number(r, ".least_cosine", "%g", g->figures[i].least);
        basin_record_end(r);
    }
    basin_record_end(r);
}

static basin_status draw_positions(gallery *g, basin_picture *picture, int models, const options *o,
                                   basin_error *error) {
    BASIN_TRY(basin_compute_open(&g->backend, &o->compute, error));
    for (; g->count < models; g->count++)
        BASIN_TRY(basin_image_open(&g->model[g->count], g->path[g->count], g->backend, error));
    BASIN_TRY(basin_image_positions(picture, g->figures, g->model, g->count, error));
    BASIN_TRY(basin_picture_write_png(o->positions, picture, error));
    return basin_record_print(o->json, put_positions, g, error);
}

static basin_status positions(const options *o, int models, char **model, basin_error *error) {
    gallery g = {.output = o->positions, .path = model};
    basin_picture picture = {0};
    if (models > MODELS) return basin_usage(error, "--positions: at most %d models", MODELS);
    basin_status status = draw_positions(&g, &picture, models, o, error);
    for (int i = 0; i < g.count; i++) basin_image_close(g.model[i]);
    basin_picture_free(&picture);
    basin_backend_close(g.backend);
    return status;
}

BASIN_RUN(run) {
    const options *o = values;
    BASIN_FREE_AT_EXIT const char **model = NULL;
    BASIN_FREE_AT_EXIT const char **path = NULL;
    if (o->positions) return positions(o, operands, operand, error);
    BASIN_TRY(BASIN_NEW(&model, operands, "operands", error));
    BASIN_TRY(BASIN_NEW(&path, operands + 1, "operands", error));
    subjects s = {.model = model, .path = path};
    sort_operands(&s, o, operands, operand);
    name_pictures(&s);
    if (s.paths < 1 || (o->data && s.paths > 1))
        return basin_usage(error, "needs pictures, after the models or as --data PATH");
    return report(o, &s, error);
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
               "  basin image report full.safetensors no-hopfield.safetensors photos\n"
               "  basin image report a.safetensors b.safetensors --positions figure.png\n",
    BASIN_COMMAND_OPTIONS(table, defaults),
    .run = run,
};
