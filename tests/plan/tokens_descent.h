/* A descent along a list of pairs and its gradients, as plans of different kinds compute it. Nodes
 * without neighbours and a hub are among them. */
#ifndef BASIN_TESTS_PLAN_TOKENS_DESCENT_H
#define BASIN_TESTS_PLAN_TOKENS_DESCENT_H

#include <stdlib.h>
#include <string.h>

#include "basin/energy.h"
#include "support/lab.h"

enum { TOKENS_RESULTS = 6 };
static const char *const tokens_what[TOKENS_RESULTS] = {"end",  "tokens", "queries",
                                                        "keys", "beta",   "memories"};

typedef struct tokens_case {
    int64_t nodes, edges, hub; /* hub: neighbours of node 5 */
    basin_block_config block;
    bool recompute;
} tokens_case;

/* How many of the plan's calls begin so. */
static inline int tokens_count(const basin_plan *plan, const char *begin) {
    int found = 0;
    char text[1000];
    for (int i = 0; i < basin_plan_get_stats(plan).calls; i++) {
        basin_plan_describe(plan, i, text, sizeof text);
        found += !strncmp(text, begin, strlen(begin));
    }
    return found;
}

/* Every seventh node has none. */
static inline basin_pattern tokens_pairs(lab *l, const tokens_case *c) {
    int64_t count = c->edges + c->hub;
    int32_t *edge = malloc((size_t)count * 2 * sizeof *edge);
    assert_non_null(edge);
    for (int64_t i = 0; i < 2 * count; i++) {
        double u = basin_random_uniform_at(7, 2, (uint64_t)i);
        int32_t node = (int32_t)(u * (double)(c->nodes / 7 * 6));
        edge[i] = i >= 2 * c->edges && i % 2 == 0 ? 5 : node + node / 6;
    }
    basin_pattern pattern = lab_pairs(l, "pairs", c->nodes, edge, count,
                                      BASIN_PAIRS_BOTH_WAYS | BASIN_PAIRS_DROP_SELF, 2 * count);
    free(edge);
    return pattern;
}

static inline basin_expr tokens_input(lab *l, const tokens_case *c) {
    size_t count = (size_t)(c->nodes * c->block.dim);
    double *x = malloc(count * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++) x[i] = 2 * basin_random_uniform_at(3, 1, i) - 1;
    basin_expr input = lab_input(l, "x", BASIN_SHAPE(c->nodes, c->block.dim), x);
    free(x);
    return input;
}

/* Two steps; result [TOKENS_RESULTS]. `made`, with the plan, may look at its calls. */
static inline void tokens_run(basin_tensor *result, lab *l, const tokens_case *c,
                              basin_fusion fusion, void (*made)(const basin_plan *plan)) {
    basin_block block;
    assert_int_equal(basin_block_declare(&block, &l->params, "", &c->block), BASIN_OK);
    lab_fill(l, 9, 2.4 / (double)c->block.dim);
    basin_pattern pattern = tokens_pairs(l, c);
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_expr output[TOKENS_RESULTS], x = tokens_input(l, c);
    basin_descent_spec spec = {.steps = 2, .alpha = 0.1, .recompute = c->recompute};
    output[0] = basin_descend(&energy, x, &spec, NULL);
    basin_expr from[TOKENS_RESULTS - 1] = {x, block.wq, block.wk, block.beta, block.xi};
    basin_vjp(output + 1, basin_sum_all(basin_square(output[0])), NULL, from, TOKENS_RESULTS - 1);
    basin_plan *plan;
    basin_error error = {0};
    basin_plan_spec asked = {.output = output, .outputs = TOKENS_RESULTS, .fusion = fusion};
    if (basin_plan_new(&plan, l->store, &asked, &error)) fail_msg("%s", error.text);
    if (made) made(plan);
    lab_write(l, plan);
    lab_run(plan);
    lab_run(plan);
    for (int i = 0; i < TOKENS_RESULTS; i++) result[i] = lab_read(plan, output[i]);
    basin_plan_free(plan);
}

static inline void tokens_compare(basin_tensor *found, basin_tensor *wanted, double tolerance) {
    for (int i = 0; i < TOKENS_RESULTS; i++) {
        lab_assert_near(&found[i], &wanted[i], tolerance, tokens_what[i]);
        basin_tensor_free(&found[i]);
        basin_tensor_free(&wanted[i]);
    }
}

#endif
