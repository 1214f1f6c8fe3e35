/* What the pictures of graphs share: one scale of colours, the frame. */
#ifndef BASIN_VIEW_SVG_H
#define BASIN_VIEW_SVG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* From blue (0) over grey (0.5) to red (1), as "#rrggbb". */
void basin_svg_colour(FILE *file, double score);
/* The opening tag, the page's colours (classes p, t, m, e, n) in light and dark, title and
 * subtitle, which may be NULL. */
void basin_svg_head(FILE *file, int width, int height, const char *title, const char *subtitle);
/* The scale of colours at x = 24, with room for text from x = 152 on. */
void basin_svg_scale(FILE *file, int y);

/* ---- Text within HTML and SVG: whatever a name holds, the page stays well-formed ---- */

/* Escaped, so that it is right between tags and in attributes; bytes that are not UTF-8, and
 * control characters but line ends and tabs, become U+FFFD. At most so many characters, with an
 * ellipsis behind a longer text; 0: all of it. */
void basin_markup_text(FILE *file, const char *text, int most);

/* ---- A line plot as SVG: axes with round ticks, grid, legend, title. It needs no other file,
 * follows the reader's light or dark scheme, and breaks a line where a value is NaN or infinite
 * ---- */

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

/* ---- A small graph as SVG: nodes and edges by colour, blue below zero, red above ---- */

typedef struct basin_molecule {
    const char *title, *subtitle; /* subtitle may be NULL */
    const char *legend;           /* beside the scale of colours */
    int64_t nodes, edges;
    const int32_t *edge;    /* [edges, 2] ascending; one both ways is drawn once, with the sum */
    const double *node;     /* [nodes] what gives the colour */
    const double *strength; /* [edges] the same */
    const int32_t *label;   /* [nodes] written on them; NULL: their numbers */
} basin_molecule;

/* False where memory is short; the file's own error flag tells whether all was written. The layout
 * is a function of the edges alone. */
bool basin_molecule_write(FILE *file, const basin_molecule *molecule);

/* ---- A node and its neighbours as SVG: thickness shows attention, colour the score ---- */

typedef struct basin_star_ray {
    const char *name;
    double share; /* of the attention, 0 to 1 */
    double score; /* 0 to 1 */
} basin_star_ray;

typedef struct basin_star {
    const char *title, *subtitle; /* subtitle may be NULL */
    const char *name;             /* of the centre */
    double score;
    const basin_star_ray *ray; /* [rays] by falling share */
    int rays;
    int64_t left_out; /* neighbours that are not drawn */
} basin_star;

/* Needs no other file, follows the reader's light or dark scheme; the file's own error flag tells
 * whether all went well. */
void basin_star_write(FILE *file, const basin_star *star);

#endif
