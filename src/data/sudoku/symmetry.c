/* The symmetries of Sudoku, as training draws them; see basin/tasks/boards.h. */
#include "basin/tasks/boards.h"

static void swap_down(uint8_t *item, int count, basin_random *random) {
    for (int i = count - 1; i > 0; i--) {
        int j = (int)basin_random_below(random, (uint64_t)i + 1);
        uint8_t other = item[i];
        item[i] = item[j];
        item[j] = other;
    }
}

/* Where each of nine lines comes from: bands in a new order, and the lines of each. */
static void draw_lines(uint8_t line[9], basin_random *random) {
    uint8_t band[3] = {0, 1, 2};
    swap_down(band, 3, random);
    for (int b = 0; b < 3; b++) {
        for (int i = 0; i < 3; i++) line[3 * b + i] = (uint8_t)(3 * band[b] + i);
        swap_down(line + (ptrdiff_t)3 * b, 3, random);
    }
}

void basin_sudoku_symmetry_draw(basin_sudoku_symmetry *symmetry, basin_random *random) {
    uint8_t row[9], column[9];
    for (int d = 0; d < 10; d++) symmetry->digit[d] = (uint8_t)d;
    swap_down(symmetry->digit + 1, 9, random);
    draw_lines(row, random);
    draw_lines(column, random);
    bool transposed = basin_random_below(random, 2) == 1;
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 9; j++) {
            int from = 9 * row[i] + column[j];
            symmetry->from[transposed ? 9 * j + i : 9 * i + j] = (uint8_t)from;
        }
}

void basin_sudoku_symmetry_apply(uint8_t out[81], const uint8_t board[81],
                                 const basin_sudoku_symmetry *symmetry) {
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++) out[i] = symmetry->digit[board[symmetry->from[i]]];
}
