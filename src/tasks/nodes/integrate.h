/* Integrated gradients: inputs of a plan move along straight lines from a base to their own values.
 * What a cell moves the output by is its mean slope times the line's length; over all cells that is
 * the difference of the outputs at both ends, up to the quadrature. */
#ifndef BASIN_NODES_INTEGRATE_H
#define BASIN_NODES_INTEGRATE_H

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
    double (*allowed)(double way); /* what sums may miss of an output's way, about */
} basin_lines;

/* Zeros at both ends, for the caller to fill; as well where the cells of several outputs start. */
basin_status basin_line_open(basin_line *line, basin_expr input, int64_t outputs,
                             basin_error *error);
void basin_line_free(basin_line *line, int lines);
/* Sums of slopes at the middles of eight equal steps; where these miss more of an output's way than
 * is allowed, of pieces that are halved until they do not, at most 240 times. */
basin_status basin_lines_integrate(double *ends /* [2, outputs] at both ends of the lines */,
                                   const basin_lines *l, basin_error *error);

/* How far a cell goes. */
static inline double basin_line_length(const basin_line *line, int64_t cell) {
    return (double)line->own[cell] - (double)line->base[cell];
}

#endif
