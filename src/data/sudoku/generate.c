/* Boards with one solution: a full board is drawn, then cells are emptied in a random order as long
 * as the solution stays the only one. */
#include <string.h>

#include "base/team/team.h"
#include "data/sudoku/grid.h"

enum { LEAST = 31, MOST = 42, REVEAL = 17 };

/* A full board. */
static void draw_full(uint8_t solution[81], basin_random *random) {
    basin_grid grid = {0};
    basin_grid_solve(&grid, 1, random);
    memcpy(solution, grid.cell, BASIN_SUDOKU_CELLS);
}

static void draw_order(int64_t order[81], basin_random *random) {
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++) order[i] = i;
    basin_random_shuffle(order, BASIN_SUDOKU_CELLS, random);
}

/* Whether the board has a solution with another digit in this cell than the one that it had. */
static bool has_other(const basin_grid *board, int cell, int digit) {
    for (int other = 1; other <= 9; other++) {
        basin_grid trial = *board;
        if (other == digit || !(basin_grid_candidates(board, cell) & (1 << (other - 1)))) continue;
        basin_grid_put(&trial, cell, other);
        if (basin_grid_solve(&trial, 1, NULL)) return true;
    }
    return false;
}

/* Empties cells until so many are left, or no more can go. */
static int dig(uint8_t given[81], int wanted, basin_random *random) {
    int64_t order[81];
    basin_grid grid;
    int left = BASIN_SUDOKU_CELLS;
    draw_order(order, random);
    basin_grid_start(&grid, given);
    for (int i = 0; i < BASIN_SUDOKU_CELLS && left > wanted; i++) {
        int cell = (int)order[i], digit = grid.cell[cell];
        basin_grid_clear(&grid, cell);
        if (has_other(&grid, cell, digit))
            basin_grid_put(&grid, cell, digit);
        else
            left--;
    }
    memcpy(given, grid.cell, BASIN_SUDOKU_CELLS);
    return left;
}

static void reveal(uint8_t given[81], const uint8_t solution[81], uint64_t most,
                   basin_random *random) {
    int64_t order[81];
    uint64_t wanted = basin_random_below(random, most + 1);
    draw_order(order, random);
    for (int i = 0; i < BASIN_SUDOKU_CELLS && wanted > 0; i++)
        if (!given[order[i]]) given[order[i]] = solution[order[i]], wanted--;
}

static void make_easy(uint8_t given[81], uint8_t solution[81], const basin_sudoku_making *m,
                      basin_random *random) {
    int wanted = m->least + (int)basin_random_below(random, (uint64_t)(m->most - m->least) + 1);
    do {
        draw_full(solution, random);
        memcpy(given, solution, BASIN_SUDOKU_CELLS);
    } while (dig(given, wanted, random) > wanted);
}

/* One of the basis, its digits renamed. */
static void draw_from(uint8_t given[81], uint8_t solution[81], const basin_sudoku_boards *basis,
                      basin_random *random) {
    basin_sudoku_symmetry s;
    int64_t i = (int64_t)basin_random_below(random, (uint64_t)basis->count);
    basin_sudoku_symmetry_draw(&s, random);
    for (int k = 0; k < BASIN_SUDOKU_CELLS; k++) {
        given[k] = s.digit[basis->given[i * BASIN_SUDOKU_CELLS + k]];
        solution[k] = s.digit[basis->solution[i * BASIN_SUDOKU_CELLS + k]];
    }
}

static void make_hard(uint8_t given[81], uint8_t solution[81], const basin_sudoku_making *m,
                      basin_random *random) {
    if (m->basis) {
        draw_from(given, solution, m->basis, random);
    } else {
        draw_full(solution, random);
        memcpy(given, solution, BASIN_SUDOKU_CELLS);
        dig(given, 0, random);
    }
    if (m->reveal > 0) reveal(given, solution, (uint64_t)m->reveal, random);
}

/* The fields that the caller knew, with what is left open. */
static basin_status take(basin_sudoku_making *m, const basin_sudoku_making *given,
                         basin_error *error) {
    size_t known = given->size < sizeof *m ? given->size : sizeof *m;
    *m = (basin_sudoku_making){0};
    memcpy(m, given, known);
    if (!m->least) m->least = LEAST;
    if (!m->most) m->most = m->least > MOST ? m->least : MOST;
    if (!m->reveal) m->reveal = REVEAL;
    if (m->count < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "count is %lld, wanted 1 or more",
                          (long long)m->count);
    if (!m->hard && (m->least < 26 || m->most > 81 || m->least > m->most))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "givens from %d to %d, wanted a range within 26 to 81: boards with fewer "
                          "are the hard ones",
                          m->least, m->most);
    if (m->basis && (!m->hard || m->basis->count < 1))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "boards to draw from are for hard boards, and "
                          "wanted 1 or more");
    return BASIN_OK;
}

typedef struct batch {
    basin_sudoku_boards *boards;
    const basin_sudoku_making *m;
} batch;

static void make_some(const void *context, int64_t first, int64_t last, int place) {
    (void)place;
    const batch *b = context;
    for (int64_t i = first; i < last; i++) {
        basin_random random = basin_random_start(b->m->seed, (uint64_t)i, 0);
        uint8_t *given = b->boards->given + i * BASIN_SUDOKU_CELLS;
        uint8_t *solution = b->boards->solution + i * BASIN_SUDOKU_CELLS;
        if (b->m->hard)
            make_hard(given, solution, b->m, &random);
        else
            make_easy(given, solution, b->m, &random);
        b->boards->solutions[i] = 1;
    }
}

basin_status basin_sudoku_generate(basin_sudoku_boards *boards, const basin_sudoku_making *making,
                                   basin_error *error) {
    basin_sudoku_making m;
    *boards = (basin_sudoku_boards){0};
    basin_status status = take(&m, making, error);
    if (!status) status = basin_sudoku_boards_new(boards, m.count, error);
    if (status) return status;
    basin_team_run_all(make_some, &(batch){boards, &m}, m.count, 8);
    return BASIN_OK;
}
