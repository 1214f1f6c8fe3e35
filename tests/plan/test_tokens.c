/* Attention along lists in the tokens' own space: plans that read tokens compute what plans with
 * queries and keys do, whatever is recomputed; where that is no gain they stay as they were. */
#include "plan/tokens_descent.h"

static const basin_block_config wide = {
    .dim = 8, .heads = 3, .head_dim = 5, .memories = 7, .learn_beta = true};

static void reads_tokens(const basin_plan *plan) {
    assert_int_equal(tokens_count(plan, "TOKENS_FORCE"), 2);
    assert_int_equal(tokens_count(plan, "TOKENS_REVERSE"), 2);
    assert_int_equal(tokens_count(plan, "ATTENTION"), 0);
}

static void reads_heads(const basin_plan *plan) {
    assert_int_equal(tokens_count(plan, "TOKENS"), 0);
    assert_int_equal(tokens_count(plan, "ATTENTION_REVERSE"), 2);
}

static void compare(const tokens_case *c, void (*made)(const basin_plan *plan)) {
    basin_tensor plain[TOKENS_RESULTS], fused[TOKENS_RESULTS];
    lab l = lab_new("ref", 1);
    tokens_run(plain, &l, c, BASIN_FUSE_OFF, reads_heads);
    lab_close(&l);
    lab_open(&l, "ref", 1);
    tokens_run(fused, &l, c, BASIN_FUSE_ON, made);
    lab_close(&l);
    tokens_compare(fused, plain, 1e-11);
}

TEST(test_same_numbers) { compare(&(tokens_case){70, 150, 40, wide, false}, reads_tokens); }

TEST(test_recomputed) {
    lab l;
    basin_tensor plain[TOKENS_RESULTS], fused[TOKENS_RESULTS];
    tokens_case kept = {70, 150, 40, wide, false}, again = {70, 150, 40, wide, true};
    lab_open(&l, "ref", 1);
    tokens_run(plain, &l, &kept, BASIN_FUSE_OFF, reads_heads);
    lab_close(&l);
    lab_open(&l, "ref", 1);
    tokens_run(fused, &l, &again, BASIN_FUSE_ON, reads_tokens);
    lab_close(&l);
    tokens_compare(fused, plain, 1e-11);
}

/* A graph without edges, whose list has no room for one, or without nodes. */
TEST(test_no_pairs) {
    compare(&(tokens_case){70, 0, 0, wide, false}, reads_heads);
    compare(&(tokens_case){0, 0, 0, wide, false}, reads_heads);
}

/* Heads that are together no wider than the tokens stay. */
TEST(test_narrow_heads) {
    tokens_case c = {70, 150, 40, wide, false};
    c.block.head_dim = 2;
    compare(&c, reads_heads);
}

/* Rounded to bfloat16, as devices store tokens. */
TEST(test_narrow) {
    lab l;
    basin_tensor exact[TOKENS_RESULTS], narrow[TOKENS_RESULTS];
    tokens_case c = {70, 150, 40, wide, false};
    c.block.dim = 64, c.block.head_dim = 24;
    lab_open(&l, "ref", 1);
    tokens_run(exact, &l, &c, BASIN_FUSE_OFF, NULL);
    lab_close(&l);
    lab_open(&l, "ref", 1);
    lab_narrow(&l, BASIN_BF16);
    tokens_run(narrow, &l, &c, BASIN_FUSE_AUTO, reads_tokens);
    lab_close(&l);
    tokens_compare(narrow, exact, 2e-2);
}
