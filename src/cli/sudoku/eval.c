/* basin sudoku eval: whole boards that a model solves, after more and more steps. */
#include <string.h>

#include "base/number.h"
#include "basin/tasks/sudoku.h"
#include "cli/command.h"
#include "cli/sudoku/boards.h"
#include "cli/table.h"
#include "cli/watch.h"
#include "io/file.h"
#include "io/json_writer.h"
#include "view/plot.h"

typedef struct options {
    const char *steps, *backend, *products, *dtype, *svg;
    int64_t batch, threads, limit, last;
    bool givens, stop, json, quiet;
} options;

static const options defaults = {.backend = "cpu", .products = "f32"};

static const basin_option table[] = {
    BASIN_TEXT(options, steps, 0, "steps", "N,N,..",
               "Steps of the descent to score after, ascending; without it 1/4, 1/2, 1, 2 and 4 "
               "times those of training."),
    BASIN_FLAG(options, givens, 0, "givens", "Also a table by the number of givens."),
    BASIN_FLAG(options, stop, 0, "stop",
               "A board stops when its answer breaks no rule, which is seen without its solution."),
    BASIN_TEXT(options, svg, 0, "svg", "FILE",
               "Draw the share of boards by step, of all and of thirds by the number of givens.",
               .writes = true),
    BASIN_INTEGER(options, limit, "limit", "N", 0, 1e12, "Only the first N boards; 0: all.",
                  .needs = "last=0"),
    BASIN_INTEGER(
        options, last, "last", "N", 0, 1e12,
        "Only the last N boards, those that training with --hold-out N left out; 0: all."),
    BASIN_INTEGER(options, batch, "batch", "N", 0, 1e6, "Boards at a time; 0: 100."),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

typedef struct job {
    const options *o;
    basin_backend *backend;
    basin_sudoku_model *model;
    basin_sudoku_boards all, boards;
    int64_t trained; /* steps in training */
    basin_sudoku_scores scores;
} job;

static void job_free(job *j) {
    basin_sudoku_boards_free(&j->all);
    basin_sudoku_close(j->model);
    basin_backend_close(j->backend);
}

/* ---- what to score ---- */

static basin_status take_steps(int64_t steps[BASIN_SUDOKU_ROWS], const job *j, basin_error *error) {
    const char *text = j->o->steps;
    int count = 0;
    if (!text) {
        for (int64_t quarters = 1; quarters <= 16; quarters *= 2) {
            int64_t n = j->trained * quarters / 4;
            if (n > 0 && (!count || n > steps[count - 1])) steps[count++] = n;
        }
        return BASIN_OK;
    }
    for (;;) {
        if (count == BASIN_SUDOKU_ROWS || !basin_integer_read(&steps[count], &text) ||
            steps[count] < 1 || steps[count] > 1000000)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "--steps is '%.60s', wanted up to %d ascending numbers from 1 on",
                              j->o->steps, BASIN_SUDOKU_ROWS);
        count++;
        if (*text++ == ',') continue;
        if (text[-1] == '\0') return BASIN_OK;
        count = BASIN_SUDOKU_ROWS;
    }
}

static basin_status choose_boards(job *j, const char *path, basin_error *error) {
    int64_t wanted = j->o->limit ? j->o->limit : j->o->last;
    if (wanted > j->all.count)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: it has %lld boards, wanted %lld", path,
                          (long long)j->all.count, (long long)wanted);
    if (!wanted) wanted = j->all.count;
    j->boards = basin_boards_part(&j->all, j->o->last ? j->all.count - wanted : 0, wanted);
    return BASIN_OK;
}

static basin_status open_all(job *j, char **operand, basin_error *error) {
    const options *o = j->o;
    char text[64];
    const char *number = text;
    basin_status status =
        basin_option_backend(&j->backend, o->backend, o->threads, o->products, o->dtype, error);
    if (!status) status = basin_sudoku_open(&j->model, operand[0], j->backend, error);
    if (!status) status = basin_sudoku_boards_read(&j->all, operand[1], false, error);
    if (!status) status = choose_boards(j, operand[1], error);
    if (!status)
        status = basin_settings_get(text, sizeof text, basin_sudoku_get_settings(j->model), "steps",
                                    error);
    if (!status) basin_integer_read(&j->trained, &number);
    return status;
}

