/* basin memory capacity: how many random patterns each separation function holds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "basin/tasks/memory.h"
#include "cli/command.h"
#include "cli/table.h"
#include "cli/watch.h"
#include "io/file.h"
#include "io/json_writer.h"
#include "view/plot.h"

enum { FUNCTIONS = 8, DIMS = 16 };

typedef struct options {
    const char *functions, *dims, *svg;
    double flips, threshold;
    int64_t bits, most, threads, seed;
    bool json, quiet;
} options;

static const options defaults = {.functions = "classical,power3,power4,power5,softmax,lsr",
                                 .threshold = 0.005,
                                 .bits = 20000,
                                 .most = 1 << 20};

static const basin_option table[] = {
    BASIN_TEXT(options, functions, 0, "functions", "LIST",
               "Which: classical, power with its n (power3, power2.5), softmax, lsr."),
    BASIN_TEXT(options, dims, 0, "dims", "LIST",
               "Bits of a pattern, at least two sizes; without it, sizes that take seconds."),
    BASIN_REAL(options, flips, "flips", "SHARE", 0, 0.49, "Share of a cue's bits that is flipped."),
    BASIN_REAL(options, threshold, "threshold", "SHARE", 1e-6, 0.49,
               "Share of wrong bits after one update that ends the capacity."),
    BASIN_INTEGER(options, bits, "bits", "N", 1, 1 << 30,
                  "Bits that are looked at, at least, at every load."),
    BASIN_INTEGER(options, most, "most", "N", 2, 4294967296.0, "The largest load that is tried."),
    BASIN_TEXT(options, svg, 0, "svg", "FILE", "Draw capacities against bits there.",
               .writes = true),
    BASIN_OPTION_THREADS(options),
    BASIN_OPTION_SEED(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

/* One function and what was measured of it. */
typedef struct row {
    char name[24]; /* "power3" */
    const char *function;
    double power;
    int64_t dim[DIMS];
    int dims;
    double capacity[DIMS];
    basin_memory_curve curve[DIMS];
    double exponent, theory;
} row;

typedef struct job {
    const options *o;
    row *row; /* [FUNCTIONS] */
    int rows;
} job;

/* ---- what is asked for ---- */

static basin_status read_dims(row *r, const char *list, basin_error *error) {
    const char *at = list;
    while (r->dims < DIMS && basin_integer_read(&r->dim[r->dims], &at)) {
        r->dims++;
        if (*at != ',') break;
        at++;
    }
    if (!*at && r->dims >= 2) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "--dims %s: wanted 2 to %d whole numbers apart by commas", list, DIMS);
}

/* Sizes whose capacities are measured within seconds. */
static const char *usual_dims(const row *r) {
    if (!strcmp(r->function, "softmax")) return "8,10,12,14,16,18,20";
    if (!strcmp(r->function, "lsr")) return "16,24,32,40";
    if (!strcmp(r->function, "classical") || r->power < 2.5) return "128,256,512,1024";
    if (r->power < 3.5) return "32,64,128,256";
    return r->power < 4.5 ? "32,48,64,96,128" : "24,32,48,64,96";
}

static basin_status read_function(row *r, const char *name, basin_error *error) {
    char *end = NULL;
    snprintf(r->name, sizeof r->name, "%s", name);
    if (!strncmp(name, "power", 5)) {
        r->function = "power";
        r->power = strtod(name + 5, &end);
        if (end != name + 5 && !*end && r->power > 1 && r->power <= 100) return BASIN_OK;
    }
    for (int i = 0; basin_memory_function(i); i++)
        if (!strcmp(name, basin_memory_function(i)) && strcmp(name, "power") != 0)
            return r->function = basin_memory_function(i), BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "--functions: '%.40s'; wanted classical, softmax, lsr, or power with its n, "
                      "power3 for instance",
                      name);
}

