/* A training run that is killed without warning, again and again, and resumed. */
#ifndef TESTS_CLI_KILL_H
#define TESTS_CLI_KILL_H

#include <stdbool.h>
#include <sys/prctl.h>

#include "basin/random.h"
#include "program/program.h"

static inline void same_file(void **state, const char *a, const char *b) {
    char line[300];
    snprintf(line, sizeof line, "cmp -s '%s/%s' '%s/%s'", (const char *)*state, a,
             (const char *)*state, b);
    if (system(line) != 0) fail_msg("%s and %s differ", folder_path(state, a), b);
}

/* Runs `words` in the folder of `state` and kills them after so many seconds; the exit code, 128 +
 * 9 where that was needed. Waits for all that they started: what mpirun leaves behind ends by
 * itself, on a busy machine after a while, and files stay locked until then. Without --foreground
 * timeout would kill itself, too, and not wait for the program. */
static inline int run_for(void **state, double seconds, const char *environment,
                          const char *words) {
    char line[9000];
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    snprintf(line, sizeof line,
             "cd '%s' && %s timeout --foreground -s KILL %.3f %s >.out 2>.err </dev/null",
             (const char *)*state, environment, seconds, words);
    int status = system(line);
    while (wait(NULL) > 0) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs the command with --resume and kills it after so many milliseconds; whether it was still
 * running. */
static inline bool run_and_kill(void **state, const char *command, unsigned milliseconds) {
    char words[4000];
    snprintf(words, sizeof words, "%s %s -o cut.safetensors --resume", BASIN_PROGRAM, command);
    return run_for(state, 1e-3 * milliseconds, "", words) == 128 + 9;
}

/* Kills it `kills` times, each time after up to `longest` milliseconds, then lets it end: as the
 * run that was never cut, with nothing left aside of the `files` there were. */
static inline void survive_kills(void **state, const char *command, int kills, unsigned longest,
                                 int files) {
    basin_random random = basin_random_start(2026, 0, 0);
    run_ok(state, "%s -o whole.safetensors", command);
    for (int i = 0; i < kills; i++) {
        unsigned time = 20 + (unsigned)basin_random_below(&random, longest);
        if (!run_and_kill(state, command, time))
            fail_msg("kill %d came too late: the run had ended", i + 1);
    }
    run_ok(state, "%s -o cut.safetensors --resume", command);
    same_file(state, "whole.safetensors", "cut.safetensors");
    assert_int_equal(folder_count(state), files + 2); /* no checkpoint, nothing left aside */
}

/* Pictures: 40 steps of a tiny model an epoch, a checkpoint after each. */
static inline void survive_pictures(void **state, int epochs, int kills, unsigned longest) {
    char command[1000];
    snprintf(command, sizeof command,
             "image train shapes:640:5:16x16x1 --size 16 --dim 16 --heads 2 --head-dim 8 "
             "--memories 32 --steps 3 --occlude 6 --keep 1 --batch 16 --epochs %d --warmup 1 "
             "--crop random --quiet --threads 1 --save-every 0",
             epochs);
    survive_kills(state, command, kills, longest, 0);
}

#endif
