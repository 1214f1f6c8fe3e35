/* Descent: the energy falls, the guard keeps it from rising, the tolerance stops it, noise has its
 * variance; unrolled and run alike; recomputation saves memory and changes no gradient. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/info.h"
#include "engine/energy/trial.h"

/* ---- the energy never rises ---- */

static void check_falls(const basin_descent_result *r, double slack, uint64_t seed,
                        const char *what) {
    for (int step = 0; step < r->steps; step++)
        for (int64_t i = 0; i < r->samples; i++) {
            double before = trial_energy(r, step, i), after = trial_energy(r, step + 1, i);
            if (!(after <= before + slack * fabs(before)))
                fail_msg("%s: block %d: the energy of sample %d rises from %.17g to %.17g in step "
                         "%d",
                         what, (int)seed, (int)i, before, after, step);
        }
}

TEST(small_steps) {
    double fallen = 0;
    for (uint64_t seed = 0; seed < 320; seed++) {
        trial t;
        trial_open(&t, seed, "ref");
        basin_descent_spec spec = {.steps = 10, .alpha = 1e-3 / (1 + trial_force(&t))};
        basin_descent_result r = trial_run(&t, &spec, NULL);
        assert_int_equal(r.steps, 10);
        check_falls(&r, 1e-13, seed, "small steps");
        fallen += trial_energy(&r, 0, 0) > trial_energy(&r, 10, 0);
        basin_descent_result_free(&r);
        trial_close(&t);
    }
    assert_true(fallen > 280); /* blocks without pairs or of two dimensions may stay */
}

static int64_t check_guard(uint64_t seed, double alpha, const char *backend) {
    trial t;
    trial_open(&t, seed, backend);
    basin_descent_spec spec = {.steps = 6, .alpha = alpha};
    basin_descent_result r = trial_run(&t, &spec, &(basin_stop){.guard = true});
    check_falls(&r, 0, seed, backend);
    if (basin_tensor_first_bad(r.x) >= 0) fail_msg("block %d: x is not finite", (int)seed);
    int64_t halvings = r.halvings;
    basin_descent_result_free(&r);
    trial_close(&t);
    return halvings;
}

TEST(guarded) {
    static const double alpha[] = {0.1, 1, 10, 1000};
    int64_t halvings = 0;
    for (uint64_t seed = 0; seed < 320; seed++)
        halvings += check_guard(seed, alpha[seed % 4], "ref");
    halvings += check_guard(63, 1000, "ref") + check_guard(126, 1000, "ref");
    assert_true(halvings > 30);
}

TEST(guarded_in_float) {
    static const double alpha[] = {0.1, 1, 10, 1000};
    for (uint64_t seed = 0; seed < 100; seed++) check_guard(seed, alpha[seed % 4], "cpu");
}

/* Without the guard such steps do raise it: the tests above have something to find. */
TEST(unguarded_rises) {
    int risen = 0;
    for (uint64_t seed = 60; seed < 80; seed++) {
        trial t;
        trial_open(&t, seed, "ref");
        basin_descent_spec spec = {.steps = 6, .alpha = 1000};
        basin_descent_result r = trial_run(&t, &spec, NULL);
        for (int step = 0; step < 6; step++)
            for (int64_t i = 0; i < r.samples; i++)
                risen += !(trial_energy(&r, step + 1, i) <= trial_energy(&r, step, i));
        assert_int_equal(r.halvings, 0);
        basin_descent_result_free(&r);
        trial_close(&t);
    }
    assert_true(risen > 3);
}

/* ---- an energy of one's own: k / 2 |g|^2 a sample, over x itself ---- */

typedef struct spring {
    lab lab;
    basin_energy energy;
    basin_expr stiffness; /* [B] */
} spring;

enum { B = 3, D = 4 };

static basin_expr pull(const void *context, basin_expr g) {
    basin_expr half = basin_scale(basin_sum(basin_square(g), -1, 1), 0.25);
    return basin_mul(((const spring *)context)->stiffness, half);
}

static void spring_open(spring *s, const char *backend, const double *stiffness) {
    lab_open(&s->lab, backend, 1);
    s->stiffness = lab_input(&s->lab, "stiffness", BASIN_SHAPE(B), stiffness);
    static const basin_term halves[] = {{"left", pull, NULL}, {"right", pull, NULL}};
    s->energy = (basin_energy){.term = halves, .terms = 2, .context = s};
}

