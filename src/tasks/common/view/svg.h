/* Figures as SVG files that need no other file and follow the reader's light or dark scheme. */
#ifndef BASIN_VIEW_SVG_H
#define BASIN_VIEW_SVG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "basin/status.h"

typedef struct basin_plot_line {
    const char *name;
    const double *y; /* [count] at 0, 1, .. */
    int64_t count;
} basin_plot_line;

typedef struct basin_plot {
    const char *title, *x_label, *y_label;
    const basin_plot_line *line; /* [lines] */
    int lines;
} basin_plot;

/* A line plot: axes with round ticks, grid, legend, title; dots where points are few. */
basin_status basin_svg_plot(const char *path, const basin_plot *plot, basin_error *error);

#endif
