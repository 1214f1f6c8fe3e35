/* Scores of whole boards: how many are solved after so many steps, by the number of givens. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/given.h"
#include "task/sudoku/sudoku.h"

enum { BATCH = 100 };

typedef struct job {
    basin_sudoku_scoring how;
    basin_sudoku_scores *scores;
    basin_sudoku_runner runner;
    int64_t first, count; /* boards in the runner */
    bool *stopped;        /* [batch] boards that stopped, and their energies */
    double *rest;
} job;

static int count_right(const job *j, int64_t i, int *empty) {
    const uint8_t *given = j->how.boards->given + (j->first + i) * BASIN_SUDOKU_CELLS;
    const uint8_t *solution = j->how.boards->solution + (j->first + i) * BASIN_SUDOKU_CELLS;
    const float *score = (const float *)j->runner.score.data + i * BASIN_SUDOKU_CELLS * 9;
    int right = 0;
    *empty = 0;
    for (int k = 0; k < BASIN_SUDOKU_CELLS; k++) {
        if (given[k]) continue;
        *empty += 1;
        right += basin_sudoku_likeliest(score + (ptrdiff_t)k * 9) == solution[k];
    }
    return right;
}

static double energy_of(const job *j, int64_t i) {
    double sum = 0;
    if (j->stopped[i]) return j->rest[i];
    for (int p = 0; p < j->runner.parts; p++) sum += basin_tensor_at(&j->runner.part[p], i);
    return sum;
}

/* Boards have one solution, so an answer is the solution where it breaks no rule. */
static void stop_boards(job *j) {
    for (int64_t i = 0; i < j->count; i++) {
        int empty;
        if (j->stopped[i] || count_right(j, i, &empty) < empty) continue;
        j->rest[i] = energy_of(j, i);
        j->stopped[i] = true;
    }
}

static void count_boards(const job *j, int row) {
    for (int64_t i = 0; i < j->count; i++) {
        int empty, right = count_right(j, i, &empty);
        if (j->stopped[i]) right = empty;
        j->scores->row[row].energy += energy_of(j, i);
        j->scores->row[row].right += right;
        if (right < empty) continue;
        j->scores->row[row].solved++;
        j->scores->row[row].by_givens[BASIN_SUDOKU_CELLS - empty]++;
    }
}

static basin_status score_batch(job *j, basin_error *error) {
    const uint8_t *given = j->how.boards->given + j->first * BASIN_SUDOKU_CELLS;
    basin_status status = basin_sudoku_runner_begin(&j->runner, given, j->count, error);
    int64_t last = j->scores->row[j->scores->rows - 1].steps;
    memset(j->stopped, 0, (size_t)j->count * sizeof *j->stopped);
    for (int64_t t = 0, row = 0; t <= last && !status; t++) {
        status = basin_sudoku_runner_step(&j->runner, error);
        if (!status && j->how.stop) stop_boards(j);
        if (status || j->scores->row[row].steps != t) continue;
        count_boards(j, (int)row++);
    }
    return status;
}

static basin_status score_all(job *j, basin_error *error) {
    int64_t boards = j->how.boards->count, batch = j->runner.net.batch;
    basin_status status = BASIN_OK;
    for (j->first = 0; j->first < boards && !status; j->first += batch) {
        if (basin_watch_stopped(j->how.watch))
            return basin_fail(error, BASIN_BAD_VALUE, "scoring was interrupted");
        j->count = boards - j->first < batch ? boards - j->first : batch;
        status = score_batch(j, error);
        basin_watch_show(j->how.watch, &(basin_news){.what = "scoring",
                                                     .done = j->first + j->count,
                                                     .total = boards,
                                                     .unit = "boards"});
    }
    for (int row = 0; row < j->scores->rows; row++) j->scores->row[row].energy /= (double)boards;
    return status;
}

static basin_status start_rows(job *j, int64_t usual, basin_error *error) {
    basin_sudoku_scores *s = j->scores;
    for (int i = 0; i < BASIN_SUDOKU_ROWS && j->how.steps[i] > 0; i++) {
        s->row[s->rows++].steps = j->how.steps[i];
        if (i && j->how.steps[i] <= j->how.steps[i - 1])
            return basin_fail(error, BASIN_BAD_VALUE, "steps %lld behind %lld, wanted more",
                              (long long)j->how.steps[i], (long long)j->how.steps[i - 1]);
    }
    if (!s->rows) s->row[s->rows++].steps = usual;
    return BASIN_OK;
}

static basin_status count_givens(job *j, basin_error *error) {
    const basin_sudoku_boards *b = j->how.boards;
    if (!b || b->count < 1) return basin_fail(error, BASIN_BAD_VALUE, "no boards to score");
    j->scores->boards = b->count;
    for (int64_t i = 0; i < b->count; i++) {
        int givens = basin_sudoku_count_givens(b->given + i * BASIN_SUDOKU_CELLS);
        if (b->solutions[i] != 1)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "board %lld has %s, wanted boards with one solution", (long long)i,
                              b->solutions[i] ? "several solutions" : "no solution");
        j->scores->with_givens[givens]++;
        j->scores->empty += BASIN_SUDOKU_CELLS - givens;
    }
    return BASIN_OK;
}

basin_status basin_sudoku_score(basin_sudoku_scores *scores, basin_sudoku_model *model,
                                const basin_sudoku_scoring *scoring, basin_error *error) {
    job j = {.scores = scores};
    *scores = (basin_sudoku_scores){0};
    basin_status status =
        basin_given_take(&j.how, sizeof j.how, scoring, "basin_sudoku_scoring", error);
    if (!status) status = count_givens(&j, error);
    if (!status) status = start_rows(&j, model->settings.steps, error);
    if (status) return status;
    int64_t batch = j.how.batch > 0 ? j.how.batch : BATCH;
    if (batch > scores->boards) batch = scores->boards;
    status = basin_sudoku_runner_new(&j.runner, model, batch, error);
    if (status) return status;
    j.stopped = basin_array_new((size_t)batch, sizeof *j.stopped);
    j.rest = basin_array_new((size_t)batch, sizeof *j.rest);
    status = j.stopped && j.rest ? score_all(&j, error)
                                 : basin_fail(error, BASIN_NO_MEMORY,
                                              "out of memory for %lld boards", (long long)batch);
    free(j.stopped);
    free(j.rest);
    basin_sudoku_runner_free(&j.runner);
    return status;
}
