/* Dates in the formats of strptime. */
#ifndef BASIN_DATA_DATE_FORMAT_H
#define BASIN_DATA_DATE_FORMAT_H

#include <time.h>

/* Reads the beginning of `text` and says where it ends, NULL where it is no such date; `east` is
 * the zone in seconds. What the format does not name stays as it is. */
const char *basin_date_format_read(struct tm *tm, long *east, const char *text, const char *format);

#endif