static basin_descent_result spring_run(spring *s, const basin_descent_spec *spec,
                                       const basin_stop *stop, const double *start) {
    basin_descent *descent;
    basin_descent_result result;
    basin_tensor x = basin_tensor_view(start, BASIN_F64, BASIN_SHAPE(B, D));
    assert_ok(basin_descent_new(&descent, s->lab.store, &s->energy, s->lab.graph, x.shape, spec,
                                stop, &failure));
    lab_write(&s->lab, basin_descent_plan(descent));
    assert_ok(basin_descent_run(descent, &result, &x, &failure));
    basin_descent_free(descent);
    return result;
}

static const double start[B * D] = {1, -2, 3, 0.5, 1, 1, 1, 1, -4, 2, 0, 1};

/* x' = (1 - alpha k) x falls for alpha k <= 2: of 1000, 9 halvings make 1.95. */
TEST(halvings) {
    static const double stiffness[B] = {1, 0.001, 4};
    const char *backends[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        spring s;
        spring_open(&s, backends[i], stiffness);
        basin_descent_spec spec = {.steps = 5, .alpha = 1000};
        basin_descent_result r = spring_run(&s, &spec, &(basin_stop){.guard = true}, start);
        assert_int_equal(r.halvings, 5 * (9 + 0 + 11));
        double factor = pow(1 - 1000.0 / 512, 5), slow = pow(1 - 1.0, 5);
        for (int d = 0; d < D; d++) {
            assert_true(fabs(basin_tensor_at(r.x, d) - factor * start[d]) < 1e-5);
            assert_true(fabs(basin_tensor_at(r.x, D + d) - slow * start[D + d]) < 1e-6);
        }
        basin_descent_result_free(&r);
        lab_close(&s.lab);
    }
}

static basin_expr bowl(const void *context, basin_expr g) {
    (void)context;
    return basin_scale(basin_sum(basin_square(g), -1, 1), 0.5);
}
static const basin_energy round_bowl = {BASIN_TERMS({"bowl", bowl, NULL})};

/* x' = (1 - alpha) x: a descent without inputs takes several steps at once. */
TEST(schedules) {
    static const double size[10] = {0.5, 0, 0.25, 0, 0, 1.5, 0, 0, 0, 0.5};
    basin_tensor x = basin_tensor_view(start, BASIN_F64, BASIN_SHAPE(B, D));
    lab l = lab_new("ref", 1);
    basin_descent *descent;
    basin_descent_result r;
    basin_descent_spec spec = {.steps = 10, .schedule = size};
    assert_ok(
        basin_descent_new(&descent, l.store, &round_bowl, l.graph, x.shape, &spec, NULL, &failure));
    for (int round = 0; round < 3; round++) {
        double left = round == 0 ? -0.09375 : round == 1 ? 0.03125 : 0.5;
        if (round) spec = (basin_descent_spec){.steps = round == 1 ? 5 : 1, .alpha = 0.5};
        assert_int_equal(basin_descent_set(descent, &spec, NULL, NULL), BASIN_OK);
        assert_int_equal(basin_descent_run(descent, &r, &x, NULL), BASIN_OK);
        assert_int_equal(r.steps, spec.steps);
        for (int i = 0; i < B * D; i++) assert_true(basin_tensor_at(r.x, i) == left * start[i]);
        basin_descent_result_free(&r);
    }
    basin_stop guarded = {.guard = true};
    assert_int_equal(basin_descent_set(descent, &spec, &guarded, NULL), BASIN_BAD_VALUE);
    spec = (basin_descent_spec){.steps = 1, .schedule = (const double[]){-1}};
    assert_int_equal(basin_descent_set(descent, &spec, NULL, NULL), BASIN_BAD_VALUE);
    basin_descent_free(descent);
    lab_close(&l);
}

/* With alpha k = 1/4 the largest change shrinks by 3/4 a step, from 1 on. */
TEST(tolerance) {
    static const double stiffness[B] = {1, 1, 1};
    spring s;
    spring_open(&s, "ref", stiffness);
    basin_descent_spec spec = {.steps = 100, .alpha = 0.25};
    basin_stop stop = {.tolerance = 0.01};
    basin_descent_result r = spring_run(&s, &spec, &stop, start);
    int wanted = 1 + (int)ceil(log(0.01) / log(0.75));
    assert_int_equal(r.steps, wanted);
    assert_true(r.converged);
    for (int t = 0; t < r.steps; t++) assert_true(fabs(r.change[t] - pow(0.75, t)) < 1e-12);
    assert_true(r.change[wanted - 1] <= 0.01 && r.change[wanted - 2] > 0.01);
    double energy = basin_descent_total(&r, wanted), sum = 0;
    for (int i = 0; i < B * D; i++) sum += pow(basin_tensor_at(r.x, i), 2) / 2;
    assert_true(fabs(energy - sum) < 1e-12);
    basin_descent_result_free(&r);

    spec.steps = wanted - 1;
    r = spring_run(&s, &spec, &stop, start);
    assert_int_equal(r.steps, wanted - 1);
    assert_false(r.converged);
    basin_descent_result_free(&r);
    lab_close(&s.lab);
}

