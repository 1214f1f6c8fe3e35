/* Sudoku boards: the rules, exact solutions, symmetries, generation and files.
 *
 *     basin_sudoku_boards boards;
 *     basin_sudoku_making making = {.size = sizeof making, .count = 1000, .hard = true};
 *     if (basin_sudoku_generate(&boards, &making, &error) != BASIN_OK) ...
 *     basin_sudoku_boards_write("boards.csv", &boards, &error);
 *     basin_sudoku_boards_free(&boards);
 *
 * A board is 81 numbers, row by row; 0 is an empty cell. A house is a row, a column or a box. */
#ifndef BASIN_TASKS_BOARDS_H
#define BASIN_TASKS_BOARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basin/random.h"
#include "basin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BASIN_SUDOKU_CELLS = 81, BASIN_SUDOKU_HOUSES = 27 };

typedef struct basin_sudoku_boards {
    int64_t count;
    uint8_t *given;     /* [count, 81] */
    uint8_t *solution;  /* [count, 81] the first that was found; zeros where there is none */
    uint8_t *solutions; /* [count] how many there are: 0, 1, or 2 for several */
} basin_sudoku_boards;

BASIN_API void basin_sudoku_boards_free(basin_sudoku_boards *boards);

/* ---- rules ---- */

/* Cell k = 0 .. 8 of a house: rows are houses 0 to 8, columns 9 to 17, boxes 18 to 26. */
BASIN_API int basin_sudoku_house_cell(int house, int k);
/* Whether no digit stands twice in a house; else `where`, if not NULL, becomes two such cells. */
BASIN_API bool basin_sudoku_consistent(const uint8_t board[81], int where[2]);
/* Whether the board is full, breaks no rule, and has the given digits in their places. */
BASIN_API bool basin_sudoku_solved(const uint8_t board[81], const uint8_t given[81]);
/* How many solutions the board has, counted up to `limit`; `solution` becomes the first. A board
 * that is not consistent has none. */
BASIN_API int basin_sudoku_solve(uint8_t solution[81], const uint8_t given[81], int limit);
/* Whether singles alone solve it: a cell with one digit left, a digit with one place in a house. */
BASIN_API bool basin_sudoku_singles(const uint8_t given[81]);
BASIN_API int basin_sudoku_count_givens(const uint8_t given[81]);

/* ---- symmetries ---- */

/* Digits renamed, rows within bands and bands exchanged, the same for columns, and perhaps
 * transposed: what makes a valid board of a valid one. */
typedef struct basin_sudoku_symmetry {
    uint8_t digit[10]; /* what a digit becomes; 0 stays */
    uint8_t from[81];  /* where a cell's digit comes from */
} basin_sudoku_symmetry;

BASIN_API void basin_sudoku_symmetry_draw(basin_sudoku_symmetry *symmetry, basin_random *random);
BASIN_API void basin_sudoku_symmetry_apply(uint8_t out[81], const uint8_t board[81],
                                           const basin_sudoku_symmetry *symmetry);

/* ---- generation ---- */

/* Every board has one solution and is a function of (seed, its number). Easy ones have between
 * `least` and `most` givens, every number equally likely. Hard ones are minimal (no given can go),
 * to which 0 to `reveal` cells of the solution are added; `basis`, if not NULL, has minimal boards
 * to draw from, whose digits are renamed. */
typedef struct basin_sudoku_making {
    size_t size; /* sizeof(basin_sudoku_making) */
    int64_t count;
    uint64_t seed;
    bool hard;
    int least, most;                  /* 0: 31 and 42, as SATNet's boards have */
    int reveal;                       /* 0: 17, as RRN's boards; -1: none */
    const basin_sudoku_boards *basis; /* for hard ones */
} basin_sudoku_making;

BASIN_API basin_status basin_sudoku_generate(basin_sudoku_boards *boards,
                                             const basin_sudoku_making *making, basin_error *error);

/* ---- texts and files ---- */

/* 81 characters: digits, and 0 or . for an empty cell. */
BASIN_API basin_status basin_sudoku_parse(uint8_t given[81], const char *text, basin_error *error);

/* A file has a board a line, or a board and its solution with a comma between them, behind a line
 * `quizzes,solutions`. Blank lines and those that begin with # are skipped. A digit twice in a
 * house and a wrong solution are errors; so is, unless `any`, a board that has no solution or
 * several. */
BASIN_API basin_status basin_sudoku_boards_read(basin_sudoku_boards *boards, const char *path,
                                                bool any, basin_error *error);
BASIN_API basin_status basin_sudoku_boards_write(const char *path,
                                                 const basin_sudoku_boards *boards,
                                                 basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
