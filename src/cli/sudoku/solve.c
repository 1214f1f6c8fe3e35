/* basin sudoku solve: one board along its descent. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "basin/tasks/models.h"
#include "basin/tasks/sudoku.h"
#include "cli/command.h"
#include "cli/sudoku/boards.h"
#include "cli/table.h"
#include "io/file.h"
#include "io/json_writer.h"
#include "view/board.h"

typedef struct options {
    const char *svg, *backend, *products, *dtype;
    int64_t steps, board, threads;
    bool json, quiet;
} options;

static const options defaults = {.backend = "cpu", .products = "f32", .board = 1};

static const basin_option table[] = {
    BASIN_INTEGER(options, steps, "steps", "N", 0, 1000000,
                  "Steps of the descent; 0: four times those of training."),
    BASIN_INTEGER(options, board, "board", "N", 1, 1e12, "Which board of a file, from 1 on."),
    BASIN_TEXT(options, svg, 0, "svg", "FILE",
               "Draw the board along the descent there, and the energy by step.", .writes = true),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

typedef struct job {
    const options *o;
    basin_backend *backend;
    basin_sudoku_model *model;
    uint8_t given[81], solution[81], answer[81];
    int solutions; /* 0, 1, 2: several */
    basin_sudoku_path path;
} job;

static void job_free(job *j) {
    basin_sudoku_path_free(&j->path);
    basin_sudoku_close(j->model);
    basin_backend_close(j->backend);
}

/* ---- the board ---- */

static basin_status read_file(job *j, const char *path, basin_error *error) {
    basin_sudoku_boards boards;
    basin_status status = basin_sudoku_boards_read(&boards, path, true, error);
    if (status) return status;
    int64_t i = j->o->board - 1;
    if (i >= boards.count)
        status = basin_fail(error, BASIN_BAD_VALUE, "%s: it has %lld boards; --board is %lld", path,
                            (long long)boards.count, (long long)j->o->board);
    else
        memcpy(j->given, boards.given + i * BASIN_SUDOKU_CELLS, sizeof j->given);
    basin_sudoku_boards_free(&boards);
    return status;
}

/* 81 characters, or a file of boards. */
static basin_status read_board(job *j, const char *text, basin_error *error) {
    bool file = access(text, F_OK) == 0 && strlen(text) != BASIN_SUDOKU_CELLS;
    if (!file && j->o->board != defaults.board)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%.100s: --board is %lld; wanted a file of boards", text,
                          (long long)j->o->board);
    basin_status status =
        file ? read_file(j, text, error) : basin_sudoku_parse(j->given, text, error);
    if (!status) j->solutions = basin_sudoku_solve(j->solution, j->given, 2);
    if (!status && !j->o->quiet && j->solutions != 1)
        basin_say("basin: note: the board has %s",
                  j->solutions ? "several solutions; one that differs from another's is no mistake"
                               : "no solution");
    return status;
}

/* `model` NULL: the one that comes with Basin. */
static basin_status open_model(job *j, const char *model, basin_error *error) {
    char shipped[BASIN_MODEL_PATH];
    basin_status status = model ? BASIN_OK : basin_models_find(shipped, "sudoku", error);
    return status ? status
                  : basin_sudoku_open(&j->model, model ? model : shipped, j->backend, error);
}

static basin_status descend(job *j, const char *model, const char *board, basin_error *error) {
    const options *o = j->o;
    char text[64];
    basin_status status = read_board(j, board, error);
    if (!status)
        status =
            basin_option_backend(&j->backend, o->backend, o->threads, o->products, o->dtype, error);
    if (!status) status = open_model(j, model, error);
    if (!status)
        status = basin_settings_get(text, sizeof text, basin_sudoku_get_settings(j->model), "steps",
                                    error);
    if (status) return status;
    long long trained = strtoll(text, NULL, 10);
    status = basin_sudoku_descend(&j->path, j->model, j->given, o->steps ? o->steps : 4 * trained,
                                  error);
    if (!status) basin_sudoku_path_answer(j->answer, &j->path, j->path.steps);
    return status;
}

/* ---- results ---- */

/* Cells whose digit is not the solution's, where that is the only one. */
static int count_wrong(const job *j, int64_t step) {
    uint8_t board[81];
    int wrong = 0;
    basin_sudoku_path_answer(board, &j->path, step);
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++) wrong += board[i] != j->solution[i];
    return wrong;
}

/* Cells that break a rule: their digit stands in one of their houses a second time. */
static int count_breaches(const uint8_t board[81]) {
    bool bad[81] = {false};
    int count = 0;
    for (int house = 0; house < BASIN_SUDOKU_HOUSES; house++)
        for (int a = 0; a < 9; a++)
            for (int b = 0; b < 9; b++) {
                int one = basin_sudoku_house_cell(house, a),
                    two = basin_sudoku_house_cell(house, b);
                if (a != b && board[one] == board[two]) bad[one] = true;
            }
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++) count += bad[i];
    return count;
}

