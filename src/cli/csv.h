/* CSV that commands print. */
#ifndef BASIN_CLI_CSV_H
#define BASIN_CLI_CSV_H

#include <stdio.h>

/* A field, in quotes where it must be. Text that a spreadsheet would take for a formula (it begins
 * with = + - @) gets an apostrophe in front; numbers stay as they are. */
void basin_csv_put(FILE *file, const char *text);

#endif
