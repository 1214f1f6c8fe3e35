/* Mazes: generation, shortest paths, files. Errors end the program with one line. */
#pragma once
#include "../sudoku/search.h"

/* Cells row by row: WALL, WAY, START, GOAL; the solution is 1 on the path and its ends, else 0. */
enum { SIDE_MOST = 200 };

typedef struct mazes {
    int64_t side;
    puzzles all;
} mazes;

static int64_t neighbour(int64_t cell, int k, int64_t side) {
    static const int down[] = {1, -1, 0, 0}, right[] = {0, 0, 1, -1};
    int64_t y = cell / side + down[k], x = cell % side + right[k];
    return y < 0 || x < 0 || y >= side || x >= side ? -1 : y * side + x;
}

/* Steps from `from` to every cell, -1 where there is no way; how many shortest ways, at most 2. */
static void measure(int32_t *steps, uint8_t *ways, const int32_t *given, int64_t from,
                    int64_t side) {
    int64_t *queue = calloc((size_t)(side * side), sizeof *queue), first = 0, last = 0;
    if (!queue) quit("mazes", "out of memory");
    for (int64_t i = 0; i < side * side; i++) steps[i] = -1, ways[i] = 0;
    steps[from] = 0, ways[from] = 1, queue[last++] = from;
    while (first < last) {
        int64_t cell = queue[first++];
        for (int k = 0; k < 4; k++) {
            int64_t next = neighbour(cell, k, side);
            if (next < 0 || given[next] == WALL) continue;
            if (steps[next] < 0) steps[next] = steps[cell] + 1, queue[last++] = next;
            if (steps[next] == steps[cell] + 1) {
                int sum = ways[next] + ways[cell];
                ways[next] = (uint8_t)(sum > 2 ? 2 : sum);
            }
        }
    }
    free(queue);
}

/* Marks the shortest path; how many there are: 0, 1, or 2 for several. */
static int solve_maze(int32_t *path, const int32_t *given, int64_t side) {
    int64_t cells = side * side, start = -1, goal = -1;
    int32_t *steps = calloc((size_t)cells, sizeof *steps);
    uint8_t *ways = calloc((size_t)cells, sizeof *ways);
    if (!steps || !ways) quit("mazes", "out of memory");
    for (int64_t i = 0; i < cells; i++) {
        if (given[i] == START) start = i;
        if (given[i] == GOAL) goal = i;
        path[i] = 0;
    }
    measure(steps, ways, given, start, side);
    int found = ways[goal];
    for (int64_t cell = goal; found && cell >= 0;) {
        int64_t before = -1;
        path[cell] = 1;
        for (int k = 0; k < 4 && steps[cell] > 0; k++) {
            int64_t next = neighbour(cell, k, side);
            if (next >= 0 && given[next] != WALL && steps[next] == steps[cell] - 1) before = next;
        }
        cell = before;
    }
    free(steps);
    free(ways);
    return found;
}

/* For every cell the sweep of filling dead ends that fills it; 0 for walls, on the path, and where
 * no sweep does. */
static void fill_dead_ends(int32_t *sweep, const int32_t *given, int64_t side) {
    int64_t cells = side * side, filled = 1;
    for (int64_t i = 0; i < cells; i++) sweep[i] = 0;
    for (int32_t number = 1; filled; number++) {
        filled = 0;
        for (int64_t i = 0; i < cells; i++) {
            int near = 0;
            for (int k = 0; k < 4; k++) {
                int64_t next = neighbour(i, k, side);
                near += next >= 0 && given[next] != WALL && (!sweep[next] || sweep[next] == number);
            }
            if (given[i] == WAY && !sweep[i] && near < 2) sweep[i] = number, filled++;
        }
    }
}

/* ---- generation: in the manner of Maze-Unique (Equilibrium Reasoners) ---- */

/* A perfect maze: depth first over the cells with odd row and column of the largest odd square, so
 * that there is one way between any two. */
static void carve(int32_t *given, int64_t side, basin_random *random) {
    int64_t n = (side - 1) / 2, top = 0;
    int64_t *stack = calloc((size_t)(n * n), sizeof *stack);
    if (!stack) quit("mazes", "out of memory");
    for (int64_t i = 0; i < side * side; i++) given[i] = WALL;
    int64_t row = (int64_t)basin_random_below(random, (uint64_t)n);
    int64_t column = (int64_t)basin_random_below(random, (uint64_t)n);
    stack[top++] = (2 * row + 1) * side + 2 * column + 1;
    given[stack[0]] = WAY;
    while (top) {
        int64_t cell = stack[top - 1], near[4], wall[4], count = 0;
        for (int k = 0; k < 4; k++) {
            int64_t between = neighbour(cell, k, side), next = neighbour(between, k, side);
            if (next < 0 || next / side > 2 * n || next % side > 2 * n || given[next]) continue;
            wall[count] = between, near[count++] = next;
        }
        if (!count) {
            top--;
            continue;
        }
        int64_t k = (int64_t)basin_random_below(random, (uint64_t)count);
        given[wall[k]] = given[near[k]] = WAY;
        stack[top++] = near[k];
    }
    free(stack);
}

