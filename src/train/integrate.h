/* Integrated gradients: inputs of a plan move along straight lines from a base to their own values.
 * What a cell moves the output by is its mean slope along the line times the line's length; over
 * all cells that adds up to the difference of the outputs at both ends, up to the quadrature, which
 * is the caller's: it runs the plan at some points and adds the slopes there with weights. */
#ifndef BASIN_TRAIN_INTEGRATE_H
#define BASIN_TRAIN_INTEGRATE_H

#include "basin/plan.h"

/* One input; NULL: none, which all functions skip. */
typedef struct basin_line {
    basin_expr input, slope; /* slope: the derivative of the output by the input */
    int64_t cells;
    float *base, *own; /* [cells] both ends of the lines; where they are equal, a cell stays */
    float *now;        /* [cells] */
    double *value;     /* [cells] slopes where the plan has run last */
    double *sum;       /* [cells] of slopes times weights */
} basin_line;

/* Zeros at both ends, for the caller to fill. */
basin_status basin_line_open(basin_line *line, basin_expr input, basin_error *error);
void basin_lines_free(basin_line *line, int lines);
/* Runs the plan at the part `t` of all lines. */
basin_status basin_lines_run(basin_line *line, int lines, basin_plan *plan, double t,
                             basin_error *error);
/* Reads the slopes there. */
basin_status basin_lines_read(basin_line *line, int lines, basin_plan *plan, basin_error *error);
/* Adds them to the sums with a weight. */
void basin_lines_add(basin_line *line, int lines, double weight);

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
