/* basin anomaly train and graph train, killed at random moments and resumed each time: end with the
 * bytes of a run that was never cut, whichever way they train and whatever was left to be chosen.
 */
#include "program/kill_work.h"

TEST_WITH(killed_on_the_full_graph, make_table, program_teardown) {
    survive_kills(state, ANOMALY FEW_TREES "--epochs 24 --hops 1 --scaling quantile", 3, 2);
}

/* What validation chose before the kill is in the checkpoint, not chosen anew. */
TEST_WITH(killed_after_choosing, make_table, program_teardown) {
    survive_kills(state, ANOMALY FEW_TREES "--epochs 40", 2, 2);
}

/* ---- graphs ---- */

TEST_WITH(killed_again_and_again, world_folder, program_teardown) {
    survive_kills(state, GRAPH "--batch 4 --epochs 100", 3, 1);
}

/* A write that a kill cut short leaves a file aside, which the next run removes. */
TEST_WITH(nothing_is_left_aside, world_folder, program_teardown) {
    static const char *const left[] = {"m.safetensors.tmp-1-0", "m.safetensors.checkpoint.tmp-1-0"};
    for (int i = 0; i < 2; i++) folder_put(state, left[i], "x");
    run_ok(state, GRAPH "--epochs 1 -o m.safetensors");
    assert_int_equal(folder_count(state), 2);
}

/* ---- both ---- */

static void finish_twice(void **state, const char *command) {
    run_ok(state, "%s -o m.safetensors --resume", command);
    const program *p = run_ok(state, "%s -o m.safetensors --resume", command);
    assert_contains(p->out, "m.safetensors: already finished; nothing to resume");
    p = run_ok(state, "%s -o m.safetensors --resume --json", command);
    assert_string_equal(p->out, ""); /* where a program reads JSON */
    assert_contains(p->err, "m.safetensors: already finished; nothing to resume");
    assert_null(strstr(p->err, "was trained"));
    p = run_ok(state, "%s -o m.safetensors --resume --seed 9", command);
    assert_contains(p->err, "m.safetensors was trained with seed ");
    assert_contains(p->err, ", not 9; --restart trains anew");
}

TEST_WITH(a_finished_detector_is_left_alone, make_table, program_teardown) {
    finish_twice(state, ANOMALY FEW_TREES "--epochs 3 --hops 0 --scaling quantile");
}

TEST_WITH(a_finished_model_is_left_alone, world_folder, program_teardown) {
    finish_twice(state, GRAPH "--epochs 1");
}
