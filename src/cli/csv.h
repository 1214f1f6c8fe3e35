/* CSV that commands print. */
#ifndef BASIN_CLI_CSV_H
#define BASIN_CLI_CSV_H

#include <stdio.h>

/* A field, in quotes where it must be. */
void basin_csv_put(FILE *file, const char *text);

#endif
