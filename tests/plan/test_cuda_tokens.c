/* Attention along lists in the tokens' own space on the CUDA backend, in bfloat16, against ref's
 * plan with queries and keys in double. ref in bfloat16 rounds the tokens; the kernels round M g
 * and the sums, too: three roundings for one. */
#include <stdio.h>

#include "plan/tokens_descent.h"

static void reads_tokens(const basin_plan *plan) {
    assert_int_equal(tokens_count(plan, "TOKENS_FORCE"), 2);
    assert_int_equal(tokens_count(plan, "TOKENS_REVERSE"), 2);
}

static void run(basin_tensor *result, const char *backend, const tokens_case *c, bool narrow) {
    BASIN_AT_EXIT(lab_close) lab l = lab_new(backend, 1);
    if (narrow) {
        lab_narrow(&l, BASIN_BF16);
    }
    tokens_run(result, &l, c, narrow ? BASIN_FUSE_AUTO : BASIN_FUSE_OFF,
               narrow && c->edges > 0 ? reads_tokens : NULL);
}

static void check_one(const tokens_case *c) {
    basin_tensor exact[TOKENS_RESULTS], found[TOKENS_RESULTS], again[TOKENS_RESULTS],
        rounded[TOKENS_RESULTS];
    run(exact, "ref", c, false);
    run(rounded, "ref", c, true);
    run(found, "cuda", c, true);
    run(again, "cuda", c, true);
    for (int i = 0; i < TOKENS_RESULTS; i++) {
        double error = lab_distance(&found[i], &exact[i]);
        double rounding = lab_distance(&rounded[i], &exact[i]);
        if (!(error <= 3 * rounding) && !(error <= 5e-3))
            fail_msg("%s, D %lld: %.2e from double, ref in bf16 is %.2e", tokens_what[i],
                     (long long)c->block.dim, error, rounding);
        if (lab_distance(&found[i], &again[i]) != 0) fail_msg("%s: other bits", tokens_what[i]);
        basin_tensor_free(&exact[i]), basin_tensor_free(&found[i]);
        basin_tensor_free(&rounded[i]), basin_tensor_free(&again[i]);
    }
}

static basin_block_config block_of(int64_t dim, int64_t heads) {
    return (basin_block_config){
        .dim = dim, .heads = heads, .head_dim = 64, .memories = 64, .learn_beta = true};
}

/* The hub has several pieces; 1,001 nodes are no multiple of anything. */
TEST(test_sizes) {
    check_one(&(tokens_case){301, 2000, 0, block_of(128, 3), false});
    check_one(&(tokens_case){1001, 3000, 900, block_of(64, 2), true});
    check_one(&(tokens_case){1001, 3000, 900, block_of(64, 3), false});
    check_one(&(tokens_case){210, 1500, 700, block_of(128, 4), false});
}

/* A graph without edges, whose list has no room for one, or without nodes. */
TEST(test_no_pairs) {
    check_one(&(tokens_case){301, 0, 0, block_of(128, 3), false});
    check_one(&(tokens_case){0, 0, 0, block_of(64, 2), false});
}

int main(void) {
    basin_backend *cuda;
    basin_error error = {0};
    if (basin_backend_open(&cuda, &(basin_compute){.backend = "cuda"}, &error)) {
        printf("no CUDA device: skipped (%s)\n", error.text);
        return 77;
    }
    basin_backend_close(cuda);
    return tests_run(NULL, NULL);
}
