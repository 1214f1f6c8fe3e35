/* bfloat16 on the cpu backend, against ref, which rounds at the same places: descents and their
 * gradients at odd sizes, attention of every kind, equal bits for any number of threads, and the
 * line that refuses it where the processor has no such instructions. CTest runs it once per
 * instruction set (BASIN_ISA). */
#include "base/info.h"
#include "engine/backend/kernel.h"
#include "engine/plan/narrow_descent.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/backend/device.h"
#include "engine/plan/random_graphs.h"

static const basin_block_config narrow_odd = {
    .dim = 53, .heads = 3, .head_dim = 21, .memories = 75, .learn_beta = true};

static void test_descent(void **state) {
    (void)state;
    check_narrow_descent("cpu", 2, &narrow_usual);
    check_narrow_descent("cpu", 2, &narrow_odd);
}

static void test_memories(void **state) {
    (void)state;
    check_narrow_memories("cpu", 2);
}

static void test_threads(void **state) {
    basin_tensor found[RESULTS], wanted[RESULTS];
    (void)state;
    for (int threads = 2; threads <= 5; threads += 3) {
        narrow_descent(wanted, "cpu", 1, &narrow_odd, 37, false);
        narrow_descent(found, "cpu", threads, &narrow_odd, 37, false);
        for (int i = 0; i < RESULTS; i++) {
            assert_memory_equal(found[i].data, wanted[i].data, basin_tensor_bytes(&wanted[i]));
            basin_tensor_free(&found[i]);
            basin_tensor_free(&wanted[i]);
        }
    }
}

/* Log-sum-exps over all, all earlier and all other pairs, with mixed heads and a bias, which take
 * the way through float; of each the force and its reverse, with the gradient of beta. */
enum { ROWS = 70, HEADS = 2, WIDE = 48, KINDS = 5, OUTPUTS = 3 * KINDS };

static void attend(basin_tensor *result, const char *backend) {
    static double x[ROWS * HEADS * WIDE], bias[ROWS * ROWS * HEADS];
    basin_expr output[OUTPUTS];
    BASIN_AT_EXIT(lab_close) lab l;
    open_stored(&l, backend, 2, BASIN_BF16);
    for (int i = 0; i < ROWS * HEADS * WIDE; i++) x[i] = sin(1.3 * i);
    for (int i = 0; i < ROWS * ROWS * HEADS; i++) bias[i] = cos(0.7 * i);
    basin_expr a = lab_input(&l, "x", BASIN_SHAPE(ROWS, HEADS * WIDE), x);
    basin_expr q = basin_reshape(a, BASIN_SHAPE(ROWS, HEADS, WIDE)), k = basin_tanh(q);
    basin_expr beta = lab_input(&l, "beta", BASIN_SHAPE(HEADS), (double[]){0.3, 0.2});
    basin_expr mix = basin_add(basin_eye(l.graph, HEADS), basin_scalar(l.graph, 0.25));
    basin_expr scale = lab_input(&l, "scale", BASIN_SHAPE(ROWS * ROWS, HEADS), bias);
    const basin_expr lse[KINDS] = {
        basin_attention_lse(q, k, beta, &BASIN_ALL_PAIRS, NULL),
        basin_attention_lse(q, k, beta, &BASIN_OTHER_PAIRS, NULL),
        basin_attention_lse(q, k, beta, &BASIN_CAUSAL_PAIRS, NULL),
        basin_attention_lse(q, k, beta, &BASIN_EARLIER_PAIRS, NULL),
        basin_attention_lse(q, k, beta, &BASIN_OTHER_PAIRS,
                            &(basin_lse_options){.scale = scale, .mix = mix}),
    };
    for (int i = 0; i < KINDS; i++) {
        basin_expr force = basin_grad(basin_sum_all(basin_sin(lse[i])), a);
        output[3 * i] = lse[i];
        output[3 * i + 1] = basin_grad(basin_sum_all(basin_square(force)), a);
        output[3 * i + 2] = basin_grad(basin_sum_all(basin_square(force)), beta);
    }
    run_plan(result, &l, output, OUTPUTS);
}

