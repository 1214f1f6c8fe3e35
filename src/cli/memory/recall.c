/* basin memory recall: recalls stored patterns from damaged cues. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/memory/patterns.h"
#include "cli/table.h"
#include "io/file.h"
#include "io/json_writer.h"
#include "view/plot.h"
#include "view/strip.h"

typedef struct options {
    const char *folder, *erase, *mask, *tensor, *svg, *backend, *products, *dtype;
    double share, noise, tolerance;
    int64_t limit, steps, threads, seed;
    bool json, quiet;
} options;

static const options defaults = {
    .erase = "none", .backend = "cpu", .products = "f32", .limit = 8, .steps = 100};

static const basin_option table[] = {
    BASIN_TEXT(options, folder, 'o', "output", "FOLDER",
               "Write pictures there: what was recalled, and strips of cue, recall, original."),
    BASIN_CHOICE(options, erase, "erase", "none|top|bottom|left|right|random",
                 "What is erased of a cue; left and right are for pictures."),
    BASIN_REAL(options, share, "share", "SHARE", 0, 1, "How much of it --erase erases; 0: half.",
               .needs = "erase!=none"),
    BASIN_REAL(options, noise, "noise", "SIGMA", 0, 1e30,
               "Add normal noise of this deviation to the cue, in the units of the patterns; "
               "pixels are 0 to 1."),
    BASIN_TEXT(options, mask, 0, "mask", "FILE",
               "Erase what is not black in this picture of the patterns' size."),
    BASIN_INTEGER(options, steps, "steps", "N", 1, 1000000, "Most steps to take."),
    BASIN_REAL(options, tolerance, "tolerance", "X", 0, 1e30,
               "Rest when no number of a state moves by more in a step; 0: 1e-6."),
    BASIN_TEXT(options, tensor, 0, "tensor", "NAME",
               "The tensor of a file of cues that has several of rank 2."),
    BASIN_INTEGER(options, limit, "limit", "N", 0, 1e12, "Only the first N cues; 0: all."),
    BASIN_TEXT(options, svg, 0, "svg", "FILE", "Draw the energies of all steps there.",
               .writes = true),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_SEED_FOR(options, "noise!=0,erase=random"),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

typedef struct job {
    const options *o;
    basin_memory *memory;
    basin_memory_spec spec;
    basin_patterns truth; /* the cues before they are damaged */
    basin_tensor cue;
    unsigned char *known; /* [cues, D] */
    int64_t cues, dim;
    basin_memory_recalled recalled;
} job;

static void job_free(job *j) {
    basin_memory_recalled_free(&j->recalled);
    basin_tensor_free(&j->truth.tensor);
    basin_tensor_free(&j->cue);
    free(j->known);
    basin_memory_close(j->memory);
}

static const float *truth_at(const job *j, int64_t i) {
    return (const float *)j->truth.tensor.data + i * j->dim;
}
static float *cue_at(const job *j, int64_t i) { return (float *)j->cue.data + i * j->dim; }

/* ---- cues ---- */

/* Without cues of their own, the stored patterns are damaged. */
static basin_status read_cues(job *j, char **path, int paths, basin_error *error) {
    const basin_tensor *stored = basin_memory_patterns(j->memory);
    basin_patterns *t = &j->truth;
    *t = (basin_patterns){
        .height = j->spec.height, .width = j->spec.width, .channels = j->spec.channels};
    basin_status status = BASIN_OK;
    if (paths) {
        status = basin_patterns_read(t, path, paths, j->o->tensor, j->o->limit, error);
    } else {
        basin_tensor head = basin_tensor_borrow(stored->data, stored->dtype, stored->shape);
        if (j->o->limit && j->o->limit < head.shape.dim[0]) head.shape.dim[0] = j->o->limit;
        status = basin_tensor_new(&t->tensor, BASIN_F32, head.shape, error);
        if (!status) status = basin_tensor_convert(&t->tensor, &head, error);
    }
    if (status) return status;
    j->cues = t->tensor.shape.dim[0];
    j->dim = stored->shape.dim[1];
    if (t->tensor.shape.dim[1] == j->dim) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_SHAPE, "%s: cues of %lld numbers; wanted %lld, as stored",
                      path[0], (long long)t->tensor.shape.dim[1], (long long)j->dim);
}

static basin_status erase_mask(job *j, basin_error *error) {
    basin_picture mask = {0};
    const basin_memory_spec *s = &j->spec;
    const char *path = j->o->mask;
    if (!s->channels)
        return basin_fail(error, BASIN_BAD_VALUE, "--mask %s: the memory holds vectors", path);
    basin_status status = basin_picture_read(&mask, path, error);
    if (!status) status = basin_picture_set_channels(&mask, 1, error);
    if (!status && (mask.height != s->height || mask.width != s->width))
        status = basin_fail(error, BASIN_BAD_SHAPE,
                            "%s: %lld x %lld pixels; wanted %lld x %lld, as the patterns", path,
                            (long long)mask.height, (long long)mask.width, (long long)s->height,
                            (long long)s->width);
    for (int64_t i = 0; i < j->cues * j->dim && !status; i++)
        if (mask.pixel[i % j->dim / s->channels]) {
            j->known[i] = 0;
            ((float *)j->cue.data)[i] = 0.5f;
        }
    basin_picture_free(&mask);
    return status;
}

