/* Descents in bfloat16 and their gradients, through whatever the backend makes of them (joint
 * matrices, masks of ReLUs, fused attention), against ref, which rounds at the same places. Each
 * gradient has two readers, as in training. */
#ifndef BASIN_TESTS_PLAN_NARROW_DESCENT_H
#define BASIN_TESTS_PLAN_NARROW_DESCENT_H

#include <string.h>

#include "basin/energy.h"
#include "support/lab.h"

enum { B = 3, D = 64, MOST = 208, WEIGHTS = 3, RESULTS = 1 + 2 * WEIGHTS, NARROW_RUNS = 3 };

static const basin_block_config narrow_usual = {
    .dim = D, .heads = 2, .head_dim = 64, .memories = 256};

static inline void open_stored(lab *l, const char *backend, int threads, basin_dtype dtype) {
    lab_open(l, backend, threads);
    lab_narrow(l, dtype);
}

static inline basin_expr tokens_of(lab *l, int64_t nodes, int64_t dim) {
    static double x[B * MOST * D];
    for (int64_t i = 0; i < B * nodes * dim; i++)
        x[i] = 2 * basin_random_uniform_at(3, 1, (uint64_t)i) - 1;
    return lab_input(l, "x", BASIN_SHAPE(B, nodes, dim), x);
}

/* A plan may run in other ways when it runs again; ref, which is slow, has one way. */
static inline void run_plan(basin_tensor *result, lab *l, const basin_expr *output, int outputs) {
    basin_plan *plan = lab_plan(l, output, outputs);
    int runs = strcmp(l->backend->table->name, "ref") ? NARROW_RUNS : 1;
    for (int i = 0; i < runs; i++) lab_run(plan);
    for (int i = 0; i < outputs; i++) result[i] = lab_read(plan, output[i]);
    basin_plan_free(plan);
}

/* result [1 + 2 weights] */
static inline void run_descent(basin_tensor *result, lab *l, const basin_energy *energy,
                               basin_expr tokens, const basin_expr *weight, int weights) {
    basin_expr at[1 + WEIGHTS] = {tokens};
    basin_expr back[1 + WEIGHTS], output[RESULTS];
    basin_descent_spec spec = {.steps = 2, .alpha = 0.1};
    basin_expr end = basin_descend(energy, at[0], &spec, NULL);
    for (int i = 0; i < weights; i++) at[1 + i] = weight[i];
    basin_vjp(back, basin_sum_all(basin_square(end)), NULL, at, 1 + weights);
    output[0] = back[0];
    for (int i = 0; i < weights; i++) {
        output[1 + i] = basin_sub(basin_scale(at[1 + i], 0.01), back[1 + i]);
        output[1 + weights + i] = basin_sum_all(basin_square(back[1 + i]));
    }
    run_plan(result, l, output, 1 + 2 * weights);
}

/* The end alone: ReLUs write no bits, and memories are joined nevertheless. */
static inline void run_forward(basin_tensor *result, lab *l, const basin_energy *energy,
                               basin_expr tokens) {
    basin_descent_spec spec = {.steps = 2, .alpha = 0.1};
    basin_expr end = basin_descend(energy, tokens, &spec, NULL);
    run_plan(result, l, &end, 1);
}

static inline void compare_and_free(basin_tensor *found, basin_tensor *wanted,
                                    const char *const *what, int results) {
    for (int i = 0; i < results; i++) {
        lab_assert_near(&found[i], &wanted[i], 1e-2, what[i]);
        basin_tensor_free(&found[i]);
        basin_tensor_free(&wanted[i]);
    }
}

/* result [RESULTS], or [1] of a forward pass */
static inline void stored_descent(basin_tensor *result, const char *backend, int threads,
                                  basin_dtype dtype, const basin_block_config *config,
                                  int64_t nodes, bool forward) {
    lab l;
    open_stored(&l, backend, threads, dtype);
    basin_block block;
    assert_int_equal(basin_block_declare(&block, &l.params, "", config), BASIN_OK);
    lab_fill(&l, 9, 0.2);
    basin_pattern pattern = BASIN_OTHER_PAIRS;
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    const basin_expr weight[WEIGHTS] = {block.xi, block.wq, block.wk};
    if (forward)
        run_forward(result, &l, &energy, tokens_of(&l, nodes, config->dim));
    else
        run_descent(result, &l, &energy, tokens_of(&l, nodes, config->dim), weight, WEIGHTS);
    lab_close(&l);
}

