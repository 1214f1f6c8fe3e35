/* Over ranks: models of classes on a graph in parts, and samples of neighbours of a whole graph,
 * whose batches are cut into shards. One and two ranks write the same bytes. */
#include "program/parts/mpirun.h"

#define SIZE "--dim 16 --head-dim 8 --memories 16 --threads 1 --members 1 --patience 0 --quiet "
#define DATA "accounts.csv transfers.csv "
enum { LIMIT = 120 }; /* seconds */

TEST_WITH(classes_train_and_predict_as_one, make_table, program_teardown) {
    const char *train = "node train " DATA SIZE "--epochs 4 --hops 0 --smoothing 2 --parts 3 ";
    succeeded(run(state, "%s -o one.safetensors", train));
    succeeded(run(state, "node predict one.safetensors " DATA "--parts 3 -o one.csv"));
    if (ranks_absent()) skip();
    succeeded(run_parts(state, 2, LIMIT, "%s -o two.safetensors", train));
    same_file(state, "one.safetensors", "two.safetensors");
    succeeded(
        run_parts(state, 2, LIMIT, "node predict one.safetensors " DATA "--parts 3 -o two.csv"));
    same_file(state, "one.csv", "two.csv");
}

/* The loss over parts, its penalty included, is that of the whole graph. */
TEST_WITH(classes_in_parts_are_those_of_the_whole, make_table, program_teardown) {
    double loss[2];
    for (int i = 0; i < 2; i++) {
        const program *p =
            run(state,
                "node train " DATA SIZE "--epochs 3 --hops 0 --smoothing 2 --dropout 0 "
                "--input-dropout 0 --penalty 0.5 --parts %d --restart --json -o m.safetensors",
                i ? 3 : 1);
        succeeded(p);
        const char *found = strstr(p->out, "\"loss\": ");
        assert_non_null(found);
        loss[i] = strtod(found + strlen("\"loss\": "), NULL);
    }
    assert_true(loss[1] - loss[0] < 1e-5 && loss[0] - loss[1] < 1e-5);
}

#define SAMPLED                                                                                    \
    "anomaly train " DATA SIZE "--sampling neighbours --batch 20 --fraction 0.5 --fanout 4 "       \
    "--epochs 4 --evaluate 2 --hops 1 --scaling standard --trees 1 --dropout 0.2 "

TEST_WITH(samples_have_the_same_bits, make_table, program_teardown) {
    for (int ranks = 2; ranks <= 3; ranks++) { /* a teacher takes as long as the rest */
        const char *taught = ranks == 2 ? "" : "--no-teacher ";
        succeeded(run(state, SAMPLED "--shards 4 %s-o one.safetensors --restart", taught));
        if (ranks_absent()) skip();
        succeeded(
            run_parts(state, ranks, LIMIT, SAMPLED "%s-o more.safetensors --restart", taught));
        same_file(state, "one.safetensors", "more.safetensors");
    }
}

/* Nothing that was asked for goes unheard. */
TEST_WITH(what_does_not_go_together_is_said, make_table, program_teardown) {
    assert_error(
        run(state, "anomaly train " DATA SIZE "--shards 4 --sampling full -o x.safetensors"), 1,
        "shards is 4 and sampling full; needs sampling neighbours");
    if (ranks_absent()) skip();
    const program *p = run_parts(
        state, 2, LIMIT, "anomaly train " DATA SIZE "--parts 1 --sampling full -o x.safetensors");
    assert_int_equal(p->code, 1);
    assert_contains(p->err, "in 1 part over 2 ranks; needs parts for each of them");
}
