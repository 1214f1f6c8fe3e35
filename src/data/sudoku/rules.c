/* The rules of Sudoku: houses, contradictions, what a solved board is; see basin/tasks/boards.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/sudoku/grid.h"

int basin_sudoku_house_cell(int house, int k) {
    int i = house % 9;
    if (house < 9) return 9 * i + k;
    if (house < 18) return 9 * k + i;
    return i / 3 * 27 + i % 3 * 3 + k / 3 * 9 + k % 3;
}

bool basin_sudoku_consistent(const uint8_t board[81], int where[2]) {
    for (int house = 0; house < BASIN_SUDOKU_HOUSES; house++) {
        int seen[10];
        for (int d = 0; d < 10; d++) seen[d] = -1;
        for (int k = 0; k < 9; k++) {
            int cell = basin_sudoku_house_cell(house, k), digit = board[cell];
            if (digit && seen[digit] >= 0) {
                if (where) where[0] = seen[digit], where[1] = cell;
                return false;
            }
            seen[digit] = cell;
        }
    }
    return true;
}

bool basin_sudoku_solved(const uint8_t board[81], const uint8_t given[81]) {
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++)
        if (!board[i] || board[i] > 9 || (given[i] && given[i] != board[i])) return false;
    return basin_sudoku_consistent(board, NULL);
}

int basin_sudoku_count_givens(const uint8_t given[81]) {
    int count = 0;
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++) count += given[i] != 0;
    return count;
}

basin_status basin_sudoku_boards_new(basin_sudoku_boards *boards, int64_t count,
                                     basin_error *error) {
    *boards = (basin_sudoku_boards){.count = count};
    size_t n = count > 0 ? (size_t)count : 1;
    boards->given = calloc(n, BASIN_SUDOKU_CELLS);
    boards->solution = calloc(n, BASIN_SUDOKU_CELLS);
    boards->solutions = calloc(n, 1);
    if (boards->given && boards->solution && boards->solutions) return BASIN_OK;
    basin_sudoku_boards_free(boards);
    return basin_fail(error, BASIN_NO_MEMORY, "no memory for %lld boards", (long long)count);
}

void basin_sudoku_boards_free(basin_sudoku_boards *boards) {
    free(boards->given);
    free(boards->solution);
    free(boards->solutions);
    *boards = (basin_sudoku_boards){0};
}
