/* More ways to train that are killed and resumed, as in test_cli_kill.c. */
#include "program/kill_work.h"

TEST_WITH(killed_while_sampling, make_table, program_teardown) {
    survive_kills(state,
                  ANOMALY
                  "--epochs 80 --hops 0 --scaling standard --sampling neighbours --fraction "
                  "0.5 --batch 64",
                  2, 2);
}

TEST_WITH(killed_without_validation, world_folder, program_teardown) {
    survive_kills(state, GRAPH "--batch 4 --epochs 200 --validation 0", 3, 1);
}
