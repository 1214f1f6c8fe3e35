/* Training on pictures that is killed without warning, again and again, and resumed. */
#ifndef TESTS_CLI_IMAGE_KILL_H
#define TESTS_CLI_IMAGE_KILL_H

#include "cli/kill.h"

/* 40 steps of a tiny model an epoch, a checkpoint after each. */
static inline void survive(void **state, int epochs, int kills, unsigned longest) {
    char command[1000];
    snprintf(command, sizeof command,
             "image train shapes:640:5:16x16x1 --size 16 --dim 16 --heads 2 --head-dim 8 "
             "--memories 32 --steps 3 --occlude 6 --keep 1 --batch 16 --epochs %d --warmup 1 "
             "--crop random --quiet --threads 1 --save-every 0",
             epochs);
    survive_kills(state, command, kills, longest, 0);
}

#endif
