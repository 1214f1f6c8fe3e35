/* The network: the oracle's case, an energy that never rises, clamping, batches, stopping, shared
 * starting points, training. */
#include <string.h>

#include "base/info.h"
#include "basin/energy.h"
#include "basin/random.h"
#include "engine/core/philox.h"
#include "engine/energy/ham_run.h"
#include "golden.h"
#include "rig.h"
#include "support/lab.h"

/* ---- the oracle ---- */

static basin_tensor batch_of_one(const basin_tensor *from) {
    basin_shape shape = {.rank = from->shape.rank + 1, .dim = {1}};
    for (int i = 0; i < from->shape.rank; i++) shape.dim[i + 1] = from->shape.dim[i];
    return basin_tensor_borrow(from->data, from->dtype, shape);
}

static void give(rig *r, const basin_bundle *golden, const char *state, const char *key) {
    assert_ok(basin_store_write(r->store, state, golden_get(golden, key), &failure));
}

static void assert_close(const basin_tensor *got, const basin_tensor *want, double tolerance,
                         const char *what) {
    double distance = check_distance(got, want);
    if (!(distance < tolerance)) fail_msg("%s is off by %g", what, distance);
}

/* The paper's block as a network: one layer of tokens with a layer norm, attention and a ReLU
 * memory on it, descended without the neurons' own energy. */
TEST(test_block) {
    enum { N = 13, D = 20, H = 3, Y = 7, M = 31 };
    BASIN_AT_EXIT(free_bundle) basin_bundle *golden = golden_open("block_relu");
    BASIN_AT_EXIT(rig_close) rig r;
    BASIN_AT_EXIT(basin_descent_result_free) basin_descent_result result;
    rig_open(&r, "ref");
    basin_lagrangian norm = {.name = "layernorm",
                             .gamma = basin_state(r.graph, "gamma", BASIN_SCALAR),
                             .delta = basin_state(r.graph, "delta", BASIN_SHAPE(D))};
    basin_expr beta = basin_state(r.graph, "beta", BASIN_SHAPE(H));
    basin_ham_layer(r.ham,
                    &(basin_layer){.name = "x", .shape = BASIN_SHAPE(N, D), .lagrangian = norm});
    basin_ham_synapse(r.ham, &(basin_synapse){.name = "att",
                                              .kind = BASIN_SYNAPSE_ATTENTION,
                                              .heads = H,
                                              .head_dim = Y,
                                              .hidden = {.beta = beta},
                                              .pattern = BASIN_OTHER_PAIRS});
    basin_ham_synapse(r.ham, &(basin_synapse){.name = "hn",
                                              .kind = BASIN_SYNAPSE_MEMORY,
                                              .units = M,
                                              .rows = BASIN_ROWS_EACH,
                                              .hidden = {.name = "relu"}});
    basin_ham_connect(r.ham, "att", "x");
    basin_ham_connect(r.ham, "hn", "x");
    give(&r, golden, "att.wq", "in.wq");
    give(&r, golden, "att.wk", "in.wk");
    give(&r, golden, "hn.xi", "in.xi");
    give(&r, golden, "gamma", "in.gamma");
    give(&r, golden, "delta", "in.delta");
    give(&r, golden, "beta", "in.beta");
    basin_tensor start = batch_of_one(golden_get(golden, "in.x0"));
    basin_ham_spec spec = {.steps = (int)golden_number(golden, "steps"),
                           .dt = golden_number(golden, "alpha"),
                           .synapses_only = true};
    assert_ok(ham_run(r.ham, r.store, &result, &start, &spec, NULL, &failure));
    assert_close(&result.x[0], golden_get(golden, "out.xT"), 1e-9, "out.xT");
}

/* ---- random networks ---- */

static int pick(basin_random *random, int n) {
    return (int)basin_random_below(random, (uint64_t)n);
}

