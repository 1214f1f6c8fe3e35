/* Handlers of signals; see ../posix.h. Windows knows of those that Basin handles only SIGINT and
 * SIGTERM; Ctrl-Break stands in for SIGUSR1, which asks a run to write a checkpoint and stop. */
#ifndef BASIN_WINDOWS_SIGNAL_H
#define BASIN_WINDOWS_SIGNAL_H

#include_next <signal.h>

#define SIGUSR1 SIGBREAK
enum { SA_RESETHAND = 1 }; /* as Windows does it, whether asked for or not */

struct sigaction {
    void (*sa_handler)(int number);
    int sa_flags, sa_mask;
};

#define sigemptyset(set) (*(set) = 0)
#define sigaction(number, action, old) ((void)(old), signal((number), (action)->sa_handler))

#endif
