/* Every allocation fails once while a rest point is declared, found and solved, by hand and inside
 * a plan, and a scan is made, run and reversed: out of memory each time, nothing leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "basin/rest.h"
#include "basin/scan.h"
#include "support/alloc_fail.h"

enum { N = 2, D = 3 };

static basin_expr spring(const void *context, basin_expr x, int part) {
    (void)part;
    return basin_scale(basin_sum_all(basin_square(basin_sub(x, context))), 0.5);
}

static basin_expr leak(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)context, (void)x, (void)t;
    return basin_scale(force, 0.9);
}

static basin_status settle(basin_engine *engine, bool turns, basin_error *error) {
    basin_rest *rest = NULL;
    basin_rest_report report;
    basin_expr u = basin_state(engine->graph, "u", BASIN_SHAPE(N, D)), gradient;
    basin_energy energy = {.parts = 1, .name = {"spring"}, .part = spring, .context = u};
    const basin_turn turn = {.move = leak};
    basin_rest_spec spec = {
        .descent = {.steps = 100, .alpha = 0.5, .tolerance = 1e-9, .turn = &turn, .turns = turns}};
    double number[N * D] = {1, 2, 3};
    basin_tensor start = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(N, D));
    basin_status status = basin_rest_new(&rest, engine->store, &energy, engine->graph,
                                         BASIN_SHAPE(N, D), &spec, error);
    if (!status) {
        basin_expr loss = basin_mean_all(basin_square(basin_rest_tokens(rest)));
        status = basin_rest_gradients(&gradient, rest, loss, &u, 1, error);
    }
    if (!status) status = basin_rest_find(rest, &report, &start, error);
    if (!status) status = basin_rest_solve(rest, &report, error);
    basin_rest_free(rest);
    return status;
}

static basin_status run(void *turns) {
    basin_engine engine;
    basin_error error = {0};
    basin_status status =
        basin_engine_open(&engine, &(basin_compute){.backend = "ref", .threads = 1}, &error);
    if (status) return status;
    status = settle(&engine, *(bool *)turns, &error);
    basin_engine_close(&engine);
    return status;
}

static basin_status scan_there_and_back(basin_engine *engine, basin_error *error) {
    basin_scan *scan = NULL;
    basin_expr u = basin_state(engine->graph, "u", BASIN_SHAPE(N, D)), gradient;
    basin_energy energy = {.parts = 1, .name = {"spring"}, .part = spring, .context = u};
    basin_scan_spec spec = {.descent = {.steps = 5, .alpha = 0.5}};
    double number[N * D] = {1, 2, 3};
    basin_tensor start = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(N, D));
    basin_status status = basin_scan_new(&scan, engine->store, &energy, engine->graph,
                                         BASIN_SHAPE(N, D), &spec, error);
    if (!status) {
        basin_expr loss = basin_mean_all(basin_square(basin_scan_tokens(scan)));
        status = basin_scan_gradients(&gradient, scan, loss, &u, 1, error);
    }
    if (!status) status = basin_scan_run(scan, &start, error);
    if (!status) status = basin_scan_reverse(scan, error);
    basin_scan_free(scan);
    return status;
}

static basin_status run_scan(void *context) {
    basin_engine engine;
    basin_error error = {0};
    (void)context;
    basin_status status =
        basin_engine_open(&engine, &(basin_compute){.backend = "ref", .threads = 1}, &error);
    if (status) return status;
    status = scan_there_and_back(&engine, &error);
    basin_engine_close(&engine);
    return status;
}

/* A rest point and its gradient as expressions. */
static basin_status run_implicit(void *context) {
    basin_engine engine;
    basin_error error = {0};
    basin_tensor result[2];
    (void)context;
    basin_status status =
        basin_engine_open(&engine, &(basin_compute){.backend = "ref", .threads = 1}, &error);
    if (status) return status;
    basin_expr u = basin_state(engine.graph, "u", BASIN_SHAPE(N, D));
    basin_expr x = basin_input(engine.graph, "x", BASIN_SHAPE(N, D));
    basin_energy energy = {.parts = 1, .name = {"spring"}, .part = spring, .context = u};
    basin_descent_spec spec = {.steps = 100, .alpha = 0.3, .implicit = true};
    basin_expr end = basin_descend(&energy, x, &spec, NULL),
               loss = basin_sum_all(basin_square(end));
    basin_expr output[2] = {loss, basin_grad(loss, u)};
    double number[N * D] = {1, 2, 3};
    basin_tensor start = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(N, D));
    const basin_error *found = basin_graph_error(engine.graph);
    status = found ? found->status
                   : basin_engine_compute(&engine, result, output, 2, &(basin_given){x, &start}, 1,
                                          &error);
    for (int i = 0; i < 2 && !status; i++) basin_tensor_free(&result[i]);
    basin_engine_close(&engine);
    return status;
}

static void test_implicit(void **state) {
    (void)state;
    assert_true(alloc_fail_sweep(run_implicit, NULL) > 100);
}

static void test_scan(void **state) {
    (void)state;
    assert_true(alloc_fail_sweep(run_scan, NULL) > 100);
}

static void test_rest(void **state) {
    (void)state;
    bool turns[2] = {false, true};
    for (int i = 0; i < 2; i++) assert_true(alloc_fail_sweep(run, &turns[i]) > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rest), cmocka_unit_test(test_scan),
                                       cmocka_unit_test(test_implicit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
