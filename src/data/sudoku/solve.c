/* Exact solutions: the cell with the fewest candidates first, digits with one place in a house
 * before any guess. */
#include <string.h>

#include "data/sudoku/grid.h"

static int box_of(int cell) { return cell / 27 * 3 + cell % 9 / 3; }

void basin_grid_put(basin_grid *grid, int cell, int digit) {
    uint16_t bit = (uint16_t)(1 << (digit - 1));
    grid->row[cell / 9] |= bit;
    grid->column[cell % 9] |= bit;
    grid->box[box_of(cell)] |= bit;
    grid->cell[cell] = (uint8_t)digit;
}

void basin_grid_clear(basin_grid *grid, int cell) {
    uint16_t others = (uint16_t) ~(1 << (grid->cell[cell] - 1));
    grid->row[cell / 9] &= others;
    grid->column[cell % 9] &= others;
    grid->box[box_of(cell)] &= others;
    grid->cell[cell] = 0;
}

uint16_t basin_grid_candidates(const basin_grid *grid, int cell) {
    return BASIN_SUDOKU_ALL &
           ~(grid->row[cell / 9] | grid->column[cell % 9] | grid->box[box_of(cell)]);
}

void basin_grid_start(basin_grid *grid, const uint8_t board[81]) {
    memset(grid, 0, sizeof *grid);
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++)
        if (board[i]) basin_grid_put(grid, i, board[i]);
}

/* Where to go on, and with which digits: none is a contradiction, cell -1 a full board. */
typedef struct choice {
    int cell;
    uint16_t digits;
} choice;

/* A digit that has one place left in a house, or a house that lacks a place for a digit; `found`
 * where there is neither. */
static choice hidden_single(const uint16_t left[81], choice found) {
    for (int house = 0; house < BASIN_SUDOKU_HOUSES; house++) {
        uint16_t once = 0, more = 0;
        for (int k = 0; k < 9; k++) {
            uint16_t digits = left[basin_sudoku_house_cell(house, k)];
            more |= once & digits;
            once |= digits;
        }
        if (once != BASIN_SUDOKU_ALL) return (choice){found.cell, 0};
        uint16_t single = once & (uint16_t)~more;
        for (int k = 0; k < 9 && single; k++) {
            int cell = basin_sudoku_house_cell(house, k);
            uint16_t digits = left[cell] & single;
            if (digits & (digits - 1)) return (choice){cell, 0};
            if (digits && left[cell] != digits) return (choice){cell, digits};
        }
    }
    return found;
}

static choice choose(const basin_grid *grid) {
    uint16_t left[81]; /* of a filled cell: its digit */
    choice best = {.cell = -1};
    int fewest = 10;
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++) {
        if (grid->cell[i]) {
            left[i] = (uint16_t)(1 << (grid->cell[i] - 1));
            continue;
        }
        left[i] = basin_grid_candidates(grid, i);
        int count = __builtin_popcount(left[i]);
        if (count < fewest) best = (choice){i, left[i]}, fewest = count;
        if (count <= 1) return best;
    }
    return best.cell < 0 ? best : hidden_single(left, best);
}

static int digits_of(int digit[9], uint16_t bits, basin_random *random) {
    int count = 0;
    for (int d = 1; d <= 9; d++)
        if (bits & (1 << (d - 1))) digit[count++] = d;
    for (int i = count - 1; i > 0 && random; i--) {
        int j = (int)basin_random_below(random, (uint64_t)i + 1), other = digit[i];
        digit[i] = digit[j];
        digit[j] = other;
    }
    return count;
}

int basin_grid_solve(basin_grid *grid, int limit, basin_random *random) {
    int digit[9], found = 0;
    choice next = choose(grid);
    if (next.cell < 0) return 1;
    int count = digits_of(digit, next.digits, random);
    for (int i = 0; i < count; i++) {
        basin_grid_put(grid, next.cell, digit[i]);
        found += basin_grid_solve(grid, limit - found, random);
        if (found >= limit) return found;
        basin_grid_clear(grid, next.cell);
    }
    return found;
}

int basin_sudoku_solve(uint8_t solution[81], const uint8_t given[81], int limit) {
    basin_grid grid;
    memset(solution, 0, BASIN_SUDOKU_CELLS);
    if (!basin_sudoku_consistent(given, NULL)) return 0;
    basin_grid_start(&grid, given);
    if (!basin_grid_solve(&grid, 1, NULL)) return 0;
    memcpy(solution, grid.cell, BASIN_SUDOKU_CELLS);
    if (limit <= 1) return 1;
    basin_grid_start(&grid, given);
    return basin_grid_solve(&grid, limit, NULL);
}

bool basin_sudoku_singles(const uint8_t given[81]) {
    basin_grid grid;
    if (!basin_sudoku_consistent(given, NULL)) return false;
    basin_grid_start(&grid, given);
    for (;;) {
        choice next = choose(&grid);
        if (next.cell < 0) return true;
        if (__builtin_popcount(next.digits) != 1) return false;
        basin_grid_put(&grid, next.cell, __builtin_ctz(next.digits) + 1);
    }
}