static basin_status read_functions(job *j, basin_error *error) {
    char list[400], *rest = NULL;
    snprintf(list, sizeof list, "%s", j->o->functions);
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (j->rows == FUNCTIONS)
            return basin_fail(error, BASIN_BAD_VALUE, "--functions: more than %d", FUNCTIONS);
        row *r = &j->row[j->rows++];
        basin_status status = read_function(r, name, error);
        if (!status) status = read_dims(r, j->o->dims ? j->o->dims : usual_dims(r), error);
        if (status) return status;
    }
    return j->rows ? BASIN_OK : basin_fail(error, BASIN_BAD_VALUE, "--functions: none");
}

/* ---- measuring ---- */

static basin_status measure(row *r, const options *o, basin_progress *progress, int64_t *done,
                            basin_error *error) {
    for (int i = 0; i < r->dims; i++) {
        basin_memory_trial trial = {.size = sizeof trial,
                                    .function = r->function,
                                    .power = r->power,
                                    .dim = r->dim[i],
                                    .flips = o->flips,
                                    .threshold = o->threshold,
                                    .bits = o->bits,
                                    .most = o->most,
                                    .seed = (uint64_t)o->seed,
                                    .threads = (int)o->threads};
        basin_progress_show(progress, (*done)++, (const char *const[]){r->name, NULL});
        basin_status status = basin_memory_measure(&r->curve[i], &trial, error);
        if (status) return status;
        r->capacity[i] = r->curve[i].capacity;
    }
    r->exponent = basin_memory_exponent(r->function, r->capacity, r->dim, r->dims);
    r->theory = basin_memory_theory(r->function, r->power);
    return BASIN_OK;
}

static basin_status measure_all(job *j, basin_error *error) {
    int64_t total = 0, done = 0;
    basin_status status = BASIN_OK;
    for (int i = 0; i < j->rows; i++) total += j->row[i].dims;
    basin_progress progress = basin_progress_begin("measuring", total, j->o->quiet);
    for (int i = 0; i < j->rows && !status; i++)
        status = measure(&j->row[i], j->o, &progress, &done, error);
    basin_progress_end(&progress);
    return status;
}

/* ---- results ---- */

static bool by_bits(const row *r) {
    return !strcmp(r->function, "softmax") || !strcmp(r->function, "lsr");
}

static bool print_tables(const job *j) {
    basin_table all = {.layout = "lrr"}, law = {.layout = "llrrr"};
    const char *head[] = {"function",          "bits",     "capacity", "function",
                          "capacity grows as", "measured", "theory",   "apart"};
    for (int i = 0; i < 3; i++) basin_table_add(&all, "%s", head[i]);
    for (int i = 3; i < 8; i++) basin_table_add(&law, "%s", head[i]);
    for (int k = 0; k < j->rows; k++) {
        const row *r = &j->row[k];
        for (int i = 0; i < r->dims; i++) {
            basin_table_add(&all, "%s", r->name);
            basin_table_add(&all, "%lld", (long long)r->dim[i]);
            if (isfinite(r->capacity[i]))
                basin_table_add(&all, "%.1f", r->capacity[i]);
            else
                basin_table_add(&all, "above %lld", (long long)j->o->most);
        }
        basin_table_add(&law, "%s", r->name);
        basin_table_add(&law, "%s", by_bits(r) ? "exp(a N)" : "N^a");
        basin_table_add(&law, "%.3f", r->exponent);
        basin_table_add(&law, "%.3f", r->theory);
        basin_table_add(&law, "%.1f %%", 100 * fabs(r->exponent / r->theory - 1));
    }
    bool fine = basin_table_print(&all, stdout, 0);
    printf("\n");
    return basin_table_print(&law, stdout, 0) && fine;
}

