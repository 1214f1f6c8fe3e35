/* Descents of boards, step by step: a plan makes the first tokens, another takes one step and reads
 * scores and energies of where it begins. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/sudoku/sudoku.h"

/* ---- the runner ---- */

static basin_status make_plans(basin_sudoku_runner *r, basin_store *store, basin_error *error) {
    basin_expr output[2 + BASIN_SUDOKU_PARTS];
    basin_energy energy = basin_sudoku_net_energy(&r->net);
    basin_shape shape = basin_expr_shape(r->net.start);
    r->tokens = basin_input(r->net.graph, "tokens", shape);
    r->t = basin_input(r->net.graph, "t", BASIN_SCALAR);
    r->next = basin_sudoku_net_step(&r->net, r->tokens, r->t);
    r->scores = basin_softmax(basin_sudoku_net_read(&r->net, r->tokens));
    r->parts = energy.parts;
    output[0] = r->next;
    output[1] = r->scores;
    for (int p = 0; p < r->parts; p++)
        output[2 + p] = r->energy[p] =
            energy.part(energy.context, basin_energy_activation(&energy, r->tokens), p);
    basin_status status = basin_sudoku_net_check(&r->net, error);
    if (!status)
        status = basin_plan_new(&r->begin, store,
                                &(basin_plan_spec){.output = &r->net.start, .outputs = 1}, error);
    if (!status)
        status = basin_plan_new(
            &r->step, store, &(basin_plan_spec){.output = output, .outputs = 2 + r->parts}, error);
    return status;
}

static basin_status make_tensors(basin_sudoku_runner *r, basin_error *error) {
    basin_status status = basin_tensor_new(&r->x, BASIN_F32, basin_expr_shape(r->tokens), error);
    if (!status)
        status = basin_tensor_new(&r->score, BASIN_F32, basin_expr_shape(r->scores), error);
    for (int p = 0; p < r->parts && !status; p++)
        status = basin_tensor_new(&r->part[p], BASIN_F64, basin_expr_shape(r->energy[p]), error);
    return status;
}

basin_status basin_sudoku_runner_new(basin_sudoku_runner *runner, basin_sudoku_model *model,
                                     int64_t batch, basin_error *error) {
    *runner = (basin_sudoku_runner){0};
    basin_status status = basin_sudoku_net_new(&runner->net, &model->settings, batch, error);
    if (!status) status = make_plans(runner, model->store, error);
    if (!status) status = make_tensors(runner, error);
    if (status) basin_sudoku_runner_free(runner);
    return status;
}

void basin_sudoku_runner_free(basin_sudoku_runner *runner) {
    for (int p = 0; p < BASIN_SUDOKU_PARTS; p++) basin_tensor_free(&runner->part[p]);
    basin_tensor_free(&runner->score);
    basin_tensor_free(&runner->x);
    basin_plan_free(runner->step);
    basin_plan_free(runner->begin);
    basin_sudoku_net_free(&runner->net);
    *runner = (basin_sudoku_runner){0};
}

/* Both plans have the input: the energy reads what was given in every step. */
basin_status basin_sudoku_runner_begin(basin_sudoku_runner *runner, const uint8_t *given,
                                       int64_t count, basin_error *error) {
    int64_t cells = runner->net.batch * BASIN_SUDOKU_CELLS;
    int32_t *index = calloc((size_t)cells, sizeof *index);
    if (!index) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for boards");
    for (int64_t i = 0; i < count * BASIN_SUDOKU_CELLS; i++) index[i] = given[i];
    basin_tensor tensor = basin_tensor_borrow(index, BASIN_I32, BASIN_SHAPE(cells));
    basin_status status = basin_plan_write(runner->begin, runner->net.board, &tensor, error);
    if (!status) status = basin_plan_write(runner->step, runner->net.board, &tensor, error);
    if (!status) status = basin_plan_run(runner->begin, error);
    if (!status) status = basin_plan_read(runner->begin, runner->net.start, &runner->x, error);
    runner->taken = 0;
    free(index);
    return status;
}