static basin_status score(job *j, basin_error *error) {
    basin_cli_watch watch;
    basin_sudoku_scoring how = {.size = sizeof how,
                                .boards = &j->boards,
                                .batch = j->o->batch,
                                .watch = &watch.watch,
                                .stop = j->o->stop};
    basin_status status = take_steps(how.steps, j, error);
    if (status) return status;
    basin_cli_watch_plain(&watch, j->o->quiet);
    status = basin_sudoku_score(&j->scores, j->model, &how, error);
    basin_cli_watch_end(&watch);
    return status;
}

/* ---- results ---- */

static double percent(int64_t part, int64_t all) {
    return all ? 100 * (double)part / (double)all : 0;
}

static bool print_steps(const basin_sudoku_scores *s, int64_t trained) {
    basin_table rows = {.layout = "rrrrl"};
    static const char *const head[] = {"steps", "boards solved", "cells right", "energy", ""};
    for (int i = 0; i < 5; i++) basin_table_add(&rows, "%s", head[i]);
    for (int r = 0; r < s->rows; r++) {
        basin_table_add(&rows, "%lld", (long long)s->row[r].steps);
        basin_table_add(&rows, "%.2f %%", percent(s->row[r].solved, s->boards));
        basin_table_add(&rows, "%.2f %%", percent(s->row[r].right, s->empty));
        basin_table_add(&rows, "%.3f", s->row[r].energy);
        basin_table_add(&rows, "%s", s->row[r].steps == trained ? "as in training" : "");
    }
    return basin_table_print(&rows, stdout, 0);
}

static bool print_givens(const basin_sudoku_scores *s) {
    char layout[BASIN_SUDOKU_ROWS + 3] = "rr";
    for (int r = 0; r < s->rows; r++) layout[2 + r] = 'r';
    layout[2 + s->rows] = '\0';
    basin_table rows = {.layout = layout};
    basin_table_add(&rows, "givens");
    basin_table_add(&rows, "boards");
    for (int r = 0; r < s->rows; r++)
        basin_table_add(&rows, "%lld steps", (long long)s->row[r].steps);
    for (int n = 0; n <= BASIN_SUDOKU_CELLS; n++) {
        if (!s->with_givens[n]) continue;
        basin_table_add(&rows, "%d", n);
        basin_table_add(&rows, "%lld", (long long)s->with_givens[n]);
        for (int r = 0; r < s->rows; r++)
            basin_table_add(&rows, "%.1f %%", percent(s->row[r].by_givens[n], s->with_givens[n]));
    }
    printf("\n");
    return basin_table_print(&rows, stdout, 0);
}

/* ---- the picture ---- */

enum { THIRDS = 3 };

/* Which third of the boards, by their givens, those with n givens are in. */
static int third_of(const basin_sudoku_scores *s, int n) {
    int64_t before = 0;
    for (int k = 0; k < n; k++) before += s->with_givens[k];
    return (int)((2 * before + s->with_givens[n]) * THIRDS / (2 * s->boards + 1));
}

/* The boards of a third (-1: all): fewest and most givens, and the share that each row's steps
 * solve, in percent. False where there are none. */
static bool draw_third(int range[2], double *y, const basin_sudoku_scores *s, int third) {
    int64_t boards = 0, solved[BASIN_SUDOKU_ROWS] = {0};
    for (int n = 0; n <= BASIN_SUDOKU_CELLS; n++) {
        if (!s->with_givens[n] || (third >= 0 && third_of(s, n) != third)) continue;
        if (!boards) range[0] = n;
        range[1] = n;
        boards += s->with_givens[n];
        for (int r = 0; r < s->rows; r++) solved[r] += s->row[r].by_givens[n];
    }
    for (int r = 0; r < s->rows; r++) y[r] = percent(solved[r], boards);
    return boards > 0;
}

