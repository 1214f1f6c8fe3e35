/* Scans: the tokens and gradients of the unrolled descent, however many tokens are kept; plans do
 * not grow with the steps. */
#include <math.h>
#include <string.h>

#include "basin/scan.h"
#include "support/lab.h"

enum { N = 4, D = 6, STEPS = 7, PARAMETERS = 2 };

typedef struct trial {
    lab lab;
    basin_energy energy;
    basin_expr w, gamma; /* [1, D, D], [] */
    basin_turn turn[2];
    basin_tensor start; /* [N, D] */
} trial;

static basin_expr norm(const void *context, basin_expr x) {
    const trial *t = context;
    return basin_layernorm(x, t->gamma, basin_fill(t->lab.graph, BASIN_SHAPE(D), 0), 1e-5);
}

static basin_expr parts(const void *context, basin_expr g, int part) {
    const trial *t = context;
    basin_expr beta = basin_fill(t->lab.graph, BASIN_SHAPE(1), 0.5);
    if (part == 0)
        return basin_energy_attention(g, t->w, t->w, beta, NULL, NULL, &BASIN_CAUSAL_PAIRS);
    basin_expr xi = basin_reshape(t->w, BASIN_SHAPE(D, D));
    return basin_energy_hopfield(g, xi, BASIN_HOPFIELD_SOFTMAX, 0);
}

/* Smaller with every step. */
static basin_expr slower(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)context, (void)x;
    return basin_div(force, basin_offset(t, 1));
}

static void trial_open(trial *t, const char *backend) {
    basin_error error;
    lab_open(&t->lab, backend, 1);
    t->w = lab_state(&t->lab, "w", BASIN_SHAPE(1, D, D));
    t->gamma = lab_state(&t->lab, "gamma", BASIN_SCALAR);
    lab_fill(&t->lab, 2, 0.7);
    assert_int_equal(basin_tensor_new(&t->start, BASIN_F64, BASIN_SHAPE(N, D), &error), BASIN_OK);
    for (int i = 0; i < N * D; i++) ((double *)t->start.data)[i] = cos(1.9 * i);
    t->turn[0] = (basin_turn){.parts = 1, .move = slower};
    t->turn[1] = (basin_turn){.parts = 2};
    t->energy = (basin_energy){.parts = 2,
                               .name = {"attention", "memories"},
                               .part = parts,
                               .activation = norm,
                               .context = t};
}

static void trial_close(trial *t) {
    basin_tensor_free(&t->start);
    lab_close(&t->lab);
}

static basin_scan_spec spec_of(const trial *t, int every) {
    return (basin_scan_spec){.descent = {.steps = STEPS, .alpha = 0.3, .turn = t->turn, .turns = 2},
                             .every = every};
}

/* The parameters count directly, too. */
static basin_expr loss_of(const trial *t, basin_expr x) {
    return basin_mean_all(basin_square(basin_mul(t->gamma, basin_sin(x))));
}

static void compare(const char *backend, int every, double tolerance) {
    trial t;
    basin_scan *scan;
    basin_error error = {0};
    trial_open(&t, backend);
    const basin_expr parameter[PARAMETERS] = {t.w, t.gamma};
    basin_expr gradient[PARAMETERS + 3];
    basin_scan_spec spec = spec_of(&t, every);
    if (basin_scan_new(&scan, t.lab.store, &t.energy, t.lab.graph, BASIN_SHAPE(N, D), &spec,
                       &error) ||
        basin_scan_gradients(gradient, scan, loss_of(&t, basin_scan_tokens(scan)), parameter,
                             PARAMETERS, &error))
        fail_msg("%s", error.text);
    gradient[PARAMETERS] = basin_scan_tokens(scan);
    gradient[PARAMETERS + 1] = basin_scan_start_gradient(scan);
    for (int again = 0; again < 2; again++) /* the sums begin anew */
        if (basin_scan_run(scan, &t.start, &error) || basin_scan_reverse(scan, &error))
            fail_msg("%s", error.text);
    basin_plan *plan = lab_plan(&t.lab, gradient, PARAMETERS + 2);
    lab_run(plan);
    basin_expr x = lab_input(&t.lab, "start", BASIN_SHAPE(N, D), t.start.data),
               want[PARAMETERS + 2];
    want[PARAMETERS] = basin_descend(&t.energy, x, &spec.descent, NULL);
    basin_expr loss = loss_of(&t, want[PARAMETERS]);
    basin_grad_many(want, loss, parameter, PARAMETERS);
    want[PARAMETERS + 1] = basin_grad(loss, x);
    basin_plan *unrolled = lab_plan(&t.lab, want, PARAMETERS + 2);
    lab_run(unrolled);
    for (int i = 0; i < PARAMETERS + 2; i++) {
        basin_tensor a = lab_read(plan, gradient[i]), b = lab_read(unrolled, want[i]);
        lab_assert_near(&a, &b, tolerance, basin_expr_name(gradient[i]));
        basin_tensor_free(&a);
        basin_tensor_free(&b);
    }
    basin_plan_free(plan);
    basin_plan_free(unrolled);
    basin_scan_free(scan);
    trial_close(&t);
}

