/* What a cell of a table means: a gap, a label, a number as people write it, a date. */
#ifndef BASIN_DATA_NETWORK_CSV_CELL_H
#define BASIN_DATA_NETWORK_CSV_CELL_H

#include <stdbool.h>
#include <stdint.h>

/* "", " ", "na", "null", "?" and the like. */
bool basin_cell_missing(const char *text);
/* A number as programs write it: -1.5e3. */
bool basin_cell_number(double *value, const char *text);
/* A whole number, true or false, -1 where it is missing or "unknown". */
bool basin_cell_label(int32_t *label, const char *text);

/* A number as people write it: "3,066.82", "3.066,82", "$ 12", "12 EUR", "12.5 %" (which is 12.5),
 * "(7)" and "7-" (which are -7). */
enum { BASIN_DECIMAL_POINT, BASIN_DECIMAL_COMMA, BASIN_DECIMALS };
enum { BASIN_MARK_GROUPS = 1, BASIN_MARK_CURRENCY = 2, BASIN_MARK_PERCENT = 4 };

typedef struct basin_written {
    bool valid[BASIN_DECIMALS]; /* whether it is one, read with that decimal mark */
    double value[BASIN_DECIMALS];
    unsigned marks;       /* what stood beside the digits */
    const char *currency; /* which, or NULL */
} basin_written;

/* False where it is no number either way. */
bool basin_cell_written(basin_written *number, const char *text);

/* Days since 1970-01-01: ISO 8601 (2026-11-15, 2026-11-15T08:30:00Z, +01:00; without a zone UTC) or
 * all of `text` as strptime reads `format`. */
bool basin_cell_date(double *days, const char *text, const char *format);
/* The same of seconds or milliseconds since 1970, from 1985 to 2103. */
bool basin_cell_epoch(double *days, const char *text);

#endif
