/* What every long task shares: someone who watches it and may stop it. */
#ifndef BASIN_TRAIN_RUN_WATCH_H
#define BASIN_TRAIN_RUN_WATCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* How far a task is. Unknown numbers are NaN. */
typedef struct basin_news {
    const char *what;    /* "training", "scoring"; what `done` counts is "steps", "images" .. */
    int64_t done, total; /* in units of the task */
    double loss;         /* recent mean */
    double speed;        /* `unit` a second, recently */
    const char *unit;    /* "images" */
    double seconds_left;
} basin_news;

/* A watcher may be absent (NULL) and so may each part of it. */
typedef struct basin_watch {
    void (*show)(void *context, const basin_news *news); /* now and then, and at the end */
    void (*note)(void *context, const char *line);       /* what happened: a checkpoint, a skip */
    void *context;
    const volatile sig_atomic_t *stop; /* when it becomes true, the task saves and returns */
} basin_watch;

void basin_watch_show(const basin_watch *watch, const basin_news *news);
void basin_watch_note(const basin_watch *watch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool basin_watch_stopped(const basin_watch *watch);

#endif
