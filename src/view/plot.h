/* A line plot as SVG: axes with round ticks, grid, legend, title. It needs no other file, follows
 * the reader's light or dark scheme, and breaks a line where a value is NaN or infinite. */
#ifndef BASIN_VIEW_PLOT_H
#define BASIN_VIEW_PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum basin_plot_form {
    BASIN_PLOT_DOTTED, /* a line with a dot at each point, where these are few */
    BASIN_PLOT_DASHED, /* a line to compare with, grey */
    BASIN_PLOT_AREA,   /* the outline of an area above 0, lightly filled */
} basin_plot_form;

typedef struct basin_plot_line {
    const char *name;
    const double *x, *y; /* [count] */
    int64_t count;
    basin_plot_form form;
} basin_plot_line;

typedef struct basin_plot {
    const char *title, *x_label, *y_label;
    const basin_plot_line *line; /* [lines] */
    int lines;
    int width, height;     /* 0: 720 by 440 */
    bool x_whole, y_whole; /* ticks at whole numbers alone */
} basin_plot;

/* Writes the picture; the file's own error flag tells whether all went well. */
void basin_plot_write(FILE *file, const basin_plot *plot);

/* The outline of a histogram with `bins` equal bins over low .. high, for a line of form AREA:
 * x, y [2 bins + 2]; values on the upper end are in the last bin, those outside in none. */
void basin_plot_histogram(double *x, double *y, int bins, const double *value /* [count] */,
                          int64_t count, double low, double high);

/* A round distance for about `wanted` ticks over low .. high: 1, 2 or 5 times a power of ten. */
double basin_plot_step(double low, double high, int wanted);

#endif
