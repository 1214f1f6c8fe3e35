/* A training run that is killed without warning, again and again, and resumed. */
#ifndef TESTS_CLI_IMAGE_KILL_H
#define TESTS_CLI_IMAGE_KILL_H

#include <stdbool.h>

#include "basin/random.h"
#include "cli/program.h"

static inline void same_file(void **state, const char *a, const char *b) {
    char line[300], path[PATH_TEXT];
    snprintf(line, sizeof line, "cmp -s '%s/%s' '%s/%s'", (const char *)*state, a,
             (const char *)*state, b);
    if (system(line) != 0) fail_msg("%s and %s differ", folder_path(path, state, a), b);
}

/* The command's arguments: 40 steps of a tiny model an epoch, a checkpoint after each. */
#define KILL_TRAIN                                                                                 \
    "image train shapes:640:5:16x16x1 --size 16 --dim 16 --heads 2 --head-dim 8 --memories 32 "    \
    "--steps 3 --occlude 6 --keep 1 --batch 16 --epochs %d --warmup 1 --crop random --quiet "      \
    "--threads 1 --save-every 0 -o %s"

/* Runs it with --resume and kills it after so many milliseconds; whether it was still running. */
static inline bool run_and_kill(void **state, int epochs, const char *name, unsigned milliseconds) {
    char line[4000];
    snprintf(line, sizeof line,
             "cd '%s' && timeout -s KILL %u.%03u %s " KILL_TRAIN " --resume >.out 2>.err",
             (const char *)*state, milliseconds / 1000, milliseconds % 1000, BASIN_PROGRAM, epochs,
             name);
    int status = system(line);
    return WIFEXITED(status) && WEXITSTATUS(status) == 128 + 9;
}

/* Kills it `kills` times, each time after up to `longest` milliseconds, then lets it end. */
static inline void survive(void **state, int epochs, int kills, unsigned longest) {
    basin_random random = basin_random_start(2026, 0, 0);
    const program *p = run(state, KILL_TRAIN, epochs, "whole.safetensors");
    if (p->code) fail_msg("%s", p->err);
    for (int i = 0; i < kills; i++) {
        unsigned time = 20 + (unsigned)basin_random_below(&random, longest);
        if (!run_and_kill(state, epochs, "cut.safetensors", time))
            fail_msg("kill %d came too late: the run had ended", i + 1);
    }
    p = run(state, KILL_TRAIN " --resume", epochs, "cut.safetensors");
    if (p->code) fail_msg("%s", p->err);
    same_file(state, "whole.safetensors", "cut.safetensors");
    assert_int_equal(folder_count(state), 2); /* no checkpoint, nothing left aside */
}

#endif
