/* Every allocation fails once while a plan is made whose attention along a list reads tokens: out
 * of memory each time, nothing leaks. */
#include "basin/expr.h"
#include "basin/pairs.h"
#include "basin/plan.h"
#include "support/alloc_fail.h"
#include "support/test.h"

enum { N = 5, D = 4, H = 2, Y = 3, PAIRS = 6 };

/* The force on tokens, and the gradients of its squares. */
static void build(basin_expr gradient[3], basin_graph *graph) {
    basin_pattern pattern = basin_pairs_declare(graph, "pairs", N, N, PAIRS);
    basin_expr wq = basin_state(graph, "wq", BASIN_SHAPE(H * Y, D));
    basin_expr wk = basin_state(graph, "wk", BASIN_SHAPE(H * Y, D));
    basin_expr x = basin_variable(basin_input(graph, "x", BASIN_SHAPE(N, D)));
    basin_expr q = basin_reshape(basin_matmul_t(x, false, wq, true), BASIN_SHAPE(N, H, Y));
    basin_expr k = basin_reshape(basin_matmul_t(x, false, wk, true), BASIN_SHAPE(N, H, Y));
    basin_expr beta = basin_fill(graph, BASIN_SHAPE(H), 0.5);
    basin_expr lse = basin_attention_lse(q, k, beta, NULL, NULL, &pattern);
    basin_expr force = basin_scale(basin_grad(basin_sum_all(lse), x), 0.1), at[3] = {x, wq, wk};
    basin_vjp(gradient, basin_sum_all(basin_square(force)), NULL, at, 3);
}

static basin_status make_plan(void *context) {
    basin_error error = {0};
    basin_backend *backend = NULL;
    basin_store *store = NULL;
    basin_plan *plan = NULL;
    basin_graph *graph = NULL;
    basin_expr gradient[3] = {NULL};
    (void)context;
    basin_status status =
        basin_backend_open(&backend, &(basin_compute){.backend = "ref", .threads = 1}, &error);
    if (!status) status = basin_store_new(&store, backend, &error);
    if (!status) graph = basin_graph_new();
    if (!status && !graph) status = BASIN_NO_MEMORY;
    if (!status) build(gradient, graph);
    const basin_error *found = graph ? basin_graph_error(graph) : NULL;
    if (found) status = found->status;
    basin_plan_spec spec = {.output = gradient, .outputs = 3, .fusion = BASIN_FUSE_ON};
    if (!status) status = basin_plan_new(&plan, store, &spec, &error);
    basin_plan_free(plan);
    basin_graph_free(graph);
    basin_store_free(store);
    basin_backend_close(backend);
    return status;
}

TEST(test_allocations) { assert_true(alloc_fail_sweep(make_plan, NULL) > 100); }