/* Blocks come to rest, though slowly: tokens grow along the force, and g turns ever less. */
TEST(fixed_point) {
    for (uint64_t seed = 3; seed < 9; seed++) {
        trial t;
        trial_open(&t, seed, "ref");
        basin_descent_spec spec = {.steps = 1000, .alpha = 0.5};
        basin_stop stop = {.tolerance = 2e-3, .guard = true};
        basin_descent_result r = trial_run(&t, &spec, &stop);
        assert_true(r.converged);
        assert_true(r.steps > 10 && r.steps < 1000);
        assert_true(r.change[r.steps - 1] <= 2e-3 && r.change[r.steps - 2] > 2e-3);
        assert_true(r.change[0] > 0.1);
        check_falls(&r, 0, seed, "to a fixed point");
        basin_descent_result_free(&r);
        trial_close(&t);
    }
}

TEST(no_steps) {
    static const double stiffness[B] = {1, 2, 3};
    spring s;
    spring_open(&s, "ref", stiffness);
    basin_descent_spec spec = {.steps = 0, .alpha = 1};
    basin_stop stop = {.tolerance = 1, .guard = true};
    basin_descent_result r = spring_run(&s, &spec, &stop, start);
    assert_int_equal(r.steps, 0);
    assert_false(r.converged);
    assert_int_equal(r.terms, 2);
    assert_int_equal(r.samples, B);
    double wanted = (1 + 4 + 9 + 0.25) / 2 + 4.0 / 2 * 2 + (16 + 4 + 0 + 1) / 2.0 * 3;
    assert_true(fabs(basin_descent_total(&r, 0) - wanted) < 1e-12);
    assert_memory_equal(r.x->data, start, sizeof start);
    assert_memory_equal(r.g->data, start, sizeof start);
    basin_descent_result_free(&r);
    lab_close(&s.lab);

    trial t; /* where g is not x */
    trial_open(&t, 3, "ref");
    r = trial_run(&t, &spec, &stop);
    basin_expr g = basin_energy_activation(&t.energy, t.x);
    basin_plan *plan = lab_plan(&t.lab, &g, 1);
    basin_plan_write(plan, t.x, &t.start, NULL);
    lab_run(plan);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor found = lab_read(plan, g);
    lab_assert_near(r.g, &found, 0, "g");
    basin_plan_free(plan);
    basin_descent_result_free(&r);
    trial_close(&t);
}

/* ---- noise ---- */

enum { MANY = 20000 };

/* No force at all. */
static basin_expr flat(const void *context, basin_expr g) {
    (void)context;
    return basin_scale(basin_sum_all(g), 0);
}
static const basin_energy no_force = {BASIN_TERMS({"flat", flat, NULL})};

static basin_tensor noisy(const char *backend, uint64_t seed, int steps) {
    lab l = lab_new(backend, 1);
    basin_descent_spec spec = {.steps = steps, .alpha = 0.25, .noise = 0.6};
    basin_descent *descent;
    basin_descent_result result;
    basin_tensor zero;
    assert_int_equal(basin_tensor_new(&zero, BASIN_F64, BASIN_SHAPE(MANY), NULL), BASIN_OK);
    assert_ok(basin_descent_new(&descent, l.store, &no_force, l.graph, zero.shape, &spec,
                                &(basin_stop){.seed = seed}, &failure));
    assert_int_equal(basin_descent_run(descent, &result, &zero, NULL), BASIN_OK);
    basin_tensor end = result.x[0];
    result.x[0] = (basin_tensor){0};
    basin_descent_result_free(&result);
    basin_descent_free(descent);
    basin_tensor_free(&zero);
    lab_close(&l);
    return end;
}

static double covariance(const basin_tensor *a, const basin_tensor *b) {
    double sum = 0;
    for (int64_t i = 0; i < MANY; i++) sum += basin_tensor_at(a, i) * basin_tensor_at(b, i);
    return sum / MANY;
}

