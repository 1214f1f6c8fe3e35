/* Joint products: a descent and its gradients through joint matrices, computed by ref without any
 * rounding, are those of the plain plan; and the products that should have become one have. */
#include <string.h>

#include "base/info.h"
#include "basin/energy.h"
#include "engine/backend/kernel.h"
#include "support/lab.h"

enum { BATCH = 2, TOKENS = 7, DIM = 8, STEPS = 3, WEIGHTS = 3, OUTPUTS = 2 + 2 * WEIGHTS };

static int64_t tokens_each = TOKENS; /* of a member of the batch */

/* The end of a descent, the gradient of where it began, and of each weight the sum of squares of
 * its gradient and the weight after a step along it: two readers, so that no program takes the
 * gradient's product over. */
typedef struct trial {
    lab l;
    basin_expr output[OUTPUTS];
    int outputs;
    basin_plan *plan;
    basin_tensor value[OUTPUTS];
} trial;

/* All gradients come of one sweep, as in training. */
static void add_gradients(trial *t, basin_expr loss, basin_expr tokens,
                          const basin_expr all[WEIGHTS]) {
    basin_expr weight[WEIGHTS + 1], gradient[WEIGHTS + 1];
    int weights = 0;
    for (int i = 0; i < WEIGHTS; i++)
        if (all[i]) weight[weights++] = all[i];
    weight[weights] = tokens;
    basin_vjp(gradient, loss, NULL, weight, weights + 1);
    t->output[t->outputs++] = gradient[weights];
    for (int i = 0; i < weights; i++) {
        t->output[t->outputs++] = basin_sum_all(basin_square(gradient[i]));
        t->output[t->outputs++] = basin_sub(weight[i], gradient[i]);
    }
}

typedef enum way { KEEP, RECOMPUTE, FORWARD } way; /* FORWARD: no gradients */

/* Returns the tokens that descents begin with. */
static basin_expr open_trial(trial *t, bool narrow) {
    double x[BATCH * TOKENS * DIM];
    *t = (trial){0};
    lab_open(&t->l, "ref", 1);
    if (narrow) {
        lab_narrow(&t->l, BASIN_BF16);
    }
    for (int i = 0; i < BATCH * TOKENS * DIM; i++)
        x[i] = 2 * basin_random_uniform_at(7, 1, (uint64_t)i) - 1;
    return lab_input(&t->l, "x", BASIN_SHAPE(BATCH, tokens_each, DIM), x);
}

/* The plan and what it computes; weights that are not there are NULL. */
static void run_trial(trial *t, basin_expr start, basin_expr end, way how,
                      const basin_expr weight[WEIGHTS]) {
    t->output[t->outputs++] = end;
    if (how != FORWARD) add_gradients(t, basin_sum_all(basin_square(end)), start, weight);
    t->plan = lab_plan(&t->l, t->output, t->outputs);
    t->l.backend->narrow = false; /* ref rounds nothing from here on */
    lab_run(t->plan);
    for (int i = 0; i < t->outputs; i++) t->value[i] = lab_read(t->plan, t->output[i]);
}

/* Of two blocks one after the other where there are `blocks` of them. */
static void make_trial(trial *t, const basin_block_config *config, int blocks, way how,
                       bool narrow) {
    basin_block block[2];
    const char *name[2] = {"a.", "b."};
    basin_pattern pattern = BASIN_OTHER_PAIRS;
    basin_expr start = open_trial(t, narrow), tokens = start;
    for (int i = 0; i < blocks; i++)
        assert_int_equal(basin_block_declare(&block[i], &t->l.params, name[i], config), BASIN_OK);
    lab_fill(&t->l, 9, 0.5);
    for (int i = 0; i < blocks; i++) {
        basin_block_bound bound = {.block = &block[i], .pattern = &pattern};
        basin_energy energy = basin_block_energy(&bound);
        basin_descent_spec spec = {.steps = STEPS, .alpha = 0.1, .recompute = how == RECOMPUTE};
        tokens = basin_descend(&energy, tokens, &spec, NULL);
    }
    const basin_expr weight[WEIGHTS] = {block[0].wq, block[0].wk, block[0].xi};
    run_trial(t, start, tokens, how, weight);
}

static basin_expr memories_of(const void *xi, basin_expr g) {
    return basin_energy_hopfield(g, *(const basin_expr *)xi, BASIN_HOPFIELD_RELU, 0);
}

