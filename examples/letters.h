/* Five letters of 7 x 7 pixels, for the examples of memories: -1 is paper, 1 is ink. */
#ifndef LETTERS_H
#define LETTERS_H

#include <stdio.h>

enum { LETTERS = 5, SIDE = 7, PIXELS = SIDE * SIDE };

static const char letter_name[LETTERS] = {'B', 'A', 'S', 'I', 'N'};

static const char *const letter_ink[LETTERS] = {
    "#####..#....#.#....#.#####..#....#.#....#.#####..", /* B */
    "..###...#...#.#.....##.....#########.....##.....#", /* A */
    ".#####.#.....##.......#####.......##.....#.#####.", /* S */
    ".#####....#......#......#......#......#....#####.", /* I */
    "#.....###....##.#...##..#..##...#.##....###.....#", /* N */
};

/* The pixels of a letter, [PIXELS]. */
static void letter_draw(double *pixel, int letter) {
    for (int i = 0; i < PIXELS; i++) pixel[i] = letter_ink[letter][i] == '#' ? 1 : -1;
}

/* Prints pictures [count, PIXELS] side by side: # above 1/3, . below -1/3, ? between. */
static void letter_print(const double *pixel, int count) {
    for (int row = 0; row < SIDE; row++) {
        for (int n = 0; n < count; n++) {
            const double *p = pixel + n * PIXELS + row * SIDE;
            for (int i = 0; i < SIDE; i++) putchar(p[i] * 3 > 1 ? '#' : p[i] * 3 < -1 ? '.' : '?');
            printf(n < count - 1 ? "   " : "\n");
        }
    }
}

#endif