TEST(noise) {
    const char *backends[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        basin_tensor one = noisy(backends[i], 5, 1), again = noisy(backends[i], 5, 1);
        basin_tensor other = noisy(backends[i], 6, 1), two = noisy(backends[i], 5, 2);
        double variance = 0.25 * 0.6 * 0.6;
        assert_memory_equal(one.data, again.data, basin_tensor_bytes(&one));
        assert_true(fabs(covariance(&one, &one) / variance - 1) < 0.05);
        assert_true(fabs(covariance(&other, &other) / variance - 1) < 0.05);
        assert_true(fabs(covariance(&one, &other) / variance) < 0.05);
        assert_true(fabs(covariance(&two, &two) / variance - 2) < 0.1);
        assert_true(fabs(covariance(&one, &two) / variance - 1) < 0.05); /* one + new noise */
        basin_tensor_free(&one);
        basin_tensor_free(&again);
        basin_tensor_free(&other);
        basin_tensor_free(&two);
    }
}

TEST(noise_unrolled) {
    BASIN_AT_EXIT(lab_close) lab l = lab_new("ref", 1);
    basin_expr x = basin_full(l.graph, BASIN_SHAPE(MANY), 0);
    int32_t words[2] = {3, 4};
    basin_descent_spec spec = {.steps = 3, .alpha = 0.25, .noise = 0.6};
    spec.seed = lab_index(&l, "seed", words, 2);
    basin_expr end = basin_descend(&no_force, x, &spec, NULL);
    basin_tensor a = lab_value(&l, end);
    assert_true(fabs(covariance(&a, &a) / (3 * 0.25 * 0.36) - 1) < 0.05);
    words[0] = 5;
    lab_give(&l, spec.seed, words);
    basin_tensor b = lab_value(&l, end);
    assert_true(fabs(covariance(&a, &b)) < 0.02);
    basin_tensor_free(&a);
    basin_tensor_free(&b);
    spec.seed = NULL;
    assert_null(basin_descend(&no_force, x, &spec, NULL));
    assert_non_null(strstr(basin_graph_error(l.graph)->text, "seed"));
}

/* ---- unrolled and run ---- */

/* The tokens after each number of steps, and every energy of the trace, are the same. */
static void check_unrolled(uint64_t seed, const char *backend, double tolerance) {
    enum { STEPS = 4 };
    trial t;
    trial_open(&t, seed, backend);
    basin_descent_spec spec = {.steps = STEPS, .alpha = 0.05};
    BASIN_AT_EXIT(basin_descent_result_free) basin_descent_result r = trial_run(&t, &spec, NULL);
    basin_expr trace[(STEPS + 1) * 3], output[(STEPS + 1) * 3 + 2];
    int count = (STEPS + 1) * t.energy.terms;
    output[count] = basin_descend(&t.energy, t.x, &spec, trace);
    output[count + 1] = basin_energy_activation(&t.energy, output[count]);
    memcpy(output, trace, (size_t)count * sizeof *trace);
    basin_plan *plan = lab_plan(&t.lab, output, count + 2);
    basin_plan_write(plan, t.x, &t.start, NULL);
    lab_run(plan);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor end = lab_read(plan, output[count]), g = lab_read(plan, output[count + 1]);
    lab_assert_near(r.x, &end, tolerance, "tokens");
    lab_assert_near(r.g, &g, tolerance, "activations");
    for (int i = 0; i < count; i++) {
        basin_tensor energy = lab_read(plan, trace[i]);
        basin_tensor run = basin_tensor_borrow(r.energy + i * r.samples, BASIN_F64, energy.shape);
        lab_assert_near(&run, &energy, tolerance, "energies");
        basin_tensor_free(&energy);
    }
    basin_plan_free(plan);
    trial_close(&t);
}

TEST(unrolled) {
    for (uint64_t seed = 0; seed < 40; seed++) {
        check_unrolled(seed, "ref", 1e-12);
        check_unrolled(seed, "cpu", 2e-5);
    }
}

