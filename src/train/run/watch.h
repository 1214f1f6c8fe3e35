/* Telling a watcher, who may be absent, and asking whether to stop. */
#ifndef BASIN_TRAIN_RUN_WATCH_H
#define BASIN_TRAIN_RUN_WATCH_H

#include "basin/tasks/run.h"

void basin_watch_show(const basin_watch *watch, const basin_news *news);
void basin_watch_note(const basin_watch *watch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool basin_watch_stopped(const basin_watch *watch);

#endif
