/* Threads that use one CUDA device at the same time, each on a backend of its own, opened beside
 * one another or independently: while one captures a plan, others allocate, compile, load and free.
 * Each result has the bits of a lone thread's, whose captured calls run side by side. Skipped,
 * visibly, where there is no device. */
#include <pthread.h>

#include "basin/expr.h"
#include "basin/plan.h"
#include "engine/backend/device.h"
#include "support/cuda.h"

enum { THREADS = 6, PROBLEMS = 5, RUNS = 4, ROUNDS = 2, IN = 24, OUT = 40 };

static float wanted[PROBLEMS][IN * OUT];

static basin_status begin(basin_store *store, basin_error *error) {
    float number[IN * OUT];
    for (int i = 0; i < IN * OUT; i++) number[i] = (float)(i * 11 % 17) * 0.1f - 0.8f;
    basin_tensor view = basin_tensor_borrow(number, BASIN_F32, BASIN_SHAPE(IN, OUT));
    return basin_store_write(store, "w", &view, error);
}

/* Weights after some steps. No assertions: these end the main thread's tests alone. */
static basin_status train(basin_plan *plan, basin_store *store, basin_expr x, int64_t rows,
                          float *result, basin_error *error) {
    basin_tensor tensor;
    basin_status status = basin_tensor_new(&tensor, BASIN_F32, BASIN_SHAPE(rows, IN), error);
    for (int run = 0; run < RUNS && !status; run++) {
        for (int64_t i = 0; i < rows * IN; i++)
            ((float *)tensor.data)[i] = (float)((i * 7 + run) % 23) * 0.1f - 1;
        status = basin_plan_write(plan, x, &tensor, error);
        if (!status) status = basin_plan_run(plan, error);
    }
    basin_tensor_free(&tensor);
    if (status) return status;
    status = basin_store_get(&tensor, store, "w", error);
    if (!status) memcpy(result, tensor.data, IN * OUT * sizeof(float));
    basin_tensor_free(&tensor);
    return status;
}

/* Programs differ from problem to problem. */
static basin_status solve(float *result, basin_backend *backend, int problem, basin_error *error) {
    int64_t rows = 40 + 300 * problem;
    basin_graph *graph = basin_graph_new();
    basin_store *store = NULL;
    basin_plan *plan = NULL;
    basin_expr x = basin_input(graph, "x", BASIN_SHAPE(rows, IN));
    basin_expr w = basin_state(graph, "w", BASIN_SHAPE(IN, OUT));
    basin_expr y = NULL; /* parts that do not wait for each other */
    for (int k = 0; k < 4; k++) {
        basin_expr transposed = basin_matmul(basin_sin(basin_offset(x, k)), w);
        basin_expr part = basin_softmax(basin_sin(basin_offset(transposed, 0.3 + problem)), -1);
        y = y ? basin_add(y, part) : part;
    }
    basin_expr loss = basin_sum_all(basin_square(y)), back = basin_grad(loss, w);
    basin_update update = {w, basin_sub(w, basin_scale(back, 0.1 * (problem + 1)))};
    basin_plan_spec spec = {.update = &update, .updates = 1};
    basin_status status = basin_store_new(&store, backend, error);
    if (!status) status = basin_plan_new(&plan, store, &spec, error);
    if (!status) status = begin(store, error);
    if (!status) status = train(plan, store, x, rows, result, error);
    basin_plan_free(plan);
    basin_store_free(store);
    basin_graph_free(graph);
    return status;
}

typedef struct worker {
    pthread_t thread;
    int number, differ;
    bool beside;
    basin_error error;
} worker;

static void *work(void *context) {
    worker *w = context;
    float result[IN * OUT];
    for (int round = 0; round < ROUNDS && !w->error.status; round++) {
        basin_backend *backend = NULL;
        basin_status status =
            w->beside
                ? basin_backend_open_like(&backend, cuda, &w->error)
                : basin_backend_open(&backend, &(basin_compute){.backend = "cuda"}, &w->error);
        for (int i = 0; i < PROBLEMS && !status; i++) {
            int problem = (i + w->number) % PROBLEMS;
            status = solve(result, backend, problem, &w->error);
            if (!status) w->differ += memcmp(result, wanted[problem], sizeof result) != 0;
        }
        basin_backend_close(backend);
    }
    return NULL;
}

static void try_threads(bool beside) {
    worker w[THREADS];
    for (int i = 1; i < PROBLEMS; i++) /* something is learnt */
        assert_memory_not_equal(wanted[i - 1], wanted[i], sizeof wanted[i]);
    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){.number = i, .beside = beside};
        assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(w[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        if (w[i].error.status) fail_msg("thread %d: %s", i, w[i].error.text);
        assert_int_equal(w[i].differ, 0);
    }
}

TEST(test_beside) { try_threads(true); }

TEST(test_apart) { try_threads(false); }

int main(void) {
    basin_error error = {0};
    cuda_open();
    basin_status status = BASIN_OK;
    for (int i = 0; i < PROBLEMS && !status; i++) status = solve(wanted[i], cuda, i, &error);
    if (status) fprintf(stderr, "%s\n", error.text);
    return cuda_close(status ? 1 : tests_run(NULL, NULL));
}
