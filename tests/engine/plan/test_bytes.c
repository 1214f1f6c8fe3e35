/* Factors of eight bits, which ref rounds as a device would store: which products of a descent and
 * of its reverse read bytes, that these compute what the plain plan does where nothing is rounded,
 * and that products whose sizes do not fit are left as they are in bfloat16. */
#include <stdio.h>
#include <string.h>

#include "base/info.h"
#include "engine/backend/kernel.h"
#include "engine/plan/narrow_descent.h"

/* The same descent and its gradients; what the calls of its plan read. */
typedef struct trial {
    basin_tensor value[1 + WEIGHTS];
    int values;
    int products, bytes; /* of all large ones, those of bytes */
    int mixed;           /* a factor of e5m2 */
    int plain;           /* that read bfloat16 */
    int transposed;      /* that store their bytes the other way round, too */
} trial;

static void count_calls(trial *t, const basin_plan *plan) {
    char text[2000];
    for (int i = 0; i < basin_plan_stats_of(plan).calls; i++) {
        basin_plan_describe(plan, i, text, sizeof text);
        const char *from = strstr(text, " <- ");
        if (strncmp(text, "MATMUL", 6) != 0 || !from) continue;
        const char *byte_copy = strstr(text, ", -, e");
        t->products++;
        t->transposed += byte_copy && byte_copy < from;
        t->bytes += strstr(from, "e4m3") != NULL;
        t->mixed += strstr(from, "e5m2") != NULL;
        t->plain += strncmp(from + 4, "bf16", 4) == 0;
    }
}

/* exact: rounds nothing, whatever the plan stores. */
static void run_trial(trial *t, basin_dtype dtype, int64_t nodes, int64_t memories, bool forward,
                      bool exact) {
    lab l;
    basin_block block;
    basin_block_config config = narrow_usual;
    basin_pattern pattern = BASIN_OTHER_PAIRS;
    config.memories = memories;
    *t = (trial){.values = forward ? 1 : 1 + WEIGHTS};
    open_stored(&l, "ref", 1, dtype);
    assert_int_equal(basin_block_declare(&block, &l.params, "", &config), BASIN_OK);
    basin_expr gamma = lab_state(&l, "end.gamma", BASIN_SCALAR);
    basin_expr delta = lab_state(&l, "end.delta", BASIN_SHAPE(D));
    lab_fill(&l, 9, 0.2);
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = {.steps = 2, .alpha = 0.1};
    basin_expr output[1 + WEIGHTS],
        at[1 + WEIGHTS] = {tokens_of(&l, nodes, D), block.xi, block.wq, block.wk};
    output[0] = basin_descend(&energy, at[0], &spec, NULL);
    basin_expr normal = basin_layernorm(output[0], gamma, delta, 1e-5);
    basin_expr loss = basin_mean_all(basin_square(basin_exp(normal)));
    if (!forward) basin_vjp(output, loss, NULL, at, 1 + WEIGHTS);
    basin_plan *plan = lab_plan(&l, output, t->values);
    if (exact) l.backend->narrow = false;
    lab_run(plan);
    for (int i = 0; i < t->values; i++) t->value[i] = lab_read(plan, output[i]);
    count_calls(t, plan);
    basin_plan_free(plan);
    lab_close(&l);
}

static void free_trial(trial *t) {
    for (int i = 0; i < t->values; i++) basin_tensor_free(&t->value[i]);
}

/* Q and K, memories, what is added to the tokens: three products a step forward; in reverse their
 * cotangents, and four gradients of weights. Hidden units and their cotangents are stored twice in
 * training, for these. */
TEST(test_products_of_bytes) {
    trial t;
    run_trial(&t, BASIN_F8_E4M3, 32, 256, true, false);
    assert_int_equal(t.bytes, 2 * 3);
    assert_int_equal(t.mixed, 0);
    assert_int_equal(t.transposed, 0);
    assert_int_equal(t.plain, 0);
    free_trial(&t);
    run_trial(&t, BASIN_F8_E4M3, 32, 256, false, false);
    assert_int_equal(t.bytes, 2 * 3 + t.mixed);
    assert_true(t.mixed >= 2 * 3 + 4);
    assert_int_equal(t.transposed, 2 * 2);
    assert_int_equal(t.plain, 0);
    free_trial(&t);
}

static void check_exact(int64_t nodes, int64_t memories, bool forward) {
    trial plain, bytes;
    run_trial(&plain, BASIN_F64, nodes, memories, forward, false);
    run_trial(&bytes, BASIN_F8_E4M3, nodes, memories, forward, true);
    assert_true(bytes.bytes > 0);
    for (int i = 0; i < plain.values; i++)
        lab_assert_near(&bytes.value[i], &plain.value[i], 1e-12, "without rounding");
    free_trial(&plain);
    free_trial(&bytes);
}

/* 24 nodes, three times, are no multiple of 16: gradients stay in bfloat16, so that tokens are
 * stored in both; 160 memories have no mask of bits. */
TEST(test_nothing_else_changes) {
    for (int forward = 0; forward < 2; forward++) {
        check_exact(32, 256, forward);
        check_exact(24, 256, forward);
        check_exact(32, 160, forward);
    }
}

TEST(test_rounding) {
    trial plain, bytes, narrow;
    run_trial(&plain, BASIN_F64, 32, 256, false, false);
    run_trial(&bytes, BASIN_F8_E4M3, 32, 256, false, false);
    run_trial(&narrow, BASIN_BF16, 32, 256, false, false);
    for (int i = 0; i < plain.values; i++) {
        double coarse = lab_distance(&bytes.value[i], &plain.value[i]);
        double fine = lab_distance(&narrow.value[i], &plain.value[i]);
        assert_true(coarse < 0.1);
        assert_true(fine < 0.01 && fine < coarse);
    }
    free_trial(&plain);
    free_trial(&bytes);
    free_trial(&narrow);
}

/* Heads of 8 numbers: nothing fits. */
TEST(test_sizes_that_do_not_fit) {
    trial narrow, bytes;
    run_trial(&narrow, BASIN_BF16, 5, 100, true, false);
    run_trial(&bytes, BASIN_F8_E4M3, 5, 100, true, false);
    assert_true(bytes.plain > 0);
    free_trial(&narrow);
    free_trial(&bytes);
}

TEST(test_cpu_refuses) {
    BASIN_AT_EXIT(lab_close) lab l = lab_new("cpu", 1);
    assert_failure(
        basin_backend_configure(l.backend, &(basin_compute){.storage = BASIN_F8_E4M3}, &failure),
        BASIN_UNSUPPORTED, "compute capability 9.0");
}
