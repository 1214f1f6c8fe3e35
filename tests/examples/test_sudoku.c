/* examples/sudoku: the exact solver and the generator keep the rules, and a small model learns to
 * solve boards that it has not seen, by an energy that falls. */
#include "examples/sudoku_learns.h"

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
        cmocka_unit_test(products_learn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
