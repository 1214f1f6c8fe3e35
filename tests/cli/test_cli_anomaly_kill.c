/* basin anomaly train, killed at random moments and resumed each time: ends with the bytes of a run
 * that was never cut, whichever way it trains and whatever was left to be chosen. */
#include "cli/accounts.h"
#include "cli/kill.h"

#define TRAIN                                                                                      \
    "anomaly train accounts.csv transfers.csv --blocks 1 --dim 16 --head-dim 8 --memories 16 "     \
    "--hidden 16 --members 2 --patience 0 --evaluate 5 --threads 1 --quiet --save-every 0 "

TEST_WITH(killed_on_the_full_graph, make_table, program_teardown) {
    survive_kills(state, TRAIN "--epochs 150 --hops 1 --scaling both+standard+quantile", 3, 100, 2);
}

TEST_WITH(killed_while_sampling, make_table, program_teardown) {
    survive_kills(state,
                  TRAIN "--epochs 80 --hops 0 --scaling standard --sampling neighbours --fraction "
                        "0.5 --batch 64",
                  2, 100, 2);
}

/* What validation chose before the kill is in the checkpoint, not chosen anew. */
TEST_WITH(killed_after_choosing, make_table, program_teardown) {
    const char *command = TRAIN "--epochs 300";
    run_ok(state, "%s -o whole.safetensors", command);
    for (unsigned time = 200; time <= 500; time += 300)
        if (!run_and_kill(state, command, time)) fail_msg("it had ended after %u ms", time);
    run_ok(state, "%s -o cut.safetensors --resume", command);
    same_file(state, "whole.safetensors", "cut.safetensors");
}

TEST_WITH(a_finished_run_is_left_alone, make_table, program_teardown) {
    const char *command = TRAIN "--epochs 3 --hops 0 --scaling bins";
    run_ok(state, "%s -o done.safetensors --resume", command);
    const program *p = run_ok(state, "%s -o done.safetensors --resume", command);
    assert_contains(p->out, "done.safetensors: already finished; nothing to resume");
}
