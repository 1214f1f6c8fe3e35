/* Generates Sudoku boards, trains a model on them, and solves boards by descent: docs/sudoku.md. */
#include "model.h"

static const char usage[] =
    "sudoku generate easy|hard|FILE COUNT [--seed N] [--least N] [--most N] [--reveal N]\n"
    "    prints boards; FILE has minimal boards to draw hard ones from\n"
    "sudoku train BOARDS MODEL [--large 1] [--epochs N] [--batch N] [--steps N] [--ahead N]\n"
    "             [--dim N] [--memories N] [--seed N]\n"
    "sudoku eval MODEL BOARDS [--steps N]      prints how many boards are solved, by steps\n"
    "sudoku solve MODEL DIGITS [--steps N]     one board; exits with 1 if it is not solved\n"
    "The last three take --backend ref|cpu|cuda and --threads N.\n";

static int generate(const char *kind, const char *count) {
    bool easy = !strcmp(kind, "easy"), basis = !easy && strcmp(kind, "hard") != 0;
    boards from = {0};
    generation how = {.count = strtoll(count, NULL, 10),
                      .seed = integer("--seed", 0),
                      .least = integer("--least", 31),
                      .most = integer("--most", 42),
                      .reveal = integer("--reveal", 17),
                      .hard = !easy,
                      .basis = basis ? &from : NULL};
    check_options();
    if (easy && (how.least < 26 || how.most > CELLS || how.least > how.most))
        quit("--least and --most", "expected a range within 26 to 81");
    if (basis) from = read_boards(kind);
    boards made = generate_boards(&how);
    puts("quizzes,solutions");
    for (int64_t i = 0; i < made.count; i++) {
        print_board(&made.given[i], ',');
        print_board(&made.solution[i], '\n');
    }
    free(from.given);
    free(made.given);
    return 0;
}

static int train(const char *path, const char *output) {
    bool large = integer("--large", 0);
    model m = {.dim = integer("--dim", large ? 32 : 24),
               .memories = integer("--memories", large ? 64 : 48),
               .engine = open_engine()};
    training how = {.steps = integer("--steps", large ? 16 : 12),
                    .ahead = integer("--ahead", large ? 16 : 0),
                    .batch = integer("--batch", large ? 64 : 16),
                    .epochs = integer("--epochs", large ? 21 : 5),
                    .seed = integer("--seed", 0),
                    .rate = 3e-3,
                    .last = large ? 5e-5 : 1e-4,
                    .average = large ? 0.995 : 0.99,
                    .output = output};
    check_options();
    boards b = read_boards(path);
    model_train(&m, &how, &b);
    basin_engine_close(&m.engine);
    free(b.given);
    return 0;
}

/* Prints what is solved after 0, 1, 2, 4, .. steps, and a single board's answer. */
static int descend(const char *weights, const boards *b) {
    int64_t steps = integer("--steps", 64), next, singles = 0;
    int64_t *solved = calloc((size_t)steps + 1, sizeof *solved);
    double *energy = calloc((size_t)steps + 1, sizeof *energy);
    board *answer = calloc((size_t)b->count, sizeof *answer);
    model m = {.engine = open_engine()};
    check_options();
    model_open(&m, weights);
    model_descend(solved, energy, answer, &m, b, steps);
    for (int64_t i = 0; i < b->count; i++) singles += is_solved_by_singles(b->given[i]);
    printf("of %d boards, singles solve %d\nsteps  solved    energy\n", (int)b->count,
           (int)singles);
    for (int64_t step = 0; step <= steps; step = next) {
        printf("%5d  %6d  %8.2f\n", (int)step, (int)solved[step], energy[step]);
        next = step < steps && 2 * step > steps ? steps : 2 * step + !step;
    }
    if (b->count == 1) print_board(answer, '\n');
    int failed = b->count == 1 && !solved[steps];
    basin_engine_close(&m.engine);
    free(solved);
    free(energy);
    free(answer);
    free(b->given);
    return failed;
}

static int eval(const char *weights, const char *path) {
    boards b = read_boards(path);
    return descend(weights, &b);
}

static int solve_one(const char *weights, const char *digits) {
    boards one = new_boards(1);
    parse_board(one.given, one.solution, digits, "board");
    return descend(weights, &one);
}

int main(int count, char **argument) {
    const char *command = count < 4 ? "" : argument[1];
    options = argument + (count < 4 ? count : 4);
    if (!strcmp(command, "generate")) return generate(argument[2], argument[3]);
    if (!strcmp(command, "train")) return train(argument[2], argument[3]);
    if (!strcmp(command, "eval")) return eval(argument[2], argument[3]);
    if (!strcmp(command, "solve")) return solve_one(argument[2], argument[3]);
    fputs(usage, stderr);
    return 2;
}
