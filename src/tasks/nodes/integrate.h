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
/* Sums of slopes at the middles of equal steps; where these miss more of an output's way than is
 * allowed, of pieces that are halved until they do not. */
typedef struct basin_quadrature {
    int steps;                     /* up to 15; 0: 16 pieces are halved at once */
    double (*allowed)(double way); /* what sums may miss of an output's way, about */
    double part;    /* of each piece's own difference that they may miss beside that */
    int max_pieces; /* of each output that are halved; then the sums miss more */
} basin_quadrature;

basin_status basin_lines_integrate(double *ends /* [2, outputs] at both ends of the lines */,
                                   const basin_lines *l, const basin_quadrature *q,
                                   basin_error *error);

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
