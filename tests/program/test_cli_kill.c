/* basin anomaly train and graph train, killed at random moments and resumed each time: end with the
 * bytes of a run that was never cut, whichever way they train and whatever was left to be chosen.
 */
#include "program/accounts.h"
#include "program/kill.h"
#include "tasks/graphs/graph_world.h"

#define ANOMALY                                                                                    \
    "anomaly train accounts.csv transfers.csv --blocks 1 --dim 16 --head-dim 8 --memories 16 "     \
    "--hidden 16 --members 2 --patience 0 --evaluate 5 --threads 1 --quiet --save-every 0 "

TEST_WITH(killed_on_the_full_graph, make_table, program_teardown) {
    survive_kills(state, ANOMALY "--epochs 150 --hops 1 --scaling quantile", 3, 100, 2);
}

TEST_WITH(killed_while_sampling, make_table, program_teardown) {
    survive_kills(state,
                  ANOMALY
                  "--epochs 80 --hops 0 --scaling standard --sampling neighbours --fraction "
                  "0.5 --batch 64",
                  2, 100, 2);
}

/* What validation chose before the kill is in the checkpoint, not chosen anew. */
TEST_WITH(killed_after_choosing, make_table, program_teardown) {
    const char *command = ANOMALY "--epochs 300";
    run_ok(state, "%s -o whole.safetensors", command);
    for (unsigned time = 200; time <= 500; time += 300)
        if (!run_and_kill(state, command, time)) fail_msg("it had ended after %u ms", time);
    run_ok(state, "%s -o cut.safetensors --resume", command);
    same_file(state, "whole.safetensors", "cut.safetensors");
}

/* ---- graphs ---- */

#define GRAPH                                                                                      \
    "graph train set.safetensors --dim 16 --heads 2 --head-dim 8 --memories 16 --blocks 1 "        \
    "--hidden 8 --walks 4 --edge-walks 2 --threads 1 -q --save-every 0.02 "

static int make_set(void **state) {
    char path[PATH_TEXT];
    basin_graphset set;
    if (folder_new(state)) return -1;
    world_new(&set, BASIN_GRAPHS_CLASSES, 60, 4, NULL);
    assert_ok(basin_graphset_write(folder_path(path, state, "set.safetensors"), &set, &failure));
    basin_graphset_free(&set);
    return 0;
}

TEST_WITH(killed_again_and_again, make_set, program_teardown) {
    survive_kills(state, GRAPH "--batch 4 --epochs 200", 3, 120, 1);
}

TEST_WITH(killed_without_validation, make_set, program_teardown) {
    survive_kills(state, GRAPH "--batch 4 --epochs 200 --validation 0", 3, 120, 1);
}

/* A write that a kill cut short leaves a file aside, which the next run removes. */
TEST_WITH(nothing_is_left_aside, make_set, program_teardown) {
    char path[PATH_TEXT];
    static const char *const left[] = {"m.safetensors.tmp-1-0", "m.safetensors.checkpoint.tmp-1-0"};
    for (int i = 0; i < 2; i++)
        assert_int_equal(file_put(folder_path(path, state, left[i]), "x", 1), 0);
    run_ok(state, GRAPH "--epochs 1 -o m.safetensors");
    assert_int_equal(folder_count(state), 2);
}

/* ---- both ---- */

static void finish_twice(void **state, const char *command) {
    run_ok(state, "%s -o m.safetensors --resume", command);
    const program *p = run_ok(state, "%s -o m.safetensors --resume", command);
    assert_contains(p->out, "m.safetensors: already finished; nothing to resume");
}

TEST_WITH(a_finished_detector_is_left_alone, make_table, program_teardown) {
    finish_twice(state, ANOMALY "--epochs 3 --hops 0 --scaling quantile");
}

TEST_WITH(a_finished_model_is_left_alone, make_set, program_teardown) {
    finish_twice(state, GRAPH "--epochs 1");
}
