/* States from outside: their memory, for those who fill it without a copy by the host, and a run
 * that tells when each has its new value. */
#ifndef BASIN_PLAN_STATE_H
#define BASIN_PLAN_STATE_H

#include "basin/plan.h"

/* Where the state lies, in the backend's memory, to be read or, with `change`, to be written by
 * what is queued next; NULL: there is none of that name. */
void *basin_store_memory(basin_store *store, const char *name, bool change);

/* Who hears of states while a plan runs. */
typedef struct basin_plan_listener {
    /* State number `state` has its new value, and may be read. */
    basin_status (*done)(void *context, int state, basin_error *error);
    /* Between two calls, once a state is done: cheap. */
    basin_status (*meanwhile)(void *context, basin_error *error);
    void *context;
} basin_plan_listener;

/* As basin_plan_run. Every one of the states is told of once, in the order in which the plan has
 * done with them; on a device, where calls are queued, all of them behind the last call. */
basin_status basin_plan_run_telling(basin_plan *plan, const char *const *name /* [states] */,
                                    int states, const basin_plan_listener *to, basin_error *error);

#endif
