/* Sudoku boards: rules, the exact solver against known boards and against a plain one, generated
 * boards with one solution, symmetries, files and what is wrong with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basin/tasks/boards.h"
#include "io/folder.h"

/* The example of many texts on Sudoku, and one of the hardest for people. */
static const char *const easy_board =
    "530070000600195000098000060800060003400803001700020006060000280000419005000080079";
static const char *const easy_solution =
    "534678912672195348198342567859761423426853791713924856961537284287419635345286179";
static const char *const hard_board =
    "800000000003600000070090200050007000000045700000100030001000068008500010090000400";
static const char *const hard_solution =
    "812753649943682175675491283154237896369845721287169534521974368438526917796318452";

static void take(uint8_t board[81], const char *text) {
    basin_error error;
    if (basin_sudoku_parse(board, text, &error)) fail_msg("%s", error.text);
}

/* ---- rules and solver ---- */

static void houses_have_nine_cells(void **state) {
    (void)state;
    int seen[81] = {0};
    for (int house = 0; house < BASIN_SUDOKU_HOUSES; house++)
        for (int k = 0; k < 9; k++) seen[basin_sudoku_house_cell(house, k)]++;
    for (int i = 0; i < 81; i++) assert_int_equal(seen[i], 3);
    assert_int_equal(basin_sudoku_house_cell(18 + 5, 8), 5 * 9 + 8);
}

static void solves_known_boards(void **state) {
    (void)state;
    uint8_t given[81], solution[81], wanted[81];
    const char *const pair[][2] = {{easy_board, easy_solution}, {hard_board, hard_solution}};
    for (int i = 0; i < 2; i++) {
        take(given, pair[i][0]);
        take(wanted, pair[i][1]);
        assert_int_equal(basin_sudoku_solve(solution, given, 3), 1);
        assert_memory_equal(solution, wanted, 81);
        assert_true(basin_sudoku_solved(solution, given));
        assert_int_equal(basin_sudoku_singles(given), i == 0);
    }
    wanted[80] = wanted[79];
    assert_false(basin_sudoku_solved(wanted, given));
    assert_int_equal(basin_sudoku_count_givens(given), 21);
}

static void counts_solutions(void **state) {
    (void)state;
    uint8_t given[81], solution[81];
    take(given, easy_solution);
    assert_int_equal(basin_sudoku_solve(solution, given, 2), 1);
    memset(given, 0, sizeof given);
    assert_int_equal(basin_sudoku_solve(solution, given, 5), 5);
    assert_true(basin_sudoku_solved(solution, given));
    given[0] = given[80] = 4; /* no contradiction yet */
    assert_int_equal(basin_sudoku_solve(solution, given, 2), 2);
    given[8] = 4;
    assert_int_equal(basin_sudoku_solve(solution, given, 2), 0);
    int where[2];
    assert_false(basin_sudoku_consistent(given, where));
    assert_int_equal(where[0] + where[1], 8);
    /* Row 1 lacks a place for 9: no two cells disagree, and still there is no solution. */
    take(given,
         "123456780000000000000000000000000009000000000000000000000000000000000000000000000");
    assert_true(basin_sudoku_consistent(given, NULL));
    assert_int_equal(basin_sudoku_solve(solution, given, 2), 0);
    assert_false(basin_sudoku_singles(given));
}

/* Solutions counted without any cleverness. */
static int count_plainly(uint8_t board[81], int cell, int limit) {
    while (cell < 81 && board[cell]) cell++;
    if (cell == 81) return 1;
    int found = 0;
    for (int d = 1; d <= 9 && found < limit; d++) {
        board[cell] = (uint8_t)d;
        if (basin_sudoku_consistent(board, NULL))
            found += count_plainly(board, cell + 1, limit - found);
    }
    board[cell] = 0;
    return found;
}

/* ---- generation ---- */

static basin_sudoku_boards generate(int64_t count, bool hard, uint64_t seed) {
    basin_error error;
    basin_sudoku_boards boards;
    basin_sudoku_making making = {
        .size = sizeof making, .count = count, .hard = hard, .seed = seed};
    if (basin_sudoku_generate(&boards, &making, &error)) fail_msg("%s", error.text);
    assert_int_equal(boards.count, count);
    return boards;
}

