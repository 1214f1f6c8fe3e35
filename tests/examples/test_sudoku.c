/* examples/sudoku: the exact solver and the generator keep the rules, and a small model learns to
 * solve boards that it has not seen, by an energy that falls. */
#pragma GCC diagnostic ignored "-Wunused-function" /* what the program alone calls */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../examples/sudoku/search.h"

static const char easy[] =
    "530070000600195000098000060800060003400803001700020006060000280000419005000080079";
static const char easy_solution[] =
    "534678912672195348198342567859761423426853791713924856961537284287419635345286179";
static const char hard[] = /* 21 givens, beyond singles */
    "800000000003600000070090200050007000000045700000100030001000068008500010090000400";

static board parsed(const char *text) {
    board b;
    for (int i = 0; i < CELLS; i++) b.cell[i] = (uint8_t)(text[i] - '0');
    return b;
}

static int givens(const board *b) {
    int count = 0;
    for (int i = 0; i < CELLS; i++) count += b->cell[i] != 0;
    return count;
}

/* No digit twice in a unit; empty cells do not count. */
static bool is_consistent(const board *b) {
    for (int unit = 0; unit < UNITS; unit++)
        for (int i = 0; i < 81; i++) {
            int one = b->cell[unit_cell(unit, i / 9)], two = b->cell[unit_cell(unit, i % 9)];
            if (i / 9 != i % 9 && one && one == two) return false;
        }
    return true;
}

/* Solutions counted by trying everything. */
static int count_plainly(board *b, int cell, int limit) {
    while (cell < CELLS && b->cell[cell]) cell++;
    if (cell == CELLS) return 1;
    int found = 0;
    for (uint8_t d = 1; d <= DIGITS && found < limit; d++) {
        b->cell[cell] = d;
        if (is_consistent(b)) found += count_plainly(b, cell + 1, limit - found);
    }
    b->cell[cell] = 0;
    return found;
}

static void units_have_nine_cells(void **state) {
    (void)state;
    int seen[CELLS] = {0};
    for (int i = 0; i < 9 * UNITS; i++) seen[unit_cell(i / 9, i % 9)]++;
    for (int i = 0; i < CELLS; i++) assert_int_equal(seen[i], 3);
    assert_int_equal(unit_cell(18 + 5, 8), 5 * 9 + 8);
}

static void solves_known_boards(void **state) {
    (void)state;
    board given, full;
    parse_board(&given, &full, easy, "easy");
    board solution = parsed(easy_solution);
    assert_memory_equal(&full, &solution, sizeof full);
    assert_true(is_solved_by_singles(given));
    parse_board(&given, &full, hard, "hard");
    assert_true(is_consistent(&full) && givens(&full) == CELLS);
    assert_false(is_solved_by_singles(given));
    for (int i = 0; i < CELLS; i++) assert_true(!given.cell[i] || given.cell[i] == full.cell[i]);
}

static void counts_solutions(void **state) {
    (void)state;
    board b = parsed(easy_solution);
    assert_int_equal(count_solutions(b), 1);
    b.cell[0] = b.cell[1];
    assert_int_equal(count_solutions(b), 0);
    b = (board){0};
    assert_int_equal(count_solutions(b), 2);
    b.cell[0] = b.cell[8] = 4; /* twice in a row */
    assert_int_equal(count_solutions(b), 0);
    /* Row 1 lacks a cell for 9: no two cells disagree, and still there is no solution. */
    b = parsed("123456780000000000000000000000000009000000000000000000000000000000000000000000000");
    assert_true(is_consistent(&b));
    assert_int_equal(count_solutions(b), 0);
    assert_false(is_solved_by_singles(b));
}

static void generated_boards_keep_the_rules(void **state) {
    (void)state;
    const generation kind[] = {{.count = 12, .seed = 3, .least = 40, .most = 45},
                               {.count = 6, .seed = 3, .hard = true},
                               {.count = 6, .seed = 3, .hard = true, .reveal = 5}};
    for (int k = 0; k < 3; k++) {
        boards b = generate_boards(&kind[k]), again = generate_boards(&kind[k]);
        assert_memory_equal(b.given, again.given, 2 * sizeof(board) * (size_t)b.count);
        for (int64_t i = 0; i < b.count; i++) {
            board given = b.given[i];
            assert_true(is_consistent(&b.solution[i]) && givens(&b.solution[i]) == CELLS);
            assert_int_equal(count_solutions(given), 1);
            if (k == 0) assert_int_equal(count_plainly(&given, 0, 2), 1);
            if (k == 0) assert_in_range(givens(&given), 40, 45);
            for (int c = 0; c < CELLS; c++) {
                if (!given.cell[c]) continue;
                assert_int_equal(given.cell[c], b.solution[i].cell[c]);
                board less = given;
                less.cell[c] = 0;
                if (k == 1) assert_int_equal(count_solutions(less), 2); /* minimal */
            }
        }
        free(b.given);
        free(again.given);
    }
}

