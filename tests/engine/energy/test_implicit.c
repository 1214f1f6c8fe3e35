/* Descents to rest as expressions: gradients as those of a descent that was unrolled until it
 * rested, through several blocks, on any backend; memory that does not grow with the steps; what
 * did not rest is counted. */
#include <math.h>
#include <string.h>

#include "base/info.h"
#include "basin/energy.h"
#include "basin/train.h"
#include "support/lab.h"

enum { B = 2, N = 5, D = 8, UNROLLED = 160, PARAMETERS = 5 };

typedef struct held {
    lab lab;
    basin_energy energy[2];
    struct one {
        basin_expr w, gamma; /* states [1, D, D] [] */
    } block[2];
    basin_expr u, out; /* states [B, N, D] [D] */
} held;

static basin_expr norm(const void *context, basin_expr x) {
    const struct one *b = context;
    basin_graph *graph = basin_expr_graph(x);
    return basin_layernorm(x, b->gamma, basin_full(graph, BASIN_SHAPE(D), 0.1), 1e-5);
}

/* Attention among others, and a Hopfield network. */
static basin_expr attention(const void *context, basin_expr g) {
    const struct one *b = context;
    basin_expr beta = basin_full(basin_expr_graph(g), BASIN_SHAPE(1), 0.5);
    return basin_energy_attention(g, b->w, b->w, beta, &BASIN_OTHER_PAIRS, NULL);
}
static basin_expr hopfield(const void *context, basin_expr g) {
    const struct one *b = context;
    return basin_energy_hopfield(g, basin_reshape(b->w, BASIN_SHAPE(D, D)), BASIN_HOPFIELD_RELU, 0);
}

static void held_open(held *h, const char *backend) {
    lab_open(&h->lab, backend, 1);
    h->u = lab_state(&h->lab, "u", BASIN_SHAPE(B, N, D));
    h->out = lab_state(&h->lab, "out", BASIN_SHAPE(D));
    h->block[0].w = lab_state(&h->lab, "w0", BASIN_SHAPE(1, D, D));
    h->block[1].w = lab_state(&h->lab, "w1", BASIN_SHAPE(1, D, D));
    h->block[0].gamma = lab_state(&h->lab, "gamma0", BASIN_SCALAR);
    h->block[1].gamma = lab_state(&h->lab, "gamma1", BASIN_SCALAR);
    lab_fill(&h->lab, 4, 0.15);
    double u[B * N * D], one = 0.9;
    for (int i = 0; i < B * N * D; i++) u[i] = 1.5 * cos(1.3 * i + 0.2 * i * i);
    lab_set(&h->lab, h->u, u);
    for (int i = 0; i < 2; i++) {
        lab_set(&h->lab, h->block[i].gamma, &one);
        static const basin_term term[] = {{"attention", attention, NULL},
                                          {"hopfield", hopfield, NULL}};
        h->energy[i] =
            (basin_energy){.term = term, .terms = 2, .activation = norm, .context = &h->block[i]};
    }
}

/* The same by a turn, for an unrolled descent. */
static basin_expr leak(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)t;
    return basin_add(force, basin_sub(context, x));
}

static basin_expr unrolled(const basin_energy *energy, basin_expr x) {
    basin_substep turn = {.move = leak, .context = (const void *)x};
    basin_descent_spec spec = {.steps = UNROLLED, .alpha = 0.5, .substep = &turn, .substeps = 1};
    return basin_descend(energy, x, &spec, NULL);
}

static basin_expr loss_of(const held *h, basin_expr x) {
    return basin_mean_all(basin_square(basin_sin(basin_add(x, h->out))));
}

/* Two blocks one after the other, the second held by the end of the first. */
static basin_expr at_rest(const held *h, const basin_descent_spec *spec) {
    basin_expr x = basin_descend(&h->energy[0], h->u, spec, NULL);
    return loss_of(h, basin_descend(&h->energy[1], x, spec, NULL));
}

static void compare(const char *backend, double until, double tolerance) {
    held h;
    held_open(&h, backend);
    const basin_expr parameter[PARAMETERS] = {h.u, h.block[0].w, h.block[1].w, h.block[0].gamma,
                                              h.out};
    basin_expr gradient[PARAMETERS + 1], long_way[PARAMETERS + 1];
    basin_descent_spec spec = {
        .steps = 500, .alpha = 0.5, .implicit = {.on = true, .until = until, .accuracy = until}};
    gradient[PARAMETERS] = at_rest(&h, &spec);
    basin_vjp(gradient, gradient[PARAMETERS], NULL, parameter, PARAMETERS);
    basin_plan *plan = lab_plan(&h.lab, gradient, PARAMETERS + 1);
    long_way[PARAMETERS] = loss_of(&h, unrolled(&h.energy[1], unrolled(&h.energy[0], h.u)));
    basin_vjp(long_way, long_way[PARAMETERS], NULL, parameter, PARAMETERS);
    basin_plan *slow = lab_plan(&h.lab, long_way, PARAMETERS + 1);
    lab_run(slow);
    for (int again = 0; again < 2; again++) {
        lab_run(plan);
        basin_convergence convergence = basin_convergence_of(h.lab.store);
        assert_int_equal(convergence.points, 2);
        assert_int_equal(convergence.solutions, 2);
        assert_true(convergence.steps > 10 && convergence.max_steps < UNROLLED &&
                    convergence.products > 4);
        assert_true(convergence.not_converged == 0 && convergence.unsolved == 0);
        assert_true(convergence.change <= until && convergence.residual <= until);
        for (int i = 0; i <= PARAMETERS; i++) {
            basin_tensor a = lab_read(plan, gradient[i]), b = lab_read(slow, long_way[i]);
            lab_assert_near(&a, &b, tolerance, i < PARAMETERS ? "gradient" : "loss");
            basin_tensor_free(&a);
            basin_tensor_free(&b);
        }
    }
    basin_plan_free(plan);
    basin_plan_free(slow);
    lab_close(&h.lab);
}