static void boards_have_one_solution(void **state) {
    (void)state;
    for (int hard = 0; hard < 2; hard++) {
        basin_sudoku_boards b = generate(60, hard, 7);
        for (int64_t i = 0; i < b.count; i++) {
            uint8_t *given = b.given + i * 81, solution[81];
            int givens = basin_sudoku_count_givens(given);
            assert_int_equal(basin_sudoku_solve(solution, given, 2), 1);
            assert_memory_equal(solution, b.solution + i * 81, 81);
            assert_true(basin_sudoku_solved(solution, given));
            if (!hard) assert_true(givens >= 31 && givens <= 42);
            if (!hard && i < 12) assert_int_equal(count_plainly(given, 0, 2), 1);
        }
        basin_sudoku_boards_free(&b);
    }
}

static void boards_are_minimal(void **state) {
    (void)state;
    basin_error error;
    basin_sudoku_boards b;
    basin_sudoku_making making = {.size = sizeof making, .count = 4, .hard = true, .reveal = -1};
    assert_int_equal(basin_sudoku_generate(&b, &making, &error), BASIN_OK);
    for (int64_t i = 0; i < b.count; i++)
        for (int k = 0; k < 81; k++) {
            uint8_t less[81], solution[81];
            memcpy(less, b.given + i * 81, 81);
            if (!less[k]) continue;
            less[k] = 0;
            assert_int_equal(basin_sudoku_solve(solution, less, 2), 2);
        }
    basin_sudoku_boards_free(&b);
}

static void boards_depend_on_the_seed_alone(void **state) {
    (void)state;
    basin_sudoku_boards a = generate(20, true, 3), b = generate(40, true, 3),
                        c = generate(20, true, 4);
    assert_memory_equal(a.given, b.given, 20 * 81);
    assert_memory_not_equal(a.given, c.given, 20 * 81);
    basin_sudoku_boards_free(&a);
    basin_sudoku_boards_free(&b);
    basin_sudoku_boards_free(&c);
}

static void draws_from_a_basis(void **state) {
    (void)state;
    basin_error error;
    basin_sudoku_boards basis = {.count = 1}, b;
    uint8_t given[81], solution[81], one = 1;
    take(given, hard_board);
    take(solution, hard_solution);
    basis.given = given;
    basis.solution = solution;
    basis.solutions = &one;
    basin_sudoku_making making = {
        .size = sizeof making, .count = 9, .hard = true, .reveal = 3, .basis = &basis};
    assert_int_equal(basin_sudoku_generate(&b, &making, &error), BASIN_OK);
    for (int64_t i = 0; i < b.count; i++) {
        uint8_t found[81];
        int more = basin_sudoku_count_givens(b.given + i * 81) - 21;
        assert_true(more >= 0 && more <= 3);
        assert_int_equal(basin_sudoku_solve(found, b.given + i * 81, 2), 1);
        assert_memory_equal(found, b.solution + i * 81, 81);
    }
    basin_sudoku_boards_free(&b);
    making.hard = false;
    assert_int_equal(basin_sudoku_generate(&b, &making, &error), BASIN_BAD_VALUE);
    making = (basin_sudoku_making){.size = sizeof making, .count = 1, .least = 17};
    assert_int_equal(basin_sudoku_generate(&b, &making, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "26 to 81"));
    making = (basin_sudoku_making){.size = sizeof making};
    assert_int_equal(basin_sudoku_generate(&b, &making, &error), BASIN_BAD_VALUE);
}

static void symmetries_keep_the_rules(void **state) {
    (void)state;
    uint8_t given[81], solution[81];
    bool moved = false;
    take(given, hard_board);
    take(solution, hard_solution);
    for (uint64_t i = 0; i < 50; i++) {
        uint8_t board[81], full[81], found[81];
        basin_random random = basin_random_start(1, i, 0);
        basin_sudoku_symmetry s;
        basin_sudoku_symmetry_draw(&s, &random);
        basin_sudoku_symmetry_apply(board, given, &s);
        basin_sudoku_symmetry_apply(full, solution, &s);
        assert_true(basin_sudoku_solved(full, board));
        assert_int_equal(basin_sudoku_count_givens(board), 21);
        assert_int_equal(basin_sudoku_solve(found, board, 2), 1);
        assert_memory_equal(found, full, 81);
        moved = moved || s.from[1] % 9 == s.from[0] % 9; /* transposed */
    }
    assert_true(moved);
}

/* ---- files ---- */

static void write_text(const char *path, const char *text) {
    assert_int_equal(file_put(path, text, strlen(text)), 0);
}

