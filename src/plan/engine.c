/* Backend, store and graph together, and a plan that is made, run once and read. */

#include "basin/plan.h"

basin_status basin_engine_open(basin_engine *engine, const basin_compute *compute,
                               basin_error *error) {
    *engine = (basin_engine){0};
    basin_status status = basin_backend_open(&engine->backend, compute, error);
    if (!status) status = basin_store_new(&engine->store, engine->backend, error);
    if (!status) engine->graph = basin_graph_new();
    if (!status && !engine->graph)
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for a graph");
    if (status) basin_engine_close(engine);
    return status;
}

void basin_engine_close(basin_engine *engine) {
    basin_store_free(engine->store);
    if (engine->backend) basin_backend_close(engine->backend);
    basin_graph_free(engine->graph);
    *engine = (basin_engine){0};
}

static basin_status read_results(basin_tensor *result, basin_plan *plan, const basin_expr *output,
                                 int outputs, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int i = 0; i < outputs && !status; i++) {
        status = basin_tensor_new(&result[i], BASIN_F64, basin_expr_shape(output[i]), error);
        if (!status) status = basin_plan_read(plan, output[i], &result[i], error);
    }
    return status;
}

basin_status basin_engine_compute(basin_engine *engine, basin_tensor *result,
                                  const basin_expr *output, int outputs, const basin_given *given,
                                  int count, basin_error *error) {
    basin_plan *plan;
    const basin_error *found = basin_graph_error(engine->graph);
    for (int i = 0; i < outputs; i++) result[i] = (basin_tensor){0};
    if (found) return basin_fail(error, found->status, "%s", found->text);
    basin_status status = basin_plan_new(
        &plan, engine->store, &(basin_plan_spec){.output = output, .outputs = outputs}, error);
    for (int i = 0; i < count && !status; i++)
        status = basin_plan_write(plan, given[i].input, given[i].tensor, error);
    if (!status) status = basin_plan_run(plan, error);
    if (!status) status = read_results(result, plan, output, outputs, error);
    for (int i = 0; i < outputs && status; i++) basin_tensor_free(&result[i]);
    basin_plan_free(plan);
    return status;
}
