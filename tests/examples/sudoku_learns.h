/* A small model of examples/sudoku learns to solve boards that it has not seen, by an energy that
 * falls. */
#ifndef TESTS_EXAMPLES_SUDOKU_LEARNS_H
#define TESTS_EXAMPLES_SUDOKU_LEARNS_H

#pragma GCC diagnostic ignored "-Wunused-function" /* what the program alone calls */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../examples/sudoku/search.h"

/* No digit twice in a unit; empty cells do not count. */
static bool is_consistent(const board *b) {
    for (int unit = 0; unit < UNITS; unit++)
        for (int i = 0; i < 81; i++) {
            int one = b->cell[unit_cell(unit, i / 9)], two = b->cell[unit_cell(unit, i % 9)];
            if (i / 9 != i % 9 && one && one == two) return false;
        }
    return true;
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

#endif
