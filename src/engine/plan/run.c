/* Using a plan: inputs, checked on their way in, runs, outputs. */
#include <sys/mman.h>

#include "base/shape.h"
#include "base/sized.h"
#include "base/try.h"
#include "engine/plan/plan.h"

void basin_plan_get_stats(basin_plan_stats *stats, const basin_plan *plan) {
    basin_info_fill(stats, &plan->stats, sizeof plan->stats);
}

void basin_plan_describe(const basin_plan *plan, int call, char *text, size_t size) {
    if (size == 0) return;
    text[0] = 0;
    if (call >= 0 && (size_t)call < plan->calls) basin_call_describe(text, size, &plan->call[call]);
}

static basin_plan_input *find_input(basin_plan *plan, basin_expr expr) {
    for (size_t i = 0; i < plan->inputs; i++)
        if (plan->input[i].expr == expr) return &plan->input[i];
    return NULL;
}

static basin_status shapes_differ(const char *what, basin_expr expr, const basin_tensor *tensor,
                                  basin_error *error) {
    return basin_fail(error, BASIN_BAD_SHAPE, "%s '%s' has shape %s, the tensor has %s", what,
                      basin_expr_name(expr), basin_shape_text(expr->shape),
                      basin_shape_text(tensor->shape));
}

static void mark_written(basin_plan *plan, basin_plan_input *input) {
    plan->missing -= input->missing;
    input->missing = false;
}

/* Whoever writes to a plan writes to those of its iterations. */
static basin_status write_inner(basin_plan *plan, basin_expr input, const basin_tensor *tensor,
                                basin_error *error) {
    basin_plan *inner;
    for (int i = 0; (inner = basin_iterations_plan(&plan->iterations, i)); i++)
        BASIN_TRY(basin_plan_write(inner, input, tensor, error));
    return BASIN_OK;
}

basin_status basin_plan_write(basin_plan *plan, basin_expr input, const basin_tensor *tensor,
                              basin_error *error) {
    if (!input || input->node->op != BASIN_OP_INPUT)
        return basin_fail(error, BASIN_BAD_VALUE, "only inputs can be written");
    if (!basin_shape_equal(input->shape, tensor->shape))
        return shapes_differ("input", input, tensor, error);
    BASIN_TRY(write_inner(plan, input, tensor, error));
    basin_plan_input *found = find_input(plan, input);
    if (!found) return BASIN_OK;
    if (input->kind == BASIN_INDEX)
        BASIN_TRY(basin_bounds_check(&found->bounds, basin_expr_name(input), tensor, error));
    BASIN_TRY(basin_device_write(plan->store->backend,
                                 (char *)plan->block[BASIN_BLOCK_INPUTS] + found->offset,
                                 input->kind, tensor, error));
    mark_written(plan, found);
    return BASIN_OK;
}

/* Takes the arena for a run; whether the results of hoisted calls are still there. */
static bool take_arena(basin_plan *plan) {
    basin_store *store = plan->store;
    bool kept = plan->made == store->changes && (!plan->shares || store->last == plan) &&
                (!plan->last || *plan->last == plan);
    if (plan->last) *plan->last = plan;
    if (plan->shares) {
        plan->block[BASIN_BLOCK_ARENA] = store->arena;
        store->last = plan;
    }
    return kept;
}

static basin_status refuse_missing(const basin_plan *plan, basin_error *error) {
    const basin_plan_input *input = plan->input;
    while (!input->missing) input++;
    return basin_fail(error, BASIN_BAD_VALUE, "the input %s was never written",
                      basin_expr_text(input->expr));
}

/* Up to the first call that is not hoisted; and what follows the last one. */
static basin_status plan_begin(basin_plan *plan, basin_error *error) {
    basin_backend *backend = plan->store->backend;
    if (plan->missing) return refuse_missing(plan, error);
    if (plan->shares) /* it is lost if it failed to grow for another plan */
        BASIN_TRY(basin_store_reserve(plan->store, plan->ir.arena_bytes, error));
    if (!take_arena(plan)) backend->table->run(backend, plan->call, plan->ir.hoisted, plan->block);
    return BASIN_OK;
}

static basin_status plan_end(basin_plan *plan, basin_error *error) {
    basin_backend *backend = plan->store->backend;
    const basin_backend_table *table = backend->table;
    plan->store->changes += plan->updates;
    basin_status status = table->check ? table->check(backend, error) : table->wait(backend, error);
    plan->made = status ? 0 : plan->store->changes; /* hoisted calls do not read what it updates */
    return status;
}

/* All that comes before the first call of a plan that runs alone. */
static basin_status plan_enter(basin_plan *plan, basin_error *error) {
    if (plan->stops)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a plan that exchanges rows with others runs with them alone");
    if (plan->missing) return refuse_missing(plan, error);
    BASIN_TRY(basin_iterations_run(&plan->iterations, &plan->store->convergence, error));
    return plan_begin(plan, error);
}

basin_status basin_plan_run(basin_plan *plan, basin_error *error) {
    basin_backend *backend = plan->store->backend;
    size_t hoisted = plan->ir.hoisted;
    BASIN_TRY(plan_enter(plan, error));
    backend->table->run(backend, plan->call + hoisted, plan->calls - hoisted, plan->block);
    return plan_end(plan, error);
}