/* Of an energy of two sets of so many memories. */
static void make_memories(trial *t, int64_t memories, bool narrow) {
    basin_expr start = open_trial(t, narrow);
    const basin_expr xi[WEIGHTS] = {lab_state(&t->l, "xi0", BASIN_SHAPE(memories, DIM)),
                                    lab_state(&t->l, "xi1", BASIN_SHAPE(memories, DIM))};
    basin_energy energy = {
        BASIN_TERMS({"first", memories_of, &xi[0]}, {"second", memories_of, &xi[1]})};
    basin_descent_spec spec = {.steps = STEPS, .alpha = 0.1};
    lab_fill(&t->l, 9, 0.5);
    run_trial(t, start, basin_descend(&energy, start, &spec, NULL), KEEP, xi);
}

static void free_trial(trial *t) {
    for (int i = 0; i < t->outputs; i++) basin_tensor_free(&t->value[i]);
    basin_plan_free(t->plan);
    lab_close(&t->l);
}

/* Calls whose text has all of these in it. */
static int count_calls(const basin_plan *plan, const char *begin, const char *has) {
    int found = 0;
    char text[1000];
    for (int i = 0; i < basin_plan_stats_of(plan).calls; i++) {
        basin_plan_describe(plan, i, text, sizeof text);
        found += !strncmp(text, begin, strlen(begin)) && strstr(text, has);
    }
    return found;
}

/* Against the plan of ref as it is without narrow storage, one call an operation. */
static void compare(trial *joint, trial *plain, void (*look)(const basin_plan *plan)) {
    for (int i = 0; i < joint->outputs; i++)
        lab_assert_near(&joint->value[i], &plain->value[i], 1e-12, "a joint plan");
    assert_int_equal(count_calls(plain->plan, "", " of "), 0);
    look(joint->plan);
    free_trial(joint);
    free_trial(plain);
}

static void check_one(const basin_block_config *config, int blocks, way how,
                      void (*look)(const basin_plan *plan)) {
    trial joint, plain;
    make_trial(&joint, config, blocks, how, true);
    make_trial(&plain, config, blocks, how, false);
    compare(&joint, &plain, look);
}

static void look_all(const basin_plan *plan) {
    /* heads of 2 x 16 and 128 memories: 192 rows of weights; 14 tokens of 8 */
    const char *update = "MATMUL            [14, 8] <- bf16 [14, 192], bf16 [8, 192]'";
    assert_int_equal(count_calls(plan, "PERMUTE           bf16 [8, 192] <- bf16 [192, 8]", ""), 1);
    assert_int_equal(count_calls(plan, update, "(a + (0.1 * product))"), STEPS);
    const char *reading = "MATMUL            bf16 [14, 64] <- bf16 [14, 8], bf16 [64, 8]'";
    assert_int_equal(count_calls(plan, reading, ""), 2 * STEPS);
    const char *cotangent = "MATMUL            bf16 [14, 8] <- bf16 [14, 192], bf16 [192, 8]";
    assert_int_equal(count_calls(plan, cotangent, ""), STEPS);
    const char *gradient = "MATMUL            [192, 8] <- bf16 [14, 192]', bf16 [14, 8]";
    assert_int_equal(count_calls(plan, gradient, ""), 2 * STEPS);
    assert_int_equal(count_calls(plan, "ATTENTION_FORCE", "of 192"), STEPS);
}

TEST(test_all_weights) {
    check_one(&(basin_block_config){.dim = DIM, .heads = 2, .head_dim = 16, .memories = 128}, 1,
              KEEP, look_all);
}

/* The gradient of a large weight stays alone, those of the others are one: with 131,200 memories.
 */
static void look_large(const basin_plan *plan) {
    const char *heads = "MATMUL            [64, 8] <- bf16 [4, 64] of 131264', bf16 [4, 8]";
    assert_int_equal(count_calls(plan, heads, ""), 2 * STEPS);
    const char *memories =
        "MATMUL            [131200, 8] <- bf16 [4, 131200] of 131264', bf16 [4, 8]";
    assert_int_equal(count_calls(plan, memories, ""), 2 * STEPS);
}

static int take_few_tokens(void **state) { return (void)state, tokens_each = 2, 0; }
static int take_all_tokens(void **state) { return (void)state, tokens_each = TOKENS, 0; }

TEST_WITH(test_large_gradients, take_few_tokens, take_all_tokens) {
    check_one(&(basin_block_config){.dim = DIM, .heads = 2, .head_dim = 16, .memories = 131200}, 1,
              KEEP, look_large);
}

/* Products of that plan that are the gradients of all weights, the large one among them. Nothing is
 * run. */