/* A start, and a goal at a distance from `least` to `most` steps, each equally likely. */
static bool place_ends(int32_t *given, int64_t side, int64_t least, int64_t most,
                       basin_random *random) {
    int64_t cells = side * side, found = 0, tries = 20;
    int32_t *steps = calloc((size_t)cells, sizeof *steps);
    uint8_t *ways = calloc((size_t)cells, sizeof *ways);
    if (!steps || !ways) quit("mazes", "out of memory");
    int64_t goal = least + (int64_t)basin_random_below(random, (uint64_t)(most - least) + 1);
    while (!found && tries-- > 0) {
        int64_t start = (int64_t)basin_random_below(random, (uint64_t)cells), seen = 0;
        if (given[start] != WAY) continue;
        measure(steps, ways, given, start, side);
        for (int64_t i = 0; i < cells; i++) found += steps[i] == goal;
        int64_t which = found ? (int64_t)basin_random_below(random, (uint64_t)found) : -1;
        for (int64_t i = 0; i < cells; i++)
            if (steps[i] == goal && seen++ == which) given[i] = GOAL, given[start] = START;
    }
    free(steps);
    free(ways);
    return found > 0;
}

/* A maze is a function of the seed and its number. */
static mazes generate_mazes(int64_t count, int64_t side, int64_t least, int64_t most,
                            int64_t seed) {
    mazes m = {side, new_puzzles(count, side * side)};
    for (int64_t i = 0; i < count; i++) {
        basin_random random = basin_random_start((uint64_t)seed, (uint64_t)i, 0);
        int32_t *given = m.all.given + i * side * side;
        int tries = 2000;
        do {
            carve(given, side, &random);
        } while (!place_ends(given, side, least, most, &random) && --tries);
        if (!tries) quit("generate", "no maze of this side has such a path");
        solve_maze(m.all.solution + i * side * side, given, side);
    }
    return m;
}

/* ---- files: one maze per line, # for a wall, . or a blank for a way, S and G; what follows a
 * comma is skipped ---- */

static const char sights[] = "#.SG";

static void print_maze(const int32_t *given, const int32_t *path, int64_t cells, int end) {
    for (int64_t i = 0; i < cells; i++)
        putchar(path && path[i] && given[i] == WAY ? 'o' : sights[given[i]]);
    putchar(end);
}

/* The side of a maze in `line`. */
static int64_t side_of(const char *line, const char *where) {
    size_t cells = strcspn(line, ",\r\n");
    int64_t side = 0;
    while (side * side < (int64_t)cells) side++;
    char why[160];
    size_t good = strspn(line, "#.o SG");
    if (good < cells)
        snprintf(why, sizeof why,
                 "a maze is side * side characters of # . S G; character %d is '%c'", (int)good + 1,
                 line[good]);
    else
        snprintf(why, sizeof why,
                 "a maze is side * side characters of # . S G, side 3 to %d; found %d characters",
                 SIDE_MOST, (int)cells);
    if (side * side != (int64_t)cells || side < 3 || side > SIDE_MOST || good < cells)
        quit(where, why);
    return side;
}

static void parse_maze(int32_t *given, int32_t *path, const char *line, int64_t side,
                       const char *where) {
    int ends[2] = {0};
    for (int64_t i = 0; i < side * side; i++) {
        given[i] = line[i] == '#' ? WALL : line[i] == 'S' ? START : line[i] == 'G' ? GOAL : WAY;
        if (given[i] >= START) ends[given[i] - START]++;
    }
    if (ends[0] != 1 || ends[1] != 1) quit(where, "needs one S and one G");
    int paths = solve_maze(path, given, side);
    if (!paths) quit(where, "not exactly one shortest path from S to G: there is none");
    if (paths > 1) quit(where, "not exactly one shortest path from S to G: there are several");
}

static mazes read_mazes(const char *path) {
    static char line[2 * SIDE_MOST * SIDE_MOST + 16];
    char where[512];
    int64_t lines = 0, number = 0;
    mazes m = {0};
    FILE *file = fopen(path, "r");
    if (!file) quit(path, "cannot be read");
    while (fgets(line, sizeof line, file)) lines++;
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        snprintf(where, sizeof where, "%.400s: line %d", path, (int)++number);
        if (strchr("mq", line[0]) || strspn(line, " \t\r\n") == strlen(line))
            continue; /* a header: maze,path */
        int64_t side = side_of(line, where), cells = side * side;
        if (!m.side) m = (mazes){side, new_puzzles(lines, cells)}, m.all.count = 0;
        if (side != m.side) quit(where, "not of the size of the mazes before it");
        parse_maze(m.all.given + m.all.count * cells, m.all.solution + m.all.count * cells, line,
                   side, where);
        m.all.count++;
    }
    fclose(file);
    if (!m.side) quit(path, "no mazes");
    return m;
}

/* Cells of the path without two neighbours on it, ends without one. */
static int broken_path(const int32_t *answer, const int32_t *given, int64_t side) {
    int wrong = 0;
    for (int64_t i = 0; i < side * side; i++) {
        int near = 0;
        for (int k = 0; k < 4; k++) {
            int64_t next = neighbour(i, k, side);
            near += next >= 0 && answer[next];
        }
        wrong += answer[i] && near != (given[i] >= START ? 1 : 2);
    }
    return wrong;
}
