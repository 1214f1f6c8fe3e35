/* Watchers; see watch.h. */
#include "train/run/watch.h"

#include <stdarg.h>
#include <stdio.h>

void basin_watch_show(const basin_watch *watch, const basin_news *news) {
    if (watch && watch->show) watch->show(watch->context, news);
}

void basin_watch_note(const basin_watch *watch, const char *format, ...) {
    char line[1024];
    if (!watch || !watch->note) return;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    watch->note(watch->context, line);
}

bool basin_watch_stopped(const basin_watch *watch) { return watch && watch->stop && *watch->stop; }