static basin_status damage(job *j, basin_error *error) {
    const options *o = j->o;
    j->known = basin_array_new((size_t)(j->cues * j->dim), 1);
    basin_status status = basin_tensor_new(&j->cue, BASIN_F32, j->truth.tensor.shape, error);
    if (!status) status = basin_tensor_convert(&j->cue, &j->truth.tensor, error);
    if (!status && !j->known)
        status =
            basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld cues", (long long)j->cues);
    for (int64_t i = 0; i < j->cues && !status; i++) {
        basin_memory_damage d = {.size = sizeof d,
                                 .erase = o->erase,
                                 .share = o->share,
                                 .noise = o->noise,
                                 .seed = (uint64_t)o->seed,
                                 .stream = (uint64_t)i};
        status = basin_memory_damage_cue(cue_at(j, i), j->known + i * j->dim, j->memory, &d, error);
    }
    return !status && o->mask ? erase_mask(j, error) : status;
}

/* ---- results ---- */

typedef struct score {
    double overlap[2], mse[2]; /* of the cue, of what was recalled */
} score;

static score score_of(const job *j, int64_t i) {
    score s;
    const float *truth = truth_at(j, i), *value = j->recalled.value + i * j->dim;
    basin_memory_compare(&s.overlap[0], &s.mse[0], j->memory, cue_at(j, i), truth,
                         j->known + i * j->dim);
    basin_memory_compare(&s.overlap[1], &s.mse[1], j->memory, value, truth, NULL);
    return s;
}

static double energy_at(const job *j, int step) {
    double sum = 0;
    for (int64_t i = 0; i < j->cues; i++) sum += j->recalled.energy[step * j->cues + i];
    return sum;
}

static bool print_tables(const job *j) {
    basin_table cues = {.layout = "rrrrrrr"}, steps = {.layout = "rr"};
    static const char *const head[] = {"cue",   "overlap before", "after",  "mse before",
                                       "after", "nearest",        "overlap"};
    for (int i = 0; i < 7; i++) basin_table_add(&cues, "%s", head[i]);
    for (int64_t i = 0; i < j->cues; i++) {
        score s = score_of(j, i);
        basin_table_add(&cues, "%lld", (long long)i);
        for (int k = 0; k < 2; k++) basin_table_add(&cues, "%.4f", s.overlap[k]);
        for (int k = 0; k < 2; k++) basin_table_add(&cues, "%.5f", s.mse[k]);
        basin_table_add(&cues, "%lld", (long long)j->recalled.nearest[i]);
        basin_table_add(&cues, "%.4f", j->recalled.overlap[i]);
    }
    bool fine = basin_table_print(&cues, stdout, 0);
    basin_table_add(&steps, "%s", "step");
    basin_table_add(&steps, "%s", "energy of all");
    for (int t = 0; t <= j->recalled.steps; t++) {
        basin_table_add(&steps, "%d", t);
        basin_table_add(&steps, "%.6f", energy_at(j, t));
    }
    printf("\n");
    fine = basin_table_print(&steps, stdout, 0) && fine;
    printf("%s\n", j->recalled.rested ? "all states rest" : "some states still move");
    return fine;
}

static void print_json(const job *j) {
    basin_json json = basin_json_begin(stdout);
    basin_json_integer(&json, "steps", j->recalled.steps);
    basin_json_boolean(&json, "rested", j->recalled.rested);
    basin_json_array(&json, "cues");
    for (int64_t i = 0; i < j->cues; i++) {
        score s = score_of(j, i);
        basin_json_object(&json, NULL);
        basin_json_number(&json, "overlap_before", s.overlap[0]);
        basin_json_number(&json, "overlap_after", s.overlap[1]);
        basin_json_number(&json, "mse_before", s.mse[0]);
        basin_json_number(&json, "mse_after", s.mse[1]);
        basin_json_integer(&json, "nearest", j->recalled.nearest[i]);
        basin_json_number(&json, "nearest_overlap", j->recalled.overlap[i]);
        basin_json_end(&json);
    }
    basin_json_end(&json);
    basin_json_array(&json, "energy");
    for (int t = 0; t <= j->recalled.steps; t++) basin_json_number(&json, NULL, energy_at(j, t));
    basin_json_end(&json);
    basin_json_end(&json);
}

/* A picture of values, cut to 0 .. 1: noise and rounding lead out of it. */
static basin_status draw_values(basin_picture *picture, const float *value, const job *j,
                                basin_error *error) {
    const basin_memory_spec *s = &j->spec;
    float *cut = basin_array_new((size_t)j->dim, sizeof *cut);
    if (!cut) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a picture");
    for (int64_t i = 0; i < j->dim; i++) cut[i] = fminf(fmaxf(value[i], 0), 1);
    basin_status status =
        basin_picture_from_floats(picture, cut, s->height, s->width, s->channels, error);
    free(cut);
    return status;
}