static void add_random_synapse(basin_ham *ham, basin_random *random, int i, int layers) {
    static const char *const hidden[] = {"softmax", "relu", "tanh", "sigmoid"};
    char name[16], ends[32];
    int a = pick(random, layers), b = pick(random, layers), kind = pick(random, 6);
    basin_synapse s = {.name = name,
                       .deviation = 0.3,
                       .units = 2 + pick(random, 4),
                       .heads = 1 + pick(random, 2),
                       .head_dim = 2,
                       .bias = pick(random, 2),
                       .normalize = pick(random, 2),
                       .hidden = {.name = hidden[pick(random, 4)]}};
    snprintf(name, sizeof name, "s%d", i);
    snprintf(ends, sizeof ends, kind == 0 || kind == 4 ? "l%d" : "l%d, l%d", a, b);
    s.kind = (basin_synapse_kind[]){BASIN_SYNAPSE_MEMORY, BASIN_SYNAPSE_LINEAR,
                                    BASIN_SYNAPSE_HIDDEN, BASIN_SYNAPSE_TENSOR,
                                    BASIN_SYNAPSE_BIAS,   BASIN_SYNAPSE_ATTENTION}[kind];
    if (kind == 5) { /* a norm over a width of 2 is a step, too steep for any fixed dt */
        s.hidden.name = NULL;
        s.normalize = false;
        s.pattern.exclude_self = a == b;
    }
    basin_ham_synapse(ham, &s);
    basin_ham_connect(ham, name, ends);
}

/* Two to four layers with any Lagrangians (tame: no exponentials, whose energies have no lower
 * bound), three to five synapses of any kind. */
static void build_random(rig *r, uint64_t seed, bool tame) {
    basin_random random = basin_random_start(seed, 99, 0);
    int layers = 2 + pick(&random, 3), synapses = 3 + pick(&random, 3);
    for (int i = 0; i < layers; i++) {
        char name[16];
        const char *lagrangian = basin_lagrangian_name(pick(&random, 11));
        if (tame && strstr(lagrangian, "exp")) lagrangian = "tanh";
        snprintf(name, sizeof name, "l%d", i);
        basin_layer layer = {.name = name,
                             .shape = BASIN_SHAPE(2, 3),
                             .lagrangian = {.name = lagrangian},
                             .tau = 0.5 + pick(&random, 3),
                             .bias = pick(&random, 2)};
        basin_ham_layer(r->ham, &layer);
    }
    for (int i = 0; i < synapses; i++) add_random_synapse(r->ham, &random, i, layers);
}

static void assert_never_rises(const basin_descent_result *result, double slack, uint64_t seed) {
    for (int t = 0; t < result->steps; t++) {
        double before = basin_descent_total(result, t), after = basin_descent_total(result, t + 1);
        if (before < -1e6) break; /* exponentials on their way to minus infinity */
        if (!(after <= before + slack * (1 + fabs(before))))
            fail_msg("network %d: the energy rises from %.17g to %.17g in step %d", (int)seed,
                     before, after, t);
    }
}

TEST(test_energy_never_rises) {
    for (uint64_t seed = 0; seed < 200; seed++) {
        rig r;
        basin_descent_result result;
        basin_ham_spec spec = {.steps = 8, .dt = 0.01, .synapses_only = seed % 4 == 3};
        rig_open(&r, "ref");
        build_random(&r, seed, false);
        rig_start(&r, 1, seed);
        assert_ok(ham_run(r.ham, r.store, &result, r.number, &spec, NULL, &failure));
        assert_never_rises(&result, 1e-12, seed);
        assert_int_equal(result.steps, 8);
        basin_descent_result_free(&result);
        rig_close(&r);
    }
}

