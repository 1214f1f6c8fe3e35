/* Progress and interrupts; see cli.h. */
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "program/cli.h"

/* ---- progress ---- */

enum { WIDEST = 400 };

static basin_progress *drawn; /* the one that is on the terminal; NULL: none */

basin_progress basin_progress_begin(const char *label, int64_t total, bool quiet) {
    return (basin_progress){.label = label,
                            .total = total,
                            .quiet = quiet,
                            .terminal = isatty(STDERR_FILENO) == 1,
                            .shown = basin_clock()};
}

/* Asked before each drawing, because windows change their size. */
static int terminal_width(void) {
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int64_t expected = 0;
    int width =
        columns && basin_integer_read(&expected, &columns) && expected < 10000 ? (int)expected : 0;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) width = size.ws_col;
    return width > 0 ? width : 80;
}

/* "#####....." of `cells`. */
static void draw_bar(char *text, int cells, int64_t done, int64_t total) {
    double share = (double)done / (double)total;
    int filled = (int)(share * cells);
    for (int i = 0; i < cells; i++) text[i] = i < filled ? '#' : '.';
    text[cells] = 0;
}

void basin_progress_line(char *text, size_t size, const basin_progress *progress, int64_t done,
                         const char *const *words, int width) {
    enum { BAR = 30, MIN_CELLS = 6 };
    char bar[BAR + 1], part[WIDEST] = "";
    int room = (width < WIDEST ? width : WIDEST) - 1, label = (int)strlen(progress->label);
    int used = label < room ? label : room, at = 0;
    for (int i = 0; words[i]; i++) {
        int length = (int)strlen(words[i]);
        if (!length || used + 2 + length > room) continue;
        at += snprintf(part + at, sizeof part - (size_t)at, "  %s", words[i]);
        used += 2 + length;
    }
    int cells = room - used - 3;
    if (cells > BAR) cells = BAR;
    if (progress->total > 0 && cells >= MIN_CELLS) {
        draw_bar(bar, cells, done, progress->total);
        snprintf(text, size, "%s [%s]%s", progress->label, bar, part);
    } else
        snprintf(text, size, "%.*s%s", room, progress->label, part);
}

/* A line for a file or a pipe. */
static void print_plain(const basin_progress *progress, const char *const *words) {
    fprintf(stderr, "%s", progress->label);
    for (int i = 0, first = 1; words[i]; i++) {
        if (!*words[i]) continue;
        fprintf(stderr, "%s%s", first ? ": " : ", ", words[i]);
        first = 0;
    }
    fputc('\n', stderr);
}

void basin_progress_show(basin_progress *progress, int64_t done, const char *const *words) {
    char text[2 * WIDEST];
    double now = basin_clock(), pause = progress->terminal ? 0.1 : 10;
    bool early = now - progress->shown < pause;
    if (progress->quiet || (early && (progress->drawn || done > 0))) return;
    if (!progress->terminal && done == 0) return;
    progress->shown = now;
    if (!progress->terminal) {
        print_plain(progress, words);
        return;
    }
    basin_progress_line(text, sizeof text, progress, done, words, terminal_width());
    fprintf(stderr, "\r%s\033[K", text);
    fflush(stderr);
    progress->drawn = true;
    drawn = progress;
}

void basin_progress_end(basin_progress *progress) {
    if (progress->drawn) fputs("\r\033[K", stderr);
    progress->drawn = false;
    if (drawn == progress) drawn = NULL;
}

void basin_progress_clear(void) {
    if (drawn) basin_progress_end(drawn);
}

/* ---- tasks ---- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number) { interrupted = number; }

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
static void show_news(basin_progress *progress, const basin_progress_report *news) {
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

static void show(void *context, const basin_progress_report *news) {
    basin_cli_watch *w = context;
    if (!w->what || strcmp(w->what, news->what) != 0 || w->progress.total != news->total) {
        basin_progress_end(&w->progress);
        w->progress = basin_progress_begin(news->what, news->total, w->quiet);
        w->what = news->what;
    }
    show_news(&w->progress, news);
}

static void note(void *context, const char *line) {
    if (!((basin_cli_watch *)context)->quiet) basin_say("%s", line);
}

static bool is_interrupted(void *context) {
    (void)context;
    return interrupted != 0;
}

int basin_caught_signal(void) { return interrupted; }

void basin_cli_watch_plain(basin_cli_watch *watch, bool quiet) {
    *watch = (basin_cli_watch){.quiet = quiet};
    watch->watch =
        (basin_watch){.show = show, .note = note, .stop = is_interrupted, .context = watch};
}

void basin_cli_watch_begin(basin_cli_watch *watch, bool quiet) {
    basin_cli_watch_plain(watch, quiet);
    catch_signals();
}

void basin_cli_watch_end(basin_cli_watch *watch) { basin_progress_end(&watch->progress); }
