/* Watching tasks; see watch.h. */
#include "cli/watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t interrupted;

static void on_signal(int number) {
    (void)number;
    interrupted = 1;
}

static void catch_signals(void) {
    /* Once only: a second interrupt finds the default and ends a program that does not listen. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void print_time(char *text, size_t size, double seconds) {
    if (seconds < 100)
        snprintf(text, size, "%.0f s", seconds);
    else if (seconds < 6000)
        snprintf(text, size, "%.0f min", seconds / 60);
    else
        snprintf(text, size, "%.1f h", seconds / 3600);
}

static void show(void *context, const basin_news *news) {
    basin_cli_watch *w = context;
    char text[200] = "";
    size_t at = 0;
    if (!w->what || strcmp(w->what, news->what) != 0 || w->progress.total != news->total) {
        basin_progress_end(&w->progress);
        w->progress = basin_progress_begin(news->what, news->total, w->quiet);
        w->what = news->what;
    }
    if (isfinite(news->loss))
        at += (size_t)snprintf(text + at, sizeof text - at, "loss %.4f  ", news->loss);
    if (isfinite(news->speed))
        at += (size_t)snprintf(text + at, sizeof text - at, "%.*f %s/s  ", news->speed < 10 ? 1 : 0,
                               news->speed, news->unit);
    if (isfinite(news->seconds_left)) {
        char left[40];
        print_time(left, sizeof left, news->seconds_left);
        snprintf(text + at, sizeof text - at, "%s left", left);
    }
    basin_progress_show(&w->progress, news->done, text);
}

static void note(void *context, const char *line) {
    basin_cli_watch *w = context;
    basin_progress_end(&w->progress);
    if (!w->quiet) fprintf(stderr, "%s\n", line);
}

void basin_cli_watch_begin(basin_cli_watch *watch, bool quiet) {
    *watch = (basin_cli_watch){.quiet = quiet};
    watch->watch = (basin_watch){show, note, watch, &interrupted};
    catch_signals();
}

void basin_cli_watch_end(basin_cli_watch *watch) { basin_progress_end(&watch->progress); }

bool basin_cli_interrupted(void) { return interrupted; }
