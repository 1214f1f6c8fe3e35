/* Progress; see progress.h. */
#include "cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"

enum { WIDEST = 400 };

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
    int64_t wanted = 0;
    int width =
        columns && basin_integer_read(&wanted, &columns) && wanted < 10000 ? (int)wanted : 0;
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
    enum { BAR = 30, LEAST = 6 };
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
    if (progress->total > 0 && cells >= LEAST) {
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
}

void basin_progress_end(basin_progress *progress) {
    if (progress->drawn) fputs("\r\033[K", stderr);
    progress->drawn = false;
}