static void test_attention(void **state) {
    basin_tensor found[OUTPUTS], wanted[OUTPUTS];
    (void)state;
    attend(found, "cpu");
    attend(wanted, "ref");
    for (int i = 0; i < OUTPUTS; i++) {
        char what[40];
        snprintf(what, sizeof what, "output %d of kind %d", i % 3, i / 3);
        lab_assert_near(&found[i], &wanted[i], i % 3 ? 1e-2 : 1e-4, what);
        basin_tensor_free(&found[i]);
        basin_tensor_free(&wanted[i]);
    }
}

static basin_backend *open_backend(const char *name, bool narrow) {
    basin_backend *backend;
    basin_compute compute = {.backend = name, .threads = 2};
    if (narrow) compute.storage = BASIN_BF16, compute.narrow_min = 1;
    assert_int_equal(basin_backend_open(&backend, &compute, NULL), BASIN_OK);
    return backend;
}

/* Random graphs may be off by what rounding alone does in ref, and a little more. */
static void test_random_graphs(void **state) {
    enum { EXACT, JUDGE, FAST, SINGLE, VARIANTS };
    basin_backend *ref = open_backend("ref", false), *judge = open_backend("ref", true);
    basin_backend *cpu = open_backend("cpu", true);
    const variant variants[VARIANTS] = {
        [EXACT] = {"ref", 1, BASIN_FUSE_ON, false, false, ref},
        [JUDGE] = {"ref", 1, BASIN_FUSE_ON, false, false, judge},
        [FAST] = {"cpu", 2, BASIN_FUSE_ON, false, false, cpu},
        [SINGLE] = {"cpu", 2, BASIN_FUSE_OFF, false, false, cpu},
    };
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed += 2) { /* odd ones are rough: without a derivative */
        numbers n[VARIANTS];
        for (int i = 0; i < VARIANTS; i++) n[i] = run_variant(seed, false, &variants[i]);
        compare(seed, "cpu", &n[FAST], &n[JUDGE], 5e-3, &n[EXACT]);
        compare(seed, "cpu without fusion", &n[SINGLE], &n[JUDGE], 5e-3, &n[EXACT]);
        for (int i = 0; i < VARIANTS; i++) free(n[i].value);
    }
    basin_backend_close(ref);
    basin_backend_close(judge);
    basin_backend_close(cpu);
}

/* Products in a plan for inference read weights that were rounded and packed once. */
static void test_hoisted(void **state) {
    BASIN_AT_EXIT(lab_close) lab l;
    (void)state;
    open_stored(&l, "cpu", 1, BASIN_BF16);
    basin_block block;
    assert_int_equal(basin_block_declare(&block, &l.params, "", &narrow_usual), BASIN_OK);
    lab_fill(&l, 9, 0.2);
    basin_pattern pattern = BASIN_OTHER_PAIRS;
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = {.steps = 3, .alpha = 0.1};
    basin_expr end = basin_descend(&energy, tokens_of(&l, 24, D), &spec, NULL);
    basin_plan *plan = lab_plan(&l, &end, 1);
    int packs = 0;
    char text[1000];
    for (int i = 0; i < basin_plan_stats_of(plan).hoisted; i++) {
        basin_plan_describe(plan, i, text, sizeof text);
        packs += !strncmp(text, "PACK", 4);
    }
    assert_int_equal(packs, 6); /* three weights, each in both directions */
    basin_plan_free(plan);
}

static void test_refused(void **state) {
    basin_backend *backend;
    (void)state;
    assert_ok(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &failure));
    assert_failure(
        basin_backend_configure(backend, &(basin_compute){.storage = BASIN_BF16}, &failure),
        BASIN_UNSUPPORTED, "lacks bfloat16 instructions");
    assert_int_equal(basin_backend_storage(backend), BASIN_F32);
    basin_backend_close(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descent),       cmocka_unit_test(test_memories),
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_attention),
        cmocka_unit_test(test_random_graphs), cmocka_unit_test(test_hoisted),
    };
    const struct CMUnitTest refusals[] = {cmocka_unit_test(test_refused)};
    return basin_cpu_bf16() ? cmocka_run_group_tests(tests, NULL, NULL)
                            : cmocka_run_group_tests(refusals, NULL, NULL);
}
