/* Generates Sudoku boards, trains a model on them, and solves boards by descent: docs/sudoku.md. */
#include "search.h"

static const char usage[] =
    "sudoku generate easy|hard|FILE COUNT [--seed N] [--least N] [--most N] [--reveal N]\n"
    "                [--guesses N]\n"
    "    prints boards; FILE has minimal boards to draw hard ones from; with --guesses, boards "
    "that\n"
    "    take the exact solver at least so many\n"
    "sudoku train BOARDS MODEL [--large 1] [--epochs N] [--batch N] [--steps N] [--dim N]\n"
    "             [--memories N] [--kinds 0|4|6] [--keys N] [--keep P] [--leave P] [--start S] "
    "[--noise S] [--seed "
    "N]\n"
    "sudoku eval MODEL BOARDS [SEARCH]      prints how many boards are solved, by steps\n"
    "sudoku solve MODEL DIGITS [SEARCH]     one board; exits with 1 if it is not solved\n"
    "    SEARCH: --steps N (256), --breadth N starts with --start S noise, --noise S along the "
    "path and\n"
    "    none in the last --calm N steps, --assume N: one more digit assumed after every N steps,\n"
    "    --rounds N of all that for boards that break a rule, --seed N,\n"
    "    --choose rules: an answer that keeps all rules is held once it is seen, else the lowest\n"
    "    energy so far (the default); energy: the lowest so far; rest: the smallest last move\n"
    "The last three take --backend ref|cpu|cuda and --threads N.\n";

static int generate(const char *kind, const char *count) {
    bool easy = !strcmp(kind, "easy"), basis = !easy && strcmp(kind, "hard") != 0;
    boards from = {0};
    generation how = {.count = whole("COUNT", count),
                      .seed = integer("--seed", 0),
                      .least = integer("--least", 31),
                      .most = integer("--most", 42),
                      .guesses = integer("--guesses", 0),
                      .hard = !easy,
                      .basis = basis ? &from : NULL};
    how.reveal = integer("--reveal", how.guesses ? 0 : 17);
    check_options();
    if (how.count < 1) quit("COUNT", "expected 1 or more");
    if (how.guesses < 0 || how.reveal < 0) quit("--guesses and --reveal", "expected 0 or more");
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
               .memories = integer("--memories", large ? 96 : 48),
               .kinds = integer("--kinds", large ? 6 : 4),
               .keys = integer("--keys", 0),
               .engine = open_engine()};
    training how = {.steps = integer("--steps", large ? 16 : 12),
                    .batch = integer("--batch", large ? 128 : 16),
                    .epochs = integer("--epochs", large ? 100 : 5),
                    .seed = integer("--seed", 0),
                    .keep = real("--keep", 0.7),
                    .leave = real("--leave", large ? 0.06 : 0.25),
                    .start = real("--start", large ? 1 : 0.5),
                    .noise = real("--noise", large ? 0.2 : 0),
                    .rate = 3e-3,
                    .last = large ? 5e-5 : 1e-4,
                    .average = large ? 0.995 : 0.99,
                    .output = output};
    check_options();
    if (m.kinds && m.kinds != 4 && m.kinds != 6) quit("--kinds", "expected 0, 4 or 6");
    boards b = read_boards(path);
    puzzles p = puzzles_of(&b);
    model_train(&m, &how, &p);
    basin_engine_close(&m.engine);
    free(p.given);
    free(b.given);
    return 0;
}

/* Digits that are missing in a row, column or box. */
static int broken(const int32_t *answer, const int32_t *given, int64_t side) {
    int missing = 0;
    (void)given, (void)side;
    for (int unit = 0; unit < UNITS; unit++) {
        unsigned found = 0;
        for (int k = 0; k < 9; k++) found |= 1u << answer[unit_cell(unit, k)];
        missing += DIGITS - __builtin_popcount(found & ALL);
    }
    return missing;
}

/* What singles alone and the exact solver do, with the time per board. */
static void print_floor(const boards *b) {
    int64_t singles = 0, exact = 0;
    double began = seconds_now(), middle;
    for (int64_t i = 0; i < b->count; i++) singles += is_solved_by_singles(b->given[i]);
    middle = seconds_now();
    for (int64_t i = 0; i < b->count; i++) exact += count_solutions(b->given[i]) == 1;
    double n = 1e-6 * (double)b->count;
    printf("of %d boards, singles solve %d (%.0f us per board), the exact solver %d (%.0f us)\n",
           (int)b->count, (int)singles, (middle - began) / n, (int)exact,
           (seconds_now() - middle) / n);
}

/* Prints what is solved after 0, 1, 2, 4, .. steps, and a single board's answer. */
static int descend(const char *weights, const boards *b) {
    search how = read_search(256);
    int by = read_choice();
    model m = {.engine = open_engine()};
    how.broken = broken;
    how.assume = integer("--assume", 0);
    if (how.assume < 0) quit("--assume", "expected a number of steps, or 0");
    if (how.assume && how.breadth == 1 && how.rounds == 1)
        quit("--assume", "needs --breadth 2 or more: the first start of a board assumes nothing");
    check_options();
    model_open(&m, weights);
    puzzles p = puzzles_of(b);
    findings f = find(&m, &p, &how);
    print_floor(b);
    print_findings(&f, &how, "boards");
    for (int k = 0; k < CELLS && b->count == 1; k++) putchar('0' + f.answer[by * CELLS + k]);
    if (b->count == 1) putchar('\n');
    int failed = b->count == 1 && !right_at(&f, by, f.depths - 1);
    if (failed)
        fputs("not solved; more starts may: --breadth 64 --start 0.3 --assume 16 --steps 512\n",
              stderr);
    basin_engine_close(&m.engine);
    findings_free(&f);
    free(p.given);
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
