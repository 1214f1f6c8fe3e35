/* How far a long command is, on standard error: a line on a terminal that is drawn over itself and
 * never wider than the terminal, a plain line now and then elsewhere, nothing with --quiet. */
#ifndef BASIN_CLI_PROGRESS_H
#define BASIN_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct basin_progress {
    const char *label;
    int64_t total; /* 0: unknown; then there is no bar */
    bool quiet, terminal, drawn;
    double shown; /* when it was last shown */
} basin_progress;

basin_progress basin_progress_begin(const char *label, int64_t total, bool quiet);
/* Shows `done` as a bar, with a few words each: the most important first, NULL behind the last.
 * Words that do not fit are left out. Draws at most ten times a second, so call it often. */
void basin_progress_show(basin_progress *progress, int64_t done, const char *const *words);
/* Takes the line off the screen. */
void basin_progress_end(basin_progress *progress);

/* The line for a terminal of `width` columns; one is left free, so that no terminal wraps. */
void basin_progress_line(char *text, size_t size, const basin_progress *progress, int64_t done,
                         const char *const *words, int width);

#endif