/* Each term of the trace is that term's energy at the tokens of that step, computed afresh. */
TEST(trace_is_right) {
    for (uint64_t seed = 0; seed < 20; seed++) {
        trial t;
        trial_open(&t, seed, "ref");
        basin_descent_spec spec = {.steps = 3, .alpha = 0.05}, upto = spec;
        basin_descent_result r = trial_run(&t, &spec, NULL);
        for (upto.steps = 0; upto.steps <= 3; upto.steps++) {
            basin_descent_result partial = trial_run(&t, &upto, NULL);
            for (int p = 0; p < r.terms; p++) {
                basin_expr e = basin_energy_term(&t.energy, basin_block_norm(&t.block, t.x), p);
                basin_plan *plan = lab_plan(&t.lab, &e, 1);
                basin_plan_write(plan, t.x, partial.x, NULL);
                lab_run(plan);
                basin_tensor fresh = lab_read(plan, e);
                basin_tensor traced = basin_tensor_borrow(
                    r.energy + (upto.steps * r.terms + p) * r.samples, BASIN_F64, fresh.shape);
                lab_assert_near(&traced, &fresh, 1e-12, "trace");
                basin_tensor_free(&fresh);
                basin_plan_free(plan);
            }
            basin_descent_result_free(&partial);
        }
        basin_descent_result_free(&r);
        trial_close(&t);
    }
}

/* ---- recomputation ---- */

enum { GRADIENTS = 6 };

/* The gradients of a loss through a descent, as a plan. */
typedef struct training {
    lab lab;
    basin_block block;
    basin_expr gradient[GRADIENTS];
    basin_plan *plan;
} training;

static void training_open(training *t, const char *backend, int steps, bool recompute) {
    lab *l = &t->lab;
    basin_block_config config = {.dim = 32, .heads = 2, .head_dim = 16, .memories = 64};
    basin_pattern others = BASIN_OTHER_PAIRS;
    lab_open(l, backend, 1);
    basin_block_declare(&t->block, &l->params, "", &config);
    basin_expr x = lab_state(l, "x", BASIN_SHAPE(4, 48, 32));
    lab_fill(l, 2, 0.4);
    basin_block_bound bound = {.block = &t->block, .pattern = &others};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = {.steps = steps, .alpha = 0.05, .recompute = recompute};
    basin_expr end = basin_descend(&energy, x, &spec, NULL);
    basin_expr state[GRADIENTS];
    assert_int_equal(l->params.count, GRADIENTS);
    for (int i = 0; i < GRADIENTS; i++) state[i] = l->params.param[i].state;
    basin_vjp(t->gradient, basin_sum_all(basin_square(end)), NULL, state, GRADIENTS);
    t->plan = lab_plan(l, t->gradient, GRADIENTS);
}

static void training_close(training *t) {
    basin_plan_free(t->plan);
    lab_close(&t->lab);
}

/* One token tensor a step, and little else, grows with the number of steps. */
static void check_memory(const char *backend, double real) {
    const double token = 4 * 48 * 32 * real;
    double kept[4], full[4];
    for (int i = 0; i < 4; i++)
        for (int recompute = 0; recompute < 2; recompute++) {
            training t;
            training_open(&t, backend, 2 << i, recompute);
            basin_plan_stats stats = basin_plan_stats_of(t.plan);
            (recompute ? kept : full)[i] = (double)stats.arena_bytes / token;
            assert_true((stats.recomputed > 0) == recompute);
            training_close(&t);
        }
    for (int i = 1; i < 4; i++) {
        double steps = 1 << i, grown = (kept[i] - kept[i - 1]) / steps;
        double without = (full[i] - full[i - 1]) / steps;
        if (!(grown <= 1.2)) fail_msg("%s: %g token tensors a step", backend, grown);
        if (!(without >= 4)) fail_msg("%s: only %g without recomputation", backend, without);
    }
    assert_true(kept[3] < 0.35 * full[3]);
}

TEST(memory) {
    check_memory("ref", 8);
    check_memory("cpu", 4);
}

TEST(recomputation) {
    const char *backends[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        training a, b;
        training_open(&a, backends[i], 4, false);
        training_open(&b, backends[i], 4, true);
        lab_run(a.plan);
        lab_run(b.plan);
        for (int k = 0; k < GRADIENTS; k++) {
            basin_tensor x = lab_read(a.plan, a.gradient[k]), y = lab_read(b.plan, b.gradient[k]);
            lab_assert_near(&y, &x, i ? 1e-5 : 1e-12, "recomputed");
            basin_tensor_free(&x);
            basin_tensor_free(&y);
        }
        training_close(&a);
        training_close(&b);
    }
}

/* ---- errors ---- */

static basin_expr for_each(const void *context, basin_expr g) {
    (void)context;
    return basin_sum(basin_square(g), -1, 1);
}
static basin_expr for_all(const void *context, basin_expr g) {
    return basin_sum_all(for_each(context, g));
}