/* With the guard on it does not rise at any step size, and samples do not disturb each other. */
TEST(test_guard) {
    int64_t halvings = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        rig r;
        basin_descent_result result;
        basin_ham_spec spec = {.steps = 6, .dt = seed % 2 ? 2.5 : 20};
        basin_stop stop = {.guard = true};
        rig_open(&r, seed % 3 ? "ref" : "cpu");
        build_random(&r, seed, false);
        rig_start(&r, 3, seed);
        assert_ok(ham_run(r.ham, r.store, &result, r.number, &spec, &stop, &failure));
        for (int64_t b = 0; b < 3; b++)
            for (int t = 0; t < result.steps; t++) {
                double total[2] = {0, 0};
                for (int p = 0; p < result.terms; p++)
                    for (int k = 0; k < 2; k++)
                        total[k] += result.energy[((t + k) * result.terms + p) * 3 + b];
                if (!(total[1] <= total[0])) fail_msg("network %d rises", (int)seed);
            }
        halvings += result.halvings;
        basin_descent_result_free(&result);
        rig_close(&r);
    }
    assert_true(halvings > 0);
}

/* dE/dg of the whole is x + dE_synapses/dg: seen from x it is the Hessian of L away. */
TEST(test_gradient_is_of_the_energy) {
    for (uint64_t seed = 0; seed < 40; seed++) {
        rig r;
        basin_expr dEdg[RIG_LAYERS], g[RIG_LAYERS], pulled;
        rig_open(&r, "ref");
        build_random(&r, seed, false);
        rig_start(&r, 2, seed);
        basin_expr energy = basin_ham_energy(r.ham, r.x, false);
        basin_ham_gradient(r.ham, dEdg, r.x, false);
        for (int i = 0; i < r.layers; i++) g[i] = basin_ham_activation(r.ham, i, r.x[i]);
        for (int i = 0; i < r.layers; i++) {
            basin_vjp(&pulled, g[i], dEdg[i], &r.x[i], 1);
            basin_tensor a = rig_value(&r, basin_grad(energy, r.x[i]));
            basin_tensor b = rig_value(&r, pulled);
            double off = check_distance(&a, &b), size = 0;
            for (int64_t k = 0; k < basin_shape_count(b.shape); k++)
                size += fabs(basin_tensor_at(&b, k));
            if (!(off < 1e-9 || size < 1e-9)) fail_msg("network %d: off by %g", (int)seed, off);
            basin_tensor_free(&a);
            basin_tensor_free(&b);
        }
        rig_close(&r);
    }
}

/* ---- batches, traces, clamping ---- */

TEST(test_batch_equals_singles) {
    enum { B = 3, SIZE = 6 };
    for (uint64_t seed = 0; seed < 12; seed++) {
        rig r;
        basin_descent_result all, one;
        basin_ham_spec spec = {.steps = 4, .dt = seed % 2 ? 0.2 : 4};
        basin_stop stop = {.guard = seed % 2 == 0};
        rig_open(&r, "ref");
        build_random(&r, seed, true);
        rig_start(&r, B, seed);
        assert_ok(ham_run(r.ham, r.store, &all, r.number, &spec, &stop, &failure));
        for (int64_t b = 0; b < B; b++) {
            basin_tensor part[RIG_LAYERS];
            for (int i = 0; i < r.layers; i++)
                part[i] = basin_tensor_borrow((double *)r.number[i].data + b * SIZE, BASIN_F64,
                                              BASIN_SHAPE(1, 2, 3));
            assert_ok(ham_run(r.ham, r.store, &one, part, &spec, &stop, &failure));
            for (int i = 0; i < r.layers; i++)
                for (int k = 0; k < SIZE; k++)
                    assert_true(fabs(((double *)all.x[i].data)[b * SIZE + k] -
                                     ((double *)one.x[i].data)[k]) < 1e-12);
            for (int p = 0; p < all.terms; p++)
                assert_true(fabs(all.energy[(4 * all.terms + p) * B + b] -
                                 one.energy[4 * one.terms + p]) < 1e-11);
            basin_descent_result_free(&one);
        }
        basin_descent_result_free(&all);
        rig_close(&r);
    }
}

