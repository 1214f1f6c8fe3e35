/* Every allocation fails once while a graph is built, differentiated, planned and run on both
 * backends: out of memory each time, nothing leaks. Running a plan allocates nothing. */
#include "basin/expr.h"
#include "basin/plan.h"
#include "engine/expr/graph.h"
#include "support/alloc_fail.h"
#include "support/test.h"

enum { N = 3, D = 4, H = 2, Y = 16, M = 128 }; /* so wide that narrow plans join products */

typedef struct model {
    basin_graph *graph;
    basin_expr x, index, seed, loss, gradient[3];
    basin_update update[2];
} model;

/* Two steps of a descent of norm, attention and memories, recomputed, with noise; then a loss, its
 * gradients, and the updates of two states. */
static void build(model *m) {
    basin_graph *g = m->graph;
    basin_expr gamma = basin_state(g, "gamma", BASIN_SCALAR);
    basin_expr delta = basin_state(g, "delta", BASIN_SHAPE(D));
    basin_expr w = basin_state(g, "w", BASIN_SHAPE(H, Y, D));
    basin_expr v = basin_state(g, "v", BASIN_SHAPE(H, Y, D));
    basin_expr xi = basin_state(g, "xi", BASIN_SHAPE(M, D));
    basin_expr beta = basin_full(g, BASIN_SHAPE(H), 0.5);
    m->x = basin_input(g, "x", BASIN_SHAPE(N, D));
    m->index = basin_index(g, "index", BASIN_SHAPE(4));
    m->seed = basin_index(g, "seed", BASIN_SHAPE(2));
    basin_expr x = m->x;
    for (int t = 0; t < 2; t++) {
        basin_recompute_begin(g);
        basin_expr a = basin_layernorm(x, gamma, delta, 1e-5);
        basin_expr q = basin_einsum("nd,hyd->nhy", a, w);
        basin_expr k = basin_einsum("nd,hyd->nhy", a, v);
        basin_expr lse = basin_attention_lse(q, k, beta, &BASIN_OTHER_PAIRS, NULL);
        basin_expr memory = basin_square(basin_relu(basin_matmul_t(a, false, xi, true)));
        basin_expr energy = basin_neg(basin_add(basin_sum_all(lse), basin_sum_all(memory)));
        basin_expr noise = basin_scale(basin_normal(m->seed, BASIN_SHAPE(N, D)), 0.01);
        x = basin_keep(basin_add(basin_sub(x, basin_grad(energy, a)), noise));
        basin_recompute_end(g);
    }
    basin_expr part[20];
    for (int i = 0; i < 20; i++) part[i] = basin_slice(basin_take(x, 0, m->index), 1, i % D, 1);
    m->loss = basin_mean_all(basin_logsumexp(basin_concat(part, 20, 1), -1));
    basin_expr at[3] = {w, xi, gamma};
    basin_vjp(m->gradient, m->loss, NULL, at, 3);
    m->update[0] = (basin_update){w, basin_sub(w, basin_scale(m->gradient[0], 0.1))};
    m->update[1] = (basin_update){xi, basin_sub(xi, basin_scale(m->gradient[1], 0.1))};
}

static basin_status make_plan(basin_plan **plan, basin_store *store, const model *m,
                              basin_fusion fusion, basin_error *error) {
    basin_expr output[] = {m->loss, m->gradient[2]};
    basin_plan_spec spec = {
        .output = output, .outputs = 2, .update = m->update, .updates = 2, .fusion = fusion};
    return basin_plan_new(plan, store, &spec, error);
}

/* Inputs of other types than the backend's, so that they are converted. */
static basin_status write_inputs(basin_plan *plan, const model *m, basin_error *error) {
    float x[N * D];
    int64_t index[4] = {0, 2, -1, 1};
    int32_t seed[2] = {1, 2};
    for (int i = 0; i < N * D; i++) x[i] = (float)i / 10;
    basin_tensor a = basin_tensor_borrow(x, BASIN_F32, BASIN_SHAPE(N, D));
    basin_tensor b = basin_tensor_borrow(index, BASIN_I64, BASIN_SHAPE(4));
    basin_tensor c = basin_tensor_borrow(seed, BASIN_I32, BASIN_SHAPE(2));
    basin_status status = basin_plan_write(plan, m->x, &a, error);
    if (!status) status = basin_plan_write(plan, m->index, &b, error);
    return status ? status : basin_plan_write(plan, m->seed, &c, error);
}

static basin_status read_results(basin_plan *plan, basin_store *store, const model *m,
                                 basin_error *error) {
    basin_tensor state;
    float loss;
    basin_tensor scalar = basin_tensor_borrow(&loss, BASIN_F32, BASIN_SCALAR);
    basin_status status = basin_plan_read(&scalar, plan, m->loss, error);
    if (!status) status = basin_store_get(&state, store, "xi", error);
    if (!status) basin_tensor_free(&state);
    return status;
}

typedef struct setting {
    const char *backend;
    basin_fusion fusion;
    bool narrow;
} setting;

static basin_status train(void *context) {
    const setting *s = context;
    model m = {.graph = basin_graph_new()};
    basin_backend *backend = NULL;
    basin_store *store = NULL;
    basin_plan *plan = NULL;
    basin_error error = {0};
    build(&m);
    const basin_error *bad = basin_graph_error(m.graph);
    basin_status status = bad ? bad->status : BASIN_OK;
    basin_compute compute = {.backend = s->backend, .threads = 2};
    if (s->narrow) compute.storage = BASIN_BF16, compute.narrow_min = 1;
    if (!status) status = basin_backend_open(&backend, &compute, &error);
    if (!status) status = basin_store_new(&store, backend, &error);
    if (!status) status = make_plan(&plan, store, &m, s->fusion, &error);
    if (!status) status = write_inputs(plan, &m, &error);
    if (!status) status = basin_plan_run(plan, &error);
    if (!status) status = read_results(plan, store, &m, &error);
    bool told = bad || error.status == status; /* the error object tells the same */
    basin_plan_free(plan);
    basin_store_free(store);
    basin_backend_close(backend);
    basin_graph_free(m.graph);
    return told ? status : BASIN_BAD_VALUE;
}