static inline void narrow_descent(basin_tensor *result, const char *backend, int threads,
                                  const basin_block_config *config, int64_t nodes, bool forward) {
    stored_descent(result, backend, threads, BASIN_BF16, config, nodes, forward);
}

/* In fp8: nearer to what ref makes of bytes than half of what these do to ref. */
static inline void check_bytes(const char *backend, const basin_block_config *config, int64_t nodes,
                               bool forward) {
    const char *what[RESULTS] = {"tokens",  "memories",   "queries",    "keys",
                                 "squares", "of queries", "and of keys"};
    basin_tensor found[RESULTS], wanted[RESULTS], exact[RESULTS];
    stored_descent(found, backend, 1, BASIN_F8_E4M3, config, nodes, forward);
    stored_descent(wanted, "ref", 1, BASIN_F8_E4M3, config, nodes, forward);
    stored_descent(exact, "ref", 1, BASIN_F64, config, nodes, forward);
    for (int i = 0; i < (forward ? 1 : RESULTS); i++) {
        double rounding = lab_distance(&wanted[i], &exact[i]);
        double error = lab_distance(&found[i], &wanted[i]);
        if (!(error <= rounding / 2) && !(error <= 1e-2))
            fail_msg("%s, %lld nodes of %lld: %.2e from ref in fp8, which is %.2e from double",
                     what[i], (long long)nodes, (long long)config->dim, error, rounding);
        basin_tensor_free(&found[i]);
        basin_tensor_free(&wanted[i]);
        basin_tensor_free(&exact[i]);
    }
}

/* 24 nodes, three times, are no multiple of 16; 208 have kernels of their own on Hopper; the wide
 * block has several slabs and tiles. */
static inline void check_byte_descent(const char *backend) {
    static const basin_block_config wide = {
        .dim = 256, .heads = 4, .head_dim = 64, .memories = 384};
    const int64_t nodes[] = {24, 32, 208};
    for (int forward = 0; forward < 2; forward++) {
        for (int k = 0; k < 3; k++) check_bytes(backend, &narrow_usual, nodes[k], forward);
        check_bytes(backend, &wide, 48, forward);
    }
}

/* Two sets of memories, of sizes whose ReLUs leave no bits: masks are numbers. */
enum { SETS = 2, OF_SETS = 1 + 2 * SETS };
static inline basin_expr memories_of(const void *xi, basin_expr g) {
    return basin_energy_hopfield(g, *(const basin_expr *)xi, BASIN_HOPFIELD_RELU, 0);
}

static inline void narrow_memories(basin_tensor result[OF_SETS], const char *backend, int threads,
                                   int64_t nodes) {
    lab l;
    open_stored(&l, backend, threads, BASIN_BF16);
    const basin_expr xi[SETS] = {lab_state(&l, "xi0", BASIN_SHAPE(96, D)),
                                 lab_state(&l, "xi1", BASIN_SHAPE(160, D))};
    basin_energy energy = {
        BASIN_TERMS({"first", memories_of, &xi[0]}, {"second", memories_of, &xi[1]})};
    lab_fill(&l, 9, 0.2);
    run_descent(result, &l, &energy, tokens_of(&l, nodes, D), xi, SETS);
    lab_close(&l);
}

static inline void check_narrow_descent(const char *backend, int threads,
                                        const basin_block_config *config) {
    const int64_t nodes[] = {24, 37, 196};
    const char *what[RESULTS] = {"tokens",  "memories",   "queries",    "keys",
                                 "squares", "of queries", "and of keys"};
    for (int k = 0; k < 3; k++) {
        basin_tensor found[RESULTS], wanted[RESULTS];
        narrow_descent(found, backend, threads, config, nodes[k], false);
        narrow_descent(wanted, "ref", 1, config, nodes[k], false);
        compare_and_free(found, wanted, what, RESULTS);
        narrow_descent(found, backend, threads, config, nodes[k], true);
        narrow_descent(wanted, "ref", 1, config, nodes[k], true);
        compare_and_free(found, wanted, (const char *const[]){"a forward pass"}, 1);
    }
}

static inline void check_narrow_memories(const char *backend, int threads) {
    const int64_t nodes[] = {24, 37, 196};
    const char *what[OF_SETS] = {"tokens", "96 memories", "160 memories", "squares",
                                 "and of the others"};
    for (int k = 0; k < 3; k++) {
        basin_tensor found[OF_SETS], wanted[OF_SETS];
        narrow_memories(found, backend, threads, nodes[k]);
        narrow_memories(wanted, "ref", 1, nodes[k]);
        compare_and_free(found, wanted, what, OF_SETS);
    }
}

#endif
