/* Clocks; see clock.h. */
#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static double read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double basin_clock(void) { return read_clock(CLOCK_MONOTONIC); }

double basin_cpu_clock(void) { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

static bool is_leap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

char *basin_day_print(char text[BASIN_DAY_TEXT], int64_t seconds) {
    static const int64_t length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t day = seconds > 0 ? seconds / 86400 : 0, year = 1970;
    int month = 0;
    for (; day >= 365 + is_leap(year); year++) day -= 365 + is_leap(year);
    for (; day >= length[month] + (month == 1 && is_leap(year)); month++)
        day -= length[month] + (month == 1 && is_leap(year));
    snprintf(text, BASIN_DAY_TEXT, "%04lld-%02d-%02lld", (long long)year, month + 1,
             (long long)day + 1);
    return text;
}