basin_status basin_sudoku_runner_step(basin_sudoku_runner *runner, basin_error *error) {
    double t = (double)runner->taken++;
    basin_tensor number = basin_tensor_borrow(&t, BASIN_F64, BASIN_SCALAR);
    basin_status status = basin_plan_write(runner->step, runner->tokens, &runner->x, error);
    if (!status) status = basin_plan_write(runner->step, runner->t, &number, error);
    if (!status) status = basin_plan_run(runner->step, error);
    if (!status) status = basin_plan_read(runner->step, runner->scores, &runner->score, error);
    for (int p = 0; p < runner->parts && !status; p++)
        status = basin_plan_read(runner->step, runner->energy[p], &runner->part[p], error);
    if (!status) status = basin_plan_read(runner->step, runner->next, &runner->x, error);
    return status;
}

/* ---- one board ---- */

static basin_status walk(basin_sudoku_path *path, basin_sudoku_runner *runner, basin_error *error) {
    enum { NUMBERS = BASIN_SUDOKU_CELLS * 9 };
    basin_energy energy = basin_sudoku_net_energy(&runner->net);
    basin_status status = basin_sudoku_runner_begin(runner, path->given, 1, error);
    path->parts = runner->parts;
    for (int p = 0; p < path->parts; p++) path->part[p] = energy.name[p];
    for (int64_t t = 0; t <= path->steps && !status; t++) {
        status = basin_sudoku_runner_step(runner, error);
        if (status) break;
        memcpy(path->probability + t * NUMBERS, runner->score.data, NUMBERS * sizeof(float));
        for (int p = 0; p < path->parts; p++)
            path->energy[t * path->parts + p] = basin_tensor_at(&runner->part[p], 0);
    }
    return status;
}

basin_status basin_sudoku_descend(basin_sudoku_path *path, basin_sudoku_model *model,
                                  const uint8_t given[81], int64_t steps, basin_error *error) {
    basin_sudoku_runner runner;
    *path = (basin_sudoku_path){.steps = steps ? steps : model->settings.steps};
    if (steps < 0)
        return basin_fail(error, BASIN_BAD_VALUE, "steps is %lld, wanted 0 or more",
                          (long long)steps);
    memcpy(path->given, given, sizeof path->given);
    size_t points = (size_t)path->steps + 1;
    path->probability = basin_array_new(points * BASIN_SUDOKU_CELLS, 9 * sizeof(float));
    path->energy = basin_array_new(points, BASIN_SUDOKU_PARTS * sizeof(double));
    if (!path->probability || !path->energy) {
        basin_sudoku_path_free(path);
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld steps", (long long)steps);
    }
    basin_status status = basin_sudoku_runner_new(&runner, model, 1, error);
    if (!status) {
        status = walk(path, &runner, error);
        basin_sudoku_runner_free(&runner);
    }
    if (status) basin_sudoku_path_free(path);
    return status;
}

void basin_sudoku_path_free(basin_sudoku_path *path) {
    free(path->probability);
    free(path->energy);
    *path = (basin_sudoku_path){0};
}

int basin_sudoku_likeliest(const float *score) {
    int best = 0;
    for (int d = 1; d < 9; d++)
        if (score[d] > score[best]) best = d;
    return best + 1;
}

void basin_sudoku_path_answer(uint8_t board[81], const basin_sudoku_path *path, int64_t step) {
    const float *p = path->probability + step * BASIN_SUDOKU_CELLS * 9;
    for (ptrdiff_t i = 0; i < BASIN_SUDOKU_CELLS; i++)
        board[i] = path->given[i] ? path->given[i] : (uint8_t)basin_sudoku_likeliest(p + i * 9);
}

double basin_sudoku_path_energy(const basin_sudoku_path *path, int64_t step) {
    double sum = 0;
    for (int p = 0; p < path->parts; p++) sum += path->energy[step * path->parts + p];
    return sum;
}
