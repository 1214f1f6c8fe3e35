/* Clocks; see clock.h. */
#include "base/clock.h"

#include <time.h>

static double read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double basin_clock(void) { return read_clock(CLOCK_MONOTONIC); }

double basin_cpu_clock(void) { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

char *basin_day_print(char text[BASIN_DAY_TEXT], int64_t seconds) {
    time_t since = seconds;
    struct tm day;
    if (!gmtime_r(&since, &day) || !strftime(text, BASIN_DAY_TEXT, "%Y-%m-%d", &day)) *text = 0;
    return text;
}
