/* examples/sudoku with the energy of squares and attention, which older files have. */
#include "examples/sudoku_learns.h"

static void squares_learn(void **state) {
    (void)state;
    learns(0, 3, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(squares_learn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
