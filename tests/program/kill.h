/* A training run that is killed without warning, again and again, and resumed. */
#ifndef TESTS_CLI_KILL_H
#define TESTS_CLI_KILL_H

#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>

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

static inline int lines_of(void **state, const char *name) {
    static char text[1 << 18];
    int lines = 0;
    slurp(text, sizeof text, folder_path(state, name));
    for (const char *c = text; *c; c++) lines += *c == '\n';
    return lines;
}

/* Whether the file is another than `last`, which it then becomes. */
static inline bool is_new(void **state, const char *name, struct stat *last) {
    struct stat now;
    bool is = !stat(folder_path(state, name), &now) &&
              (now.st_ino != last->st_ino || now.st_mtim.tv_nsec != last->st_mtim.tv_nsec);
    if (is) *last = now;
    return is;
}

/* Runs the command with --resume, and kills it some milliseconds after it has written a checkpoint
 * and its log has so many lines; whether it was still running. */
static inline bool run_and_kill(void **state, const char *command, int lines, unsigned later) {
    char words[5000];
    struct stat checkpoint = {0};
    int status;
    bool saved = false;
    snprintf(words, sizeof words,
             "cd '%s' && exec %s %s -o cut.safetensors --log cut.jsonl --resume >.out 2>.err "
             "</dev/null",
             (const char *)*state, BASIN_PROGRAM, command);
    is_new(state, "cut.safetensors.checkpoint", &checkpoint);
    pid_t pid = fork();
    if (!pid) _exit(execl("/bin/sh", "sh", "-c", words, (char *)NULL));
    while (!saved || lines_of(state, "cut.jsonl") < lines) {
        saved |= is_new(state, "cut.safetensors.checkpoint", &checkpoint);
        if (waitpid(pid, &status, WNOHANG)) return false;
        usleep(1000);
    }
    usleep(1000 * later);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status);
}

/* Kills it `kills` times, at equal distances of the log, then lets it end: as the run that was
 * never cut, with nothing left aside of the `files` there were. */
static inline void survive_kills(void **state, const char *command, int kills, int files) {
    basin_random random = basin_random_start(2026, 0, 0);
    run_ok(state, "%s -o whole.safetensors --log whole.jsonl", command);
    int lines = lines_of(state, "whole.jsonl");
    for (int i = 1; i <= kills; i++) {
        unsigned later = (unsigned)basin_random_below(&random, 20);
        if (!run_and_kill(state, command, lines * i / (kills + 1), later))
            fail_msg("kill %d came too late: the run had ended", i);
    }
    run_ok(state, "%s -o cut.safetensors --log cut.jsonl --resume", command);
    same_file(state, "whole.safetensors", "cut.safetensors");
    assert_int_equal(folder_count(state), files + 4); /* no checkpoint, nothing left aside */
}

/* Pictures: 40 steps of a tiny model an epoch, a checkpoint after each. */
static inline void survive_pictures(void **state, int epochs, int kills) {
    char command[1000];
    snprintf(command, sizeof command,
             "image train shapes:640:5:16x16x1 --size 16 --dim 16 --heads 2 --head-dim 8 "
             "--memories 32 --steps 3 --occlude 6 --keep 1 --batch 16 --epochs %d --warmup 1 "
             "--crop random --quiet --threads 1 --save-every 0",
             epochs);
    survive_kills(state, command, kills, 0);
}

#endif
