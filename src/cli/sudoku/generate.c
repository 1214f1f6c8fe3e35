/* basin sudoku generate: boards with one solution, into a file. */
#include "basin/tasks/boards.h"
#include "cli/command.h"
#include "io/json_writer.h"

typedef struct options {
    const char *output, *kind;
    int64_t count, least, most, reveal, seed;
    bool json, quiet;
} options;

static const options defaults = {
    .output = "boards.csv", .kind = "easy", .count = 10000, .reveal = -1};

static const basin_option table[] = {
    BASIN_TEXT(options, output, 'o', "output", "FILE", "The file to write, as CSV.",
               .writes = true),
    BASIN_INTEGER(options, count, "count", "N", 1, 1e9, "How many boards."),
    BASIN_CHOICE(options, kind, "kind", "easy|hard",
                 "easy: as many givens as --least and --most say. hard: minimal boards, from which "
                 "no given can be taken, and some more cells revealed."),
    BASIN_INTEGER(options, least, "least", "N", 0, 81,
                  "Fewest givens of easy boards; 0: 31, as SATNet's boards have.",
                  .needs = "kind=easy"),
    BASIN_INTEGER(options, most, "most", "N", 0, 81,
                  "Most givens of easy boards; 0: 42, as SATNet's boards have.",
                  .needs = "kind=easy"),
    BASIN_INTEGER(
        options, reveal, "reveal", "N", -1, 64,
        "Hard boards: 0 to N more cells are shown, each number equally likely; -1: 17, as "
        "RRN's boards have.",
        .needs = "kind=hard"),
    BASIN_OPTION_SEED(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

typedef struct facts {
    int least, most;
    double mean, singles; /* givens; share of boards */
} facts;

static facts look(const basin_sudoku_boards *boards) {
    facts f = {.least = BASIN_SUDOKU_CELLS};
    for (int64_t i = 0; i < boards->count; i++) {
        const uint8_t *given = boards->given + i * BASIN_SUDOKU_CELLS;
        int givens = basin_sudoku_count_givens(given);
        if (givens < f.least) f.least = givens;
        if (givens > f.most) f.most = givens;
        f.mean += givens;
        f.singles += basin_sudoku_singles(given);
    }
    f.mean /= (double)boards->count;
    f.singles /= (double)boards->count;
    return f;
}

static void print(const options *o, const basin_sudoku_boards *boards) {
    facts f = look(boards);
    if (!o->json) {
        printf("%s: %lld boards, %d to %d givens, mean %.2f; singles alone solve %.1f %%\n",
               o->output, (long long)boards->count, f.least, f.most, f.mean, 100 * f.singles);
        return;
    }
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "file", o->output);
    basin_json_integer(&json, "boards", boards->count);
    basin_json_integer(&json, "givens_least", f.least);
    basin_json_integer(&json, "givens_most", f.most);
    basin_json_number(&json, "givens_mean", f.mean);
    basin_json_number(&json, "solved_by_singles", f.singles);
    basin_json_end(&json);
}

static basin_status generate(basin_sudoku_boards *boards, const options *o, const char *basis,
                             basin_error *error) {
    basin_sudoku_boards from = {0};
    basin_sudoku_making making = {.size = sizeof making,
                                  .count = o->count,
                                  .seed = (uint64_t)o->seed,
                                  .hard = o->kind[0] == 'h',
                                  .least = (int)o->least,
                                  .most = (int)o->most,
                                  .reveal = o->reveal < 0 ? 0
                                            : o->reveal   ? (int)o->reveal
                                                          : -1,
                                  .basis = basis ? &from : NULL};
    basin_status status = basis ? basin_sudoku_boards_read(&from, basis, false, error) : BASIN_OK;
    if (!status) status = basin_sudoku_generate(boards, &making, error);
    basin_sudoku_boards_free(&from);
    return status;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    basin_sudoku_boards boards = {0};
    if (operands && o->kind[0] != 'h')
        return basin_report_usage(&basin_command_sudoku_generate,
                                  "boards to draw from are for --kind hard");
    basin_status status = generate(&boards, o, operands ? operand[0] : NULL, &error);
    if (!status) status = basin_sudoku_boards_write(o->output, &boards, &error);
    if (!status && (o->json || !o->quiet)) print(o, &boards);
    basin_sudoku_boards_free(&boards);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_sudoku_generate = {
    .name = "sudoku generate",
    .summary = "Generate Sudoku boards that have one solution",
    .operands = "[BASIS]",
    .operands_least = 0,
    .operands_most = 1,
    .text =
        "Writes a line quizzes,solutions and then a board and its solution a line. A board is a "
        "function of the seed and its number. Hard boards are drawn from those of BASIS, if it "
        "is given (Royle's list of boards with 17 givens, say), with their digits renamed. How "
        "many boards singles alone solve (a cell with one digit left, a digit with one place "
        "in a house) says more of their difficulty than the givens do.",
    .example = "  basin sudoku generate --count 10000 -o easy.csv\n"
               "  basin sudoku generate --kind hard --count 1000 --seed 1 -o hard.csv\n"
               "  basin sudoku generate royle17.txt --kind hard -o rrn.csv\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
