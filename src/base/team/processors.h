/* How many threads a process should have. */
#ifndef BASIN_BASE_PROCESSORS_H
#define BASIN_BASE_PROCESSORS_H

/* OMP_NUM_THREADS if it is set; else the processors that this process may run on: its affinity, and
 * what its control group grants. At least 1. Asked once, then kept. */
int basin_processors(void);
/* Processors that this process may run on, at least 1. */
long basin_processors_here(void);

/* Replaces it, for tests; 0: asks anew. */
void basin_processors_set(int count);

#endif
