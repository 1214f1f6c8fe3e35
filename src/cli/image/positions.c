/* basin image positions: learned positions of several models side by side, as in the paper's
 * figure of how beta and weight decay shape them. */
#include <stdio.h>
#include <stdlib.h>

#include "basin/tasks/image.h"
#include "cli/command.h"
#include "cli/table.h"
#include "io/json_writer.h"

enum { MODELS = 16 };

typedef struct options {
    const char *output;
    bool json;
} options;

static const options defaults = {.output = "positions.png"};

static const basin_option table[] = {
    BASIN_TEXT(options, output, 'o', "output", "FILE", "The PNG to write.", .writes = true),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

typedef struct gallery {
    basin_backend *backend;
    basin_image_model *model[MODELS];
    basin_image_positions_of figures[MODELS];
    int count;
} gallery;

static double setting(const gallery *g, int i, const char *name) {
    char text[64];
    basin_error error;
    const basin_settings *settings = basin_image_get_settings(g->model[i]);
    return basin_settings_get(text, sizeof text, settings, name, &error) ? 0 : strtod(text, NULL);
}

static bool print_table(const gallery *g, char **path) {
    static const char *const head[] = {"panel", "model",        "beta",
                                       "decay", "next patches", "any patches"};
    basin_table t = {.layout = "rlrrrr"};
    for (int i = 0; i < 6; i++) basin_table_add(&t, "%s", head[i]);
    for (int i = 0; i < g->count; i++) {
        double beta = setting(g, i, "beta");
        basin_table_add(&t, "%d", i + 1);
        basin_table_add(&t, "%s", path[i]);
        if (beta > 0)
            basin_table_add(&t, "%.4g", beta);
        else
            basin_table_add(&t, "1/sqrt(%.0f)", setting(g, i, "head_dim"));
        basin_table_add(&t, "%.4g", setting(g, i, "decay"));
        basin_table_add(&t, "%.3f", g->figures[i].next);
        basin_table_add(&t, "%.3f", g->figures[i].any);
    }
    return basin_table_print(&t, stdout, 2);
}

static void print_json(const gallery *g, char **path, const char *output) {
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "picture", output);
    basin_json_array(&json, "models");
    for (int i = 0; i < g->count; i++) {
        basin_json_object(&json, NULL);
        basin_json_text(&json, "model", path[i]);
        basin_json_number(&json, "beta", setting(g, i, "beta"));
        basin_json_number(&json, "decay", setting(g, i, "decay"));
        basin_json_number(&json, "cosine_of_next_patches", g->figures[i].next);
        basin_json_number(&json, "cosine_of_any_patches", g->figures[i].any);
        basin_json_number(&json, "least_cosine", g->figures[i].least);
        basin_json_end(&json);
    }
    basin_json_end(&json);
    basin_json_end(&json);
}

static int print(const gallery *g, const options *o, char **path) {
    if (o->json) {
        print_json(g, path, o->output);
        return BASIN_EXIT_OK;
    }
    printf("%s, from left to right; mean cosines of the positions of patches:\n", o->output);
    return print_table(g, path) ? BASIN_EXIT_OK : BASIN_EXIT_FAILURE;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    gallery g = {0};
    basin_picture picture = {0};
    basin_error error;
    basin_status status = basin_backend_open(&g.backend, NULL, &error);
    for (int i = 0; i < operands && !status; i++) {
        status = basin_image_open(&g.model[i], operand[i], g.backend, &error);
        if (!status) g.count++;
    }
    if (!status) status = basin_image_positions(&picture, g.figures, g.model, g.count, &error);
    if (!status) status = basin_picture_write_png(o->output, &picture, &error);
    int code = status ? basin_report(&error) : print(&g, o, operand);
    for (int i = 0; i < g.count; i++) basin_image_close(g.model[i]);
    basin_picture_free(&picture);
    basin_backend_close(g.backend);
    return code;
}

const basin_command basin_command_image_positions = {
    .name = "image positions",
    .summary = "Draw the learned positions of several models side by side",
    .operands = "MODEL...",
    .operands_least = 1,
    .operands_most = MODELS,
    .text = "One picture, a square of maps for each model from left to right: a map a patch, at "
            "its place, that shows how its position resembles all others, all in one scale of "
            "colours from the least cosine to 1. Models trained with different --beta and --decay "
            "give the appendix's figure. Prints how alike positions are, of patches next to each "
            "other and of any two.",
    .example = "  basin image positions beta-0.05.safetensors beta-0.2.safetensors -o figure.png\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
