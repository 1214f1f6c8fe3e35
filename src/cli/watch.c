/* Watching tasks; see watch.h. */
#include "cli/watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static volatile sig_atomic_t interrupted;

static void on_signal(int number) { interrupted = number; }

int basin_cli_watch_signal(void) { return interrupted; }

static void catch_signals(void) {
    /* Once only: a second interrupt finds the default and ends a program that does not listen. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action,
              NULL); /* schedulers send it ahead of time, and mpirun passes it on */
}

static void print_left(char *text, size_t size, double seconds) {
    if (!isfinite(seconds)) return;
    if (seconds < 100)
        snprintf(text, size, "%.0f s left", seconds);
    else if (seconds < 6000)
        snprintf(text, size, "%.0f min left", seconds / 60);
    else
        snprintf(text, size, "%.1f h left", seconds / 3600);
}

/* "epoch 3/100"; nothing where the number is unknown. */
static void print_of(char *text, size_t size, const char *what, int64_t i, int64_t n) {
    if (n > 0) snprintf(text, size, "%s%lld/%lld", what, (long long)i, (long long)n);
}

/* What is worth knowing, the most important first. */
static void show_news(basin_progress *progress, const basin_news *news) {
    enum { SIZE = 60 };
    char count[SIZE] = "", loss[SIZE] = "", left[SIZE] = "", speed[SIZE] = "", member[SIZE] = "";
    if (news->epochs > 0)
        print_of(count, SIZE, "epoch ", news->epoch, news->epochs);
    else
        print_of(count, SIZE, "", news->done, news->total);
    if (isfinite(news->loss)) snprintf(loss, SIZE, "loss %.4f", news->loss);
    print_left(left, SIZE, news->seconds_left);
    if (isfinite(news->speed))
        snprintf(speed, SIZE, "%.*f %s/s", news->speed < 10 ? 1 : 0, news->speed, news->unit);
    if (news->members > 1) print_of(member, SIZE, "member ", news->member, news->members);
    const char *words[] = {count, loss, left, speed, member, NULL};
    basin_progress_show(progress, news->done, words);
}

static void show(void *context, const basin_news *news) {
    basin_cli_watch *w = context;
    if (!w->what || strcmp(w->what, news->what) != 0 || w->progress.total != news->total) {
        basin_progress_end(&w->progress);
        w->progress = basin_progress_begin(news->what, news->total, w->quiet);
        w->what = news->what;
    }
    show_news(&w->progress, news);
}

static void note(void *context, const char *line) {
    basin_cli_watch *w = context;
    basin_progress_end(&w->progress);
    if (!w->quiet) basin_say("%s", line);
}

void basin_cli_watch_plain(basin_cli_watch *watch, bool quiet) {
    *watch = (basin_cli_watch){.quiet = quiet};
    watch->watch = (basin_watch){show, note, watch, &interrupted};
}

void basin_cli_watch_begin(basin_cli_watch *watch, bool quiet) {
    basin_cli_watch_plain(watch, quiet);
    catch_signals();
}

void basin_cli_watch_end(basin_cli_watch *watch) { basin_progress_end(&watch->progress); }