static int joint_gradients(basin_dtype dtype) {
    trial t;
    basin_block block;
    basin_pattern pattern = BASIN_OTHER_PAIRS;
    basin_expr start = open_trial(&t, false);
    lab_narrow(&t.l, dtype);
    basin_block_config config = {.dim = DIM, .heads = 2, .head_dim = 16, .memories = 131200};
    assert_int_equal(basin_block_declare(&block, &t.l.params, "", &config), BASIN_OK);
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = {.steps = 1, .alpha = 0.1};
    basin_expr end = basin_descend(&energy, start, &spec, NULL);
    const basin_expr weight[WEIGHTS] = {block.wq, block.wk, block.xi};
    add_gradients(&t, basin_sum_all(basin_square(end)), start, weight);
    t.plan = lab_plan(&t.l, t.output, t.outputs);
    int found = count_calls(t.plan, "MATMUL            [131264, 8] <-", "");
    t.outputs = 0;
    free_trial(&t);
    return found;
}

/* A large gradient fills a device by itself; one of bytes, which is over sooner, does not. */
TEST(test_large_gradients_of_bytes) {
    assert_int_equal(joint_gradients(BASIN_BF16), 0);
    assert_int_equal(joint_gradients(BASIN_F8_E4M3), 2);
}

/* Without a reverse there are no bits, and the memories are joined, too. */
static void look_forward(const basin_plan *plan) {
    const char *update = "MATMUL            [14, 8] <- bf16 [14, 192], bf16 [8, 192]'";
    assert_int_equal(count_calls(plan, update, "(a + (0.1 * product))"), STEPS);
    assert_int_equal(count_calls(plan, "MATMUL            bf16 [14, 128] of 192 <-", "relu"),
                     STEPS);
}

TEST(test_forward) {
    check_one(&(basin_block_config){.dim = DIM, .heads = 2, .head_dim = 16, .memories = 128}, 1,
              FORWARD, look_forward);
}

/* Where a ReLU leaves no bits, its reverse reads the memories densely: they stay apart. */
static void look_heads(const basin_plan *plan) {
    assert_int_equal(count_calls(plan, "MATMUL            [14, 8] <- bf16 [14, 64], bf16 [8, 64]'",
                                 "(a + (0.1 * product))"),
                     STEPS);
    assert_int_equal(count_calls(plan, "MATMUL            bf16 [14, 96] <-", ""), 2 * STEPS);
}

TEST(test_heads_alone) {
    check_one(&(basin_block_config){.dim = DIM, .heads = 2, .head_dim = 16, .memories = 96}, 1,
              KEEP, look_heads);
}

/* A product masked by numbers writes densely. */
static void look_numbers(const basin_plan *plan) {
    assert_int_equal(count_calls(plan, "MATMUL            bf16 [14, 96] <-", "step("), 2 * STEPS);
    assert_int_equal(count_calls(plan, "MATMUL            bf16 [14, 96] of", ""), 0);
}

/* One masked by bits may lie apart; those of the last step are added to a multiple of the tokens,
 * which is no chain. */
static void look_bits(const basin_plan *plan) {
    assert_int_equal(count_calls(plan, "MATMUL            bf16 [14, 128] of 256 <-", "step("),
                     2 * (STEPS - 1));
}

TEST(test_masks) {
    trial joint, plain;
    make_memories(&joint, 96, true);
    make_memories(&plain, 96, false);
    compare(&joint, &plain, look_numbers);
    make_memories(&joint, 128, true);
    make_memories(&plain, 128, false);
    compare(&joint, &plain, look_bits);
}

static void look_none(const basin_plan *plan) {
    assert_int_equal(count_calls(plan, "", " of "), 0);
}

TEST(test_nothing_to_join) {
    check_one(&(basin_block_config){.dim = DIM, .no_attention = true, .memories = 128}, 1, KEEP,
              look_none);
    check_one(&(basin_block_config){.dim = DIM, .heads = 2, .head_dim = 4, .memories = 16}, 1, KEEP,
              look_none);
}

static void look_away(const basin_plan *plan) {
    assert_true(count_calls(plan, "ATTENTION_FORCE", " of ") > 0);
}

TEST(test_other_blocks) {
    basin_block_config config = {.dim = DIM, .heads = 4, .head_dim = 8, .memories = 128};
    check_one(&config, 2, KEEP, look_away);
    check_one(&config, 1, RECOMPUTE, look_away);
    check_one(&config, 2, RECOMPUTE, look_away);
    config.learn_beta = true;
    check_one(&config, 1, KEEP, look_away);
    config.hopfield = BASIN_HOPFIELD_SOFTMAX;
    check_one(&config, 1, KEEP, look_away);
    config.hopfield = BASIN_HOPFIELD_POWER;
    config.power = 3;
    check_one(&config, 2, KEEP, look_away);
    config.no_hopfield = true;
    check_one(&config, 2, RECOMPUTE, look_away);
}
