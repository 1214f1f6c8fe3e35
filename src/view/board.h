/* A Sudoku board along a descent, as SVG: the board after some of the steps, digits fading in as
 * they become certain, and below them the energy by step. It needs no other file and follows the
 * reader's light or dark scheme. */
#ifndef BASIN_VIEW_BOARD_H
#define BASIN_VIEW_BOARD_H

#include <stdint.h>
#include <stdio.h>

typedef struct basin_board_picture {
    const char *title, *subtitle; /* the second may be NULL */
    const uint8_t *given;         /* [81] 0: empty */
    const uint8_t *solution;      /* [81], to mark what differs from it; NULL: marks break a rule */
    const float *probability;     /* [steps + 1, 81, 9] */
    const double *energy;         /* [steps + 1] */
    int64_t steps;
} basin_board_picture;

/* The steps that are drawn: 0, 1, 2, 4, .. and the last, at most 8; how many there are. */
enum { BASIN_BOARD_FRAMES = 8 };
int basin_board_frames(int64_t step[BASIN_BOARD_FRAMES], int64_t steps);
/* Writes the picture; the file's own error flag tells whether all went well. */
void basin_board_write(FILE *file, const basin_board_picture *picture);

#endif