static basin_status draw(const job *j, basin_error *error) {
    double x[BASIN_SUDOKU_ROWS], y[1 + THIRDS][BASIN_SUDOKU_ROWS];
    char name[1 + THIRDS][40];
    basin_plot_line line[1 + THIRDS];
    basin_writer writer;
    int lines = 0, range[2] = {0};
    for (int r = 0; r < j->scores.rows; r++) x[r] = (double)j->scores.row[r].steps;
    for (int third = -1; third < THIRDS; third++) {
        if (!draw_third(range, y[lines], &j->scores, third)) continue;
        snprintf(name[lines], sizeof *name, "%s%d to %d givens", third < 0 ? "all, " : "", range[0],
                 range[1]);
        line[lines] =
            (basin_plot_line){.name = name[lines], .x = x, .y = y[lines], .count = j->scores.rows};
        lines++;
    }
    basin_plot plot = {.title = "Boards solved by steps of the descent",
                       .x_label = "steps",
                       .y_label = "whole boards, %",
                       .line = line,
                       .lines = lines,
                       .x_whole = true};
    basin_status status = basin_writer_create(&writer, j->o->svg, error);
    if (status) return status;
    basin_plot_write(writer.file, &plot);
    return basin_writer_commit(&writer, error);
}

static void print_json(const job *j, char **operand) {
    const basin_sudoku_scores *s = &j->scores;
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "model", operand[0]);
    basin_json_text(&json, "data", operand[1]);
    basin_json_integer(&json, "boards", s->boards);
    basin_json_integer(&json, "parameters", basin_sudoku_parameters(j->model));
    basin_json_integer(&json, "steps_in_training", j->trained);
    basin_json_array(&json, "steps");
    for (int r = 0; r < s->rows; r++) {
        basin_json_object(&json, NULL);
        basin_json_integer(&json, "steps", s->row[r].steps);
        basin_json_integer(&json, "solved", s->row[r].solved);
        basin_json_number(&json, "boards_percent", percent(s->row[r].solved, s->boards));
        basin_json_number(&json, "cells_percent", percent(s->row[r].right, s->empty));
        basin_json_number(&json, "energy", s->row[r].energy);
        basin_json_array(&json, "by_givens");
        for (int n = 0; n <= BASIN_SUDOKU_CELLS; n++) {
            if (!s->with_givens[n]) continue;
            basin_json_object(&json, NULL);
            basin_json_integer(&json, "givens", n);
            basin_json_integer(&json, "boards", s->with_givens[n]);
            basin_json_integer(&json, "solved", s->row[r].by_givens[n]);
            basin_json_end(&json);
        }
        basin_json_end(&json);
        basin_json_end(&json);
    }
    basin_json_end(&json);
    basin_json_end(&json);
}

static int run(const void *values, int operands, char **operand) {
    basin_error error;
    job j = {.o = values};
    int code = BASIN_EXIT_OK;
    (void)operands;
    basin_status status = open_all(&j, operand, &error);
    if (!status) status = score(&j, &error);
    if (!status && j.o->svg) status = draw(&j, &error);
    if (status)
        code = basin_report(&error);
    else if (j.o->json)
        print_json(&j, operand);
    else {
        printf("%s, %lld boards, %lld parameters\n", operand[1], (long long)j.scores.boards,
               (long long)basin_sudoku_parameters(j.model));
        bool fine = print_steps(&j.scores, j.trained);
        if (j.o->givens) fine = print_givens(&j.scores) && fine;
        if (!fine) code = BASIN_EXIT_FAILURE;
    }
    job_free(&j);
    return code;
}

const basin_command basin_command_sudoku_eval = {
    .name = "sudoku eval",
    .summary = "Count the Sudoku boards that a model solves",
    .operands = "MODEL BOARDS",
    .operands_least = 2,
    .operands_most = 2,
    .text = "A board counts as solved where every empty cell has its digit; there is no credit for "
            "a part. Boards must have one solution. The same descent is scored after several "
            "numbers of steps, fewer and more than in training.",
    .example = "  basin sudoku eval sudoku.safetensors test.csv\n"
               "  basin sudoku eval sudoku.safetensors boards.csv --last 1000 --givens\n"
               "  basin sudoku eval sudoku.safetensors hard.csv --steps 16,64,256 --stop --svg "
               "steps.svg\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
