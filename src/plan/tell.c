/* A run that tells of states as soon as they have their new values, so that these can leave while
 * the calls behind them still run; see state.h. */
#include <stdlib.h>

#include "base/memory.h"
#include "plan/plan.h"
#include "plan/state.h"
#include "plan/store.h"

typedef struct writing {
    size_t end; /* behind the last call that writes it; 0: none does */
    int state;
} writing;

static int by_end(const void *a, const void *b) {
    const writing *x = a, *y = b;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return x->state - y->state;
}

static bool writes(const basin_plan *plan, const basin_call *call, const void *memory) {
    bool found = false;
    for (int i = 0; i < call->outs; i++)
        found = found || (call->out[i].block >= BASIN_BLOCK_STATES &&
                          plan->block[call->out[i].block] == memory);
    return found;
}

static size_t end_of(const basin_plan *plan, const char *name) {
    const void *memory = basin_store_memory(plan->store, name, false);
    size_t end = plan->calls;
    while (memory && end > 0 && !writes(plan, &plan->call[end - 1], memory)) end--;
    return memory ? end : 0;
}

/* What is queued on a device is not done; there all are told of at the end. */
static basin_status run_telling(basin_plan *plan, const writing *w, int states,
                                const basin_plan_listener *to, basin_error *error) {
    basin_backend *backend = plan->store->backend;
    bool queued = basin_backend_threads(backend) <= 0;
    size_t at = plan->ir.hoisted;
    basin_status status = BASIN_OK;
    int told = 0;
    while (at < plan->calls && !status) {
        size_t piece = queued ? plan->calls - at : 1;
        backend->table->run(backend, plan->call + at, piece, plan->block);
        at += piece;
        while (told < states && w[told].end <= at && !queued && !status)
            status = to->done(to->context, w[told++].state, error);
        if (!status && told > 0 && !queued) status = to->meanwhile(to->context, error);
    }
    basin_status ended = basin_plan_end(plan, status ? NULL : error);
    if (!status) status = ended;
    while (told < states && !status) status = to->done(to->context, w[told++].state, error);
    return status;
}

basin_status basin_plan_run_telling(basin_plan *plan, const char *const *name, int states,
                                    const basin_plan_listener *to, basin_error *error) {
    writing *w = basin_array_new((size_t)states, sizeof *w);
    if (!w) return basin_fail(error, BASIN_NO_MEMORY, "out of memory to run a plan");
    for (int i = 0; i < states; i++) w[i] = (writing){end_of(plan, name[i]), i};
    qsort(w, (size_t)states, sizeof *w, by_end);
    basin_status status = basin_plan_enter(plan, error);
    if (!status) status = run_telling(plan, w, states, to, error);
    free(w);
    return status;
}
