/* Solving a Sudoku by descent: boards are generated, a small model is trained on them for a few
 * seconds, and boards that it never saw go down the model's energy to their solutions. */
#include <basin/tasks/sudoku.h>

#include "must.h"

/* Boards with 5 to 9 empty cells, which are learnt at once. */
static basin_sudoku_boards generate(int64_t count, uint64_t seed) {
    basin_sudoku_boards boards;
    basin_sudoku_making making = {
        .size = sizeof making, .count = count, .seed = seed, .least = 72, .most = 76};
    must(basin_sudoku_generate(&boards, &making, &error));
    return boards;
}

static basin_sudoku_model *train(basin_backend *backend, const basin_sudoku_boards *boards) {
    static const char *const setting[][2] = {
        {"dim", "12"},    {"house_memories", "16"}, {"steps", "3"},
        {"alpha", "0.5"}, {"batch", "8"},           {"epochs", "6"},
        {"warmup", "0"},  {"rate", "0.01"},         {"average", "0"},
    };
    basin_settings *settings;
    basin_sudoku_model *model;
    basin_outcome outcome;
    must(basin_settings_new(&settings, "sudoku", NULL, &error));
    for (size_t i = 0; i < sizeof setting / sizeof *setting; i++)
        must(basin_settings_set(settings, setting[i][0], setting[i][1], &error));
    basin_sudoku_data data = {.size = sizeof data, .train = boards};
    basin_training training = {.size = sizeof training, .backend = backend};
    must(basin_sudoku_train(&model, &outcome, settings, &data, &training, &error));
    printf("trained on %d boards, %d parameters\n", (int)boards->count, (int)outcome.parameters);
    basin_settings_free(settings);
    return model;
}

static void show(const uint8_t *board) {
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++)
        printf("%c%c", board[i] ? '0' + board[i] : '.', i % 9 == 8 ? '\n' : ' ');
}

int main(void) {
    basin_backend *backend;
    basin_sudoku_path path;
    basin_sudoku_scores scores;
    must(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &error));
    basin_sudoku_boards boards = generate(192, 1), unseen = generate(32, 2);
    basin_sudoku_model *model = train(backend, &boards);

    basin_sudoku_scoring how = {.size = sizeof how, .boards = &unseen, .steps = {3}};
    must(basin_sudoku_score(&scores, model, &how, &error));
    printf("it solves %s of 32 unseen boards\n",
           scores.row[0].solved > 16 ? "more than half" : "few");
    show(unseen.given);
    must(basin_sudoku_descend(&path, model, unseen.given, 3, &error));
    for (int t = 1; t <= 3; t++)
        if (basin_sudoku_path_energy(&path, t) > basin_sudoku_path_energy(&path, 0))
            printf("the energy rose above where it began\n");
    printf("after %d steps the energy is lower than at first\n", (int)path.steps);

    basin_sudoku_path_free(&path);
    basin_sudoku_close(model);
    basin_sudoku_boards_free(&boards);
    basin_sudoku_boards_free(&unseen);
    basin_backend_close(backend);
    return 0;
}
