/* Random blocks for tests of the descent: the same number always gives the same block. */
#ifndef BASIN_TESTS_ENERGY_TRIAL_H
#define BASIN_TESTS_ENERGY_TRIAL_H

#include "base/info.h"
#include "basin/energy.h"
#include "engine/expr/graph.h"
#include "support/lab.h"

typedef struct trial {
    lab lab;
    basin_block block;
    basin_pattern pattern;
    basin_block_bound bound;
    basin_energy energy;
    basin_expr x; /* an input, [B, N, D] or [N, D] */
    basin_tensor start;
} trial;

static int64_t trial_between(basin_random *random, int64_t low, int64_t high) {
    return low + (int64_t)basin_random_below(random, (uint64_t)(high - low + 1));
}

static basin_block_config trial_config(basin_random *r) {
    basin_block_config c = {.dim = trial_between(r, 2, 14),
                            .heads = trial_between(r, 1, 3),
                            .head_dim = trial_between(r, 1, 9),
                            .memories = trial_between(r, 1, 20),
                            .hopfield = (basin_hopfield)trial_between(r, 0, 2),
                            .power = 1.5 + 0.5 * (double)trial_between(r, 0, 5),
                            .learn_beta = trial_between(r, 0, 1)};
    int64_t ablation = trial_between(r, 0, 7);
    c.no_attention = ablation == 0;
    c.no_hopfield = ablation == 1;
    c.mix = trial_between(r, 0, 3) == 0;
    return c;
}

/* Half of the trials look along a list of random edges, the others at all pairs. */
static void trial_open(trial *t, uint64_t seed, const char *backend) {
    basin_random r = basin_random_start(seed, 77, 0);
    basin_block_config config = trial_config(&r);
    int64_t batch = trial_between(&r, 0, 3), tokens = trial_between(&r, 1, 12);
    bool list = trial_between(&r, 0, 1), self = trial_between(&r, 0, 1);
    bool scale = trial_between(&r, 0, 3) == 0;
    double size = 0.2 * (double)trial_between(&r, 1, 6);
    int32_t edge[80];
    lab *l = &t->lab;
    lab_open(l, backend, 1);
    basin_block_declare(&t->block, &l->params, "", &config);
    t->pattern = (basin_pattern){.exclude_self = !self};
    for (int i = 0; i < 80; i++) edge[i] = (int32_t)trial_between(&r, 0, tokens - 1);
    if (list) {
        batch = 0;
        t->pattern = lab_pairs(l, "pairs", tokens, edge, trial_between(&r, 0, 40),
                               self ? BASIN_PAIRS_ADD_SELF : BASIN_PAIRS_BOTH_WAYS, 0);
    }
    t->bound = (basin_block_bound){.block = &t->block, .pattern = &t->pattern};
    int64_t pairs =
        list ? basin_expr_shape(t->pattern.key).dim[0] : (batch ? batch : 1) * tokens * tokens;
    if (scale && !config.no_attention)
        t->bound.scale = lab_state(l, "scale", BASIN_SHAPE(pairs, config.heads));
    t->energy = basin_block_energy(&t->bound);
    basin_shape shape =
        batch ? BASIN_SHAPE(batch, tokens, config.dim) : BASIN_SHAPE(tokens, config.dim);
    t->x = basin_input(l->graph, "x", shape);
    lab_fill(l, seed, size);
    assert_int_equal(basin_tensor_new(&t->start, BASIN_F64, shape, NULL), BASIN_OK);
    basin_random_fill_normal_f64(t->start.data, seed, 78, 0, (size_t)basin_shape_count(shape));
}

static void trial_close(trial *t) {
    basin_tensor_free(&t->start);
    lab_close(&t->lab);
}

/* A descent of the trial from its start. The caller frees the result. */
static basin_descent_result trial_run(trial *t, const basin_descent_spec *spec,
                                      const basin_stop *stop) {
    basin_descent *descent;
    basin_descent_result result;
    assert_ok(basin_descent_new(&descent, t->lab.store, &t->energy, t->lab.graph, t->start.shape,
                                spec, stop, &failure));
    lab_write(&t->lab, basin_descent_plan(descent));
    assert_ok(basin_descent_run(descent, &result, &t->start, &failure));
    basin_descent_free(descent);
    return result;
}

/* The energy of a sample before step t. */
static double trial_energy(const basin_descent_result *r, int step, int64_t sample) {
    double total = 0;
    for (int p = 0; p < r->terms; p++)
        total += r->energy[(step * r->terms + p) * r->samples + sample];
    return total;
}

/* The largest element of the force at the start. */
static inline double trial_force(trial *t) {
    basin_expr force = basin_energy_force(&t->energy, basin_energy_activation(&t->energy, t->x));
    basin_expr most = basin_max_all(basin_abs(force));
    basin_plan *plan = lab_plan(&t->lab, &most, 1);
    assert_ok(basin_plan_write(plan, t->x, &t->start, &failure));
    lab_run(plan);
    double value = basin_plan_scalar(plan, most);
    basin_plan_free(plan);
    return value;
}

#endif
