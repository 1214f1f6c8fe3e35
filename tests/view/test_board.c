/* The picture of a board along a descent: which steps are drawn, digits and marks, no numbers that
 * are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "view/board.h"

static int count(const char *text, const char *what) {
    int found = 0;
    for (; (text = strstr(text, what)); text++) found++;
    return found;
}

static void chooses_steps(void **state) {
    (void)state;
    int64_t step[BASIN_BOARD_FRAMES];
    assert_int_equal(basin_board_frames(step, 0), 1);
    assert_int_equal(basin_board_frames(step, 1), 2);
    assert_int_equal(step[1], 1);
    assert_int_equal(basin_board_frames(step, 5), 5);
    assert_int_equal(step[3], 4);
    assert_int_equal(step[4], 5);
    assert_int_equal(basin_board_frames(step, 1000), BASIN_BOARD_FRAMES);
    assert_int_equal(step[BASIN_BOARD_FRAMES - 1], 1000);
}

static char *drawn(const basin_board_picture *picture) {
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    basin_board_write(file, picture);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void draws(void **state) {
    (void)state;
    uint8_t given[81], solution[81];
    static float probability[2 * 81 * 9];
    double energy[] = {1, -2};
    int wrong = 0; /* all are ones at first */
    for (int i = 0; i < 81; i++) {
        solution[i] = (uint8_t)((i / 9 * 3 + i / 27 + i) % 9 + 1);
        given[i] = i % 2 ? solution[i] : 0;
        wrong += !given[i] && solution[i] != 1;
        for (int d = 0; d < 9; d++) probability[i * 9 + d] = 1 / 9.0f;
        probability[(81 + i) * 9 + solution[i] - 1] = 1;
    }
    basin_board_picture p = {.title = "a < b",
                             .given = given,
                             .solution = solution,
                             .probability = probability,
                             .energy = energy,
                             .steps = 1};
    char *text = drawn(&p);
    assert_int_equal(count(text, "font-size=\"13\""), 2 * 81);
    assert_int_equal(count(text, "bold\" opacity=\"1.00\""), 2 * 40);
    assert_int_equal(count(text, "#c4362a"), wrong);
    assert_non_null(strstr(text, "step 1, energy -2.00"));
    assert_non_null(strstr(text, "a &lt; b"));
    assert_null(strstr(text, "nan"));
    free(text);
    p.solution = NULL; /* against the rules, in the first board alone */
    text = drawn(&p);
    assert_int_equal(count(text, "#c4362a"), 41);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(chooses_steps), cmocka_unit_test(draws)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
