/* Clocks, in seconds. */
#ifndef BASIN_BASE_CLOCK_H
#define BASIN_BASE_CLOCK_H

double basin_clock(void);        /* from some start on */
double basin_cpu_clock(void);    /* that this process computed, in all its threads */
double basin_thread_clock(void); /* that this thread computed */

#endif
