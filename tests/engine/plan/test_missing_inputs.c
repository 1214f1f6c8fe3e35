/* A plan does not run before every input that it reads was written, and says which was not; its
 * results are not read before it has run. */
#include <string.h>

#include "base/info.h"
#include "engine/plan/plan.h"
#include "support/lab.h"

typedef struct bench {
    basin_backend *backend;
    basin_store *store;
    basin_graph *graph;
    basin_plan *plan;
} bench;

static const char *const backends[] = {"ref", "cpu"};

static void bench_open(bench *b, const char *backend) {
    assert_ok(basin_backend_open(&b->backend, &(basin_compute){.backend = backend, .threads = 1},
                                 &failure));
    assert_int_equal(basin_store_new(&b->store, b->backend, NULL), BASIN_OK);
    b->graph = basin_graph_new();
    b->plan = NULL;
}

static void bench_plan(bench *b, const basin_expr *output, int outputs) {
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    assert_ok(basin_plan_new(&b->plan, b->store, &spec, &failure));
}

static void bench_close(bench *b) {
    basin_plan_free(b->plan);
    basin_graph_free(b->graph);
    basin_store_free(b->store);
    basin_backend_close(b->backend);
}

static void write_number(bench *b, basin_expr input, double number) {
    double data[4] = {number, number, number, number};
    basin_tensor t = basin_tensor_borrow(data, BASIN_F64, basin_expr_shape(input));
    assert_int_equal(basin_plan_write(b->plan, input, &t, NULL), BASIN_OK);
}

static void assert_missing(bench *b, const char *text) {
    assert_says(basin_plan_run(b->plan, &failure), BASIN_BAD_VALUE, text);
    assert_int_equal(basin_plan_run(b->plan, NULL), BASIN_BAD_VALUE);
}

/* Numbers and indices, in any order of writing; once is enough for all runs. */
TEST(test_named) {
    for (int i = 0; i < 2; i++) {
        bench b;
        bench_open(&b, backends[i]);
        basin_expr table = basin_input(b.graph, "table", BASIN_SHAPE(2, 2));
        basin_expr index = basin_index(b.graph, "index", BASIN_SHAPE(3));
        basin_expr scale = basin_input(b.graph, "scale", BASIN_SCALAR);
        basin_expr y = basin_sum_all(basin_mul(scale, basin_take(table, 0, index)));
        bench_plan(&b, &y, 1);
        write_number(&b, scale, 2);
        write_number(&b, table, 3);
        assert_missing(&b, "the input 'index' [3] was never written");
        write_number(&b, index, 1);
        write_number(&b, index, 0);
        for (int run = 0; run < 2; run++) {
            assert_int_equal(basin_plan_run(b.plan, NULL), BASIN_OK);
            assert_true(basin_plan_scalar(b.plan, y) == 36);
        }
        bench_close(&b);
    }
}

/* A refused tensor is no write; a state needs none, and neither does an input that nothing reads.
 */
TEST(test_counted) {
    for (int i = 0; i < 2; i++) {
        bench b;
        bench_open(&b, backends[i]);
        basin_expr index = basin_index(b.graph, "index", BASIN_SHAPE(1));
        basin_expr table = basin_state(b.graph, "table", BASIN_SHAPE(2, 2));
        basin_expr unread = basin_input(b.graph, "unread", BASIN_SHAPE(4));
        basin_expr y = basin_sum_all(basin_take(table, 0, index));
        bench_plan(&b, &y, 1);
        double beyond = 2;
        basin_tensor t = basin_tensor_borrow(&beyond, BASIN_F64, BASIN_SHAPE(1));
        assert_int_equal(basin_plan_write(b.plan, index, &t, NULL), BASIN_BAD_VALUE);
        write_number(&b, unread, 1);
        assert_missing(&b, "the input 'index' [1] was never written");
        write_number(&b, index, 1);
        assert_int_equal(basin_plan_run(b.plan, NULL), BASIN_OK);
        bench_close(&b);
    }
}

/* An input that is an output itself has no call that reads it. */
TEST(test_passed_through) {
    for (int i = 0; i < 2; i++) {
        bench b;
        bench_open(&b, backends[i]);
        basin_expr x = basin_input(b.graph, "x", BASIN_SCALAR);
        basin_expr none = basin_input(b.graph, "none", BASIN_SHAPE(0));
        basin_expr output[] = {x, none};
        bench_plan(&b, output, 2);
        assert_missing(&b, "the input 'x' [] was never written");
        write_number(&b, x, 7);
        assert_int_equal(basin_plan_run(b.plan, NULL), BASIN_OK);
        assert_true(basin_plan_scalar(b.plan, x) == 7);
        bench_close(&b);
    }
}

static void assert_unreadable(bench *b, basin_expr output) {
    double number = 5;
    basin_tensor t = basin_tensor_borrow(&number, BASIN_F64, BASIN_SCALAR);
    assert_int_equal(basin_plan_read(&t, b->plan, output, NULL), BASIN_BAD_VALUE);
    assert_true(number == 5);
}

/* Results that are not there are not read, whatever lies in their memory; a state is. */
TEST(test_unread) {
    for (int i = 0; i < 2; i++) {
        bench b;
        bench_open(&b, backends[i]);
        basin_expr x = basin_input(b.graph, "x", BASIN_SCALAR);
        basin_expr kept = basin_state(b.graph, "kept", BASIN_SCALAR);
        basin_expr output[] = {basin_exp(x), kept};
        bench_plan(&b, output, 2);
        write_number(&b, x, 0);
        assert_unreadable(&b, output[0]);
        assert_true(basin_plan_scalar(b.plan, kept) == 0);
        assert_int_equal(basin_plan_run(b.plan, NULL), BASIN_OK);
        assert_true(basin_plan_scalar(b.plan, output[0]) == 1);
        basin_plan_release(b.plan);
        assert_unreadable(&b, output[0]);
        assert_int_equal(basin_plan_run(b.plan, NULL), BASIN_OK);
        assert_true(basin_plan_scalar(b.plan, output[0]) == 1);
        bench_close(&b);
    }
}
