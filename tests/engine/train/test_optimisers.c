/* Lion, SGD with momentum and groups of parameters, against plain loops in double. */
#include <math.h>
#include <string.h>

#include "base/info.h"
#include "basin/train.h"
#include "engine/train/optimizer.h"
#include "support/lab.h"
#include "support/test.h"

enum { STEPS = 6, MATRIX = 6, VECTOR = 3 };

/* loss = |w - 1|^2 + 3 |b + 2|^2, w [2, 3], b [3] */
typedef struct bench {
    lab lab;
    basin_expr w, b;
    basin_optimizer adamw;
    basin_plan *plan;
} bench;

static double first_value(int i) { return 0.4 * i - 1; }

static void bench_open(bench *b, const char *backend, const basin_optimizer_config *config) {
    double number[MATRIX];
    lab_open(&b->lab, backend, 1);
    b->w = lab_state(&b->lab, "w", BASIN_SHAPE(2, 3));
    b->b = lab_state(&b->lab, "b", BASIN_SHAPE(VECTOR));
    for (int i = 0; i < MATRIX; i++) number[i] = first_value(i);
    lab_set(&b->lab, b->w, number);
    lab_set(&b->lab, b->b, number);
    basin_expr gap = basin_sum_all(basin_square(basin_offset(b->w, -1)));
    basin_expr other = basin_sum_all(basin_square(basin_offset(b->b, 2)));
    basin_expr loss = basin_add(gap, basin_scale(other, 3));
    assert_ok(basin_optimizer_new(&b->adamw, &b->lab.params, loss, config, &failure));
    basin_plan_spec spec = {.output = &b->adamw.norm,
                            .outputs = 1,
                            .update = b->adamw.update,
                            .updates = b->adamw.updates};
    assert_ok(basin_plan_new(&b->plan, b->lab.store, &spec, &failure));
}

static void bench_close(bench *b) {
    basin_plan_free(b->plan);
    basin_optimizer_free(&b->adamw);
    lab_close(&b->lab);
}

static void assert_state(bench *b, const char *name, const double *want, int count,
                         double tolerance) {
    basin_tensor found;
    assert_ok(basin_store_get(&found, b->lab.store, name, &failure));
    for (int i = 0; i < count; i++)
        assert_float_equal(basin_tensor_at(&found, i), want[i], tolerance);
    basin_tensor_free(&found);
}

typedef struct loop {
    double p[MATRIX], m[MATRIX];
} loop;

/* One parameter of the loop; `clip` scales its gradient. */
static void loop_step(loop *l, int count, double target, double pull, double clip, double rate,
                      double decay, const basin_optimizer_config *c) {
    for (int i = 0; i < count; i++) {
        double g = clip * 2 * pull * (l->p[i] - target), step = 0;
        if (c->kind == BASIN_OPTIMIZER_LION) {
            double mixed = c->beta1 * l->m[i] + (1 - c->beta1) * g;
            step = (mixed > 0) - (mixed < 0);
            l->m[i] = c->beta2 * l->m[i] + (1 - c->beta2) * g;
        } else {
            step = l->m[i] = c->beta1 * l->m[i] + g;
        }
        l->p[i] -= rate * (step + decay * l->p[i]);
    }
}

static double slow_vectors(void *context, basin_expr parameter) {
    (void)context;
    return basin_expr_shape(parameter).rank < 2 ? 0.25 : 1;
}

static void compare(const char *backend, double tolerance, basin_optimizer_config config) {
    BASIN_AT_EXIT(bench_close) bench b;
    loop w = {0}, v = {0};
    bench_open(&b, backend, &config);
    for (int i = 0; i < MATRIX; i++) w.p[i] = v.p[i] = first_value(i);
    for (int t = 1; t <= STEPS; t++) {
        double squares = 0, rate = 0.01 * t;
        for (int i = 0; i < MATRIX; i++) squares += 4 * (w.p[i] - 1) * (w.p[i] - 1);
        for (int i = 0; i < VECTOR; i++) squares += 36 * (v.p[i] + 2) * (v.p[i] + 2);
        double clip = config.clip > 0 ? fmin(1, config.clip / sqrt(squares)) : 1;
        assert_ok(basin_optimizer_write(&b.adamw, b.plan, t, rate, &failure));
        lab_run(b.plan);
        double decay = config.weight_decay;
        loop_step(&w, MATRIX, 1, 1, clip, rate, decay, &config);
        loop_step(&v, VECTOR, -2, 3, clip, config.rate_of ? 0.25 * rate : rate,
                  config.decay_matrices_only ? 0 : decay, &config);
        assert_state(&b, "w", w.p, MATRIX, tolerance);
        assert_state(&b, "b", v.p, VECTOR, tolerance);
        assert_state(&b, "w.m", w.m, MATRIX, 10 * tolerance);
    }
    assert_int_equal(lab_states(&b.lab), 4); /* no second moments */
}

