/* The Sudoku task when memory is short: boards, training, a model file, a descent, scores. */
#include "support/alloc_fail.h"
#include "task/sudoku/sudoku_bench.h"

typedef struct scene {
    const basin_settings *settings;
    const char *model, *boards;
} scene;

static basin_status use(basin_sudoku_model *model, const basin_sudoku_boards *boards) {
    basin_sudoku_path path;
    basin_sudoku_scores scores;
    basin_sudoku_scoring how = {.size = sizeof how, .boards = boards};
    basin_status status = basin_sudoku_descend(&path, model, boards->given, 1, NULL);
    if (!status) basin_sudoku_path_free(&path);
    return status ? status : basin_sudoku_score(&scores, model, &how, NULL);
}

static basin_status scenario(void *context) {
    scene *s = context;
    basin_backend *backend = NULL;
    basin_sudoku_model *model = NULL, *again = NULL;
    basin_sudoku_boards boards = {0}, read = {0};
    basin_outcome outcome;
    basin_sudoku_making making = {.size = sizeof making, .count = 2, .least = 60, .most = 60};
    basin_status status = basin_sudoku_generate(&boards, &making, NULL);
    if (!status) status = basin_sudoku_boards_write(s->boards, &boards, NULL);
    if (!status) status = basin_sudoku_boards_read(&read, s->boards, false, NULL);
    if (!status) status = basin_backend_open(&backend, &(basin_compute){.threads = 1}, NULL);
    basin_training training = {.size = sizeof training, .backend = backend};
    basin_sudoku_data data = {.size = sizeof data, .train = &read, .validation = &boards};
    if (!status) status = basin_sudoku_train(&model, &outcome, s->settings, &data, &training, NULL);
    if (!status) status = basin_sudoku_write(s->model, model, NULL);
    if (!status) status = basin_sudoku_open(&again, s->model, backend, NULL);
    if (!status) status = use(again, &boards);
    basin_sudoku_close(again);
    basin_sudoku_close(model);
    basin_sudoku_boards_free(&boards);
    basin_sudoku_boards_free(&read);
    if (backend) basin_backend_close(backend);
    return status;
}

static void all_of_it(void **state) {
    char boards[PATH_TEXT];
    bench b;
    bench_open(&b, state, "model", 2);
    b.s->dim = 4, b.s->heads = 1, b.s->head_dim = 2, b.s->memories = 3, b.s->steps = 2;
    b.s->epochs = 1, b.s->batch = 1;
    scene s = {b.settings, b.out, folder_path(boards, state, "boards.csv")};
    assert_true(alloc_fail_sample(scenario, &s, 150) > 100);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_of_it)};
    return cmocka_run_group_tests(tests, folder_new, folder_remove);
}
