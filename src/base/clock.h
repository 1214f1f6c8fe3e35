/* Clocks, in seconds. */
#ifndef BASIN_BASE_CLOCK_H
#define BASIN_BASE_CLOCK_H

double basin_clock(void);        /* monotonic; the origin is arbitrary */
double basin_cpu_clock(void);    /* processor time of this process, all threads */
double basin_thread_clock(void); /* processor time of this thread */

#endif
