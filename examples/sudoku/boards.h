/* Sudoku boards: exact solutions, symmetries, generation, files. Rows are units 0 to 8, columns 9
 * to 17, boxes 18 to 26. Errors end the program with one line. */
#pragma once
#include "../options.h"

enum { CELLS = 81, DIGITS = 9, UNITS = 27, ALL = 1022 }; /* in sets, bit d is the digit d */

typedef struct board {
    uint8_t cell[CELLS]; /* row by row; 0 is an empty cell */
} board;

typedef struct boards {
    int64_t count;
    board *given, *solution;
} boards;

/* ---- exact solutions: the cell with the fewest candidates first, digits that have one cell left
 * in a unit before any guess ---- */

static int unit_cell(int unit, int k) {
    int i = unit % 9;
    if (unit < 9) return 9 * i + k;
    if (unit < 18) return 9 * k + i;
    return 27 * (i / 3) + 3 * (i % 3) + 9 * (k / 3) + k % 3;
}

/* The next cell to fill, and with which digits: none is a contradiction, cell -1 a full board. */
typedef struct choice {
    int cell;
    unsigned digits;
} choice;

/* A digit that has one cell left in a unit, or a unit without a cell for a digit; else `found`. */
static choice hidden_single(const unsigned left[CELLS], choice found) {
    for (int unit = 0; unit < UNITS; unit++) {
        unsigned once = 0, more = 0;
        for (int k = 0; k < 9; k++) {
            more |= once & left[unit_cell(unit, k)];
            once |= left[unit_cell(unit, k)];
        }
        if (once != ALL) return (choice){found.cell, 0};
        for (int k = 0; k < 9; k++) {
            int cell = unit_cell(unit, k);
            unsigned digits = left[cell] & ~more;
            if (digits & (digits - 1)) return (choice){cell, 0};
            if (digits && left[cell] != digits) return (choice){cell, digits};
        }
    }
    return found;
}

static choice choose(const board *b) {
    unsigned used[UNITS] = {0}, left[CELLS]; /* left of a filled cell: its digit */
    choice best = {.cell = -1, .digits = ALL + 1};
    for (int i = 0; i < 9 * UNITS; i++) {
        int unit = i / 9, cell = unit_cell(unit, i % 9);
        if (used[unit] & ALL & (1u << b->cell[cell])) return (choice){cell, 0};
        used[unit] |= 1u << b->cell[cell];
    }
    for (int i = 0, fewest = DIGITS + 1; i < CELLS; i++) {
        unsigned seen = used[i / 9] | used[9 + i % 9] | used[18 + i / 27 * 3 + i % 9 / 3];
        left[i] = b->cell[i] ? 1u << b->cell[i] : ALL & ~seen;
        if (b->cell[i] || __builtin_popcount(left[i]) >= fewest) continue;
        best = (choice){i, left[i]};
        fewest = __builtin_popcount(left[i]);
        if (fewest <= 1) return best;
    }
    return best.cell < 0 ? best : hidden_single(left, best);
}

static int64_t guesses; /* cells that `solve` filled although several digits were left for them */

/* Solutions, counted up to `limit`. Where that is reached, the board holds the last one; else it is
 * as before. Digits are tried in an order that `random` draws, or from 1 on without it. */
static int solve(board *b, int limit, basin_random *random) {
    int64_t digit[DIGITS];
    int found = 0, count = 0;
    choice next = choose(b);
    if (next.cell < 0) return 1;
    for (int d = 1; d <= DIGITS; d++)
        if (next.digits & (1u << d)) digit[count++] = d;
    if (random) basin_random_shuffle(digit, (size_t)count, random);
    guesses += count > 1;
    for (int i = 0; i < count; i++) {
        b->cell[next.cell] = (uint8_t)digit[i];
        found += solve(b, limit - found, random);
        if (found >= limit) return found;
    }
    b->cell[next.cell] = 0;
    return found;
}

/* 0, 1, or 2 for several. */
static int count_solutions(board b) { return solve(&b, 2, NULL); }

/* How hard a board is: guesses until the exact solver knows its solution to be the only one; 0 if
 * singles solve it. */
static int64_t hardness(board b) {
    guesses = 0;
    count_solutions(b);
    return guesses;
}

