/* Boards along a descent; see board.h. */
#include "view/board.h"

#include <math.h>
#include <stdbool.h>

#include "view/svg.h"

enum { CELL = 20, SIDE = 9 * CELL, GAP = 24, ACROSS = 4, TOP = 72, LABEL = 22, CURVE = 120 };

int basin_board_frames(int64_t step[BASIN_BOARD_FRAMES], int64_t steps) {
    int count = 0;
    step[count++] = 0;
    for (int64_t t = 1; t < steps && count < BASIN_BOARD_FRAMES - 1; t *= 2) step[count++] = t;
    if (steps > 0) step[count++] = steps;
    return count;
}

/* The likeliest digit of a cell, and how far it is from a guess: 0 to 1. */
static int digit_of(double *certainty, const float *probability /* [9] */) {
    int best = 0;
    for (int d = 1; d < 9; d++)
        if (probability[d] > probability[best]) best = d;
    double p = (probability[best] - 1.0 / 9) / (8.0 / 9);
    *certainty = p > 0 ? p : 0;
    return best + 1;
}

static void answer_of(uint8_t board[81], double certainty[81], const basin_board_picture *p,
                      int64_t step) {
    for (int i = 0; i < 81; i++) {
        int digit = digit_of(&certainty[i], p->probability + (step * 81 + i) * 9);
        board[i] = p->given[i] ? p->given[i] : (uint8_t)digit;
        if (p->given[i]) certainty[i] = 1;
    }
}

static bool same_house(int a, int b) {
    return a / 9 == b / 9 || a % 9 == b % 9 || (a / 27 == b / 27 && a % 9 / 3 == b % 9 / 3);
}

/* Whether a cell is to be marked: it differs from the solution, or from a rule. */
static bool is_wrong(const basin_board_picture *p, const uint8_t board[81], int cell) {
    if (p->solution) return board[cell] != p->solution[cell];
    for (int i = 0; i < 81; i++)
        if (i != cell && board[i] == board[cell] && same_house(i, cell)) return true;
    return false;
}

static void draw_lines(FILE *file, int x, int y) {
    for (int i = 0; i <= 9; i++) {
        double width = i % 3 ? 0.5 : 1.5;
        fprintf(file,
                "<path class=\"e\" fill=\"none\" stroke-width=\"%.1f\" "
                "d=\"M%d %dh%dM%d %dv%d\"/>\n",
                width, x, y + i * CELL, SIDE, x + i * CELL, y, SIDE);
    }
}

static void draw_board(FILE *file, const basin_board_picture *p, int64_t step, int x, int y) {
    uint8_t board[81];
    double certainty[81];
    answer_of(board, certainty, p, step);
    for (int i = 0; i < 81; i++) {
        int left = x + i % 9 * CELL, top = y + i / 9 * CELL;
        if (!p->given[i] && is_wrong(p, board, i))
            fprintf(file,
                    "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#c4362a\" "
                    "opacity=\"%.2f\"/>\n",
                    left, top, CELL, CELL, 0.1 + 0.3 * certainty[i]);
        fprintf(file,
                "<text class=\"%s\" x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-size=\"13\"%s "
                "opacity=\"%.2f\">%d</text>\n",
                p->given[i] ? "t" : "b", left + CELL / 2, top + CELL - 5,
                p->given[i] ? " font-weight=\"bold\"" : "", certainty[i], board[i]);
    }
    draw_lines(file, x, y);
    fprintf(file, "<text class=\"m\" x=\"%d\" y=\"%d\">step %lld, energy %.2f</text>\n", x,
            y + SIDE + 16, (long long)step, p->energy[step]);
}

/* The energy of all steps, with dots where boards are drawn. */
static void draw_curve(FILE *file, const basin_board_picture *p, const int64_t *step, int frames,
                       int y, int width) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t t = 0; t <= p->steps; t++)
        if (isfinite(p->energy[t])) low = fmin(low, p->energy[t]), high = fmax(high, p->energy[t]);
    double range = high > low ? high - low : 1;
    double across = (double)(width - 2 * GAP) / (double)(p->steps ? p->steps : 1);
    fprintf(file, "<text class=\"m\" x=\"%d\" y=\"%d\">energy by step, %.2f to %.2f</text>\n", GAP,
            y, high, low);
    fputs("<path fill=\"none\" stroke=\"#3b6fb6\" stroke-width=\"1.5\" d=\"", file);
    for (int64_t t = 0; t <= p->steps; t++)
        if (isfinite(p->energy[t]))
            fprintf(file, "%c%.1f %.1f", t ? 'L' : 'M', GAP + across * (double)t,
                    y + 10 + CURVE * (high - p->energy[t]) / range);
    fputs("\"/>\n", file);
    for (int i = 0; i < frames; i++)
        if (isfinite(p->energy[step[i]]))
            fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#3b6fb6\"/>\n",
                    GAP + across * (double)step[i],
                    y + 10 + CURVE * (high - p->energy[step[i]]) / range);
}

void basin_board_write(FILE *file, const basin_board_picture *picture) {
    int64_t step[BASIN_BOARD_FRAMES];
    int frames = basin_board_frames(step, picture->steps);
    int rows = (frames + ACROSS - 1) / ACROSS, width = GAP + ACROSS * (SIDE + GAP);
    int below = TOP + rows * (SIDE + LABEL + 12), height = below + CURVE + 40;
    basin_svg_head(file, width, height, picture->title, picture->subtitle);
    fputs("<style>.b{fill:#2458a6}@media(prefers-color-scheme:dark){.b{fill:#8fb8f2}}</style>\n",
          file);
    for (int i = 0; i < frames; i++)
        draw_board(file, picture, step[i], GAP + i % ACROSS * (SIDE + GAP),
                   TOP + i / ACROSS * (SIDE + LABEL + 12));
    draw_curve(file, picture, step, frames, below + 16, width);
    fputs("</svg>\n", file);
}
