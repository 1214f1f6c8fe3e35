/* Gradients at a rest point against those of a descent that was unrolled until it rested, and
 * against finite differences; their memory does not grow with the steps. */
#include <math.h>
#include <string.h>

#include "basin/rest.h"
#include "support/lab.h"

enum { N = 5, D = 8, UNROLLED = 220, PARAMETERS = 3 };

typedef struct held {
    lab lab;
    basin_energy energy;
    basin_expr u, w, gamma; /* states [N, D], [1, D, D], [] */
    basin_turn turn;
    basin_descent_spec descent;
} held;

static basin_expr norm(const void *context, basin_expr x) {
    const held *h = context;
    return basin_layernorm(x, h->gamma, basin_fill(h->lab.graph, BASIN_SHAPE(D), 0.1), 1e-5);
}

/* Attention among others and a Hopfield network, of activations g. */
static basin_expr block(const held *h, basin_expr g) {
    basin_expr beta = basin_fill(h->lab.graph, BASIN_SHAPE(1), 0.5);
    basin_expr pairs = basin_energy_attention(g, h->w, h->w, beta, NULL, NULL, &BASIN_OTHER_PAIRS);
    basin_expr xi = basin_reshape(h->w, BASIN_SHAPE(D, D));
    return basin_add(pairs, basin_energy_hopfield(g, xi, BASIN_HOPFIELD_RELU, 0));
}

/* A minimum over x: |x - u|^2 / 2 + E(norm(x)). */
static basin_expr minimum(const void *context, basin_expr x, int part) {
    const held *h = context;
    (void)part;
    basin_expr pull = basin_scale(basin_sum_all(basin_square(basin_sub(x, h->u))), 0.5);
    return basin_add(pull, block(h, norm(h, x)));
}

/* The rest point of x' = -x - dE/dg + u, which follows no gradient by x. */
static basin_expr activated(const void *context, basin_expr g, int part) {
    (void)part;
    return block(context, g);
}
static basin_expr leak(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)t;
    return basin_add(force, basin_sub(((const held *)context)->u, x));
}

static void held_open(held *h, const char *backend, bool by_x) {
    lab_open(&h->lab, backend, 1);
    h->u = lab_state(&h->lab, "u", BASIN_SHAPE(N, D));
    h->w = lab_state(&h->lab, "w", BASIN_SHAPE(1, D, D));
    h->gamma = lab_state(&h->lab, "gamma", BASIN_SCALAR);
    lab_fill(&h->lab, 4, 0.1);
    double u[N * D];
    for (int i = 0; i < N * D; i++) u[i] = 1.5 * cos(1.3 * i + 0.2 * i * i);
    lab_set(&h->lab, h->u, u);
    h->turn = (basin_turn){.move = leak, .context = h};
    h->energy = (basin_energy){.parts = 1, .name = {"block"}, .context = h};
    h->energy.part = by_x ? minimum : activated;
    h->energy.activation = by_x ? NULL : norm;
    h->descent = (basin_descent_spec){.steps = 2000, .alpha = 0.4, .tolerance = 1e-13};
    if (!by_x) h->descent.turn = &h->turn, h->descent.turns = 1;
}

static basin_expr loss_of(basin_expr x) {
    return basin_mean_all(basin_square(basin_sin(basin_offset(x, 0.4))));
}

static basin_tensor start_of(held *h) {
    basin_tensor u;
    basin_error error;
    assert_int_equal(basin_store_read(h->lab.store, "u", &u, &error), BASIN_OK);
    return u;
}

static void solve(held *h, basin_rest *rest, basin_rest_report *report) {
    basin_error error = {0};
    basin_tensor u = start_of(h);
    if (basin_rest_find(rest, report, &u, &error) || basin_rest_solve(rest, report, &error))
        fail_msg("%s", error.text);
    basin_tensor_free(&u);
}