/* Whether singles alone solve it: a cell with one digit left, a digit with one cell in a unit. */
static bool is_solved_by_singles(board b) {
    for (choice next; (next = choose(&b)).cell >= 0;) {
        if (__builtin_popcount(next.digits) != 1) return false;
        b.cell[next.cell] = (uint8_t)__builtin_ctz(next.digits);
    }
    return true;
}

/* ---- symmetries ---- */

/* Digits renamed, rows within bands and bands exchanged, the same for columns, and perhaps
 * transposed: valid boards stay valid. */
typedef struct symmetry {
    int64_t digit[DIGITS + 1], from[CELLS]; /* what a digit becomes; where a cell comes from */
} symmetry;

/* Where each of nine lines comes from: bands in a new order, and the lines of each. */
static void draw_lines(int64_t line[9], basin_random *random) {
    int64_t band[3] = {0, 1, 2};
    basin_random_shuffle(band, 3, random);
    for (int i = 0; i < 9; i++) line[i] = 3 * band[i / 3] + i % 3;
    for (int i = 0; i < 9; i += 3) basin_random_shuffle(line + i, 3, random);
}

static symmetry draw_symmetry(basin_random *random) {
    symmetry s = {.digit = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}};
    int64_t row[9], column[9];
    basin_random_shuffle(s.digit + 1, DIGITS, random);
    draw_lines(row, random);
    draw_lines(column, random);
    bool transposed = basin_random_below(random, 2) == 1;
    for (int i = 0; i < CELLS; i++)
        s.from[transposed ? 9 * (i % 9) + i / 9 : i] = 9 * row[i / 9] + column[i % 9];
    return s;
}

static board transformed(const board *b, const symmetry *s) {
    board out;
    for (int i = 0; i < CELLS; i++) out.cell[i] = (uint8_t)s->digit[b->cell[s->from[i]]];
    return out;
}

/* ---- generation ---- */

/* Every board has one solution and is a function of (seed, its number). Easy boards have `least` to
 * `most` givens, each number equally likely. Hard boards are minimal (no given can be removed), or
 * boards of `basis` with their digits renamed, and 0 to `reveal` cells of the solution are added.
 * With `guesses`, a minimal board is changed until its hardness is at least that. */
typedef struct generation {
    int64_t count, seed, least, most, reveal, guesses;
    bool hard;
    const boards *basis; /* minimal boards, or NULL */
} generation;

static void draw_order(int64_t order[CELLS], basin_random *random) {
    for (int i = 0; i < CELLS; i++) order[i] = i;
    basin_random_shuffle(order, CELLS, random);
}

/* Empties cells in a random order, as long as the solution stays the only one, until `goal` of
 * `left` are left; how many are. */
static int64_t empty_cells(board *given, int64_t left, int64_t goal, basin_random *random) {
    int64_t order[CELLS];
    draw_order(order, random);
    for (int i = 0; i < CELLS && left > goal; i++) {
        uint8_t digit = given->cell[order[i]];
        given->cell[order[i]] = 0;
        if (digit && count_solutions(*given) > 1)
            given->cell[order[i]] = digit;
        else
            left -= digit != 0;
    }
    return left;
}

/* Draws a full board, and empties cells until `goal` are left; how many are. */
static int64_t dig(board *given, board *full, int64_t goal, basin_random *random) {
    *full = (board){0};
    solve(full, 1, random);
    *given = *full;
    return empty_cells(given, CELLS, goal, random);
}

/* Exchanges givens of a minimal board for other cells of its solution, as long as that makes it no
 * easier, until its hardness is at least `goal`. After 400 exchanges it is what it is. */
static void harden(board *given, const board *full, int64_t goal, basin_random *random) {
    int64_t best = hardness(*given), order[CELLS];
    for (int change = 0; change < 400 && best < goal; change++) {
        board other = *given;
        int out = 1 + (int)basin_random_below(random, 3), next = 0;
        draw_order(order, random);
        for (int i = 0; i < CELLS && out > 0; i++)
            if (other.cell[order[i]]) other.cell[order[i]] = 0, out--;
        draw_order(order, random);
        while (count_solutions(other) > 1) {
            while (other.cell[order[next]] || given->cell[order[next]]) next = (next + 1) % CELLS;
            other.cell[order[next]] = full->cell[order[next]];
        }
        empty_cells(&other, CELLS, 0, random);
        int64_t now = hardness(other);
        if (now >= best) *given = other, best = now;
    }
}

