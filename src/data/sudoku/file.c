/* Boards as text: one of 81 characters, files of them with or without solutions; see
 * basin/tasks/boards.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/sudoku/grid.h"
#include "io/file.h"

/* ---- texts ---- */

/* Digits of `length` characters; `what` begins the line of an error. */
static basin_status parse(uint8_t board[81], const char *text, size_t length, const char *what,
                          basin_error *error) {
    if (length != BASIN_SUDOKU_CELLS)
        return basin_fail(error, BASIN_BAD_VALUE, "%s has %zu characters, wanted 81", what, length);
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '.')
            board[i] = 0;
        else if (c >= '0' && c <= '9')
            board[i] = (uint8_t)(c - '0');
        else if (c > ' ' && c < 127)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s has '%c' in row %d, column %d, wanted a digit, or 0 or . for an "
                              "empty cell",
                              what, c, i / 9 + 1, i % 9 + 1);
        else
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s has the byte %d in row %d, column %d, wanted a digit, or 0 or . "
                              "for an empty cell",
                              what, c, i / 9 + 1, i % 9 + 1);
    }
    return BASIN_OK;
}

static basin_status check(const uint8_t board[81], const char *what, basin_error *error) {
    int where[2];
    if (basin_sudoku_consistent(board, where)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s has %d twice in a house: in row %d, column %d and in row %d, column %d",
                      what, board[where[0]], where[0] / 9 + 1, where[0] % 9 + 1, where[1] / 9 + 1,
                      where[1] % 9 + 1);
}

basin_status basin_sudoku_parse(uint8_t given[81], const char *text, basin_error *error) {
    basin_status status = parse(given, text, strlen(text), "the board", error);
    return status ? status : check(given, "the board", error);
}

/* ---- reading ---- */

typedef struct reader {
    const char *path;
    basin_sudoku_boards *boards;
    size_t room[3];
    int64_t line; /* from 1 */
    bool any;
} reader;

static bool make_room(reader *r) {
    size_t n = (size_t)r->boards->count + 1;
    basin_sudoku_boards *b = r->boards;
    return basin_array_reserve((void **)&b->given, &r->room[0], n, BASIN_SUDOKU_CELLS) &&
           basin_array_reserve((void **)&b->solution, &r->room[1], n, BASIN_SUDOKU_CELLS) &&
           basin_array_reserve((void **)&b->solutions, &r->room[2], n, 1);
}

static basin_status check_solution(const uint8_t given[81], const uint8_t told[81],
                                   const uint8_t found[81], const char *what, basin_error *error) {
    if (!basin_sudoku_solved(told, given))
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s has a solution that breaks a rule or a given digit", what);
    if (memcmp(told, found, BASIN_SUDOKU_CELLS) != 0)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s has a board with several solutions, wanted one", what);
    return BASIN_OK;
}

/* A board, and its solution where `second` is not NULL. */
static basin_status add(reader *r, const char *text, size_t length, const char *second,
                        size_t second_length, basin_error *error) {
    char what[512];
    uint8_t told[81];
    snprintf(what, sizeof what, "%.400s: line %lld", r->path, (long long)r->line);
    if (!make_room(r)) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", r->path);
    int64_t i = r->boards->count;
    uint8_t *given = r->boards->given + i * BASIN_SUDOKU_CELLS;
    uint8_t *solution = r->boards->solution + i * BASIN_SUDOKU_CELLS;
    basin_status status = parse(given, text, length, what, error);
    if (!status) status = check(given, what, error);
    if (!status && second) status = parse(told, second, second_length, what, error);
    if (status) return status;
    int found = basin_sudoku_solve(solution, given, 2);
    if (found != 1 && !r->any)
        return basin_fail(error, BASIN_BAD_FILE, "%s has a board with %s, wanted one", what,
                          found ? "several solutions" : "no solution");
    if (second && found == 1) status = check_solution(given, told, solution, what, error);
    r->boards->solutions[i] = (uint8_t)found;
    r->boards->count = i + 1;
    return status;
}

static basin_status take_line(reader *r, const char *text, size_t length, basin_error *error) {
    while (length && (text[length - 1] == '\r' || text[length - 1] == ' ')) length--;
    if (!length || text[0] == '#') return BASIN_OK;
    const char *comma = memchr(text, ',', length);
    bool letters = (text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z');
    if (letters && r->boards->count == 0) {
        static const char *const head[] = {"quizzes,solutions", "puzzle,solution", "quizzes",
                                           "puzzle"};
        for (size_t i = 0; i < sizeof head / sizeof *head; i++)
            if (strlen(head[i]) == length && !memcmp(head[i], text, length)) return BASIN_OK;
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: line %lld is '%.*s', wanted quizzes,solutions or a board", r->path,
                          (long long)r->line, (int)(length < 60 ? length : 60), text);
    }
    if (!comma) return add(r, text, length, NULL, 0, error);
    size_t first = (size_t)(comma - text);
    return add(r, text, first, comma + 1, length - first - 1, error);
}

static basin_status read_lines(reader *r, const basin_map *map, basin_error *error) {
    const char *text = (const char *)map->data, *end = text + map->size;
    basin_status status = BASIN_OK;
    while (text < end && !status) {
        const char *next = memchr(text, '\n', (size_t)(end - text));
        if (!next) next = end;
        r->line++;
        status = take_line(r, text, (size_t)(next - text), error);
        text = next < end ? next + 1 : end;
    }
    if (!status && !r->boards->count)
        status = basin_fail(error, BASIN_BAD_FILE, "%s has no boards", r->path);
    return status;
}

basin_status basin_sudoku_boards_read(basin_sudoku_boards *boards, const char *path, bool any,
                                      basin_error *error) {
    basin_map map;
    reader r = {.path = path, .boards = boards, .any = any};
    *boards = (basin_sudoku_boards){0};
    basin_status status = basin_map_open(&map, path, error);
    if (status) return status;
    status = read_lines(&r, &map, error);
    basin_map_close(&map);
    if (status) basin_sudoku_boards_free(boards);
    return status;
}

/* ---- writing ---- */

static void put_board(char *text, const uint8_t board[81]) {
    for (int i = 0; i < BASIN_SUDOKU_CELLS; i++) text[i] = (char)('0' + board[i]);
}

basin_status basin_sudoku_boards_write(const char *path, const basin_sudoku_boards *boards,
                                       basin_error *error) {
    enum { LINE = 2 * BASIN_SUDOKU_CELLS + 2 };
    static const char head[] = "quizzes,solutions\n";
    basin_writer writer;
    basin_status status = basin_writer_create(&writer, path, error);
    if (status) return status;
    status = basin_writer_put(&writer, head, sizeof head - 1, error);
    for (int64_t i = 0; i < boards->count && !status; i++) {
        char line[LINE];
        put_board(line, boards->given + i * BASIN_SUDOKU_CELLS);
        line[BASIN_SUDOKU_CELLS] = ',';
        put_board(line + BASIN_SUDOKU_CELLS + 1, boards->solution + i * BASIN_SUDOKU_CELLS);
        line[LINE - 1] = '\n';
        status = basin_writer_put(&writer, line, LINE, error);
    }
    if (!status) return basin_writer_commit(&writer, error);
    basin_writer_discard(&writer);
    return status;
}
