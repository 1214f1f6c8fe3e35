/* For tests of ranks: `mpirun -n N basin ..` on this machine, as many as it has cores or not. */
#ifndef TESTS_CLI_PARTS_MPIRUN_H
#define TESTS_CLI_PARTS_MPIRUN_H

#include "cli/accounts.h"
#include "cli/kill.h"

#define MPIRUN                                                                                     \
    "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "                               \
    "ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" mpirun --oversubscribe " /* MPI itself leaks */ \
    "--bind-to none --quiet"

static inline bool mpirun_is_absent(void) {
    bool absent = system("command -v mpirun >/dev/null 2>&1") != 0;
    if (absent) print_message("skipped: there is no mpirun here\n");
    return absent;
}

/* `basin ARGUMENTS` on so many ranks; ended after `limit` seconds, by kill -9 of mpirun and all its
 * ranks. */
static inline const program *run_ranks(void **state, int ranks, double limit, const char *format,
                                       ...) {
    static program result;
    char arguments[2000], line[4000], path[PATH_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    snprintf(line, sizeof line,
             "cd '%s' && timeout -s KILL %.3f " MPIRUN " -n %d %s %s >.out 2>.err </dev/null",
             (const char *)*state, limit, ranks, BASIN_PROGRAM, arguments);
    int status = system(line);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    slurp(result.out, sizeof result.out, folder_path(path, state, ".out"));
    slurp(result.err, sizeof result.err, folder_path(path, state, ".err"));
    return &result;
}

#endif
