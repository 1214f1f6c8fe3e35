/* basin bench: both kinds run at a tiny shape and report what they promise. */
#include "program/program.h"

#define SIZES " --quiet --threads 2 --dim 12 --heads 2 --head-dim 4 --memories 8 --steps 2"
#define TINY " --rounds 2" SIZES

TEST(times_images) {
    static const char *const keys[] = {"forward", "training"};
    for (int backend = 0; backend < 2; backend++) {
        cJSON *tree =
            run_json(run(state, "bench --json --batch 2 --tokens 5 --patch 6 --backend %s" TINY,
                         backend ? "cpu" : "ref"));
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            char path[64];
            snprintf(path, sizeof path, "items.%s.median_s", keys[i]);
            assert_true(json_number(tree, path) > 0);
        }
        assert_int_equal(cJSON_GetArraySize(json_at(tree, "items.forward.seconds")), 2);
        assert_true(json_number(tree, "shape.tokens") == 5);
        assert_true(json_number(tree, "training_arena_bytes") > 0);
        assert_true(json_number(tree, "items.training.images_per_s") > 0);
    }
}

/* Bytes are whole numbers with all their digits, never 5.2056064e+08. */
TEST(times_one_item) {
    const program *p =
        run(state, "bench --json --batch 2 --tokens 5 --patch 6 --only forward" TINY);
    const char *at = strstr(p->out, "\"peak_resident_bytes\": ");
    assert_non_null(at);
    at += strlen("\"peak_resident_bytes\": ");
    size_t digits = strspn(at, "0123456789");
    assert_true(digits > 0 && at[digits] == '\n');
    assert_null(strstr(p->out, "\"training\""));
    p = run(state, "bench --batch 2 --tokens 5 --patch 6 --only backward" TINY);
    assert_int_equal(p->code, 2);
    assert_contains(p->err, "'backward' is not one of forward|training");
}

/* A forward pass has 1 / beta once for all runs; a training step updates beta. */
TEST(prints_calls) {
    const program *p =
        run_ok(state, "bench --calls --batch 2 --tokens 5 --patch 6 --only forward" SIZES);
    const char *hoisted = strstr(p->out, "* POINTWISE         [2] <- [2]; (1 / a)\n");
    assert_non_null(hoisted);
    assert_contains(hoisted, "  ATTENTION_FORCE ");
    p = run_ok(state, "bench --calls --batch 2 --tokens 5 --patch 6" SIZES);
    assert_contains(p->out, "  ATTENTION_REVERSE ");
    assert_contains(p->out, "  POINTWISE         [2] <- [2]; (1 / a)\n");
    assert_null(strstr(p->out, "* POINTWISE"));
}

TEST(times_graphs) {
    cJSON *tree = run_json(
        run(state, "bench --json --shape graph-small --nodes 30 --edges 100 --features 3" TINY));
    assert_true(json_number(tree, "shape.edges") > 50 && json_number(tree, "shape.edges") <= 100);
    assert_true(json_number(tree, "items.training.median_s") > 0);
    assert_true(json_number(tree, "items.forward.median_s") > 0);
    assert_true(json_number(tree, "items.training.edges_per_s") > 0);
    const program *p = run_ok(state, "bench --shape graph-small --nodes 30 --edges 100" TINY);
    assert_string_equal(p->err, "");
    assert_contains(p->out, "edges/s\n");
}

TEST(rejects_absurd_shapes) {
    assert_error(run(state, "bench --quiet --batch 100000000 --tokens 100000000"), 1,
                 "x 100000000 pairs, which are too many to count");
    assert_error(run(state, "bench --shape huge"), 2, "'huge' is not one of paper|");
    assert_error(run(state, "bench --rounds 0"), 2, "--rounds: 0 is too small");
}

int main(void) { return tests_run(folder_new, program_teardown); }