/* 0, 1, 2, 4, .. and the last. */
static int64_t next_shown(int64_t step, int64_t last) {
    int64_t next = step ? 2 * step : 1;
    return step < last && next > last ? last : next;
}

static bool print_descent(const job *j) {
    basin_table rows = {.layout = "rrrr"};
    static const char *const head[] = {"step", "energy", "cells against a rule", "cells wrong"};
    int columns = j->solutions == 1 ? 4 : 3;
    rows.layout = columns == 4 ? "rrrr" : "rrr";
    for (int i = 0; i < columns; i++) basin_table_add(&rows, "%s", head[i]);
    for (int64_t t = 0; t <= j->path.steps; t = next_shown(t, j->path.steps)) {
        uint8_t board[81];
        basin_sudoku_path_answer(board, &j->path, t);
        basin_table_add(&rows, "%lld", (long long)t);
        basin_table_add(&rows, "%.4f", basin_sudoku_path_energy(&j->path, t));
        basin_table_add(&rows, "%d", count_breaches(board));
        if (columns == 4) basin_table_add(&rows, "%d", count_wrong(j, t));
    }
    return basin_table_print(&rows, stdout, 0);
}

static bool print_text(const job *j) {
    bool solved = basin_sudoku_solved(j->answer, j->given);
    basin_boards_print(stdout, j->given);
    printf("\n");
    bool fine = print_descent(j);
    printf("\n");
    basin_boards_print(stdout, j->answer);
    if (solved)
        printf("\nsolved: the answer breaks no rule\n");
    else
        printf("\nnot solved: %d cells of the answer break a rule\n", count_breaches(j->answer));
    return fine;
}

static basin_status draw(const job *j, basin_error *error) {
    char subtitle[100];
    basin_writer writer;
    int64_t points = j->path.steps + 1;
    double *energy = malloc((size_t)points * sizeof *energy);
    if (!energy) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", j->o->svg);
    for (int64_t t = 0; t < points; t++) energy[t] = basin_sudoku_path_energy(&j->path, t);
    snprintf(subtitle, sizeof subtitle, "%d givens; digits fade in as they become certain, %s",
             basin_sudoku_count_givens(j->given),
             j->solutions == 1 ? "wrong ones are red" : "those against a rule are red");
    basin_board_picture picture = {.title = "Sudoku by descent",
                                   .subtitle = subtitle,
                                   .given = j->given,
                                   .solution = j->solutions == 1 ? j->solution : NULL,
                                   .probability = j->path.probability,
                                   .energy = energy,
                                   .steps = j->path.steps};
    basin_status status = basin_writer_create(&writer, j->o->svg, error);
    if (!status) {
        basin_board_write(writer.file, &picture);
        status = basin_writer_commit(&writer, error);
    }
    free(energy);
    return status;
}

static void put_board(basin_json *json, const char *key, const uint8_t board[81]) {
    char text[BASIN_SUDOKU_CELLS + 1] = "";
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++) text[i] = (char)('0' + board[i]);
    basin_json_text(json, key, text);
}

static void print_json(const job *j) {
    basin_json json = basin_json_begin(stdout);
    put_board(&json, "board", j->given);
    put_board(&json, "answer", j->answer);
    basin_json_boolean(&json, "solved", basin_sudoku_solved(j->answer, j->given));
    basin_json_text(&json, "solutions",
                    j->solutions == 1 ? "one"
                    : j->solutions    ? "several"
                                      : "none");
    basin_json_integer(&json, "steps", j->path.steps);
    basin_json_array(&json, "energy");
    for (int64_t t = 0; t <= j->path.steps; t++)
        basin_json_number(&json, NULL, basin_sudoku_path_energy(&j->path, t));
    basin_json_end(&json);
    basin_json_end(&json);
}

static int run(const void *values, int operands, char **operand) {
    basin_error error;
    job j = {.o = values};
    int code = BASIN_EXIT_OK;
    basin_status status =
        descend(&j, operands > 1 ? operand[0] : NULL, operand[operands - 1], &error);
    if (!status && j.o->svg) status = draw(&j, &error);
    if (status)
        code = basin_report(&error);
    else if (j.o->json)
        print_json(&j);
    else if (!print_text(&j))
        code = BASIN_EXIT_FAILURE;
    if (!code && !basin_sudoku_solved(j.answer, j.given)) code = BASIN_EXIT_FAILURE;
    job_free(&j);
    return code;
}

const basin_command basin_command_sudoku_solve = {
    .name = "sudoku solve",
    .summary = "Solve a Sudoku board by descent, step by step",
    .operands = "[MODEL] BOARD",
    .operands_least = 1,
    .operands_most = 2,
    .text =
        "BOARD is 81 characters, row by row, with 0 or . for an empty cell, or a file of boards; "
        "MODEL may be left out where one came with Basin. "
        "Printed are the board, the energy and the mistakes by step, and the answer. The exit "
        "code is 0 where the answer is a solution, else 1.",
    .example = "  basin sudoku solve sudoku.safetensors easy.csv --board 3 --svg board.svg\n"
               "  basin sudoku solve sudoku.safetensors easy.csv --steps 128 --json\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
