/* basin sudoku train: trains a model that solves boards by descent. */
#include <math.h>

#include "basin/tasks/sudoku.h"
#include "cli/sudoku/boards.h"
#include "cli/training.h"
#include "io/json_writer.h"

typedef struct options {
    basin_settings *settings;
    basin_start start;
    basin_training_flags training;
    const char *validation, *backend, *products, *dtype;
    int64_t threads, limit, hold_out;
    bool json, quiet;
} options;

static const options defaults = {
    .training = BASIN_TRAINING_DEFAULT, .backend = "cpu", .products = "f32"};

static const basin_option table[] = {
    BASIN_TRAINING_OPTIONS(options),
    BASIN_OPTIONS_START(options),
    BASIN_TEXT(options, validation, 0, "validation", "FILE",
               "Boards to score after every epoch; they choose the epoch and are not trained on.",
               .needs = "hold-out=0"),
    BASIN_INTEGER(options, hold_out, "hold-out", "N", 0, 1e12,
                  "Keep the last N boards from training and score those."),
    BASIN_INTEGER(options, limit, "limit", "N", 0, 1e12,
                  "Train on the first N boards only; 0: all."),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

/* ---- boards ---- */

typedef struct boards {
    basin_sudoku_boards all, other; /* of the operand, of --validation */
    basin_sudoku_boards train, validation;
} boards;

static void boards_free(boards *b) {
    basin_sudoku_boards_free(&b->all);
    basin_sudoku_boards_free(&b->other);
}

static basin_status read_boards(boards *b, const options *o, const char *path, basin_error *error) {
    basin_status status = basin_sudoku_boards_read(&b->all, path, false, error);
    if (!status && o->validation)
        status = basin_sudoku_boards_read(&b->other, o->validation, false, error);
    if (status) return status;
    int64_t left = b->all.count - o->hold_out;
    if (left < 1)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: it has %lld boards; wanted more than the "
                          "%lld to hold out",
                          path, (long long)b->all.count, (long long)o->hold_out);
    if (o->limit > left)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: it has %lld boards to train on; wanted the %lld of --limit", path,
                          (long long)left, (long long)o->limit);
    b->train = basin_boards_part(&b->all, 0, o->limit ? o->limit : left);
    b->validation = o->hold_out ? basin_boards_part(&b->all, left, o->hold_out) : b->other;
    return BASIN_OK;
}

/* ---- results ---- */

static void print_json(const basin_outcome *r, const options *o, int64_t count) {
    basin_json json = basin_json_begin(stdout);
    basin_training_fields(&json, r, &o->training, count, "boards");
    basin_put_percent(&json, "validation", r->best.measures ? &r->best : NULL);
    basin_json_end(&json);
}

static void print_text(const basin_outcome *r, const options *o, int64_t count) {
    double solved = basin_score_get(&r->best, "boards");
    basin_training_line(r, &o->training, "", count, "boards", "boards");
    if (isfinite(solved)) printf("; validation boards solved %.2f %%", 100 * solved);
    if (r->best_epoch) printf(" (epoch %lld)", (long long)r->best_epoch);
    printf("\n");
}

/* Trains, or with --print-config tries what training would take. */
static basin_status train(basin_outcome *outcome, const options *o, const boards *b,
                          basin_error *error) {
    basin_sudoku_data data = {.size = sizeof data,
                              .train = &b->train,
                              .validation = b->validation.count ? &b->validation : NULL};
    basin_training_work work;
    basin_status status =
        basin_training_open(&work, &o->training, o->backend, o->threads, o->products, o->dtype,
                            o->quiet, o->start.print_config, error);
    if (status) return status;
    status = basin_sudoku_train(NULL, outcome, o->settings, &data, &work.training, error);
    basin_training_close(&work);
    return status;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    basin_outcome outcome;
    boards b = {0};
    if (!operands && o->start.print_config) return basin_print_config(o->settings, NULL);
    if (!operands) return basin_report_usage(&basin_command_sudoku_train, "wants BOARDS");
    basin_status status = read_boards(&b, o, operand[0], &error);
    if (!status) status = train(&outcome, o, &b, &error);
    int64_t count = b.train.count;
    boards_free(&b);
    if (status) return basin_report(&error);
    if (o->start.print_config) return basin_print_config(o->settings, &outcome);
    if (basin_training_is_told(&outcome, o->json))
        (o->json ? print_json : print_text)(&outcome, o, count);
    return basin_training_end(&outcome, &o->training);
}

const basin_command basin_command_sudoku_train = {
    .name = "sudoku train",
    .summary = "Train a model that solves Sudoku boards by descent",
    .operands = "BOARDS",
    .operands_least = 0,
    .operands_most = 1,
    .text = "BOARDS is a file with a board a line, or a board and its solution, as basin sudoku "
            "generate writes them and as they are found elsewhere (quizzes,solutions). Every board "
            "must have one solution. The loss is the cross entropy of the empty cells.",
    .example = "  basin sudoku train easy.csv --hold-out 1000 -o sudoku.safetensors\n"
               "  basin sudoku train easy.csv --validation hard.csv --dim 96 --epochs 200\n"
               "  basin sudoku train easy.csv --print-config\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof(options),
    .task = "sudoku",
    .settings_at = offsetof(options, settings),
    .start_at = offsetof(options, start),
    .run_old = run,
};
