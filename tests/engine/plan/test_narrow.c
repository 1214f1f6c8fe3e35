/* Narrow storage, which ref rounds as a device would store: factors of large products are
 * bfloat16, everything else is not, and what both kinds of readers want is stored in both. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/info.h"
#include "basin/energy.h"
#include "engine/backend/device.h"
#include "engine/backend/kernel.h"
#include "engine/expr/graph.h"
#include "support/lab.h"

enum { M = 5, K = 8, N = 6 };

static double narrowed(double x) {
    int exponent;
    double fraction = frexp(x, &exponent); /* [0.5, 1): 8 bits of it */
    return ldexp(nearbyint(ldexp(fraction, 8)), exponent - 8);
}

static void open_narrow(lab *l, double least) {
    lab_open(l, "ref", 1);
    assert_int_equal(
        basin_backend_configure(l->backend,
                                &(basin_compute){.storage = BASIN_BF16, .narrow_min = least}, NULL),
        BASIN_OK);
    assert_int_equal(basin_backend_storage(l->backend), BASIN_BF16);
}

static void fill(double *number, int count, uint64_t stream) {
    for (int i = 0; i < count; i++)
        number[i] = 2 * basin_random_uniform_at(5, stream, (uint64_t)i) - 1;
}

/* y = 3 a b + a's sums: factors are rounded, the result and the other reader of a are not. */
static void product_of(double least, bool rounded) {
    BASIN_AT_EXIT(lab_close) lab l;
    double a[M * K], b[K * N];
    fill(a, M * K, 1), fill(b, K * N, 2);
    open_narrow(&l, least);
    basin_expr x = lab_input(&l, "a", BASIN_SHAPE(M, K), a);
    basin_expr w = lab_input(&l, "b", BASIN_SHAPE(K, N), b);
    basin_expr sum = basin_reshape(basin_sum(x, 1, 1), BASIN_SHAPE(M, 1));
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor y = lab_value(&l, basin_add(basin_scale(basin_matmul(x, w), 3), sum));
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double wanted = 0;
            for (int k = 0; k < K; k++) {
                double f = a[i * K + k], g = b[k * N + j];
                wanted += rounded ? 3 * narrowed(f) * narrowed(g) : 3 * f * g;
            }
            for (int k = 0; k < K; k++) wanted += a[i * K + k];
            assert_true(fabs(basin_tensor_at(&y, i * N + j) - wanted) < 1e-14);
        }
}

TEST(test_factors_are_rounded) {
    product_of(1, true);
    product_of(M * K * N, true);
}

TEST(test_small_products_are_not) {
    product_of(M * K * N + 1, false);
    product_of(0, false);
}

/* Calls whose text begins so and ends so. */
static int count_between(const basin_plan *plan, const char *begin, const char *end) {
    int found = 0;
    char text[1000];
    for (int i = 0; i < basin_plan_stats_of(plan).calls; i++) {
        basin_plan_describe(plan, i, text, sizeof text);
        size_t length = strlen(text), tail = strlen(end);
        found += !strncmp(text, begin, strlen(begin)) && length >= tail &&
                 !strcmp(text + length - tail, end);
    }
    return found;
}

static int count_calls(const basin_plan *plan, const char *begin) {
    return count_between(plan, begin, "");
}

/* What a pointwise step computes for a product and for a sum is stored in both widths at once. */
TEST(test_stored_twice) {
    BASIN_AT_EXIT(lab_close) lab l;
    double a[M * K], b[K * N];
    fill(a, M * K, 1), fill(b, K * N, 2);
    open_narrow(&l, 1);
    basin_expr x = basin_exp(lab_input(&l, "a", BASIN_SHAPE(M, K), a));
    basin_expr w = lab_input(&l, "b", BASIN_SHAPE(K, N), b);
    basin_expr output[2] = {basin_matmul(x, w), basin_sum(x, 1, 1)};
    basin_plan *plan = lab_plan(&l, output, 2);
    assert_int_equal(count_calls(plan, "POINTWISE         [5, 8], bf16 [5, 8] <- [5, 8]"), 1);
    assert_int_equal(count_calls(plan, "POINTWISE"), 2); /* the other one: b for the product */
    lab_run(plan);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor sums = lab_read(plan, output[1]);
    for (int i = 0; i < M; i++) {
        double wanted = 0;
        for (int k = 0; k < K; k++) wanted += exp(a[i * K + k]);
        assert_true(fabs(basin_tensor_at(&sums, i) - wanted) < 1e-14);
    }
    basin_plan_free(plan);
}