static void files_give_boards_back(void **state) {
    char path[PATH_TEXT];
    basin_error error;
    basin_sudoku_boards a = generate(5, true, 1), b;
    folder_path(path, state, "boards.csv");
    assert_int_equal(basin_sudoku_boards_write(path, &a, &error), BASIN_OK);
    if (basin_sudoku_boards_read(&b, path, false, &error)) fail_msg("%s", error.text);
    assert_int_equal(b.count, 5);
    assert_memory_equal(a.given, b.given, 5 * 81);
    assert_memory_equal(a.solution, b.solution, 5 * 81);
    basin_sudoku_boards_free(&a);
    basin_sudoku_boards_free(&b);
    char text[400];
    snprintf(text, sizeof text, "# a list\r\n\n%s\r\n%s", hard_board, easy_board);
    for (char *c = text + 12; *c; c++)
        if (*c == '0') *c = '.';
    write_text(path, text);
    if (basin_sudoku_boards_read(&b, path, false, &error)) fail_msg("%s", error.text);
    assert_int_equal(b.count, 2);
    uint8_t wanted[81];
    take(wanted, hard_solution);
    assert_memory_equal(b.solution, wanted, 81);
    basin_sudoku_boards_free(&b);
}

/* The file is refused with a message that has `wanted` in it. */
static void refuses(void **state, const char *text, const char *wanted) {
    char path[PATH_TEXT];
    basin_error error;
    basin_sudoku_boards b;
    folder_path(path, state, "wrong.csv");
    write_text(path, text);
    assert_int_not_equal(basin_sudoku_boards_read(&b, path, false, &error), BASIN_OK);
    if (!strstr(error.text, wanted)) fail_msg("'%s' has no '%s'", error.text, wanted);
    assert_null(strchr(error.text, '\n'));
    assert_null(b.given);
}

static void wrong_files_have_their_line(void **state) {
    char text[600];
    refuses(state, "", "no boards");
    refuses(state, "quizzes,solutions\n", "no boards");
    refuses(state, "a,b\n", "line 1 is 'a,b'");
    refuses(state, "quizzes,solutions\n12345\n", "line 2 has 5 characters, wanted 81");
    snprintf(text, sizeof text, "%.80sx\n", easy_board);
    refuses(state, text, "'x' in row 9, column 9");
    snprintf(text, sizeof text, "%.80s\t\n", easy_board);
    refuses(state, text, "byte 9");
    snprintf(text, sizeof text, "55%s\n", easy_board + 2);
    refuses(state, text, "5 twice in a house: in row 1, column 1 and in row 1, column 2");
    snprintf(text, sizeof text, "%s,%s\n", easy_board, hard_solution);
    refuses(state, text, "breaks a rule or a given digit");
    snprintf(text, sizeof text, "%081d\n", 0);
    refuses(state, text, "several solutions, wanted one");
    snprintf(text, sizeof text, "12345678%073d\n", 9 * 0);
    text[35] = '9';
    refuses(state, text, "no solution, wanted one");
}

static void any_board_can_be_read(void **state) {
    char path[PATH_TEXT], text[200];
    basin_error error;
    basin_sudoku_boards b;
    folder_path(path, state, "any.csv");
    snprintf(text, sizeof text, "%081d\n%s\n", 0, easy_board);
    write_text(path, text);
    assert_int_equal(basin_sudoku_boards_read(&b, path, true, &error), BASIN_OK);
    assert_int_equal(b.solutions[0], 2);
    assert_int_equal(b.solutions[1], 1);
    basin_sudoku_boards_free(&b);
    assert_int_not_equal(basin_sudoku_boards_read(&b, "/no/such/file", true, &error), BASIN_OK);
    assert_int_equal(basin_sudoku_parse((uint8_t[81]){0}, "1.", &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "2 characters"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(houses_have_nine_cells), cmocka_unit_test(solves_known_boards),
        cmocka_unit_test(counts_solutions),       cmocka_unit_test(boards_have_one_solution),
        cmocka_unit_test(boards_are_minimal),     cmocka_unit_test(boards_depend_on_the_seed_alone),
        cmocka_unit_test(draws_from_a_basis),     cmocka_unit_test(symmetries_keep_the_rules),
        cmocka_unit_test(files_give_boards_back), cmocka_unit_test(wrong_files_have_their_line),
        cmocka_unit_test(any_board_can_be_read),
    };
    return cmocka_run_group_tests(tests, folder_new, folder_remove);
}
