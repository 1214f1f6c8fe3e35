/* What the pictures of graphs share: one scale of colours, the frame. */
#ifndef BASIN_VIEW_SVG_H
#define BASIN_VIEW_SVG_H

#include <stdio.h>

/* From blue (0) over grey (0.5) to red (1), as "#rrggbb". */
void basin_svg_colour(FILE *file, double score);
/* The opening tag, the page's colours (classes p, t, m, e, n) in light and dark, title and
 * subtitle, which may be NULL. */
void basin_svg_head(FILE *file, int width, int height, const char *title, const char *subtitle);
/* The scale of colours at x = 24, with room for text from x = 152 on. */
void basin_svg_scale(FILE *file, int y);

#endif
