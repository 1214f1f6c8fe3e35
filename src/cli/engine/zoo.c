/* basin zoo list, show, descend: published models that state an energy, and whether their updates
 * go down it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "io/file.h"
#include "io/json_writer.h"
#include "verify/specimen.h"
#include "view/plot.h"

typedef struct options {
    const char *svg;
    double scale;
    int64_t seeds, seed, steps;
    bool json, quiet;
} options;

static const options defaults = {.scale = 1, .seeds = 16, .steps = 20};

#define SEEDS                                                                                      \
    BASIN_INTEGER(options, seeds, "seeds", "N", 1, 100000,                                         \
                  "Draws of weights and tokens that the verdict is measured on.")
#define STEPS                                                                                      \
    BASIN_INTEGER(options, steps, "steps", "T", 1, BASIN_SPECIMEN_STEPS, "Steps of each descent.")

static double share(int64_t part, int64_t of) { return of ? 100 * (double)part / (double)of : 0; }

static int report_unknown(const basin_command *command, const char *name) {
    return basin_report_usage(command, "no model '%s' in the zoo (see 'basin zoo list')", name);
}

/* ---- list ---- */

static const basin_option list_table[] = {
    SEEDS,
    STEPS,
    BASIN_OPTION_SEED(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

static void verdict_json(basin_json *json, const basin_species *species,
                         const basin_specimen_verdict *v) {
    basin_json_text(json, "model", species->name);
    basin_json_text(json, "reference", species->reference);
    basin_json_text(json, "descends", basin_specimen_answer(v));
    basin_json_integer(json, "steps", v->steps);
    basin_json_integer(json, "rises", v->rises);
    basin_json_integer(json, "small_rises", v->small_rises);
    basin_json_number(json, "mean_cosine", v->mean_cosine);
    basin_json_number(json, "least_cosine", v->least_cosine);
}

static void verdict_row(basin_table *rows, const basin_species *species,
                        const basin_specimen_verdict *v) {
    basin_table_add(rows, "%s", species->name);
    basin_table_add(rows, "%s", species->reference);
    basin_table_add(rows, "%s", basin_specimen_answer(v));
    basin_table_add(rows, "%.0f %%", share(v->rises, v->steps));
    basin_table_add(rows, "%.0f %%", share(v->small_rises, 2 * v->steps));
    basin_table_add(rows, "%.3f", v->mean_cosine);
}

static int run_list(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_table rows = {.layout = "lllrrr"};
    basin_json json = {0};
    basin_error error;
    static const char *const head[] = {"model",      "reference",        "descends",
                                       "steps rise", "small steps rise", "cosine"};
    (void)operands, (void)operand;
    for (int i = 0; i < 6 && !o->json; i++) basin_table_add(&rows, "%s", head[i]);
    if (o->json) json = basin_json_begin(stdout), basin_json_array(&json, "models");
    int count = 0;
    while (basin_species_all[count].name) count++;
    basin_progress progress = basin_progress_begin("judging", count, o->quiet || o->json);
    for (const basin_species *at = basin_species_all; at->name; at++) {
        basin_specimen_verdict v;
        basin_progress_show(&progress, at - basin_species_all, (const char *[]){at->name, NULL});
        if (basin_specimen_judge(&v, at, NULL, (int)o->seeds, (uint64_t)o->seed, (int)o->steps,
                                 &error)) {
            basin_progress_end(&progress);
            return basin_report(&error);
        }
        if (o->json) {
            basin_json_object(&json, NULL);
            verdict_json(&json, at, &v);
            basin_json_end(&json);
        } else {
            verdict_row(&rows, at, &v);
        }
    }
    basin_progress_end(&progress);
    if (o->json) return basin_json_end(&json), basin_json_end(&json), BASIN_EXIT_OK;
    if (!basin_table_print(&rows, stdout, 0)) return BASIN_EXIT_FAILURE;
    printf(
        "\nof %lld draws of weights and tokens, %lld steps each; more draws (--seeds) find rarer "
        "rises\n",
        (long long)o->seeds, (long long)o->steps);
    return BASIN_EXIT_OK;
}

const basin_command basin_command_zoo_list = {
    .name = "zoo list",
    .summary = "List the models, and whether their updates go down their energies",
    .operands = "",
    .operands_least = 0,
    .operands_most = 0,
    .text = "Every model runs on random weights and tokens, in double. Descends: always, if no "
            "step of the published size raised the stated energy; for small steps, if none a "
            "thousand times smaller did, from the start and from the end of these; not at all, "
            "otherwise. Cosine: between the update and the energy's gradient by the activations, "
            "downwards, the mean over the draws.",
    .example = "  basin zoo list\n  basin zoo list --seeds 100 --json\n",
    .option = list_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run_list,
};

/* ---- show ---- */

static const basin_option show_table[] = {BASIN_OPTIONS_END};

static int run_show(const void *values, int operands, char **operand) {
    const basin_species *species = basin_species_find(operand[0]);
    (void)values, (void)operands;
    if (!species) return report_unknown(&basin_command_zoo_show, operand[0]);
    printf("%s (%s)\n\n", species->title, species->reference);
    for (const char *at = species->formula; *at;) {
        size_t length = strcspn(at, "\n");
        printf("    %.*s\n", (int)length, at);
        at += length + (at[length] == '\n');
    }
    printf("\ncode: %s\n", species->code);
    return BASIN_EXIT_OK;
}

const basin_command basin_command_zoo_show = {
    .name = "zoo show",
    .summary = "Print a model's energy and update",
    .operands = "MODEL",
    .operands_least = 1,
    .operands_most = 1,
    .text = "Models are those that basin zoo list names.",
    .example = "  basin zoo show hyperset\n",
    .option = show_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run_show,
};

/* ---- descend ---- */

static const basin_option descend_table[] = {
    STEPS,
    BASIN_REAL(options, scale, "scale", "X", 1e-9, 1e9,
               "Steps so many times as large as the published ones."),
    SEEDS,
    BASIN_TEXT(options, svg, 0, "svg", "FILE", "Draw the energy by step there.", .writes = true),
    BASIN_OPTION_SEED(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

typedef struct descent {
    const options *o;
    const basin_species *species;
    basin_bundle *file;
    basin_specimen_run run;
    basin_specimen_verdict verdict;
} descent;

static basin_status draw(const descent *d, basin_error *error) {
    double x[BASIN_SPECIMEN_STEPS + 1];
    basin_writer writer;
    for (int t = 0; t <= d->run.steps; t++) x[t] = t;
    basin_plot_line line = {
        .name = d->species->name, .x = x, .y = d->run.energy, .count = d->run.steps + 1};
    basin_plot plot = {.title = d->species->title,
                       .x_label = "step",
                       .y_label = "energy",
                       .line = &line,
                       .lines = 1,
                       .x_whole = true};
    basin_status status = basin_writer_create(&writer, d->o->svg, error);
    if (status) return status;
    basin_plot_write(writer.file, &plot);
    return basin_writer_commit(&writer, error);
}

static bool print_descent(const descent *d) {
    const basin_specimen_verdict *v = &d->verdict;
    basin_table rows = {.layout = "rr"};
    basin_table_add(&rows, "step");
    basin_table_add(&rows, "energy");
    for (int t = 0; t <= d->run.steps; t++) {
        basin_table_add(&rows, "%d", t);
        basin_table_add(&rows, "%.6f", d->run.energy[t]);
    }
    if (!basin_table_print(&rows, stdout, 0)) return false;
    printf("\ndescends %s%s: of %lld steps %lld raised the energy, of %lld a thousand times "
           "smaller %lld\n",
           basin_specimen_answer(v), d->o->scale == 1 ? "" : ", at the published size of steps",
           (long long)v->steps, (long long)v->rises, 2 * (long long)v->steps,
           (long long)v->small_rises);
    printf("cosine of the update and the gradient downwards: %.4f, at least %.4f\n", v->mean_cosine,
           v->least_cosine);
    return true;
}

static void print_json(const descent *d) {
    basin_json json = basin_json_begin(stdout);
    verdict_json(&json, d->species, &d->verdict);
    basin_json_numbers(&json, "energy", d->run.energy, d->run.steps + 1);
    basin_json_end(&json);
}

static basin_status descend(descent *d, const char *path, basin_error *error) {
    const options *o = d->o;
    basin_status status = path ? basin_bundle_read(&d->file, path, error) : BASIN_OK;
    if (!status)
        status = basin_specimen_descend(&d->run, d->species, d->file, (uint64_t)o->seed,
                                        (int)o->steps, o->scale, error);
    if (!status)
        status = basin_specimen_judge(&d->verdict, d->species, d->file, (int)o->seeds,
                                      (uint64_t)o->seed, (int)o->steps, error);
    return !status && o->svg ? draw(d, error) : status;
}

static int run_descend(const void *values, int operands, char **operand) {
    basin_error error;
    descent d = {.o = values, .species = basin_species_find(operand[0])};
    if (!d.species) return report_unknown(&basin_command_zoo_descend, operand[0]);
    if (operands > 1 && (d.o->seed || d.o->seeds != defaults.seeds))
        return basin_report_usage(&basin_command_zoo_descend,
                                  "--seed and --seeds are for drawn weights, not for %s",
                                  operand[1]);
    int code = BASIN_EXIT_OK;
    if (descend(&d, operands > 1 ? operand[1] : NULL, &error))
        code = basin_report(&error);
    else if (d.o->json)
        print_json(&d);
    else if (!print_descent(&d))
        code = BASIN_EXIT_FAILURE;
    basin_bundle_free(d.file);
    return code;
}

const basin_command basin_command_zoo_descend = {
    .name = "zoo descend",
    .summary = "Run a model, and judge whether it goes down its energy",
    .operands = "MODEL [FILE]",
    .operands_least = 1,
    .operands_most = 2,
    .text = "Runs the published update on weights and tokens that are drawn, or on those of a "
            "golden file (tensors in.NAME), prints the energy by step, and the verdict: over "
            "many draws, or over the file.",
    .example = "  basin zoo descend hopfield --svg energy.svg\n"
               "  basin zoo descend akorn_attention --scale 0.01 --steps 40\n"
               "  basin zoo descend hopfield tests/golden/zoo/hopfield.safetensors\n",
    .option = descend_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run_descend,
};