/* Of a descent, the activations, the heads and memories are narrow; the tokens are not. */
TEST(test_descent) {
    BASIN_AT_EXIT(lab_close) lab l;
    double x[2 * 7 * 8];
    fill(x, 2 * 7 * 8, 3);
    open_narrow(&l, 1);
    basin_block block;
    basin_block_config config = {.dim = 8, .heads = 2, .head_dim = 4, .memories = 16};
    assert_int_equal(basin_block_declare(&block, &l.params, "", &config), BASIN_OK);
    lab_fill(&l, 9, 0.5);
    basin_pattern pattern = BASIN_OTHER_PAIRS;
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_expr tokens = lab_input(&l, "x", BASIN_SHAPE(2, 7, 8), x);
    basin_expr end =
        basin_descend(&energy, tokens, &(basin_descent_spec){.steps = 3, .alpha = 0.1}, NULL);
    basin_plan *plan = lab_plan(&l, &end, 1);
    assert_int_equal(count_calls(plan, "LAYERNORM         bf16"), 3);
    assert_int_equal(count_calls(plan, "ATTENTION_FORCE   -, bf16 [2, 7, 2, 4], bf16"), 3);
    assert_int_equal(count_calls(plan, "MATMUL            bf16 [14, 16]"), 3);
    assert_int_equal(count_calls(plan, "MATMUL            bf16 [14, 8]"), 6);
    /* the tokens, to which the memories and both sides of the attention add, one after the other */
    assert_int_equal(count_between(plan, "MATMUL            [14, 8]", "(a + (0.1 * product))"), 9);
    basin_plan_free(plan);
    /* backwards, each step's layer norm adds the cotangent that passes by, and stores both widths;
     * the first one, below which nothing wants its products, stores one */
    basin_expr back = basin_grad(basin_sum_all(basin_square(end)), tokens);
    plan = lab_plan(&l, &back, 1);
    const char *twice = "LAYERNORM_REVERSE [2, 7, 8], -, -, bf16 [2, 7, 8] <- [2, 7, 8], [], bf16";
    assert_int_equal(count_calls(plan, twice), 2);
    assert_int_equal(count_calls(plan, "LAYERNORM_REVERSE"), 3);
    basin_plan_free(plan);
}

/* Queries and keys along a list are rounded like those of all pairs; weights and results are what
 * they are, and a list that is too short stays wide. */
static void list_of(double least, bool rounded) {
    enum { NODES = 4, WIDTH = 3, PAIRS = 5 };
    static const int32_t edge[2 * PAIRS] = {0, 1, 0, 3, 1, 2, 2, 0, 3, 3};
    BASIN_AT_EXIT(lab_close) lab l;
    double q[NODES * WIDTH], k[NODES * WIDTH];
    fill(q, NODES * WIDTH, 4), fill(k, NODES * WIDTH, 5);
    open_narrow(&l, least);
    BASIN_AT_EXIT(basin_pairs_free) basin_pairs pairs;
    assert_int_equal(basin_pairs_new(&pairs, NODES, NODES, edge, PAIRS, 0, NULL), BASIN_OK);
    basin_pattern pattern = basin_pairs_declare(l.graph, "pairs", NODES, NODES, pairs.pairs);
    basin_expr x = lab_input(&l, "q", BASIN_SHAPE(NODES, 1, WIDTH), q);
    basin_expr y = lab_input(&l, "k", BASIN_SHAPE(NODES, 1, WIDTH), k);
    basin_expr beta = basin_full(l.graph, BASIN_SHAPE(1), 0.5);
    basin_expr lse = basin_attention_lse(x, y, beta, &pattern, NULL);
    basin_plan *plan = lab_plan(&l, &lse, 1);
    assert_int_equal(basin_pairs_write(plan, &pattern, &pairs, NULL), BASIN_OK);
    lab_run(plan);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor value = lab_read(plan, lse);
    for (int i = 0; i < NODES; i++) {
        double sum = 0;
        for (int p = 0; p < PAIRS; p++) {
            double score = 0;
            for (int d = 0; d < WIDTH && edge[2 * p] == i; d++) {
                double a = q[i * WIDTH + d], b = k[edge[2 * p + 1] * WIDTH + d];
                score += 0.5 * (rounded ? narrowed(a) * narrowed(b) : a * b);
            }
            if (edge[2 * p] == i) sum += exp(score);
        }
        assert_true(fabs(basin_tensor_at(&value, i) - log(sum)) < 1e-14);
    }
    basin_plan_free(plan);
}

