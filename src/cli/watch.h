/* The program as a watcher of tasks (train/run/watch.h): progress and notes on standard error, and
 * stopping: the first interrupt asks the task to save and end, a second one ends the program. */
#ifndef BASIN_CLI_WATCH_H
#define BASIN_CLI_WATCH_H

#include "basin/tasks/run.h"
#include "cli/progress.h"

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

#endif
