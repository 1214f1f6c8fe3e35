/* Progress on a terminal of our own: never wider than it, drawn over itself, at most ten times a
 * second; plain lines elsewhere; nothing with --quiet. */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <sys/ioctl.h>

#include "program/accounts.h"
#include "program/cli.h"

typedef struct terminal {
    int ours;
    char name[100];
} terminal;

static terminal terminal_open(int columns) {
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    terminal t = {.ours = posix_openpt(O_RDWR | O_NOCTTY)};
    if (t.ours < 0 || grantpt(t.ours) || unlockpt(t.ours)) skip();
    snprintf(t.name, sizeof t.name, "%s", ptsname(t.ours));
    assert_int_equal(ioctl(t.ours, TIOCSWINSZ, &size), 0);
    return t;
}

/* Standard error becomes `path` until the returned descriptor is given back. */
static int divert(const char *path) {
    fflush(stderr);
    int saved = dup(STDERR_FILENO), other = open(path, O_RDWR | O_NOCTTY);
    assert_true(saved >= 0 && other >= 0);
    dup2(other, STDERR_FILENO);
    close(other);
    return saved;
}

static void restore(int saved) {
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
}

/* Checks what was drawn: returns and no line feeds, each line within the width and without control
 * letters but for the one that clears the rest. Returns how many lines there were. */
static int check_drawing(const char *text, int columns) {
    int lines = 0;
    assert_null(strchr(text, '\n'));
    while (*text) {
        assert_int_equal(*text++, '\r');
        size_t length = strcspn(text, "\033\r");
        if (length >= (size_t)columns) fail_msg("%zu columns of %d: %s", length, columns, text);
        assert_true(!strncmp(text + length, "\033[K", 3));
        lines += length > 0;
        text += length + 3;
    }
    return lines;
}

static void show_epochs(basin_cli_watch *watch, int64_t members) {
    basin_progress_report news = {.what = "training",
                                  .total = 100000,
                                  .loss = 0.123456,
                                  .speed = 12345.6,
                                  .unit = "images",
                                  .seconds_left = 1234,
                                  .epochs = 100,
                                  .member = 2,
                                  .members = members};
    for (int i = 0; i < 3; i++) {
        news.done = 1000 * i;
        news.epoch = i + 1;
        watch->watch.show(watch->watch.context, &news);
        watch->progress.shown += 1000; /* now it is too early to draw again */
        watch->watch.show(watch->watch.context, &news);
        watch->progress.shown -= 1000.2;
    }
}

/* All that was written until the last writer closed it; closes our end. */
static void drain(char *text, size_t size, const terminal *t) {
    size_t got = 0;
    for (ssize_t n; (n = read(t->ours, text + got, size - 1 - got)) > 0;) got += (size_t)n;
    text[got] = 0;
    close(t->ours);
}

static void draw(char *text, size_t size, int columns, int64_t members) {
    terminal t = terminal_open(columns);
    basin_cli_watch watch;
    int keep = open(t.name, O_RDWR | O_NOCTTY), saved = divert(t.name);
    basin_cli_watch_begin(&watch, false);
    show_epochs(&watch, members);
    basin_cli_watch_end(&watch);
    restore(saved);
    close(keep);
    drain(text, size, &t);
}

TEST(fits_80_columns) {
    char text[4000];
    draw(text, sizeof text, 80, 1);
    assert_int_equal(check_drawing(text, 80), 3);
    assert_contains(text, "\rtraining [");
    assert_contains(text, "]  epoch 3/100  loss 0.1235  21 min left  12346 images/s\033[K");
    assert_null(strstr(text, "member"));
}

TEST(fits_40_columns) {
    char text[4000];
    draw(text, sizeof text, 40, 5);
    assert_int_equal(check_drawing(text, 40), 3);
    assert_contains(text, "training  epoch 3/100  loss 0.1235\033[K");
}

TEST(uses_wide_terminals) {
    char text[4000];
    draw(text, sizeof text, 132, 5);
    assert_int_equal(check_drawing(text, 132), 3);
    assert_contains(text, "[..............................]  epoch 3/100");
    assert_contains(text, "12346 images/s  member 2/5\033[K");
}

/* No width makes a line that is too long, however long the words are. */
TEST(fits_any_width) {
    static const char *const words[] = {"epoch 1000000/1000000", "", "loss 123456789.1235",
                                        "a few words that no one would call short", NULL};
    char text[1000];
    for (int width = 1; width < 600; width++) {
        basin_progress p = {.label = "decoding pictures of a set with a long name", .total = 7};
        basin_progress_line(text, sizeof text, &p, 7, words, width);
        assert_true(strlen(text) < (size_t)width);
    }
}

TEST(is_plain_or_silent_elsewhere) {
    char text[1000];
    char *path = folder_path(state, "log");
    for (int quiet = 0; quiet < 2; quiet++) {
        assert_int_equal(file_put(path, "", 0), 0);
        basin_cli_watch watch;
        int saved = divert(path);
        basin_cli_watch_begin(&watch, quiet);
        show_epochs(&watch, 1);
        watch.progress.shown -= 20; /* as if so many seconds had gone by */
        show_epochs(&watch, 1);
        basin_cli_watch_end(&watch);
        restore(saved);
        slurp(text, sizeof text, path);
        assert_string_equal(
            text, quiet ? "" : "training: epoch 2/100, loss 0.1235, 21 min left, 12346 images/s\n");
    }
}

/* The program itself, on a terminal of 60 columns. */
TEST(shows_a_run) {
    static char text[65536];
    write_table(state);
    terminal t = terminal_open(60);
    int keep = open(t.name, O_RDWR | O_NOCTTY);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(t.ours);
        const program *p = run(
            state, "anomaly train accounts.csv transfers.csv --epochs 300 --patience 300 -o m 2>%s",
            t.name);
        _exit(p->code);
    }
    close(keep);
    drain(text, sizeof text, &t);
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (const char *at = text; (at = strchr(at, '\r')); at++) {
        size_t length = strcspn(at + 1, "\033\r\n");
        if (length >= 60) fail_msg("%zu columns: %s", length, at);
    }
    assert_contains(text, "\rtraining");
}

int main(void) { return tests_run(folder_new, program_teardown); }
