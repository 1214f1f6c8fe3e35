/* A network built, descended and differentiated while the n-th allocation fails, for every n. */
#include "engine/energy/ham_run.h"
#include "engine/energy/network.h"
#include "support/alloc_fail.h"
#include "support/test.h"

static void build(basin_ham *ham) {
    basin_ham_bind(ham, "vh.w", basin_full(ham->graph, BASIN_SHAPE(3, 2), 0.1));
    basin_ham_layer(ham, &(basin_layer){.name = "v", .shape = BASIN_SHAPE(3), .bias = true});
    basin_ham_layer(
        ham,
        &(basin_layer){.name = "h", .shape = BASIN_SHAPE(2), .lagrangian = {.name = "softmax"}});
    basin_ham_synapse(ham, &(basin_synapse){.name = "vh", .kind = BASIN_SYNAPSE_LINEAR});
    basin_ham_synapse(ham, &(basin_synapse){.name = "m",
                                            .kind = BASIN_SYNAPSE_MEMORY,
                                            .units = 2,
                                            .hidden = {.name = "relu"}});
    basin_ham_connect(ham, "vh", "v, h");
    basin_ham_connect(ham, "m", "v");
}

/* What the graph has to say. */
static basin_status graph_status(basin_graph *graph) {
    const basin_error *error = basin_graph_error(graph);
    return error ? error->status : BASIN_OK;
}

static basin_status run_network(basin_graph *graph, basin_ham *ham, basin_store *store) {
    basin_error error;
    basin_tensor x[2] = {{0}, {0}};
    basin_descent_result result = {0};
    basin_ham_spec spec = {.steps = 2, .dt = 0.1};
    basin_stop stop = {.guard = true};
    build(ham);
    basin_status status = graph_status(graph);
    if (!status) status = basin_params_init(basin_ham_params(ham), store, 1, &error);
    for (int i = 0; i < 2 && !status; i++)
        status = basin_tensor_new(&x[i], BASIN_F64,
                                  BASIN_SHAPE(1, basin_shape_count(ham->layer[i].shape)), &error);
    if (!status) status = ham_run(ham, store, &result, x, &spec, &stop, &error);
    basin_descent_result_free(&result);
    for (int i = 0; i < 2; i++) basin_tensor_free(&x[i]);
    return status;
}

static basin_status scenario(void *context) {
    (void)context;
    basin_error error;
    basin_backend *backend = NULL;
    basin_store *store = NULL;
    basin_graph *graph = basin_graph_new();
    basin_ham *ham = graph ? basin_ham_new(graph) : NULL;
    basin_status status = ham ? BASIN_OK : BASIN_NO_MEMORY;
    if (!status)
        status =
            basin_backend_open(&backend, &(basin_compute){.backend = "ref", .threads = 1}, &error);
    if (!status) status = basin_store_new(&store, backend, &error);
    if (!status) status = run_network(graph, ham, store);
    basin_store_free(store);
    basin_backend_close(backend);
    basin_ham_free(ham);
    basin_graph_free(graph);
    return status;
}

TEST(test_allocations) { assert_true(alloc_fail_sweep(scenario, NULL) > 50); }
