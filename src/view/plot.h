/* A line plot as SVG: axes with round ticks, grid, legend, title. It needs no other file, follows
 * the reader's light or dark scheme, and breaks a line where a value is NaN or infinite. */
#ifndef BASIN_VIEW_PLOT_H
#define BASIN_VIEW_PLOT_H

#include <stdint.h>
#include <stdio.h>

typedef struct basin_plot_line {
    const char *name;
    const double *x, *y; /* [count] */
    int64_t count;
} basin_plot_line;

typedef struct basin_plot {
    const char *title, *x_label, *y_label;
    const basin_plot_line *line; /* [lines] */
    int lines;
    int width, height; /* 0: 720 by 440 */
} basin_plot;

/* Writes the picture; the file's own error flag tells whether all went well. */
void basin_plot_write(FILE *file, const basin_plot *plot);

/* A round distance for about `wanted` ticks over low .. high: 1, 2 or 5 times a power of ten. */
double basin_plot_step(double low, double high, int wanted);

#endif