/* The unrolled descent is the same as the run, with recomputation and without. */
TEST(test_unrolled_equals_run) {
    for (uint64_t seed = 0; seed < 10; seed++) {
        rig r;
        basin_descent_result result;
        basin_expr end[RIG_LAYERS], trace[5 * 16];
        basin_ham_spec spec = {.steps = 4, .dt = 0.3, .recompute = seed % 2};
        rig_open(&r, "ref");
        build_random(&r, seed, true);
        rig_start(&r, 2, seed);
        assert_ok(ham_run(r.ham, r.store, &result, r.number, &spec, NULL, &failure));
        basin_ham_descend(r.ham, end, r.x, &spec, trace);
        for (int i = 0; i < r.layers; i++) {
            basin_tensor x = rig_value(&r, end[i]);
            assert_close(&x, &result.x[i], 1e-13, "x");
            basin_tensor_free(&x);
        }
        for (int i = 0; i < 5 * result.terms; i++) {
            basin_tensor e = rig_value(&r, trace[i]);
            basin_tensor want =
                basin_tensor_borrow(result.energy + 2 * i, BASIN_F64, BASIN_SHAPE(2));
            assert_close(&e, &want, 1e-10, "trace");
            basin_tensor_free(&e);
        }
        if (seed % 2) rig_check_loss(&r, basin_sum_all(basin_square(end[0])), "loss", 1e-4);
        basin_descent_result_free(&result);
        rig_close(&r);
    }
}

TEST(test_clamping) {
    BASIN_AT_EXIT(rig_close) rig r;
    BASIN_AT_EXIT(basin_descent_result_free) basin_descent_result result;
    basin_descent *descent;
    rig_open(&r, "cpu");
    for (int i = 0; i < 3; i++)
        basin_ham_layer(r.ham, &(basin_layer){.name = (const char *[]){"a", "b", "c"}[i],
                                              .shape = BASIN_SHAPE(4),
                                              .lagrangian = {.name = "tanh"}});
    basin_ham_synapse(
        r.ham, &(basin_synapse){.name = "s", .kind = BASIN_SYNAPSE_LINEAR, .deviation = 0.5});
    basin_ham_connect(r.ham, "s", "a, b, c");
    basin_expr some = basin_input(r.graph, "mask", BASIN_SHAPE(4));
    basin_expr mask[3] = {basin_scalar(r.graph, 0), some, NULL};
    rig_start(&r, 2, 11);
    assert_ok(basin_ham_descent_new(&descent, r.ham, r.store, 2,
                                    &(basin_ham_spec){.steps = 5, .dt = 0.2, .mask = mask}, NULL,
                                    &failure));
    double free_ones[4] = {1, 0, 1, 0};
    basin_tensor number = basin_tensor_borrow(free_ones, BASIN_F64, BASIN_SHAPE(4));
    assert_ok(basin_plan_write(basin_descent_plan(descent), some, &number, &failure));
    assert_ok(basin_descent_run(descent, &result, r.number, &failure));
    assert_never_rises(&result, 1e-6, 0);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 8; k++) {
            double before = ((double *)r.number[i].data)[k], now = ((double *)result.x[i].data)[k];
            bool clamped = i == 0 || (i == 1 && k % 2);
            assert_int_equal(clamped, (float)before == (float)now);
        }
    basin_descent_free(descent);
}

/* Without synapses x decays to nothing at the rate dt / tau; with synapses_only nothing decays. */
TEST(test_decay) {
    for (int only = 0; only < 2; only++) {
        rig r;
        basin_descent_result result;
        basin_ham_spec spec = {.steps = 3, .dt = 0.5, .synapses_only = only};
        rig_open(&r, "ref");
        basin_ham_layer(r.ham, &(basin_layer){.name = "a", .shape = BASIN_SHAPE(2), .tau = 2});
        rig_start(&r, 1, 1);
        assert_ok(ham_run(r.ham, r.store, &result, r.number, &spec, NULL, &failure));
        double factor = only ? 1 : pow(0.75, 3);
        for (int k = 0; k < 2; k++)
            assert_true(fabs(((double *)result.x[0].data)[k] -
                             factor * ((double *)r.number[0].data)[k]) < 1e-15);
        basin_descent_result_free(&result);
        rig_close(&r);
    }
}

