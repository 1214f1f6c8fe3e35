/* Clocks, in seconds; days. */
#ifndef BASIN_BASE_CLOCK_H
#define BASIN_BASE_CLOCK_H

#include <stdint.h>

double basin_clock(void);     /* monotonic; the origin is arbitrary */
double basin_cpu_clock(void); /* processor time of this process, all threads */

/* The day of `seconds` since 1970, UTC: "2026-11-15". */
enum { BASIN_DAY_TEXT = 64 }; /* as long as gcc takes the largest numbers to be */
char *basin_day_print(char text[BASIN_DAY_TEXT], int64_t seconds);

#endif
