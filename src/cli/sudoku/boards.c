/* Boards on their way to and from commands; see boards.h. */
#include "cli/sudoku/boards.h"

basin_sudoku_boards basin_boards_part(const basin_sudoku_boards *boards, int64_t first,
                                      int64_t count) {
    return (basin_sudoku_boards){.count = count,
                                 .given = boards->given + first * BASIN_SUDOKU_CELLS,
                                 .solution = boards->solution + first * BASIN_SUDOKU_CELLS,
                                 .solutions = boards->solutions + first};
}

void basin_boards_print(FILE *file, const uint8_t board[81]) {
    for (int i = 0; i < 9; i++) {
        if (i % 3 == 0 && i) fputs("------+-------+------\n", file);
        for (int k = 0; k < 9; k++) {
            int digit = board[9 * i + k];
            fprintf(file, "%c%s", digit ? '0' + digit : '.',
                    k == 8       ? "\n"
                    : k % 3 == 2 ? " | "
                                 : " ");
        }
    }
}