TEST(test_tolerance) {
    BASIN_AT_EXIT(rig_close) rig r;
    basin_descent_result result;
    basin_ham_spec spec = {.steps = 500, .dt = 0.5};
    basin_stop stop = {.tolerance = 1e-8};
    rig_open(&r, "ref");
    basin_ham_layer(
        r.ham,
        &(basin_layer){.name = "a", .shape = BASIN_SHAPE(4), .lagrangian = {.name = "tanh"}});
    basin_ham_synapse(r.ham,
                      &(basin_synapse){.name = "m", .kind = BASIN_SYNAPSE_MEMORY, .units = 3});
    basin_ham_connect(r.ham, "m", "a");
    rig_start(&r, 2, 2);
    assert_ok(ham_run(r.ham, r.store, &result, r.number, &spec, &stop, &failure));
    assert_true(result.converged && result.steps > 5 && result.steps < 100);
    assert_true(result.change[result.steps - 1] <= 1e-8 && result.change[result.steps - 2] > 1e-8);
    basin_descent_result_free(&result);
    spec.steps = 0;
    assert_ok(ham_run(r.ham, r.store, &result, r.number, &spec, &stop, &failure));
    assert_int_equal(result.steps, 0);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor energy = rig_value(&r, basin_ham_energy(r.ham, r.x, false));
    double want = basin_tensor_at(&energy, 0) + basin_tensor_at(&energy, 1);
    assert_true(fabs(basin_descent_total(&result, 0) - want) < 1e-12);
    basin_descent_result_free(&result);
}

/* Layers that start from the same constant, or from one another, are still two layers. */
TEST(test_equal_starts) {
    static const char *const lagrangian[] = {"identity", "tanh", "softmax", "sigmoid", "spherical"};
    for (int l = 0; l < 5; l++) {
        rig r;
        basin_expr two[2], apart[2], dEdg[2], want[2];
        rig_open(&r, "ref");
        for (int i = 0; i < 2; i++)
            basin_ham_layer(r.ham, &(basin_layer){.name = i ? "b" : "a",
                                                  .shape = BASIN_SHAPE(3),
                                                  .lagrangian = {.name = lagrangian[l]}});
        basin_ham_synapse(
            r.ham, &(basin_synapse){.name = "s", .kind = BASIN_SYNAPSE_LINEAR, .deviation = 0.5});
        basin_ham_connect(r.ham, "s", "a, b");
        rig_start(&r, 2, 5);
        for (int kind = 0; kind < 2; kind++) {
            double value = 0.7;
            for (int i = 0; i < 2; i++) {
                two[i] = basin_full(r.graph, BASIN_SHAPE(2, 3), value);
                apart[i] = r.x[i];
                for (int k = 0; k < 6; k++) ((double *)r.number[i].data)[k] = value;
            }
            if (kind) { /* b starts as tanh(a) */
                two[0] = r.x[0];
                two[1] = basin_tanh(r.x[0]);
                for (int k = 0; k < 6; k++) ((double *)r.number[1].data)[k] = tanh(value);
            }
            basin_ham_gradient(r.ham, dEdg, two, false);
            basin_ham_gradient(r.ham, want, apart, false);
            for (int i = 0; i < 2; i++) {
                basin_tensor a = rig_value(&r, dEdg[i]), b = rig_value(&r, want[i]);
                assert_close(&a, &b, 1e-13, lagrangian[l]);
                basin_tensor_free(&a);
                basin_tensor_free(&b);
            }
        }
        rig_close(&r);
    }
}

/* ---- energies of one's own (basin/energy.h) ---- */