TEST(test_training) {
    setting settings[] = {{"ref", BASIN_FUSE_OFF, false},
                          {"ref", BASIN_FUSE_ON, false},
                          {"ref", BASIN_FUSE_ON, true},
                          {"cpu", BASIN_FUSE_ON, false}};
    for (int i = 0; i < 4; i++) assert_true(alloc_fail_sweep(train, &settings[i]) > 400);
}

/* Two layer norms and a weight between them, with its gradient, in fp8: the weight is transposed,
 * and so are tokens. */
static basin_status plan_bytes(void *context) {
    enum { BYTES = 16 };
    basin_graph *g = basin_graph_new();
    basin_backend *backend = NULL;
    basin_store *store = NULL;
    basin_plan *plan = NULL;
    basin_expr gamma = basin_state(g, "gamma", BASIN_SCALAR);
    basin_expr delta = basin_state(g, "delta", BASIN_SHAPE(BYTES));
    basin_expr w = basin_state(g, "w", BASIN_SHAPE(BYTES, BYTES));
    basin_expr x = basin_input(g, "x", BASIN_SHAPE(BYTES, BYTES));
    basin_expr y = basin_matmul(basin_layernorm(x, gamma, delta, 1e-5), w);
    basin_expr z = basin_layernorm(basin_add(x, y), gamma, delta, 1e-5);
    basin_expr output[2] = {z, basin_grad(basin_mean_all(basin_exp(z)), w)};
    basin_plan_spec spec = {.output = output, .outputs = 2};
    const basin_error *bad = basin_graph_error(g);
    basin_status status = bad ? bad->status : BASIN_OK;
    (void)context;
    basin_compute compute = {.backend = "ref", .storage = BASIN_F8_E4M3, .narrow_min = 1};
    if (!status) status = basin_backend_open(&backend, &compute, NULL);
    if (!status) status = basin_store_new(&store, backend, NULL);
    if (!status) status = basin_plan_new(&plan, store, &spec, NULL);
    basin_plan_free(plan);
    basin_store_free(store);
    basin_backend_close(backend);
    basin_graph_free(g);
    return status;
}

TEST(test_bytes) { assert_true(alloc_fail_sweep(plan_bytes, NULL) > 100); }

/* Constants, choices and an engine. */
static basin_status choose(void *context) {
    basin_engine engine;
    basin_error error = {0};
    basin_tensor result[2];
    float number[N * D] = {3, 1, 2};
    basin_tensor table = basin_tensor_borrow(number, BASIN_F32, BASIN_SHAPE(N, D));
    basin_status status =
        basin_engine_open(&engine, &(basin_compute){.backend = context, .threads = 1}, &error);
    if (status) return status;
    basin_expr x = basin_constant(engine.graph, &table), where;
    basin_expr best = basin_top_k(basin_stride(basin_cumsum(x, 0), 1, D - 1, D, -1), 2, 1, &where);
    basin_expr p = basin_sparse_softmax(
        basin_jacobian(basin_softmax(basin_slice(x, 0, 0, 1), -1), x), BASIN_SPARSE_ENTMAX15);
    basin_expr square = basin_matmul_t(p, false, p, true);
    basin_expr all = basin_einsum_many("ii,jj->ij", (basin_expr[]){square, square}, 2);
    basin_expr output[2] = {best, basin_jvp(basin_sin(all), &x, &x, 1)};
    const basin_error *bad = basin_graph_error(engine.graph);
    status = bad ? bad->status : BASIN_OK;
    if (!status) status = basin_engine_compute(&engine, result, output, 2, NULL, 0, &error);
    for (int i = 0; i < 2 && !status; i++) basin_tensor_free(&result[i]);
    basin_engine_close(&engine);
    return status;
}

TEST(test_choosing) {
    char ref[] = "ref", cpu[] = "cpu";
    assert_true(alloc_fail_sweep(choose, ref) > 200);
    assert_true(alloc_fail_sweep(choose, cpu) > 200);
}

static basin_status run_again(void *plan) { return basin_plan_run(plan, NULL); }

TEST(test_running) {
    const setting settings[] = {{"ref", BASIN_FUSE_OFF, false},
                                {"cpu", BASIN_FUSE_ON, false},
                                {"cpu", BASIN_FUSE_OFF, false}};
    model m = {.graph = basin_graph_new()};
    build(&m);
    for (int i = 0; i < 3; i++) {
        basin_backend *backend;
        basin_store *store;
        basin_plan *plan;
        assert_ok(basin_backend_open(
            &backend, &(basin_compute){.backend = settings[i].backend, .threads = 2}, &failure));
        assert_int_equal(basin_store_new(&store, backend, NULL), BASIN_OK);
        assert_int_equal(make_plan(&plan, store, &m, settings[i].fusion, NULL), BASIN_OK);
        assert_int_equal(write_inputs(plan, &m, NULL), BASIN_OK);
        assert_int_equal(alloc_fail_sweep(run_again, plan), 0);
        basin_plan_free(plan);
        basin_store_free(store);
        basin_backend_close(backend);
    }
    basin_graph_free(m.graph);
}
