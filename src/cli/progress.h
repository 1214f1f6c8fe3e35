/* How far a long command is, on standard error: a bar on a terminal, a plain line now and then
 * elsewhere, nothing with --quiet. */
#ifndef BASIN_CLI_PROGRESS_H
#define BASIN_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct basin_progress {
    const char *label;
    int64_t total;
    bool quiet, terminal, drawn;
    double shown; /* when it was last shown */
} basin_progress;

basin_progress basin_progress_begin(const char *label, int64_t total, bool quiet);
/* `note`, a few words, may be NULL. */
void basin_progress_show(basin_progress *progress, int64_t done, const char *note);
/* Takes the bar off the screen. */
void basin_progress_end(basin_progress *progress);

#endif
