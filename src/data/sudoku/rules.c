/* The rules of Sudoku: houses, contradictions, what a solved board is; see basin/tasks/boards.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/sudoku/grid.h"

/* The solver asks for these all the time. */
static const uint8_t house_cells[BASIN_SUDOKU_HOUSES][9] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8},          {9, 10, 11, 12, 13, 14, 15, 16, 17},
    {18, 19, 20, 21, 22, 23, 24, 25, 26}, {27, 28, 29, 30, 31, 32, 33, 34, 35},
    {36, 37, 38, 39, 40, 41, 42, 43, 44}, {45, 46, 47, 48, 49, 50, 51, 52, 53},
    {54, 55, 56, 57, 58, 59, 60, 61, 62}, {63, 64, 65, 66, 67, 68, 69, 70, 71},
    {72, 73, 74, 75, 76, 77, 78, 79, 80}, {0, 9, 18, 27, 36, 45, 54, 63, 72},
    {1, 10, 19, 28, 37, 46, 55, 64, 73},  {2, 11, 20, 29, 38, 47, 56, 65, 74},
    {3, 12, 21, 30, 39, 48, 57, 66, 75},  {4, 13, 22, 31, 40, 49, 58, 67, 76},
    {5, 14, 23, 32, 41, 50, 59, 68, 77},  {6, 15, 24, 33, 42, 51, 60, 69, 78},
    {7, 16, 25, 34, 43, 52, 61, 70, 79},  {8, 17, 26, 35, 44, 53, 62, 71, 80},
    {0, 1, 2, 9, 10, 11, 18, 19, 20},     {3, 4, 5, 12, 13, 14, 21, 22, 23},
    {6, 7, 8, 15, 16, 17, 24, 25, 26},    {27, 28, 29, 36, 37, 38, 45, 46, 47},
    {30, 31, 32, 39, 40, 41, 48, 49, 50}, {33, 34, 35, 42, 43, 44, 51, 52, 53},
    {54, 55, 56, 63, 64, 65, 72, 73, 74}, {57, 58, 59, 66, 67, 68, 75, 76, 77},
    {60, 61, 62, 69, 70, 71, 78, 79, 80},
};

int basin_sudoku_house_cell(int house, int k) { return house_cells[house][k]; }

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
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld boards", (long long)count);
}

void basin_sudoku_boards_free(basin_sudoku_boards *boards) {
    free(boards->given);
    free(boards->solution);
    free(boards->solutions);
    *boards = (basin_sudoku_boards){0};
}
