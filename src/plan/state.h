/* The memory of a state, for those who fill it without a copy by the host. */
#ifndef BASIN_PLAN_STATE_H
#define BASIN_PLAN_STATE_H

#include "basin/plan.h"

/* Where the state lies, in the backend's memory, to be read or, with `change`, to be written by
 * what is queued next; NULL: there is none of that name. */
void *basin_store_memory(basin_store *store, const char *name, bool change);

#endif
