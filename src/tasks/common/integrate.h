/* Integrated gradients: inputs of a plan move along straight lines from a base to their own values.
 * What a cell moves the output by is its mean slope times the line's length; over all cells that is
 * the difference of the outputs at both ends, up to the quadrature. */
#ifndef BASIN_TRAIN_INTEGRATE_H
#define BASIN_TRAIN_INTEGRATE_H

#include "basin/plan.h"

/* One input; NULL: none, which all functions skip. */
typedef struct basin_line {
    basin_expr input, slope; /* slope: the derivative of the outputs' sum by the input */
    int64_t cells;
    int64_t *start;    /* [outputs + 1] cells that move each output; all of them for one */
    float *base, *own; /* [cells] both ends of the lines; where they are equal, a cell stays */
    float *now;        /* [cells] */
    double *value;     /* [cells] slopes where the plan has run last */
    double *sum;       /* [cells] of slopes times weights */
} basin_line;

typedef struct basin_lines {
    basin_line *line;
    int lines;
    basin_plan *plan;
    int64_t outputs;
    /* Outputs where the plan has run last. */
    basin_status (*read)(double *output, void *context, basin_error *error);
    void *context;
} basin_lines;

/* Zeros at both ends, for the caller to fill; as well where the cells of several outputs start. */
basin_status basin_line_open(basin_line *line, basin_expr input, int64_t outputs,
                             basin_error *error);
void basin_line_free(basin_line *line, int lines);
/* Runs the plan at the part t[i] of the lines of each output. */
basin_status basin_lines_run(const basin_lines *l, const double *t, double *output,
                             basin_error *error);
/* Reads the slopes there: by them, how far each output moves along its whole lines. */
basin_status basin_lines_read(const basin_lines *l, double *moves, basin_error *error);
/* Adds them to the sums with each output's weight. */
void basin_lines_add(const basin_lines *l, const double *weight);

typedef struct basin_bisection {
    int points;
    const double *at;      /* [points] parts, rising from 0 to 1 */
    const double *output;  /* [points, outputs] there */
    const double *allowed; /* [outputs] what sums may miss of each one's way, about; < 0: not asked
                              for, and its sums stay */
    double part;           /* of each piece's own difference that they may miss beside that */
    int most;              /* pieces of each to be halved at most; then the sums miss more */
} basin_bisection;

/* Sums of slopes at the middles of pieces, each times its piece's length. */
enum { BASIN_BISECTION_POINTS = 17 };
basin_status basin_lines_bisect(const basin_lines *l, const basin_bisection *b, basin_error *error);

/* How far a cell goes; what cells first .. end - 1 move the output by. */
static inline double basin_line_length(const basin_line *line, int64_t cell) {
    return (double)line->own[cell] - (double)line->base[cell];
}
static inline double basin_line_moves(const basin_line *line, const double *slope, int64_t first,
                                      int64_t end) {
    double moves = 0;
    for (int64_t i = first; i < end; i++) moves += slope[i] * basin_line_length(line, i);
    return moves;
}

#endif
