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

/* A small graph, coloured from blue (takes) over none to red (adds). */
typedef struct basin_svg_graph_of {
    const char *title, *subtitle; /* subtitle may be NULL */
    const char *legend;           /* beside the scale of colours */
    int64_t nodes, edges;
    const double *at;        /* [nodes, 2] where they are; edges about 1 long */
    const int32_t *edge;     /* [edges, 2] ascending; one both ways is drawn once, with the sum */
    const double *node;      /* [nodes] what gives the colour */
    const double *strength;  /* [edges] */
    const char *const *name; /* [nodes] written on them, of a molecule elements */
    /* Of a molecule, else NULL: */
    const int32_t *atom;  /* [nodes, 4] atomic number, charge, hydrogens, aromatic */
    const int32_t *order; /* [edges] 1, 2, 3; 4 where aromatic; 5, 6: double */
} basin_svg_graph_of;

basin_status basin_svg_graph(const char *path, const basin_svg_graph_of *graph, basin_error *error);
/* The same without title, legend and colours, into a file that is open. */
void basin_svg_molecule(FILE *file, const basin_svg_graph_of *graph);

#endif
