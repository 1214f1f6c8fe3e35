/* Generates mazes, trains a model on them, and solves mazes by descent: docs/sudoku.md. */
#pragma GCC diagnostic ignored "-Wunused-function" /* what boards alone call */
#include "mazes.h"

static const char usage[] =
    "maze generate COUNT SIDE [--least N] [--most N] [--seed N]\n"
    "    prints mazes with one path of --least to --most steps (100 to 140 for a side of 30)\n"
    "maze train MAZES MODEL [--epochs N] [--batch N] [--steps N] [--dim N] [--memories N]\n"
    "           [--kinds 0|1] [--keys N] [--keep P] [--leave P] [--start S] [--noise S]\n"
    "           [--front S] [--seed N]\n"
    "maze eval MODEL MAZES [SEARCH]     prints how many mazes are solved, by steps\n"
    "maze solve MODEL MAZE [SEARCH]     one maze; exits with 1 if it is not solved\n"
    "    SEARCH: --steps N (512), --breadth N starts with --start S noise, --noise S along the "
    "path and\n"
    "    none in the last --calm N steps, --rounds N of them for mazes that break a rule,\n"
    "    --seed N, --choose rules: an answer that keeps all rules is held once it is seen, else "
    "the\n"
    "    lowest energy so far (the default); energy: the lowest so far; rest: the smallest last "
    "move\n"
    "The last three take --backend ref|cpu|cuda and --threads N.\n";

static int generate(const char *many, const char *length) {
    int64_t count = whole("COUNT", many), side = whole("SIDE", length);
    int64_t least = integer("--least", side * side / 9),
            most = integer("--most", side * side * 7 / 45);
    int64_t seed = integer("--seed", 0);
    check_options();
    if (side < 5 || side > SIDE_MOST) quit("SIDE", "expected 5 to 200");
    if (count < 1 || least < 1 || most < least)
        quit("generate", "expected COUNT and 1 <= --least <= --most");
    mazes m = generate_mazes(count, side, least, most, seed);
    puts("maze,path");
    for (int64_t i = 0; i < count; i++) {
        const int32_t *given = m.all.given + i * m.all.cells;
        print_maze(given, NULL, m.all.cells, ',');
        print_maze(given, m.all.solution + i * m.all.cells, m.all.cells, '\n');
    }
    free(m.all.given);
    return 0;
}

static int train(const char *path, const char *output) {
    model m = {.dim = integer("--dim", 16),
               .memories = integer("--memories", 32),
               .kinds = integer("--kinds", 1),
               .keys = integer("--keys", 0),
               .engine = open_engine()};
    training how = {.steps = integer("--steps", 16),
                    .batch = integer("--batch", 16),
                    .epochs = integer("--epochs", 10),
                    .seed = integer("--seed", 0),
                    .keep = real("--keep", 0.5),
                    .leave = real("--leave", 0.2),
                    .start = real("--start", 0.3),
                    .noise = real("--noise", 0.05),
                    .front = real("--front", 0.5),
                    .rate = 5e-3,
                    .last = 1e-4,
                    .average = 0.99,
                    .output = output};
    check_options();
    if (m.kinds < 0 || m.kinds > 1) quit("--kinds", "expected 0 or 1");
    mazes all = read_mazes(path);
    m.side = all.side;
    puzzles *p = &all.all;
    p->sweep = calloc((size_t)(p->count * p->cells), sizeof *p->sweep);
    if (!p->sweep) quit("mazes", "out of memory");
    for (int64_t i = 0; i < p->count; i++)
        fill_dead_ends(p->sweep + i * p->cells, p->given + i * p->cells, all.side);
    model_train(&m, &how, &all.all);
    basin_engine_close(&m.engine);
    free(p->sweep);
    free(all.all.given);
    return 0;
}

/* Prints what is solved after 0, 1, 2, 4, .. steps, and a single maze's answer. */
static int descend(const char *weights, const mazes *all) {
    const puzzles *p = &all->all;
    search how = read_search(512);
    int by = read_choice(), failed = 0;
    model m = {.side = all->side, .engine = open_engine()};
    check_options();
    how.broken = broken_path;
    model_open(&m, weights);
    findings f = find(&m, p, &how);
    print_findings(&f, &how, "mazes");
    const int32_t *answer = f.answer + by * p->count * p->cells;
    for (int64_t row = 0; p->count == 1 && row < all->side; row++)
        print_maze(p->given + row * all->side, answer + row * all->side, all->side, '\n');
    if (p->count == 1) failed = !right_at(&f, by, f.depths - 1);
    if (failed) fputs("not solved; a longer path needs more --steps\n", stderr);
    basin_engine_close(&m.engine);
    findings_free(&f);
    free(p->given);
    return failed;
}

static int eval(const char *weights, const char *path) {
    mazes all = read_mazes(path);
    return descend(weights, &all);
}

static int solve_one(const char *weights, const char *line) {
    int64_t side = side_of(line, "maze");
    mazes one = {side, new_puzzles(1, side * side)};
    parse_maze(one.all.given, one.all.solution, line, side, "maze");
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
