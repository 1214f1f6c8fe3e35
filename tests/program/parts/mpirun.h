/* For tests of graphs in parts: accounts, and `basin ..` on several ranks for a limited time. */
#ifndef TESTS_CLI_PARTS_MPIRUN_H
#define TESTS_CLI_PARTS_MPIRUN_H

#include "program/accounts.h"
#include "program/ranks.h"

/* All ranks are killed after `seconds`. */
static inline const program *run_parts(void **state, int ranks, double seconds, const char *format,
                                       ...) {
    char arguments[2000], words[3000];
    va_list args;
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    snprintf(words, sizeof words, "--quiet -n %d $PROGRAM %s", ranks, arguments);
    return run_mpi_for(state, seconds, words);
}

/* Parts are in a folder of their own. */
static inline int remove_parts(void **state) {
    char line[PATH_TEXT + 40];
    snprintf(line, sizeof line, "rm -rf '%s/parts'", (const char *)*state);
    return system(line) != 0 ? -1 : program_teardown(state);
}

#endif