static void make_easy(board *given, board *full, const generation *how, basin_random *random) {
    uint64_t range = (uint64_t)(how->most - how->least) + 1;
    int64_t goal = how->least + (int64_t)basin_random_below(random, range);
    while (dig(given, full, goal, random) > goal) continue;
}

static void make_hard(board *given, board *full, const generation *how, basin_random *random) {
    int64_t order[CELLS];
    if (how->basis) {
        uint64_t item = basin_random_below(random, (uint64_t)how->basis->count);
        symmetry s = draw_symmetry(random);
        for (int i = 0; i < CELLS; i++) s.from[i] = i; /* digits alone are renamed */
        *given = transformed(&how->basis->given[item], &s);
        *full = transformed(&how->basis->solution[item], &s);
    } else
        dig(given, full, 0, random);
    if (how->guesses) harden(given, full, how->guesses, random);
    if (!how->reveal) return;
    uint64_t more = basin_random_below(random, (uint64_t)how->reveal + 1);
    draw_order(order, random);
    for (int i = 0; i < CELLS && more > 0; i++) {
        more -= !given->cell[order[i]];
        given->cell[order[i]] = full->cell[order[i]];
    }
}

static boards new_boards(int64_t count) {
    boards b = {count, calloc(2 * (size_t)count + 1, sizeof(board)), NULL};
    if (!b.given) quit("boards", "out of memory");
    b.solution = b.given + count;
    return b;
}

static boards generate_boards(const generation *how) {
    boards b = new_boards(how->count);
    for (int64_t i = 0; i < how->count; i++) {
        basin_random random = basin_random_start((uint64_t)how->seed, (uint64_t)i, 0);
        (how->hard ? make_hard : make_easy)(&b.given[i], &b.solution[i], how, &random);
    }
    return b;
}

/* ---- files ---- */

/* Reads a board and solves it; it must have one solution. `where` begins the line of an error. */
static void parse_board(board *given, board *full, const char *text, const char *where) {
    size_t length = strcspn(text, ", \t\r\n"), good = strspn(text, ".0123456789");
    char why[160];
    if (good < length)
        snprintf(why, sizeof why, "a board is 81 digits, 0 or . if empty; character %d is '%c'",
                 (int)good + 1, text[good]);
    else if (length != CELLS)
        snprintf(why, sizeof why, "a board is 81 digits, 0 or . if empty; found %d characters",
                 (int)length);
    if (good < length || length != CELLS) quit(where, why);
    for (int i = 0; i < CELLS; i++) given->cell[i] = text[i] == '.' ? 0 : (uint8_t)(text[i] - '0');
    *full = *given;
    int solutions = count_solutions(*given);
    if (!solutions) quit(where, "not exactly one solution: the board has none");
    if (solutions > 1) quit(where, "not exactly one solution: the board has several");
    solve(full, 1, NULL);
}

/* One board per line; what follows a comma, headers and lines with # are skipped. */
static boards read_boards(const char *path) {
    static char line[65536];
    char where[512];
    int lines = 0, number = 0;
    FILE *file = fopen(path, "r");
    if (!file) quit(path, "cannot be read");
    while (fgets(line, sizeof line, file)) lines++;
    rewind(file);
    boards b = new_boards(lines);
    for (b.count = 0; fgets(line, sizeof line, file);) {
        snprintf(where, sizeof where, "%.400s: line %d", path, ++number);
        if (strchr("#qp", line[0]) || strspn(line, " \t\r\n") == strlen(line))
            continue; /* quizzes,solutions or puzzle,solution */
        parse_board(&b.given[b.count], &b.solution[b.count], line, where);
        b.count++;
    }
    fclose(file);
    if (!b.count) quit(path, "no boards");
    return b;
}

static void print_board(const board *b, int end) {
    for (int i = 0; i < CELLS; i++) putchar('0' + b->cell[i]);
    putchar(end);
}
