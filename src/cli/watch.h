/* How far a long command is, on standard error: a line on a terminal that is drawn over itself and
 * never wider than the terminal, a plain line now and then elsewhere, nothing with --quiet. And the
 * program as a watcher of tasks (basin_watch): the first interrupt asks the task to save and end, a
 * second one ends the program. */
#ifndef BASIN_CLI_WATCH_H
#define BASIN_CLI_WATCH_H

#include "basin/tasks/run.h"
#include "cli/options.h"

typedef struct basin_progress {
    const char *label;
    int64_t total; /* 0: unknown; then there is no bar */
    bool quiet, terminal, drawn;
    double shown; /* when it was last shown */
} basin_progress;

basin_progress basin_progress_begin(const char *label, int64_t total, bool quiet);
/* Shows `done` as a bar, with a few words each: the most important first, NULL behind the last.
 * Words that do not fit are left out. Draws at most ten times a second, so call it often. */
void basin_progress_show(basin_progress *progress, int64_t done, const char *const *words);
/* Clears the line. */
void basin_progress_end(basin_progress *progress);

/* The line for a terminal of `width` columns; one is left free, so that no terminal wraps. */
void basin_progress_line(char *text, size_t size, const basin_progress *progress, int64_t done,
                         const char *const *words, int width);

/* ---- tasks ---- */

typedef struct basin_cli_watch {
    basin_watch watch; /* hand &watch to a task */
    basin_progress progress;
    const char *what;
    bool quiet;
} basin_cli_watch;

/* Points into itself, so it must stay where it is. */
void basin_cli_watch_begin(basin_cli_watch *watch, bool quiet);
/* The same for work that cannot stop halfway: the first interrupt ends the program. */
void basin_cli_watch_plain(basin_cli_watch *watch, bool quiet);
void basin_cli_watch_end(basin_cli_watch *watch);
/* The signal that asked to stop; 0: none. */
int basin_cli_watch_signal(void);

/* What a command that uses a model works with: the backend that its options name, and a watch. */
typedef struct basin_session {
    basin_backend *backend;
    basin_cli_watch watch;
} basin_session;

/* Points into itself, so it must stay where it is. */
basin_status basin_session_open(basin_session *session, const basin_compute_flags *compute,
                                bool quiet, basin_error *error);
/* After the models that use its backend are closed; also where opening failed. */
void basin_session_close(basin_session *session);

#endif
