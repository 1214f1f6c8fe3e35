/* Detectors on parts, or on samples of a whole graph, killed at random moments and resumed with
 * another number of ranks: random models and cuts end with the bytes of a run in one process that
 * was never cut. */
#include "program/parts/mpirun.h"

enum { CASES = 7, KILLS = 3, LIMIT = 280, PARTS = 8 };

/* What a case trains, of the settings that touch what ranks share. */
static void draw_command(char *text, size_t size, const char *data, basin_random *random) {
    static const char *const scaling[] = {"standard", "quantile"};
    static const char *const arch[] = {
        "--heads 2 --head-dim 8 --memories 16", "--heads 1 --head-dim 16 --memories 8 --steps 2",
        "--heads 2 --head-dim 4 --memories 16", "--self-loops add --head-dim 8 --memories 16"};
    snprintf(
        text, size,
        "anomaly train %s --dim 16 --hidden 16 --blocks %d %s --scaling %s --hops %d "
        "--dropout %.1f --members %d --seed %d --trees %d --epochs 60 --patience 0 --evaluate 7 "
        "--threads 1 --quiet --save-every 0",
        data, 1 + (int)basin_random_below(random, 2), arch[basin_random_below(random, 4)],
        scaling[basin_random_below(random, 2)], (int)basin_random_below(random, 3),
        0.1 * (double)basin_random_below(random, 4), 1 + (int)basin_random_below(random, 2),
        (int)basin_random_below(random, 1000), 4 * (int)basin_random_below(random, 2));
}

static void run_case(void **state, int number) {
    static const int ranks[] = {1, 2, 3, 4, 8};
    static const char *const method[] = {"range", "stream"};
    basin_random random = basin_random_start(2026, (uint64_t)number, 0);
    char command[1000], folder[PATH_TEXT + 40];
    bool sampled = number % 3 == 2;
    draw_command(command, sizeof command,
                 sampled ? "accounts.csv transfers.csv --sampling neighbours --batch 24 --fraction "
                           "0.6 --fanout 4 --shards 8"
                         : "parts",
                 &random);
    snprintf(folder, sizeof folder, "cd '%s' && rm -rf parts *.safetensors*", (const char *)*state);
    assert_int_equal(system(folder), 0);
    succeeded(run(state, "data part accounts.csv transfers.csv -n %d --method %s -o parts --quiet",
                  PARTS, method[basin_random_below(&random, 2)]));
    succeeded(run(state, "%s -o whole.safetensors", command));
    for (int i = 0; i < KILLS; i++)
        run_parts(state, ranks[basin_random_below(&random, 5)],
                  0.3 + 0.001 * (double)basin_random_below(&random, 1500),
                  "%s --resume -o cut.safetensors", command);
    succeeded(run_parts(state, ranks[basin_random_below(&random, 5)], LIMIT,
                        "%s --resume -o cut.safetensors", command));
    same_file(state, "whole.safetensors", "cut.safetensors");
}

TEST_WITH(random_cases, make_table, remove_parts) {
    if (ranks_absent()) skip();
    for (int i = 0; i < CASES; i++) run_case(state, i);
}