TEST(as_unrolled) {
    compare("ref", 1e-12, 1e-9);
    compare("cpu", 1e-6, 2e-4);
}

/* All that training a block of some size takes, with AdamW. */
static size_t training_bytes(const basin_descent_spec *spec) {
    lab l;
    basin_params params;
    basin_block block;
    basin_trainer *trainer;
    lab_open(&l, "cpu", 1);
    basin_params_begin(&params, l.graph);
    basin_block_config config = {.dim = 64, .heads = 4, .head_dim = 16, .memories = 256};
    basin_expr x = basin_input(l.graph, "x", BASIN_SHAPE(16, 36, 64));
    assert_int_equal(basin_block_declare(&block, &params, "", &config), BASIN_OK);
    basin_block_bound bound = {.block = &block, .pattern = &BASIN_OTHER_PAIRS};
    basin_energy energy = basin_block_energy(&bound);
    basin_expr end = basin_block_norm(&block, basin_descend(&energy, x, spec, NULL));
    basin_expr loss = basin_mean_all(basin_square(basin_sub(end, x)));
    basin_trainer_spec training = {.optimizer = BASIN_OPTIMIZER_DEFAULT};
    assert_ok(basin_trainer_new(&trainer, l.store, &params, loss, &training, &failure));
    basin_plan_stats stats = basin_plan_stats_of(basin_trainer_plan(trainer));
    basin_trainer_free(trainer);
    basin_params_free(&params);
    lab_close(&l);
    return stats.arena_bytes + stats.input_bytes + stats.state_bytes;
}

/* 100 steps to rest in the memory of one; and in not much more than one step takes unrolled, since
 * what is iterated computes in the place of what follows it. */
TEST(memory) {
    basin_descent_spec spec = {.steps = 1, .alpha = 0.1};
    size_t one = training_bytes(&spec);
    spec.steps = 100;
    size_t unrolled_bytes = training_bytes(&spec);
    spec.implicit.on = true;
    size_t rest = training_bytes(&spec);
    spec.steps = 1;
    assert_true(rest == training_bytes(&spec));
    print_message("1 step %zu, 100 unrolled %zu, to rest %zu\n", one, unrolled_bytes, rest);
    assert_true((double)rest <= 1.6 * (double)one);
    assert_true(unrolled_bytes > 10 * one);
}

/* Whether a descent of 3 steps to rest, of so many products, ends; both are counted. */
TEST(counted) {
    held h;
    held_open(&h, "ref");
    basin_descent_spec spec = {
        .steps = 3,
        .alpha = 0.1,
        .implicit = {.on = true, .until = 1e-9, .accuracy = 1e-9, .products = 2}};
    basin_expr loss = at_rest(&h, &spec), out[] = {loss, basin_grad(loss, h.u)};
    basin_plan *plan = lab_plan(&h.lab, out, 2);
    lab_run(plan);
    basin_convergence convergence = basin_convergence_of(h.lab.store);
    assert_true(convergence.points == 2 && convergence.steps == 6 && convergence.max_steps == 3);
    assert_true(convergence.not_converged == 2 && convergence.change > 1e-3);
    assert_true(convergence.solutions == 2 && convergence.products == 4 &&
                convergence.unsolved == 2);
    assert_true(convergence.residual > 1e-9 && convergence.residual < 1);
    convergence = basin_convergence_of(h.lab.store);
    assert_true(convergence.points == 0 && convergence.change == 0);
    basin_plan_free(plan);
    plan = lab_plan(&h.lab, &loss, 1); /* without gradients there is nothing to solve */
    lab_run(plan);
    assert_int_equal(basin_convergence_of(h.lab.store).solutions, 0);
    basin_plan_free(plan);
    lab_close(&h.lab);
}

static void refused(basin_descent_spec spec, const char *says) {
    held h;
    basin_expr trace[8];
    held_open(&h, "ref");
    spec.implicit.on = true;
    assert_null(basin_descend(&h.energy[0], h.u, &spec, strstr(says, "trace") ? trace : NULL));
    assert_string_equal(basin_graph_error(h.lab.graph)->text, says);
    lab_close(&h.lab);
}

TEST(refusals) {
    basin_descent_spec good = {.steps = 3, .alpha = 0.1}, bad = good;
    refused(good, "an implicit descent with a trace of its energies");
    bad.noise = 1;
    refused(bad, "an implicit descent with noise");
    bad = good, bad.substeps = 1;
    refused(bad, "an implicit descent with turns");
    bad = good, bad.alpha = 0;
    refused(bad,
            "an implicit descent by 3 steps of size 0 until 0, 0 products to within 0; expected "
            "steps and a size above 0, nothing below");
    held h;
    held_open(&h, "ref");
    good.implicit.on = true;
    basin_expr slope = basin_grad(at_rest(&h, &good), h.u);
    assert_non_null(slope);
    assert_null(basin_grad(basin_sum_all(basin_square(slope)), h.u));
    assert_string_equal(basin_graph_error(h.lab.graph)->text,
                        "second derivatives at a rest point are not available");
    lab_close(&h.lab);
}
