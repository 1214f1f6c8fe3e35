/* Ranks that are killed, asked to end, stopped for a while, or whose disk is full: nothing is lost
 * but the steps since the checkpoint, and nothing hangs. */
#include "program/ranks_work.h"

enum { CASES = 20 };

static unsigned draw(basin_random *random, unsigned below) {
    return (unsigned)basin_random_below(random, below);
}

/* One random case: as `n` ranks one of which is killed, then as others until one lot ends it. */
static void survive(void **state, basin_random *random, int number) {
    static const int counts[] = {1, 2, 3, 4, 8};
    bool images = draw(random, 2);
    const char *work = images ? IMAGES(12) : GRAPHS(60);
    unsigned shards = images ? 8 : 8 + draw(random, 6);
    char line[1500];
    const program *p =
        run(state, "%s --shards %u --seed %d -o whole.safetensors", work, shards, number);
    if (p->code) fail_msg("case %d: %s", number, p->err);
    int kills = 0;
    for (int time = 0; time < 2; time++) {
        int n = counts[1 + draw(random, 4)], victim = (int)draw(random, (unsigned)n);
        snprintf(line, sizeof line,
                 "%s --shards %u --seed %d -o cut.safetensors --save-every 0 --resume", work,
                 shards, number);
        double began = seconds_now();
        p = run_and_kill_rank(state, n, victim, draw(random, 1500), "cut.safetensors", line);
        kills += p->code != 0;
        if (seconds_now() - began > 90) fail_msg("case %d: %d ranks hang", number, n);
    }
    int last = counts[draw(random, 5)];
    p = last == 1 ? run(state, "%s", line) : run_ranks(state, last, line);
    if (p->code) fail_msg("case %d, %d kills, %d ranks: %s", number, kills, last, p->err);
    same_file(state, "whole.safetensors", "cut.safetensors");
    printf("case %d: %s, %u shards, %d kills, ended by %d\n", number, images ? "images" : "graphs",
           shards, kills, last);
}

TEST_WITH(kills_at_random, world_folder, program_teardown) {
    basin_random random = basin_random_start(2026, 11, 0);
    char line[600];
    for (int i = 0; i < CASES; i++) {
        survive(state, &random, i);
        snprintf(line, sizeof line, "cd '%s' && rm -f whole* cut*", (const char *)*state);
        assert_int_equal(system(line), 0);
    }
}

/* The launcher ends the others. */
TEST_WITH(every_rank_is_missed, world_folder, program_teardown) {
    for (int victim = 0; victim < 3; victim++) {
        double began = seconds_now();
        const program *p =
            run_and_kill_rank(state, 3, victim, 200, "m.safetensors",
                              IMAGES(9000) "-o m.safetensors --restart --save-every 0");
        assert_int_not_equal(p->code, 0);
        assert_int_equal(basin_lines(p->err), 0);
        assert_true(seconds_now() - began < 30);
    }
}

/* A scheduler's signal to one rank, once it trains: all save and end with the code that asks to be
 * run again. */
TEST_WITH(schedulers_are_obeyed, world_folder, program_teardown) {
    static const char *const signals[] = {"TERM", "USR1"};
    const program *p = run_ok(state, IMAGES(60) "--shards 8 -o whole.safetensors");
    for (int i = 0; i < 2; i++) {
        char words[600];
        snprintf(words, sizeof words, IMAGES(60) "-o m.safetensors --resume --log %d.log", i);
        p = run_mpi(state,
                    "-n 1 $PROGRAM %s : -n 1 sh -c '(while [ ! -s %d.log ]; do sleep 0.1; done; "
                    "kill -%s $$) & exec $PROGRAM %s'",
                    words, i, signals[i], words);
        assert_int_equal(p->code, 75);
        assert_contains(p->err, "basin: interrupted at step ");
        assert_int_equal(basin_lines(p->err), 1);
    }
    p = run_ranks(state, 3, IMAGES(60) "-o m.safetensors --resume");
    succeeded(p);
    same_file(state, "whole.safetensors", "m.safetensors");
}

/* A file system of a few blocks, which rank 0 alone sees. */
TEST_WITH(a_full_disk_ends_all, world_folder, program_teardown) {
    if (system("unshare -m true 2>/dev/null") != 0) {
        print_message("no mounts here\n");
        skip();
    }
    const program *p = run_mpi(
        state,
        "-n 1 unshare -m sh -c 'mkdir small; mount -t tmpfs -o size=16k none small && exec "
        "$PROGRAM " IMAGES(900) "-o small/m.safetensors --save-every 0.2' : -n 1 $PROGRAM " IMAGES(
            900) "-o small/m.safetensors --save-every 0.2");
    assert_int_equal(p->code, 1);
    assert_contains(p->err, "basin: small/m.safetensors.checkpoint");
    assert_contains(p->err, "No space left on device");
    assert_int_equal(basin_lines(p->err), 1);
}

/* Stopped for longer than it takes to notice a loss. */
TEST_WITH(a_slow_rank_is_waited_for, world_folder, program_teardown) {
    const program *p = run_ok(state, IMAGES(20) "--shards 8 -o whole.safetensors");
    p = run_mpi(state, "-n 1 $PROGRAM " IMAGES(20) "-o m.safetensors : -n 1 sh -c '(sleep 1; kill "
                                                   "-STOP $$; sleep 15; kill -CONT $$) & exec "
                                                   "$PROGRAM " IMAGES(20) "-o m.safetensors'");
    succeeded(p);
    same_file(state, "whole.safetensors", "m.safetensors");
}

int main(void) {
    int absent = ranks_absent();
    return absent ? absent : tests_run(NULL, NULL);
}