static void refuse_stop(spring *s, basin_descent_spec spec, basin_stop stop, basin_energy energy,
                        const char *text) {
    basin_descent *descent;
    assert_failed(basin_descent_new(&descent, s->lab.store, &energy, s->lab.graph,
                                    BASIN_SHAPE(B, D), &spec, &stop, &failure),
                  text);
    assert_null(descent);
}

static void refuse(spring *s, basin_descent_spec spec, basin_energy energy, const char *text) {
    refuse_stop(s, spec, (basin_stop){0}, energy, text);
}

TEST(errors) {
    static const double stiffness[B] = {1, 1, 1};
    spring s;
    spring_open(&s, "ref", stiffness);
    basin_descent_spec good = {.steps = 2, .alpha = 0.1};
    refuse(&s, (basin_descent_spec){.steps = -1, .alpha = 1}, s.energy, "-1 steps");
    refuse(&s, (basin_descent_spec){.steps = 1, .alpha = NAN}, s.energy, "nan");
    refuse(&s, (basin_descent_spec){.steps = 1, .alpha = -2}, s.energy, "-2");
    refuse(&s, (basin_descent_spec){.steps = 1, .alpha = 1, .noise = NAN}, s.energy, "noise nan");
    refuse(&s, (basin_descent_spec){.steps = 1, .alpha = 1, .noise = -1}, s.energy, "noise -1");
    refuse_stop(&s, good, (basin_stop){.tolerance = NAN}, s.energy, "tolerance nan");
    refuse_stop(&s, good, (basin_stop){.until = -1}, s.energy, "until -1");
    refuse_stop(&s, (basin_descent_spec){.steps = 1, .alpha = 1, .noise = 0.5},
                (basin_stop){.guard = true}, s.energy, "noise 0.5 together with the guard");
    basin_energy none = s.energy;
    none.terms = 0;
    refuse(&s, good, none, "0 terms");

    basin_descent *descent;
    basin_descent_result result;
    basin_error error = {0};
    double number[B * D] = {0};
    basin_tensor transposed = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(D, B));
    assert_ok(basin_descent_new(&descent, s.lab.store, &s.energy, s.lab.graph, BASIN_SHAPE(B, D),
                                &good, NULL, &failure));
    assert_int_equal(basin_descent_run(descent, &result, &transposed, &error), BASIN_BAD_SHAPE);
    assert_non_null(strstr(error.text, "[3, 4]"));
    assert_non_null(strstr(error.text, "[4, 3]"));
    assert_null(result.energy);
    basin_descent_free(descent);
    refuse(&s, good, (basin_energy){BASIN_TERMS({"a", for_each, NULL}, {"b", for_all, NULL})},
           "term 'b' has shape [], term 'a' has [3]");
    lab_close(&s.lab);
}

static basin_expr nothing(const void *context, basin_expr g) {
    (void)context, (void)g;
    return NULL;
}

static basin_expr no_activation(const void *context, basin_expr x) {
    (void)context, (void)x;
    return NULL;
}

/* A term that its function left out is named, whoever asks for the energy. */
TEST(null_terms) {
    static const char says[] = "term 1 of an energy ('pull') is NULL; expected an expression";
    const basin_energy energy = {BASIN_TERMS({"field", for_each, NULL}, {"pull", nothing, NULL})};
    const basin_descent_spec spec = {.steps = 1, .alpha = 1};
    for (int i = 0; i < 3; i++) {
        spring s;
        spring_open(&s, "ref", (double[B]){1, 1, 1});
        basin_expr x = basin_input(s.lab.graph, "x", BASIN_SHAPE(B, D));
        if (i == 0) assert_null(basin_energy_force(&energy, x));
        if (i == 1) assert_null(basin_energy_total(&energy, x));
        if (i == 2) refuse(&s, spec, energy, says);
        assert_string_equal(basin_graph_error(s.lab.graph)->text, says);
        lab_close(&s.lab);
    }
    spring s;
    spring_open(&s, "ref", (double[B]){1, 1, 1});
    s.energy.activation = no_activation;
    refuse(&s, spec, s.energy, "activation is NULL");
    lab_close(&s.lab);
    spring_open(&s, "ref", (double[B]){1, 1, 1});
    refuse(&s, spec, (basin_energy){BASIN_TERMS({"empty", NULL, NULL})},
           "term 0 of an energy ('empty') has no function that builds it");
    lab_close(&s.lab);
}
