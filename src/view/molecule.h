/* A small graph as SVG: nodes and edges by colour, blue below zero, red above. */
#ifndef BASIN_VIEW_MOLECULE_H
#define BASIN_VIEW_MOLECULE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

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

#endif
