/* Watchers and the clock; see task.h. */
#include "task/task.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

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

double basin_task_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