TEST(steps) {
    const basin_optimizer_kind kinds[] = {BASIN_OPTIMIZER_LION, BASIN_OPTIMIZER_SGD};
    for (int i = 0; i < 2; i++)
        for (int group = 0; group < 2; group++) {
            basin_optimizer_config config = {
                .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1, .clip = 5, .kind = kinds[i]};
            if (group) config.decay_matrices_only = true, config.rate_of = slow_vectors;
            compare("ref", 1e-12, config);
            compare("cpu", 1e-5, config);
        }
}

static double only_matrices(void *context, basin_expr parameter) {
    (void)context;
    return basin_expr_shape(parameter).rank < 2 ? 0 : 1;
}

/* A parameter of rate 0 stays, has no moments, and counts in no norm; AdamW as well. */
TEST(frozen) {
    BASIN_AT_EXIT(bench_close) bench b;
    double want[VECTOR], squares = 0;
    basin_optimizer_config config = BASIN_OPTIMIZER_DEFAULT;
    config.rate_of = only_matrices;
    bench_open(&b, "ref", &config);
    for (int i = 0; i < VECTOR; i++) want[i] = first_value(i);
    for (int i = 0; i < MATRIX; i++) squares += 4 * pow(first_value(i) - 1, 2);
    assert_ok(basin_optimizer_write(&b.adamw, b.plan, 1, 0.1, &failure));
    lab_run(b.plan);
    assert_state(&b, "b", want, VECTOR, 0);
    assert_float_equal(basin_plan_scalar(b.plan, b.adamw.norm), sqrt(squares), 1e-12);
    assert_int_equal(b.adamw.updates, 3);
}

/* The same factors by name as by the functions; the first pattern that fits counts. */
TEST(groups_by_name) {
    static const basin_optimizer_group group[] = {{"b*", 0.25, 0}, {"*", 1, 1}, {"w", 0, 0}};
    double number[2][MATRIX];
    for (int named = 0; named < 2; named++) {
        bench b;
        basin_optimizer_config config = BASIN_OPTIMIZER_DEFAULT;
        if (named)
            config.group = group, config.groups = 3;
        else
            config.decay_matrices_only = true, config.rate_of = slow_vectors;
        bench_open(&b, "ref", &config);
        assert_ok(basin_optimizer_write(&b.adamw, b.plan, 1, 0.1, &failure));
        lab_run(b.plan);
        basin_tensor found = lab_value(&b.lab, b.w), other = lab_value(&b.lab, b.b);
        for (int i = 0; i < VECTOR; i++) {
            number[named][i] = basin_tensor_at(&found, i);
            number[named][VECTOR + i] = basin_tensor_at(&other, i);
        }
        basin_tensor_free(&found);
        basin_tensor_free(&other);
        bench_close(&b);
    }
    assert_memory_equal(number[0], number[1], sizeof number[0]);
}

TEST(a_group_of_nobody_is_refused) {
    static const char *const pattern[] = {"c", "*c*", "bb", "", "w*x"};
    for (size_t i = 0; i < sizeof pattern / sizeof *pattern; i++) {
        lab l;
        basin_optimizer adamw;
        basin_optimizer_group group = {pattern[i], 1, 1};
        basin_optimizer_config config = {.group = &group, .groups = 1};
        lab_open(&l, "ref", 1);
        basin_expr w = lab_state(&l, "w", BASIN_SHAPE(2)), b = lab_state(&l, "b", BASIN_SHAPE(2));
        basin_expr loss = basin_sum_all(basin_square(basin_add(w, b)));
        assert_failure(basin_optimizer_new(&adamw, &l.params, loss, &config, &failure),
                       BASIN_BAD_VALUE, "the first of 2 is 'w'");
        lab_close(&l);
    }
}
