/* What the commands of Sudoku share: boards of a file in two parts, boards printed. */
#ifndef BASIN_CLI_SUDOKU_BOARDS_H
#define BASIN_CLI_SUDOKU_BOARDS_H

#include <stdio.h>

#include "basin/tasks/boards.h"

/* Boards first .. first + count - 1 of others, which own the arrays. */
basin_sudoku_boards basin_boards_part(const basin_sudoku_boards *boards, int64_t first,
                                      int64_t count);
/* Nine rows, with lines between the boxes; a dot is an empty cell. */
void basin_boards_print(FILE *file, const uint8_t board[81]);

#endif
