/* A training run that is killed without warning, again and again, and resumed. */
#ifndef TESTS_CLI_KILL_H
#define TESTS_CLI_KILL_H

#include <stdbool.h>

#include "basin/random.h"
#include "cli/program.h"

static inline void same_file(void **state, const char *a, const char *b) {
    char line[300], path[PATH_TEXT];
    snprintf(line, sizeof line, "cmp -s '%s/%s' '%s/%s'", (const char *)*state, a,
             (const char *)*state, b);
    if (system(line) != 0) fail_msg("%s and %s differ", folder_path(path, state, a), b);
}

/* Runs the command with --resume and kills it after so many milliseconds; whether it was still
 * running. Without --foreground timeout would kill itself, too, and we would go on while a busy
 * machine is still ending the program, which keeps the lock of its files until then. */
static inline bool run_and_kill(void **state, const char *command, unsigned milliseconds) {
    char line[4000];
    snprintf(line, sizeof line,
             "cd '%s' && timeout --foreground -s KILL %u.%03u %s %s -o cut.safetensors --resume "
             ">.out 2>.err",
             (const char *)*state, milliseconds / 1000, milliseconds % 1000, BASIN_PROGRAM,
             command);
    int status = system(line);
    return WIFEXITED(status) && WEXITSTATUS(status) == 128 + 9;
}

/* Kills it `kills` times, each time after up to `longest` milliseconds, then lets it end: as the
 * run that was never cut, with nothing left aside of the `files` there were. */
static inline void survive_kills(void **state, const char *command, int kills, unsigned longest,
                                 int files) {
    basin_random random = basin_random_start(2026, 0, 0);
    const program *p = run(state, "%s -o whole.safetensors", command);
    if (p->code) fail_msg("%s", p->err);
    for (int i = 0; i < kills; i++) {
        unsigned time = 20 + (unsigned)basin_random_below(&random, longest);
        if (!run_and_kill(state, command, time))
            fail_msg("kill %d came too late: the run had ended", i + 1);
    }
    p = run(state, "%s -o cut.safetensors --resume", command);
    if (p->code) fail_msg("%s", p->err);
    same_file(state, "whole.safetensors", "cut.safetensors");
    assert_int_equal(folder_count(state), files + 2); /* no checkpoint, nothing left aside */
}

#endif
