/* Plans on the caller's memory: inputs copied in, outputs out, in the stream's order. */
#include "engine/plan/plan.h"
#include "base/sized.h"
#include "basin/eager.h"

#include "base/try.h"

static size_t bytes_of(const basin_backend *backend, basin_expr expr) {
    return (size_t)basin_shape_count(expr->shape) * backend->table->real_size;
}

static void copy(basin_backend *backend, void *to, const void *from, size_t bytes) {
    const basin_eager_table *device = basin_backend_eager(backend);
    if (device)
        device->copy(backend, to, from, bytes);
    else if (bytes > 0)
        memcpy(to, from, bytes);
}

/* Into the plan, and into those of its iterations. */
static void write_input(basin_plan *plan, basin_expr input, const void *from) {
    basin_plan *inner;
    for (int i = 0; (inner = basin_iterations_plan(&plan->iterations, i)); i++)
        write_input(inner, input, from);
    for (size_t i = 0; i < plan->inputs; i++) {
        basin_plan_input *found = &plan->input[i];
        if (found->expr != input) continue;
        copy(plan->store->backend, (char *)plan->block[BASIN_BLOCK_INPUTS] + found->offset, from,
             bytes_of(plan->store->backend, input));
        plan->missing -= found->missing;
        found->missing = false;
    }
}

static basin_status read_output(const basin_plan *plan, basin_expr output, void *to,
                                basin_error *error) {
    for (int i = 0; i < plan->outputs; i++) {
        if (plan->output[i].expr != output) continue;
        copy(plan->store->backend, to, basin_operand_at(&plan->output[i].where, plan->block),
             bytes_of(plan->store->backend, output));
        return BASIN_OK;
    }
    return basin_fail(error, BASIN_BAD_VALUE, "the expression is not an output of this plan");
}

static basin_status run_inside(const basin_eager_plan *run, basin_error *error) {
    for (int i = 0; i < run->inputs; i++) {
        if (run->input[i]->kind != BASIN_REAL)
            return basin_fail(error, BASIN_UNSUPPORTED, "the input '%s' has indices, not numbers",
                              basin_expr_name(run->input[i]));
        write_input(run->plan, run->input[i], run->from[i]);
    }
    BASIN_TRY(basin_plan_run(run->plan, error));
    for (int i = 0; i < run->outputs; i++)
        BASIN_TRY(read_output(run->plan, run->output[i], run->to[i], error));
    return BASIN_OK;
}

basin_status basin_eager_run_plan(const basin_eager_plan *run, basin_error *error) {
    BASIN_TRY(BASIN_SIZE_CHECK(run, "basin_eager_plan", error));
    basin_backend *backend = run->plan->store->backend;
    const basin_eager_table *device = basin_backend_eager(backend);
    if (!device) return run_inside(run, error);
    BASIN_TRY(device->enter(backend, run->stream, error));
    basin_status status = run_inside(run, error);
    basin_status late = device->leave(backend, run->stream, status ? NULL : error);
    return status ? status : late;
}