static void boards_are_drawn_from_a_list(void **state) {
    (void)state;
    boards one = new_boards(1);
    parse_board(one.given, one.solution, hard, "hard");
    generation how = {.count = 20, .hard = true, .reveal = 9, .basis = &one};
    boards b = generate_boards(&how);
    for (int64_t i = 0; i < b.count; i++) {
        assert_int_equal(count_solutions(b.given[i]), 1);
        assert_in_range(givens(&b.given[i]), 21, 30);
        for (int c = 0; c < CELLS; c++)
            if (one.given->cell[c]) assert_true(b.given[i].cell[c]);
    }
    free(one.given);
    free(b.given);
}

static void symmetries_keep_the_rules(void **state) {
    (void)state;
    board full = parsed(easy_solution);
    basin_random random = basin_random_start(1, 2, 0);
    for (int i = 0; i < 50; i++) {
        symmetry s = draw_symmetry(&random);
        board other = transformed(&full, &s);
        assert_true(is_consistent(&other) && givens(&other) == CELLS);
    }
}

static int rules_broken(const int32_t *answer, const int32_t *given, int64_t side) {
    board b;
    (void)given, (void)side;
    for (int i = 0; i < CELLS; i++) b.cell[i] = (uint8_t)answer[i];
    return !is_consistent(&b);
}

/* Boards with 5 to 9 empty cells, which are learnt at once. */
static void learns(int64_t kinds, int64_t keys, int64_t epochs) {
    generation seen = {.count = 192, .seed = 1, .least = 72, .most = 76}, other = seen;
    other.count = 32, other.seed = 2;
    boards b = generate_boards(&seen), unseen = generate_boards(&other);
    puzzles p = puzzles_of(&b), new = puzzles_of(&unseen);
    training how = {.steps = 3,
                    .batch = 8,
                    .epochs = epochs,
                    .rate = 0.01,
                    .last = 1e-3,
                    .keep = 0.2,
                    .leave = 0.5,
                    .start = 0.2,
                    .noise = 0.05};
    search plain = {.steps = 6, .breadth = 1, .rounds = 1, .broken = rules_broken}, wide = plain;
    model m = {.dim = 12, .memories = 16, .keys = keys, .kinds = kinds}, opened = {0};
    how.average = 0.9;
    how.output = "test_sudoku.safetensors";
    must(basin_engine_open(&m.engine, &(basin_compute){.threads = 1}, &error));
    must(basin_engine_open(&opened.engine, &(basin_compute){.threads = 1}, &error));
    assert_true(model_train(&m, &how, &p) < 0.7);
    model_open(&opened, how.output);
    assert_int_equal(remove(how.output), 0);
    assert_true(opened.dim == 12 && opened.memories == 16 && opened.keys == keys);
    assert_int_equal(opened.kinds, kinds);
    findings f = find(&opened, &new, &plain);
    assert_true(f.depths == 5 && f.depth[4] == 6 && f.starts == 32);
    int64_t alone = right_at(&f, BY_ENERGY, 4);
    assert_true(alone > 16 && right_at(&f, BY_REST, 0) < alone && f.first[4] == alone);
    assert_true(f.energy[4] < f.energy[0]);
    findings_free(&f);
    /* Rounds go on with what breaks a rule; where the rules choose, it is better than one start. */
    wide.breadth = 3, wide.rounds = 2, wide.start = 1, wide.noise = 0.1, wide.calm = 3;
    f = find(&opened, &new, &wide);
    assert_true(3 * right_at(&f, BY_RULES, 4) > f.first[4] && f.first[4] < 96);
    wide.rounds = 1;
    findings one = find(&opened, &new, &wide);
    int64_t left = 32 - right_at(&one, BY_RULES, 4);
    assert_true(one.starts == 96 && f.starts == 96 + 3 * left);
    findings_free(&one);
    findings_free(&f);
    /* Digits assumed along the path: first starts are as without, others may differ. */
    wide.noise = 0, wide.assume = 1, wide.calm = 2;
    f = find(&opened, &new, &wide);
    assert_true(f.starts == 96 && right_at(&f, BY_RULES, 4) >= alone);
    findings_free(&f);
    basin_engine_close(&m.engine);
    basin_engine_close(&opened.engine);
    free(p.given);
    free(new.given);
    free(b.given);
    free(unseen.given);
}

static void squares_learn(void **state) {
    (void)state;
    learns(0, 3, 3);
}

static void products_learn(void **state) {
    (void)state;
    learns(6, 0, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_have_nine_cells),
        cmocka_unit_test(solves_known_boards),
        cmocka_unit_test(counts_solutions),
        cmocka_unit_test(generated_boards_keep_the_rules),
        cmocka_unit_test(boards_are_drawn_from_a_list),
        cmocka_unit_test(symmetries_keep_the_rules),
        cmocka_unit_test(squares_learn),
        cmocka_unit_test(products_learn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
