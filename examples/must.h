/* What the examples do about errors: print the one line that names what went wrong, and end. A
 * library or a long-running program would pass the status on instead. */
#ifndef MUST_H
#define MUST_H

#include <stdio.h>
#include <stdlib.h>

#include <basin/basin.h>

static basin_error error;

static void must(basin_status status) {
    if (!status) return;
    fprintf(stderr, "%s\n", error.text);
    exit(1);
}

#endif
