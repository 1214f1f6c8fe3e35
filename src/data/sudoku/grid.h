/* A board with what every house has, as bits: bit d - 1 stands for the digit d. */
#ifndef BASIN_DATA_SUDOKU_GRID_H
#define BASIN_DATA_SUDOKU_GRID_H

#include "basin/tasks/boards.h"

enum { BASIN_SUDOKU_ALL = 511 };

typedef struct basin_grid {
    uint16_t row[9], column[9], box[9]; /* digits that are there */
    uint8_t cell[81];
} basin_grid;

void basin_grid_put(basin_grid *grid, int cell, int digit);
void basin_grid_clear(basin_grid *grid, int cell);
/* The digits that an empty cell's houses lack. */
uint16_t basin_grid_candidates(const basin_grid *grid, int cell);
/* From a board without contradictions. */
void basin_grid_start(basin_grid *grid, const uint8_t board[81]);
/* Solutions, counted up to `limit`. Where that is reached, the grid holds the last one; else it is
 * as before. Digits are tried in an order that `random` draws, or from 1 on without it. */
int basin_grid_solve(basin_grid *grid, int limit, basin_random *random);

/* Space for so many boards, zeroed. */
basin_status basin_sudoku_boards_new(basin_sudoku_boards *boards, int64_t count,
                                     basin_error *error);

#endif