static void as_unrolled(void **state) {
    (void)state;
    static const int every[] = {0, 1, 2, 3, STEPS, STEPS + 5};
    for (int i = 0; i < 6; i++) compare("ref", every[i], 1e-13);
    compare("cpu", 0, 1e-5);
}

static size_t plan_bytes(int steps, int *kept) {
    trial t;
    basin_scan *scan;
    basin_expr gradient;
    basin_error error = {0};
    size_t bytes = 0;
    trial_open(&t, "cpu");
    basin_scan_spec spec = spec_of(&t, 0);
    spec.descent.steps = steps;
    if (basin_scan_new(&scan, t.lab.store, &t.energy, t.lab.graph, BASIN_SHAPE(N, D), &spec,
                       &error) ||
        basin_scan_gradients(&gradient, scan, loss_of(&t, basin_scan_tokens(scan)), &t.w, 1,
                             &error))
        fail_msg("%s", error.text);
    for (int i = 0; i < BASIN_SCAN_PLANS; i++)
        bytes += basin_plan_get_stats(basin_scan_plan(scan, i)).arena_bytes;
    assert_null(basin_scan_plan(scan, -1));
    *kept = basin_scan_kept(scan);
    basin_scan_free(scan);
    trial_close(&t);
    return bytes;
}

static void memory(void **state) {
    int few, many;
    (void)state;
    assert_true(plan_bytes(1, &few) == plan_bytes(10000, &many));
    assert_true(few <= 3 && many == 10000 / 100 + 1 + 100);
}

static void errors(void **state) {
    (void)state;
    trial t;
    basin_scan *scan;
    basin_expr gradient;
    basin_error error = {0};
    trial_open(&t, "ref");
    basin_scan_spec spec = spec_of(&t, 0), bad = spec;
    bad.descent.steps = 0;
    assert_int_equal(
        basin_scan_new(&scan, t.lab.store, &t.energy, t.lab.graph, BASIN_SHAPE(N, D), &bad, &error),
        BASIN_BAD_VALUE);
    assert_string_equal(error.text,
                        "a scan of 0 steps of size 0.3, every 0 kept; wanted 1 step or more");
    bad = spec, bad.descent.guard = true;
    assert_int_equal(
        basin_scan_new(&scan, t.lab.store, &t.energy, t.lab.graph, BASIN_SHAPE(N, D), &bad, &error),
        BASIN_BAD_VALUE);
    assert_string_equal(error.text,
                        "a scan with the guard; a step must depend on the tokens alone");
    assert_int_equal(basin_scan_new(&scan, t.lab.store, &t.energy, t.lab.graph, BASIN_SHAPE(N, D),
                                    &spec, &error),
                     BASIN_OK);
    assert_null(basin_scan_start_gradient(scan));
    assert_int_equal(basin_scan_reverse(scan, &error), BASIN_BAD_VALUE);
    assert_string_equal(error.text, "a scan without a loss to reverse");
    basin_expr loss = loss_of(&t, basin_scan_tokens(scan));
    assert_int_equal(basin_scan_gradients(&gradient, scan, loss, &t.w, 1, &error), BASIN_OK);
    assert_int_equal(basin_scan_reverse(scan, &error), BASIN_BAD_VALUE);
    assert_string_equal(error.text, "a scan is reversed before it was run");
    assert_int_equal(basin_scan_gradients(&gradient, scan, loss, &t.w, 1, &error), BASIN_BAD_VALUE);
    basin_tensor one = basin_tensor_borrow(t.start.data, BASIN_F64, BASIN_SHAPE(D));
    assert_int_equal(basin_scan_run(scan, &one, &error), BASIN_BAD_SHAPE);
    basin_scan_free(scan);
    basin_scan_free(NULL);
    trial_close(&t);
}

/* What has no name has no state either. */
static void unnamed_parameter(void **state) {
    (void)state;
    trial t;
    basin_scan *scan;
    basin_expr gradient;
    basin_error error = {0};
    trial_open(&t, "ref");
    basin_scan_spec spec = spec_of(&t, 0);
    basin_expr half = basin_scale(t.w, 0.5);
    assert_int_equal(basin_scan_new(&scan, t.lab.store, &t.energy, t.lab.graph, BASIN_SHAPE(N, D),
                                    &spec, &error),
                     BASIN_OK);
    basin_expr loss = loss_of(&t, basin_scan_tokens(scan));
    assert_int_equal(basin_scan_gradients(&gradient, scan, loss, &half, 1, &error),
                     BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "wanted states or inputs"));
    basin_scan_free(scan);
    trial_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_unrolled), cmocka_unit_test(memory),
                                       cmocka_unit_test(errors),
                                       cmocka_unit_test(unnamed_parameter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