/* Whole pages only; the system fills them with zeros when they are touched again. */
void basin_plan_release(basin_plan *plan) {
    enum { PAGE = 1 << 16 }; /* at least a page */
    uintptr_t begin = (uintptr_t)plan->block[BASIN_BLOCK_ARENA], end = begin + plan->ir.arena_bytes;
    if (plan->shares || basin_backend_threads(plan->store->backend) < 1) return;
    begin = (begin + PAGE - 1) / PAGE * PAGE, end = end / PAGE * PAGE;
    plan->made = 0; /* hoisted results are gone as well */
    plan->iterations.last = NULL;
#ifdef MADV_DONTNEED
    if (end > begin) (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
#endif
}

basin_status basin_plan_read(basin_tensor *tensor, basin_plan *plan, basin_expr output,
                             basin_error *error) {
    for (int i = 0; i < plan->outputs; i++) {
        if (plan->output[i].expr != output) continue;
        if (!basin_shape_equal(output->shape, tensor->shape))
            return shapes_differ("output", output, tensor, error);
        const basin_operand *where = &plan->output[i].where;
        if (!plan->made && where->block == BASIN_BLOCK_ARENA)
            return basin_fail(
                error, BASIN_BAD_VALUE,
                "the plan has no results: it has not run, it failed, or its memory was released");
        if (plan->shares && plan->store->last != plan && where->block == BASIN_BLOCK_ARENA)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "the results of a plan were overwritten by those of another that "
                              "shares its memory");
        return basin_device_read(plan->store->backend, tensor,
                                 (char *)plan->block[where->block] + where->offset, where->kind,
                                 error);
    }
    return basin_fail(error, BASIN_BAD_VALUE, "the expression is not an output of this plan");
}

basin_status basin_plan_call(basin_plan *plan, const basin_feed *given, int count,
                             const basin_expr *output, basin_tensor *result, int outputs,
                             basin_error *error) {
    for (int i = 0; i < count; i++)
        BASIN_TRY(basin_plan_write(plan, given[i].input, given[i].tensor, error));
    BASIN_TRY(basin_plan_run(plan, error));
    for (int i = 0; i < outputs; i++)
        BASIN_TRY(basin_plan_read(&result[i], plan, output[i], error));
    return BASIN_OK;
}

basin_status basin_plan_read_scalar(double *value, basin_plan *plan, basin_expr output,
                                    basin_error *error) {
    basin_tensor tensor = basin_tensor_borrow(value, BASIN_F64, BASIN_SCALAR);
    return basin_plan_read(&tensor, plan, output, error);
}

/* Plans of several parts of one set of tokens, run together: alike call by call, they stop where
 * rows are exchanged, and go on when whoever runs them has moved the rows; see basin/plan.h. */

/* ---- where a plan stops ---- */

static size_t operand_bytes(const basin_plan *plan, const basin_operand *a) {
    return (size_t)basin_shape_count(a->shape) * plan->store->backend->table->real_size;
}

basin_status basin_plan_find_stops(basin_plan *plan, basin_error *error) {
    size_t max = 0;
    for (size_t i = 0; i < plan->calls; i++) {
        const basin_call *call = &plan->call[i];
        if (!basin_op_exchanges(call->op)) continue;
        plan->stops = true;
        size_t bytes = operand_bytes(plan, &call->in[0]) + operand_bytes(plan, &call->out[0]);
        if (bytes > max) max = bytes;
    }
    /* Devices run asynchronously; other backends compute in the host's memory. */
    if (!plan->stops || basin_backend_threads(plan->store->backend) > 0) return BASIN_OK;
    plan->staging = basin_array_new(max, 1);
    return plan->staging ? BASIN_OK : basin_fail_memory(error, "rows of other parts");
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
                             basin_exchange_rows *rows, const basin_exchange_callback *way,
                             basin_error *error) {
    for (int i = 0; i < plans; i++) {
        BASIN_TRY(fetch_rows(plan[i], &plan[i]->call[at], error));
        rows[i] = rows_of(plan[i], &plan[i]->call[at]);
    }
    BASIN_TRY(way->move(way->context, rows, plans, error));
    for (int i = 0; i < plans; i++) return_rows(plan[i], &plan[i]->call[at]);
    return BASIN_OK;
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
                "plan %d of %d that run together differs from the first, expected plans "
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
                               const basin_exchange_callback *way, basin_error *error) {
    size_t end = plan[0]->calls;
    for (size_t at = plan[0]->ir.hoisted, stop; at < end; at = stop + 1) {
        for (stop = at; stop < plan[0]->calls && !basin_op_exchanges(plan[0]->call[stop].op);)
            stop++;
        for (int i = 0; i < plans; i++) {
            basin_backend *backend = plan[i]->store->backend;
            backend->table->run(backend, plan[i]->call + at, stop - at, plan[i]->block);
        }
        if (stop < end) BASIN_TRY(exchange(plan, plans, stop, rows, way, error));
    }
    return BASIN_OK;
}

basin_status basin_plans_run(basin_plan *const *plan, int plans, const basin_exchange_callback *way,
                             basin_error *error) {
    BASIN_TRY(check_alike(plan, plans, error));
    BASIN_SCRATCH_RAW(basin_exchange_rows, rows, plans, "the run of plans", error);
    for (int i = 0; i < plans; i++) BASIN_TRY(plan_begin(plan[i], error));
    if (plans > 0) BASIN_TRY(run_pieces(plan, plans, rows, way, error));
    for (int i = 0; i < plans; i++) BASIN_TRY(plan_end(plan[i], error));
    return BASIN_OK;
}
