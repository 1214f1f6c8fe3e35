/* Progress; see progress.h. */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

basin_progress basin_progress_begin(const char *label, int64_t total, bool quiet) {
    return (basin_progress){.label = label,
                            .total = total,
                            .quiet = quiet,
                            .terminal = isatty(STDERR_FILENO) == 1,
                            .shown = basin_clock()};
}

void basin_progress_show(basin_progress *progress, int64_t done, const char *note) {
    enum { WIDTH = 30 };
    double now = basin_clock(), pause = progress->terminal ? 0.1 : 10;
    if (progress->quiet || (now - progress->shown < pause && (progress->drawn || done > 0))) return;
    progress->shown = now;
    if (!note) note = "";
    if (!progress->terminal) {
        if (done > 0)
            fprintf(stderr, "%s: %lld of %lld %s\n", progress->label, (long long)done,
                    (long long)progress->total, note);
        return;
    }
    int filled = progress->total > 0 ? (int)(WIDTH * done / progress->total) : 0;
    fprintf(stderr, "\r%s [", progress->label);
    for (int i = 0; i < WIDTH; i++) fputc(i < filled ? '#' : '.', stderr);
    fprintf(stderr, "] %lld/%lld %s\033[K", (long long)done, (long long)progress->total, note);
    fflush(stderr);
    progress->drawn = true;
}

void basin_progress_end(basin_progress *progress) {
    if (progress->drawn) fputs("\r\033[K", stderr);
    progress->drawn = false;
}