TEST(test_lists) {
    list_of(1, true);
    list_of(1000, false);
}

/* Two maps with a gelu between, scores of causal pairs, and a loss: what large products give to the
 * gelu, to its slope and to the softmax is narrow, and so is a bias's gradient's summand, a factor
 * of other products. The result of the last product, which is summed as it is, stays wide. */
TEST(test_between_products) {
    BASIN_AT_EXIT(lab_close) lab l;
    double x[M * K], w[K * K], b[K];
    fill(x, M * K, 1), fill(w, K * K, 2), fill(b, K, 3);
    open_narrow(&l, 1);
    basin_expr weight = lab_input(&l, "w", BASIN_SHAPE(K, K), w);
    basin_expr bias = lab_input(&l, "b", BASIN_SHAPE(K), b);
    basin_expr z = basin_add(basin_matmul(lab_input(&l, "x", BASIN_SHAPE(M, K), x), weight), bias);
    basin_expr a = basin_mul(z, basin_offset(basin_erf(z), 1));
    basin_expr score = basin_reshape(basin_matmul_t(a, false, a, true), BASIN_SHAPE(M, M, 1));
    basin_expr share = basin_causal_softmax(score, 0.5, false);
    basin_expr y = basin_matmul(basin_reshape(share, BASIN_SHAPE(M, M)), a);
    basin_expr output[3] = {basin_sum_all(y)};
    basin_vjp(output + 1, basin_sum_all(basin_sin(y)), NULL, (basin_expr[]){weight, bias}, 2);
    basin_plan *plan = lab_plan(&l, output, 3);
    assert_int_equal(count_calls(plan, "MATMUL            bf16 [5, 8] <- bf16 [5, 8], bf16 [8, 8]"),
                     1);
    assert_int_equal(count_calls(plan, "POINTWISE         bf16 [5, 8] <- bf16 [5, 8]"), 3);
    assert_int_equal(count_calls(plan, "CAUSAL_SOFTMAX    bf16 [5, 5, 1] <- bf16 [5, 5, 1]"), 1);
    assert_int_equal(
        count_calls(plan, "CAUSAL_SOFTMAX_REVERSE bf16 [5, 5, 1] <- bf16 [5, 5, 1], bf16"), 1);
    assert_int_equal(count_calls(plan, "SUM               [8] <- bf16 [5, 8]"), 1);
    assert_int_equal(count_calls(plan, "SUM               [] <- [5, 8]"), 1);
    basin_plan_free(plan);
}

/* Under 128 memories, the reverse of the ReLU reads bits that the product under it has written. */
TEST(test_masks) {
    lab l, judge;
    double x[2 * 7 * 8];
    lab *both[2] = {&l, &judge};
    basin_tensor value[2];
    fill(x, 2 * 7 * 8, 3);
    open_narrow(&l, 1);
    lab_open(&judge, "ref", 1);
    for (int i = 0; i < 2; i++) {
        basin_block block;
        basin_block_config config = {.dim = 8, .no_attention = true, .memories = 128};
        assert_int_equal(basin_block_declare(&block, &both[i]->params, "", &config), BASIN_OK);
        lab_fill(both[i], 9, 0.5);
        basin_block_bound bound = {.block = &block};
        basin_energy energy = basin_block_energy(&bound);
        basin_expr tokens = lab_input(both[i], "x", BASIN_SHAPE(2, 7, 8), x);
        basin_descent_spec spec = {.steps = 2, .alpha = 0.1};
        basin_expr end = basin_descend(&energy, tokens, &spec, NULL);
        basin_expr back = basin_grad(basin_sum_all(basin_square(end)), tokens);
        basin_plan *plan = lab_plan(both[i], &back, 1);
        int writes =
            count_between(plan, "MATMUL            bf16 [14, 128], index", "relu(product)");
        int reads = count_between(plan,
                                  "MATMUL            bf16 [14, 128] <- bf16 [14, 8], bf16 "
                                  "[128, 8]', index [64, 4]",
                                  "");
        assert_int_equal(writes, i == 0 ? 2 : 0);
        assert_int_equal(reads, i == 0 ? 2 : 0);
        lab_run(plan);
        value[i] = lab_read(plan, back);
        basin_plan_free(plan);
    }
    lab_assert_near(&value[0], &value[1], 1e-2, "the gradient through masks");
    for (int i = 0; i < 2; i++) {
        basin_tensor_free(&value[i]);
        lab_close(both[i]);
    }
}
