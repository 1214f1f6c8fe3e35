/* Plans of several parts of one set of tokens, run together: alike call by call, they stop where
 * rows are exchanged, and go on when whoever runs them has moved the rows; see basin/plan.h. */
#include <stdlib.h>

#include "base/memory.h"
#include "plan/plan.h"
#include "plan/store.h"

/* ---- where a plan stops ---- */

/* Devices have threads of their own; the memory of others is the host's. */
static bool on_host(const basin_plan *plan) {
    return basin_backend_threads(plan->store->backend) > 0;
}

static size_t operand_bytes(const basin_plan *plan, const basin_operand *a) {
    return (size_t)basin_shape_count(a->shape) * plan->store->backend->table->real_size;
}

basin_status basin_plan_find_stops(basin_plan *plan, basin_error *error) {
    size_t most = 0;
    for (size_t i = 0; i < plan->calls; i++) {
        const basin_call *call = &plan->call[i];
        if (!basin_op_exchanges(call->op)) continue;
        plan->stops = true;
        size_t bytes = operand_bytes(plan, &call->in[0]) + operand_bytes(plan, &call->out[0]);
        if (bytes > most) most = bytes;
    }
    if (!plan->stops || on_host(plan)) return BASIN_OK;
    plan->staging = basin_array_new(most, 1);
    return plan->staging
               ? BASIN_OK
               : basin_fail(error, BASIN_NO_MEMORY, "out of memory for rows of other parts");
}

/* The next call at or behind `at` where the plan stops, or the end. */
static size_t next_stop(const basin_plan *plan, size_t at) {
    while (at < plan->calls && !basin_op_exchanges(plan->call[at].op)) at++;
    return at;
}

/* ---- rows in and out ---- */

static void *address(const basin_plan *plan, const basin_operand *a) {
    return (char *)plan->block[a->block] + a->offset;
}

static basin_exchange_rows rows_of(const basin_plan *plan, const basin_call *call) {
    const basin_operand *in = &call->in[0], *out = &call->out[0];
    bool back = call->op == BASIN_OP_EXCHANGE_BACK;
    int64_t a = in->shape.dim[0], b = out->shape.dim[0], own = back ? b : a;
    int64_t cells = basin_shape_count(out->shape);
    basin_exchange_rows rows = {.from = address(plan, in),
                                .to = address(plan, out),
                                .own = own,
                                .halo = (back ? a : b) - own,
                                .width = b > 0 ? cells / b : 0,
                                .dtype = plan->store->backend->table->real,
                                .back = back};
    if (plan->staging) {
        rows.from = plan->staging;
        rows.to = (char *)plan->staging + operand_bytes(plan, in);
    }
    return rows;
}

static basin_status fetch_rows(basin_plan *plan, const basin_call *call, basin_error *error) {
    basin_backend *backend = plan->store->backend;
    if (!plan->staging) return BASIN_OK;
    backend->table->copy_out(backend, plan->staging, address(plan, &call->in[0]),
                             operand_bytes(plan, &call->in[0]));
    return backend->table->wait(backend, error);
}

static void return_rows(basin_plan *plan, const basin_call *call) {
    basin_backend *backend = plan->store->backend;
    size_t in = operand_bytes(plan, &call->in[0]), out = operand_bytes(plan, &call->out[0]);
    if (plan->staging)
        backend->table->copy_in(backend, address(plan, &call->out[0]), (char *)plan->staging + in,
                                out);
}

static basin_status exchange(basin_plan *const *plan, int plans, size_t at,
                             basin_exchange_rows *rows, const basin_exchange_way *way,
                             basin_error *error) {
    basin_status status = BASIN_OK;
    for (int i = 0; i < plans && !status; i++) {
        status = fetch_rows(plan[i], &plan[i]->call[at], error);
        rows[i] = rows_of(plan[i], &plan[i]->call[at]);
    }
    if (!status) status = way->move(way->context, rows, plans, error);
    for (int i = 0; i < plans && !status; i++) return_rows(plan[i], &plan[i]->call[at]);
    return status;
}

/* ---- the run ---- */

static basin_status check_alike(basin_plan *const *plan, int plans, basin_error *error) {
    for (int i = 0; i < plans; i++) {
        bool same = plan[i]->calls == plan[0]->calls && plan[i]->ir.hoisted == plan[0]->ir.hoisted;
        for (size_t k = 0; k < plan[i]->calls && same; k++)
            same = plan[i]->call[k].op == plan[0]->call[k].op;
        if (!same)
            return basin_fail(
                error, BASIN_BAD_VALUE,
                "plan %d of %d that run together differs from the first, wanted plans "
                "of one expression and shape",
                i, plans);
        if (plan[i]->iterations.count)
            return basin_fail(error, BASIN_UNSUPPORTED,
                              "rest points of tokens in several parts are not available");
        if (plan[i]->shares && plans > 1)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%d plans that compute in one place cannot run together", plans);
    }
    return BASIN_OK;
}

static basin_status run_pieces(basin_plan *const *plan, int plans, basin_exchange_rows *rows,
                               const basin_exchange_way *way, basin_error *error) {
    size_t at = plan[0]->ir.hoisted, end = plan[0]->calls;
    basin_status status = BASIN_OK;
    while (at < end && !status) {
        size_t stop = next_stop(plan[0], at);
        for (int i = 0; i < plans; i++) {
            basin_backend *backend = plan[i]->store->backend;
            backend->table->run(backend, plan[i]->call + at, stop - at, plan[i]->block);
        }
        if (stop < end) status = exchange(plan, plans, stop, rows, way, error);
        at = stop + 1;
    }
    return status;
}

basin_status basin_plans_run(basin_plan *const *plan, int plans, const basin_exchange_way *way,
                             basin_error *error) {
    basin_status status = check_alike(plan, plans, error);
    basin_exchange_rows *rows = basin_array_new((size_t)plans, sizeof *rows);
    if (!status && !rows) status = basin_fail(error, BASIN_NO_MEMORY, "out of memory to run plans");
    for (int i = 0; i < plans && !status; i++) status = basin_plan_begin(plan[i], error);
    if (!status && plans > 0) status = run_pieces(plan, plans, rows, way, error);
    for (int i = 0; i < plans && !status; i++) status = basin_plan_end(plan[i], error);
    free(rows);
    return status;
}