static void print_json(const job *j) {
    basin_json json = basin_json_begin(stdout);
    basin_json_number(&json, "threshold", j->o->threshold);
    basin_json_number(&json, "flips", j->o->flips);
    basin_json_array(&json, "functions");
    for (int k = 0; k < j->rows; k++) {
        const row *r = &j->row[k];
        basin_json_object(&json, NULL);
        basin_json_text(&json, "function", r->name);
        basin_json_text(&json, "law", by_bits(r) ? "exp(a N)" : "N^a");
        basin_json_number(&json, "measured", r->exponent);
        basin_json_number(&json, "theory", r->theory);
        basin_json_array(&json, "sizes");
        for (int i = 0; i < r->dims; i++) {
            basin_json_object(&json, NULL);
            basin_json_integer(&json, "bits", r->dim[i]);
            basin_json_number(&json, "capacity", r->capacity[i]);
            basin_json_numbers(&json, "load", r->curve[i].load, r->curve[i].loads);
            basin_json_numbers(&json, "error", r->curve[i].error, r->curve[i].loads);
            basin_json_end(&json);
        }
        basin_json_end(&json);
        basin_json_end(&json);
    }
    basin_json_end(&json);
    basin_json_end(&json);
}

/* Both axes are logarithms: powers of N are straight lines of slope n - 1. */
static basin_status draw(const job *j, basin_error *error) {
    basin_plot_line line[FUNCTIONS];
    double x[FUNCTIONS][DIMS], y[FUNCTIONS][DIMS];
    basin_writer writer;
    for (int k = 0; k < j->rows; k++) {
        const row *r = &j->row[k];
        for (int i = 0; i < r->dims; i++) {
            x[k][i] = log10((double)r->dim[i]);
            y[k][i] = log10(r->capacity[i]);
        }
        line[k] = (basin_plot_line){.name = r->name, .x = x[k], .y = y[k], .count = r->dims};
    }
    basin_plot plot = {.title = "Capacity of associative memories",
                       .x_label = "bits of a pattern, log10",
                       .y_label = "patterns held, log10",
                       .line = line,
                       .lines = j->rows};
    basin_status status = basin_writer_create(&writer, j->o->svg, error);
    if (status) return status;
    basin_plot_write(writer.file, &plot);
    return basin_writer_commit(&writer, error);
}

static int finish(const job *j, basin_error *error) {
    if (j->o->svg && draw(j, error)) return basin_report(error);
    if (j->o->json) return print_json(j), BASIN_EXIT_OK;
    return print_tables(j) ? BASIN_EXIT_OK : BASIN_EXIT_FAILURE;
}

static int run(const void *values, int operands, char **operand) {
    basin_error error;
    job j = {.o = values, .row = calloc(FUNCTIONS, sizeof(row))};
    (void)operands, (void)operand;
    if (!j.row) {
        basin_fail(&error, BASIN_NO_MEMORY, "out of memory for the measurements");
        return basin_report(&error);
    }
    int code = BASIN_EXIT_OK;
    if (read_functions(&j, &error))
        code = basin_report_usage(&basin_command_memory_capacity, "%s", error.text);
    else if (measure_all(&j, &error))
        code = basin_report(&error);
    else
        code = finish(&j, &error);
    free(j.row);
    return code;
}

const basin_command basin_command_memory_capacity = {
    .name = "memory capacity",
    .summary = "Measure how many random patterns each separation function holds",
    .operands = "",
    .operands_least = 0,
    .operands_most = 0,
    .text = "Random patterns of +1 and -1 are stored one by one. At every load, stored patterns "
            "take one update, which sets each bit as the energies of its two values say; the "
            "capacity is the load at which the share of wrong bits passes --threshold. The slope "
            "of its logarithm stands beside what theory says of large patterns: n - 1 for the "
            "power n. Sparse relatives of softmax have no curve: they recall random signs until "
            "two patterns are equal.",
    .example = "  basin memory capacity --svg capacity.svg\n"
               "  basin memory capacity --functions power3 --dims 32,64,128 --flips 0.1\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
