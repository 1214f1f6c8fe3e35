/* The threads of the process, beyond basin/parallel.h. */
#ifndef BASIN_ENGINE_CORE_TEAM_H
#define BASIN_ENGINE_CORE_TEAM_H

#include <stdbool.h>

#include "base/parallel.h"

/* Whether others have used our cores of late: then smaller pieces are better. */
bool basin_team_contended(void);

/* Processors that this process may run on, at least 1. */
long basin_processors_here(void);

/* Replaces basin_thread_count() in tests; 0 asks the system again. */
void basin_processors_set(int count);

#endif