static basin_expr half(const void *context, basin_expr x) {
    (void)context;
    return basin_scale(x, 0.5);
}

static basin_expr bowl(const void *context, basin_expr g) {
    (void)context;
    return basin_sum(basin_square(basin_scale(g, 3)), 1, 1);
}

/* A scaled activation that the energy scales again: the force must not be lost in between. */
TEST(test_scaled_activation) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3), -1, 1);
    basin_energy energy = {BASIN_TERMS({"bowl", bowl, NULL}), .activation = half};
    basin_expr force = basin_energy_force(&energy, basin_energy_activation(&energy, x));
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor got = check_value(&c, force, "ref", false);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor want = check_value(&c, basin_scale(x, -9), "ref", false);
    assert_close(&got, &want, 1e-14, "force");
    force = basin_energy_force(&energy, half(NULL, x));
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor again = check_value(&c, force, "ref", false);
    assert_close(&again, &want, 1e-14, "force");
}

/* ---- training ---- */

/* Plain gradient descent on a loss through the unrolled dynamics makes it smaller. */
TEST(test_training) {
    BASIN_AT_EXIT(rig_close) rig r;
    rig_open(&r, "cpu");
    basin_ham_layer(r.ham, &(basin_layer){.name = "image", .shape = BASIN_SHAPE(6)});
    basin_ham_layer(r.ham, &(basin_layer){.name = "label",
                                          .shape = BASIN_SHAPE(3),
                                          .lagrangian = {.name = "softmax"}});
    basin_ham_synapse(
        r.ham, &(basin_synapse){
                   .name = "memory", .kind = BASIN_SYNAPSE_HIDDEN, .units = 8, .deviation = 0.3});
    basin_ham_connect(r.ham, "memory", "image, label");
    rig_start(&r, 4, 21);
    basin_expr end[2], mask[2] = {basin_scalar(r.graph, 0), NULL};
    basin_ham_spec spec = {.steps = 3, .dt = 0.5, .mask = mask, .recompute = true};
    basin_ham_descend(r.ham, end, r.x, &spec, NULL);
    basin_expr wrong = basin_sub(basin_ham_activation(r.ham, 1, end[1]),
                                 basin_slice(r.x[0], 1, 0, 3)); /* three pixels are the label */
    basin_expr loss = basin_mean_all(basin_square(wrong)), gradient;
    basin_update update[2];
    const basin_params *params = basin_ham_params(r.ham);
    assert_int_equal(params->count, 2);
    for (int i = 0; i < 2; i++) {
        update[i].state = params->param[i].state;
        gradient = basin_grad(loss, update[i].state);
        update[i].value = basin_sub(update[i].state, basin_scale(gradient, 0.5));
    }
    basin_plan *plan;
    basin_plan_spec plan_spec = {.output = &loss, .outputs = 1, .update = update, .updates = 2};
    assert_ok(basin_plan_new(&plan, r.store, &plan_spec, &failure));
    rig_run(&r, plan);
    double first = basin_plan_scalar(plan, loss);
    for (int i = 0; i < 100; i++) rig_run(&r, plan);
    assert_true(basin_plan_scalar(plan, loss) < 0.8 * first);
    basin_plan_free(plan);
}

/* ---- parameters that are expressions ---- */

