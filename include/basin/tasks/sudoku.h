/* Sudoku by descent: a recurrent energy model whose tokens are the candidates of a board, a digit
 * in a cell each, or its cells, and whose rest is the solution.
 *
 *     basin_sudoku_open(&model, "sudoku.safetensors", backend, &error);
 *     basin_sudoku_path path;
 *     basin_sudoku_descend(&path, model, given, 64, &error);
 *     basin_sudoku_path_answer(board, &path, path.steps);        ... 81 digits
 *     basin_sudoku_path_free(&path);
 *
 * Energies are the model's, one number a part and step. */
#ifndef BASIN_TASKS_SUDOKU_H
#define BASIN_TASKS_SUDOKU_H

#include "basin/tasks/boards.h"
#include "basin/tasks/run.h"
#include "basin/tasks/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_sudoku_model basin_sudoku_model;

BASIN_API basin_status basin_sudoku_open(basin_sudoku_model **model, const char *path,
                                         basin_backend *backend, basin_error *error);
/* The model as a file that basin_sudoku_open reads. */
BASIN_API basin_status basin_sudoku_write(const char *path, basin_sudoku_model *model,
                                          basin_error *error);
BASIN_API void basin_sudoku_close(basin_sudoku_model *model);
BASIN_API const basin_settings *basin_sudoku_get_settings(const basin_sudoku_model *model);
BASIN_API int64_t basin_sudoku_parameters(const basin_sudoku_model *model);

/* ---- training ---- */

typedef struct basin_sudoku_data {
    size_t size; /* sizeof(basin_sudoku_data) */
    const basin_sudoku_boards *train;
    const basin_sudoku_boards *validation; /* scored after epochs, never trained on; or NULL */
} basin_sudoku_data;

/* `settings` are of the task "sudoku". `model` may be NULL. */
BASIN_API basin_status basin_sudoku_train(basin_sudoku_model **model, basin_outcome *outcome,
                                          const basin_settings *settings,
                                          const basin_sudoku_data *data,
                                          const basin_training *training, basin_error *error);

/* ---- one board along its descent ---- */

enum { BASIN_SUDOKU_PARTS = 4 };

typedef struct basin_sudoku_path {
    int64_t steps;
    uint8_t given[81];
    float *probability; /* [steps + 1, 81, 9] of the digits, before each step and at the end */
    int parts;
    const char *part[BASIN_SUDOKU_PARTS];
    double *energy; /* [steps + 1, parts] */
} basin_sudoku_path;

/* `steps` 0: as many as in training. */
BASIN_API basin_status basin_sudoku_descend(basin_sudoku_path *path, basin_sudoku_model *model,
                                            const uint8_t given[81], int64_t steps,
                                            basin_error *error);
BASIN_API void basin_sudoku_path_free(basin_sudoku_path *path);
/* The given digits and, of every other cell, the likeliest one after so many steps. */
BASIN_API void basin_sudoku_path_answer(uint8_t board[81], const basin_sudoku_path *path,
                                        int64_t step);
/* The sum of all parts before step t. */
BASIN_API double basin_sudoku_path_energy(const basin_sudoku_path *path, int64_t step);

/* ---- whole boards ---- */

enum { BASIN_SUDOKU_ROWS = 16 };

typedef struct basin_sudoku_scoring {
    size_t size; /* sizeof(basin_sudoku_scoring) */
    const basin_sudoku_boards *boards;
    int64_t steps[BASIN_SUDOKU_ROWS]; /* ascending numbers of steps to score after; 0 ends them.
                                         None: as many as in training */
    int64_t batch;                    /* 0: 100 boards at a time */
    const basin_watch *watch;
    bool stop; /* a board stops when its answer breaks no rule, and keeps answer and energy */
} basin_sudoku_scoring;

/* A board is solved where every empty cell has its digit; the boards must have one solution. */
typedef struct basin_sudoku_scores {
    int64_t boards, empty; /* boards, empty cells of them all */
    int rows;
    struct {
        int64_t steps;
        int64_t solved, right; /* boards; empty cells that have their digit */
        double energy;         /* mean over boards */
        int64_t by_givens[82]; /* boards with so many givens that are solved */
    } row[BASIN_SUDOKU_ROWS];
    int64_t with_givens[82]; /* boards with so many givens */
} basin_sudoku_scores;

BASIN_API basin_status basin_sudoku_score(basin_sudoku_scores *scores, basin_sudoku_model *model,
                                          const basin_sudoku_scoring *scoring, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
