/* Batches that run in parts: a descent is cut where pictures do not meet, every part goes its own
 * pace, and the bits are those of one thread, which cuts nothing. */
#include <string.h>

#include "base/info.h"
#include "basin/energy.h"
#include "engine/backend/device.h"
#include "engine/core/team/team.h"
#include "support/lab.h"

enum { B = 12, N = 48, STEPS = 3, RESULTS = 4 };

static const basin_block_config usual = {.dim = 64, .heads = 2, .head_dim = 64, .memories = 256};
static const basin_block_config odd = {
    .dim = 52, .heads = 3, .head_dim = 20, .memories = 76, .learn_beta = true};

typedef struct trial {
    const basin_block_config *config;
    int threads;
    basin_dtype dtype;
    bool gradients, alone; /* alone: one thread does all parts, in turn */
    int cut;               /* calls that were, found */
} trial;

static int count_cut(const basin_plan *plan) {
    char text[1000];
    int cut = 0;
    for (int i = 0; i < basin_plan_stats_of(plan).calls; i++) {
        basin_plan_describe(plan, i, text, sizeof text);
        cut += strstr(text, "one of ") != NULL;
    }
    return cut;
}

/* Within a loop of threads a plan has one alone. */
static void run_inside(const void *plan, int64_t first, int64_t last) {
    int place = basin_parallel_place();
    (void)last, (void)place;
    if (first == 0) lab_run(*(basin_plan *const *)plan);
}

static basin_expr tokens_of(lab *l, int64_t dim) {
    static double x[B * N * 64];
    for (int64_t i = 0; i < B * N * dim; i++)
        x[i] = 2 * basin_random_uniform_at(3, 1, (uint64_t)i) - 1;
    return lab_input(l, "x", BASIN_SHAPE(B, N, dim), x);
}

/* The end of a descent, or gradients of a function of it. */
static int descend(basin_tensor result[RESULTS], trial *t) {
    lab l;
    basin_block block;
    basin_expr output[RESULTS];
    lab_open(&l, "cpu", t->threads);
    lab_narrow(&l, t->dtype);
    assert_int_equal(basin_block_declare(&block, &l.params, "", t->config), BASIN_OK);
    lab_fill(&l, 9, 0.2);
    basin_pattern pattern = BASIN_OTHER_PAIRS;
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = {.steps = STEPS, .alpha = 0.1};
    basin_expr at[RESULTS] = {tokens_of(&l, t->config->dim), block.xi, block.wq, block.wk};
    int results = t->gradients ? RESULTS : 1;
    basin_expr end = output[0] = basin_descend(&energy, at[0], &spec, NULL);
    if (t->gradients) basin_vjp(output, basin_sum_all(basin_square(end)), NULL, at, RESULTS);
    basin_plan *plan = lab_plan(&l, output, results);
    t->cut = count_cut(plan);
    for (int run = 0; run < 3 && !t->alone; run++) lab_run(plan);
    if (t->alone) basin_parallel_for(run_inside, &plan, 2, 1, 2);
    for (int i = 0; i < results; i++) result[i] = lab_read(plan, output[i]);
    basin_plan_free(plan);
    lab_close(&l);
    return results;
}

static void check_one(trial t, int least_cut) {
    basin_tensor found[RESULTS], wanted[RESULTS];
    trial whole = t;
    whole.threads = 1, whole.alone = false;
    int results = descend(wanted, &whole);
    descend(found, &t);
    assert_int_equal(whole.cut, 0);
    assert_in_range(t.cut, least_cut, 1000);
    for (int i = 0; i < results; i++) {
        assert_memory_equal(found[i].data, wanted[i].data, basin_tensor_bytes(&wanted[i]));
        basin_tensor_free(&found[i]);
        basin_tensor_free(&wanted[i]);
    }
}

static void check_dtype(basin_dtype dtype) {
    for (int threads = 2; threads <= 3; threads++) { /* four parts, six */
        check_one((trial){&usual, threads, dtype, .gradients = false}, 8 * (STEPS - 1));
        check_one((trial){&usual, threads, dtype, .gradients = true}, 8 * (STEPS - 1));
        check_one((trial){&odd, threads, dtype, .gradients = false}, 8 * (STEPS - 1));
    }
    check_one((trial){&usual, 2, dtype, .alone = true}, 8 * (STEPS - 1));
}

TEST(test_float) { check_dtype(BASIN_F32); }

TEST(test_narrow) {
    if (!basin_cpu_bf16()) skip();
    check_dtype(BASIN_BF16);
}

/* What one run cuts and a later one reads whole, like a second memory of the tokens that a descent
 * ended with: no part may write over it before all parts have read it. */
static basin_tensor recall(int threads, bool alone, int *cut) {
    lab l;
    basin_block block;
    lab_open(&l, "cpu", threads);
    assert_int_equal(basin_block_declare(&block, &l.params, "", &usual), BASIN_OK);
    basin_expr w = lab_state(&l, "w", BASIN_SHAPE(64, 64));
    basin_expr gamma = lab_state(&l, "second.gamma", BASIN_SCALAR),
               delta = lab_state(&l, "second.delta", BASIN_SHAPE(64));
    lab_fill(&l, 9, 0.2);
    basin_block_bound bound = {.block = &block, .pattern = &BASIN_OTHER_PAIRS};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = {.steps = 1, .alpha = 0.1};
    basin_expr end = basin_descend(&energy, tokens_of(&l, 64), &spec, NULL);
    basin_expr memory = basin_reshape(end, BASIN_SHAPE(B * N, 64));
    basin_expr a = basin_matmul(basin_matmul_t(memory, false, memory, true), memory);
    for (int i = 0; i < 4; i++) a = basin_matmul(basin_layernorm(a, gamma, delta, 1e-5), w);
    basin_plan *plan = lab_plan(&l, &a, 1);
    *cut = count_cut(plan);
    if (alone)
        basin_parallel_for(run_inside, &plan, 2, 1, 2);
    else
        lab_run(plan);
    basin_tensor result = lab_read(plan, a);
    basin_plan_free(plan);
    lab_close(&l);
    return result;
}

TEST(test_read_whole_later) {
    int cut;
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor wanted = recall(1, false, &cut), found = recall(2, true, &cut);
    assert_in_range(cut, 10, 1000);
    assert_memory_equal(found.data, wanted.data, basin_tensor_bytes(&wanted));
}

/* Seven threads would want fourteen parts of twelve pictures. */
TEST(test_too_many_threads) { check_one((trial){&usual, 7, BASIN_F32, .gradients = false}, 0); }