TEST(test_bound_parameters) {
    BASIN_AT_EXIT(rig_close) rig r;
    rig_open(&r, "ref");
    basin_expr w = basin_arange(r.graph, 3);
    basin_ham_bind(r.ham, "s.b", w);
    basin_ham_layer(r.ham, &(basin_layer){.name = "v", .shape = BASIN_SHAPE(3)});
    basin_ham_synapse(r.ham, &(basin_synapse){.name = "s", .kind = BASIN_SYNAPSE_BIAS});
    basin_ham_connect(r.ham, "s", "v");
    rig_start(&r, 2, 1);
    assert_int_equal(basin_ham_params(r.ham)->count, 0);
    basin_expr slope[1];
    basin_ham_gradient(r.ham, slope, r.x, true); /* -w for each sample */
    basin_tensor found = rig_value(&r, slope[0]);
    for (int64_t i = 0; i < 6; i++) assert_true(basin_tensor_at(&found, i) == -(double)(i % 3));
    basin_tensor_free(&found);
    basin_ham_bind(r.ham, "t.b", w);
    basin_ham_layer(r.ham, &(basin_layer){.name = "u", .shape = BASIN_SHAPE(2)});
    basin_ham_synapse(r.ham, &(basin_synapse){.name = "t", .kind = BASIN_SYNAPSE_BIAS});
    assert_int_equal(basin_ham_connect(r.ham, "t", "u"), -1);
    assert_string_equal(basin_graph_error(r.graph)->text,
                        "the parameter 't.b' has shape [3], expected [2]");
}

/* ---- errors ---- */

static void refuse_layer(basin_layer layer, const char *part) {
    BASIN_AT_EXIT(free_graph) basin_graph *graph = basin_graph_new();
    basin_ham *ham = basin_ham_new(graph);
    basin_ham_layer(ham, &(basin_layer){.name = "v", .shape = BASIN_SHAPE(3)});
    assert_int_equal(basin_ham_layer(ham, &layer), -1);
    assert_int_equal(basin_ham_terms(ham), 1);
    assert_misbuilt(graph, part);
    basin_ham_free(ham);
}

static basin_expr no_batch(basin_ham *ham, const basin_synapse *s, const basin_expr *g, int count) {
    (void)ham, (void)s, (void)count;
    return basin_sum_all(g[0]);
}

TEST(test_errors) {
    basin_shape three = BASIN_SHAPE(3);
    refuse_layer((basin_layer){.name = "v", .shape = three}, "two layers named 'v'");
    refuse_layer((basin_layer){.name = "a, b", .shape = three}, "'a, b'");
    refuse_layer((basin_layer){.shape = three}, "''");
    refuse_layer((basin_layer){.name = "h", .shape = BASIN_SHAPE(3, 0)}, "[3, 0]");
    refuse_layer((basin_layer){.name = "h", .shape = three, .tau = -1}, "-1");
    refuse_layer((basin_layer){.name = "h", .shape = three, .lagrangian = {.name = "x"}}, "'x'");
    refuse_layer((basin_layer){.name = "h", .lagrangian = {.name = "softmax"}}, "softmax");
    BASIN_AT_EXIT(rig_close) rig r;
    basin_descent_result result;
    rig_open(&r, "ref");
    assert_int_equal(
        ham_run(r.ham, r.store, &result, r.number, &(basin_ham_spec){0}, NULL, &failure),
        BASIN_BAD_VALUE);
    basin_ham_layer(r.ham, &(basin_layer){.name = "v", .shape = three});
    rig_start(&r, 2, 1);
    basin_tensor wrong = basin_tensor_borrow(r.number[0].data, BASIN_F64, BASIN_SHAPE(3, 2));
    assert_failure(ham_run(r.ham, r.store, &result, &wrong, &(basin_ham_spec){0}, NULL, &failure),
                   BASIN_BAD_SHAPE, "was given [3, 2]");
    assert_int_equal(ham_run(r.ham, r.store, &result, r.number,
                             &(basin_ham_spec){.steps = 1, .dt = NAN}, NULL, &failure),
                     BASIN_BAD_VALUE);
    basin_ham_synapse(r.ham, &(basin_synapse){.name = "s", .energy = no_batch});
    assert_int_equal(basin_ham_connect(r.ham, "s", "v"), -1);
    assert_misbuilt(r.graph, "a number per sample");
    assert_int_equal(
        ham_run(r.ham, r.store, &result, r.number, &(basin_ham_spec){0}, NULL, &failure),
        BASIN_BAD_SHAPE);
}