static basin_status write_one(const job *j, int64_t i, basin_error *error) {
    const float *from[] = {cue_at(j, i), j->recalled.value + i * j->dim, truth_at(j, i)};
    basin_picture picture[3] = {{0}}, strip = {0};
    const basin_picture *row[] = {&picture[0], &picture[1], &picture[2]};
    const basin_memory_spec *s = &j->spec;
    char path[4096];
    basin_status status = BASIN_OK;
    for (int k = 0; k < 3 && !status; k++) status = draw_values(&picture[k], from[k], j, error);
    snprintf(path, sizeof path, "%s/cue%04lld.recalled.png", j->o->folder, (long long)i);
    if (!status) status = basin_picture_write_png(path, &picture[1], error);
    snprintf(path, sizeof path, "%s/cue%04lld.strip.png", j->o->folder, (long long)i);
    if (!status)
        status = basin_strip_draw(&strip, row, 3, 4, basin_strip_zoom(s->height, s->width), error);
    if (!status) status = basin_picture_write_png(path, &strip, error);
    for (int k = 0; k < 3; k++) basin_picture_free(&picture[k]);
    basin_picture_free(&strip);
    return status;
}

static basin_status write_pictures(const job *j, basin_error *error) {
    if (!j->spec.channels)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "--output %s: the memory holds vectors, which are no pictures",
                          j->o->folder);
    basin_status status = basin_folder_make(j->o->folder, error);
    for (int64_t i = 0; i < j->cues && !status; i++) status = write_one(j, i, error);
    if (!status && !j->o->quiet)
        basin_say("%lld pictures and strips written into %s", (long long)j->cues, j->o->folder);
    return status;
}

static basin_status draw(const job *j, basin_error *error) {
    size_t points = (size_t)j->recalled.steps + 1;
    basin_writer writer;
    double *number = basin_array_new(2 * points, sizeof *number);
    if (!number) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", j->o->svg);
    for (size_t t = 0; t < points; t++) {
        number[t] = (double)t;
        number[points + t] = energy_at(j, (int)t);
    }
    basin_plot_line line = {
        .name = j->spec.function, .x = number, .y = number + points, .count = (int64_t)points};
    basin_plot plot = {.title = "Energy of recall",
                       .x_label = "step",
                       .y_label = "energy",
                       .line = &line,
                       .lines = 1,
                       .x_whole = true};
    basin_status status = basin_writer_create(&writer, j->o->svg, error);
    if (!status) {
        basin_plot_write(writer.file, &plot);
        status = basin_writer_commit(&writer, error);
    }
    free(number);
    return status;
}

/* ---- the command ---- */

static basin_status recall(job *j, basin_error *error) {
    const options *o = j->o;
    basin_backend *backend = NULL;
    basin_status status =
        basin_option_backend(&backend, o->backend, o->threads, o->products, o->dtype, error);
    if (status) return status;
    basin_memory_recalling how = {
        .size = sizeof how, .backend = backend, .steps = o->steps, .tolerance = o->tolerance};
    status =
        basin_memory_recall(&j->recalled, j->memory, j->cue.data, j->known, j->cues, &how, error);
    basin_backend_close(backend);
    return status;
}

static basin_status work(job *j, char **operand, int operands, basin_error *error) {
    basin_status status = basin_memory_open(&j->memory, operand[0], error);
    if (status) return status;
    j->spec = basin_memory_get_spec(j->memory);
    status = read_cues(j, operand + 1, operands - 1, error);
    if (!status) status = damage(j, error);
    if (!status) status = recall(j, error);
    if (!status && j->o->folder) status = write_pictures(j, error);
    if (!status && j->o->svg) status = draw(j, error);
    return status;
}

static const char *unused(const options *o, int operands) {
    return o->tensor && operands < 2 ? "--tensor is for a file of cues, and there is none" : NULL;
}

static int run(const void *values, int operands, char **operand) {
    basin_error error;
    job j = {.o = values};
    const char *no_use = unused(j.o, operands);
    if (no_use) return basin_report_usage(&basin_command_memory_recall, "%s", no_use);
    int code = BASIN_EXIT_OK;
    if (work(&j, operand, operands, &error))
        code = basin_report(&error);
    else if (j.o->json)
        print_json(&j);
    else if (!print_tables(&j))
        code = BASIN_EXIT_FAILURE;
    job_free(&j);
    return code;
}

const basin_command basin_command_memory_recall = {
    .name = "memory recall",
    .summary = "Recall stored patterns from damaged cues",
    .operands = "MEMORY [CUES...]",
    .operands_least = 1,
    .operands_most = 1000,
    .text = "Cues are pictures or a file of vectors, as basin memory store takes them; without "
            "any, the stored patterns. They are damaged as the options say and go down the "
            "memory's energy until they rest. For each, its overlap with the undamaged cue and the "
            "mean squared error are printed, before and after, and the stored pattern that the end "
            "is nearest to; then the energy by step.",
    .example = "  basin memory recall memory.safetensors --erase bottom -o out\n"
               "  basin memory recall memory.safetensors faces/ --noise 0.3 --svg energy.svg\n"
               "  basin memory recall memory.safetensors --mask hole.png\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