static void compare(const char *backend, bool by_x, double tolerance, double accuracy) {
    held h;
    basin_rest *rest;
    basin_rest_report report;
    basin_error error = {0};
    held_open(&h, backend, by_x);
    const basin_expr parameter[PARAMETERS] = {h.u, h.w, h.gamma};
    basin_expr gradient[PARAMETERS + 1], long_way[PARAMETERS + 1];
    basin_rest_spec spec = {.descent = h.descent, .accuracy = accuracy};
    if (strcmp(backend, "ref") != 0) spec.descent.tolerance = 1e-6;
    if (basin_rest_new(&rest, h.lab.store, &h.energy, h.lab.graph, BASIN_SHAPE(N, D), &spec,
                       &error) ||
        basin_rest_gradients(gradient, rest, loss_of(basin_rest_tokens(rest)), parameter,
                             PARAMETERS, &error))
        fail_msg("%s", error.text);
    gradient[PARAMETERS] = loss_of(basin_rest_tokens(rest));
    solve(&h, rest, &report);
    assert_true(report.steps > 10 && report.steps < UNROLLED);
    assert_true(report.products > 2);
    basin_plan *plan = lab_plan(&h.lab, gradient, PARAMETERS + 1);
    lab_run(plan);
    h.descent.steps = UNROLLED;
    long_way[PARAMETERS] = loss_of(basin_descend(&h.energy, h.u, &h.descent, NULL));
    basin_grad_many(long_way, long_way[PARAMETERS], parameter, PARAMETERS);
    basin_plan *unrolled = lab_plan(&h.lab, long_way, PARAMETERS + 1);
    lab_run(unrolled);
    for (int i = 0; i <= PARAMETERS; i++) {
        basin_tensor a = lab_read(plan, gradient[i]), b = lab_read(unrolled, long_way[i]);
        lab_assert_near(&a, &b, tolerance, i < PARAMETERS ? "gradient" : "loss");
        basin_tensor_free(&a);
        basin_tensor_free(&b);
    }
    basin_plan_free(plan);
    basin_plan_free(unrolled);
    basin_rest_free(rest);
    lab_close(&h.lab);
}

static void as_unrolled(void **state) {
    (void)state;
    compare("ref", true, 1e-9, 1e-12);
    compare("ref", false, 1e-9, 1e-12);
    compare("cpu", true, 2e-4, 1e-5);
    compare("cpu", false, 2e-4, 1e-5);
}

/* Bytes that training needs, by the number of steps. */
static size_t bytes_at_rest(int steps) {
    held h;
    basin_rest *rest;
    basin_error error = {0};
    held_open(&h, "cpu", true);
    basin_expr gradient;
    basin_rest_spec spec = {.descent = h.descent};
    spec.descent.steps = steps;
    if (basin_rest_new(&rest, h.lab.store, &h.energy, h.lab.graph, BASIN_SHAPE(N, D), &spec,
                       &error) ||
        basin_rest_gradients(&gradient, rest, loss_of(basin_rest_tokens(rest)), &h.w, 1, &error))
        fail_msg("%s", error.text);
    basin_plan *plan = lab_plan(&h.lab, &gradient, 1);
    size_t bytes = basin_plan_get_stats(plan).arena_bytes;
    for (int i = 0; i < BASIN_REST_PLANS; i++)
        bytes += basin_plan_get_stats(basin_rest_plan(rest, i)).arena_bytes;
    assert_null(basin_rest_plan(rest, BASIN_REST_PLANS));
    basin_plan_free(plan);
    basin_rest_free(rest);
    lab_close(&h.lab);
    return bytes;
}

static void memory(void **state) {
    (void)state;
    assert_true(bytes_at_rest(100) == bytes_at_rest(1));
}

