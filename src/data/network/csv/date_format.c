/* Dates in the formats of strptime; see date_format.h. */
#define _GNU_SOURCE /* strptime */
#include "data/network/csv/date_format.h"

const char *basin_date_format_read(struct tm *tm, long *east, const char *text,
                                   const char *format) {
    const char *end = strptime(text, format, tm);
    *east = tm->tm_gmtoff;
    return end;
}