/* A loss whose gradient is 0 needs no products. */
static void flat_loss(void **state) {
    (void)state;
    held h;
    basin_rest *rest;
    basin_rest_report report;
    basin_error error = {0};
    basin_expr gradient;
    held_open(&h, "ref", true);
    basin_rest_spec spec = {.descent = h.descent};
    assert_int_equal(basin_rest_new(&rest, h.lab.store, &h.energy, h.lab.graph, BASIN_SHAPE(N, D),
                                    &spec, &error),
                     BASIN_OK);
    basin_expr loss = basin_scale(basin_sum_all(basin_rest_tokens(rest)), 0);
    assert_int_equal(basin_rest_gradients(&gradient, rest, loss, &h.w, 1, &error), BASIN_OK);
    solve(&h, rest, &report);
    assert_int_equal(report.products, 0);
    basin_tensor value = lab_value(&h.lab, gradient);
    for (int i = 0; i < D * D; i++) assert_float_equal(((double *)value.data)[i], 0, 0);
    basin_tensor_free(&value);
    basin_rest_free(rest);
    lab_close(&h.lab);
}

static void refused(held *h, basin_rest_spec spec, const char *says) {
    basin_rest *rest;
    basin_error error = {0};
    assert_int_equal(basin_rest_new(&rest, h->lab.store, &h->energy, h->lab.graph,
                                    BASIN_SHAPE(N, D), &spec, &error),
                     BASIN_BAD_VALUE);
    assert_null(rest);
    assert_string_equal(error.text, says);
}

static void errors(void **state) {
    (void)state;
    held h;
    basin_rest *rest;
    basin_rest_report report;
    basin_error error = {0};
    basin_expr gradient;
    held_open(&h, "ref", true);
    basin_rest_spec spec = {.descent = h.descent}, bad = spec;
    bad.descent.noise = 0.1;
    refused(&h, bad, "a rest point with noise; a step must depend on the tokens alone");
    bad = spec, bad.descent.tolerance = 0;
    refused(&h, bad, "a rest point by 2000 steps of size 0.4 to within 0; wanted all above 0");
    bad = spec, bad.products = -1;
    refused(&h, bad, "a rest point solved by -1 products to within 0; wanted none below 0");
    spec.descent.steps = 3;
    assert_int_equal(basin_rest_new(&rest, h.lab.store, &h.energy, h.lab.graph, BASIN_SHAPE(N, D),
                                    &spec, &error),
                     BASIN_OK);
    assert_int_equal(basin_rest_solve(rest, &report, &error), BASIN_BAD_VALUE);
    assert_string_equal(error.text, "a rest point without a loss to solve for");
    basin_tensor u = start_of(&h), one = basin_tensor_borrow(u.data, BASIN_F64, BASIN_SHAPE(1, D));
    assert_int_equal(basin_rest_find(rest, &report, &u, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "no rest after 3 steps: the last moved an element by"));
    assert_int_equal(report.steps, 3);
    assert_int_equal(basin_rest_find(rest, &report, &one, &error), BASIN_BAD_SHAPE);
    assert_string_equal(error.text, "a descent of tokens [5, 8] was given [1, 8]");
    assert_int_equal(
        basin_rest_gradients(&gradient, rest, basin_rest_tokens(rest), &h.w, 1, &error),
        BASIN_BAD_SHAPE);
    basin_expr loss = loss_of(basin_rest_tokens(rest));
    assert_int_equal(basin_rest_gradients(&gradient, rest, loss, &h.w, 1, &error), BASIN_OK);
    assert_int_equal(basin_rest_solve(rest, &report, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "after 3 products, wanted 1e-06"));
    assert_int_equal(basin_rest_gradients(&gradient, rest, loss, &h.w, 1, &error), BASIN_BAD_VALUE);
    assert_string_equal(error.text, "a rest point has the gradients of one loss");
    basin_tensor_free(&u);
    basin_rest_free(rest);
    basin_rest_free(NULL);
    lab_close(&h.lab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_unrolled),
        cmocka_unit_test(memory),
        cmocka_unit_test(flat_loss),
        cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
