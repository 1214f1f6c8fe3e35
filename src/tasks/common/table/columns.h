/* What the columns of a table mean, and where a table comes from. */
#ifndef BASIN_TASKS_COMMON_COLUMNS_H
#define BASIN_TASKS_COMMON_COLUMNS_H

#include <math.h>

#include "base/dictionary.h"

typedef enum basin_column_type {
    BASIN_COLUMN_DROPPED, /* not read */
    BASIN_COLUMN_NUMBER,
    BASIN_COLUMN_CATEGORY,
    BASIN_COLUMN_DATE, /* days since 1970 */
    BASIN_COLUMN_ID,
    BASIN_COLUMN_LABEL,
    BASIN_COLUMN_SPLIT,
    BASIN_COLUMN_SOURCE,
    BASIN_COLUMN_TARGET,
    BASIN_COLUMN_RELATION,
    BASIN_COLUMN_TYPES,
} basin_column_type;

/* Adds to a sum and what rounding lost of it: together they are the same for any order of rows. */
static inline void basin_sum_add(double sum[2], double x) {
    double next = sum[0] + x, larger = fabs(sum[0]) >= fabs(x) ? sum[0] : x;
    sum[1] += larger - next + (larger == x ? sum[0] : x);
    sum[0] = next;
}

bool basin_column_is_feature(basin_column_type type);
const char *basin_column_type_name(basin_column_type type);
/* Whether a column of that name probably holds times. */
bool basin_column_sounds_like_time(const char *name);

typedef struct basin_schema_column {
    char *name;
    basin_column_type type;
    bool comma;        /* its numbers have a decimal comma */
    bool time;         /* of edges: it says when an edge was */
    double mean;       /* of a number or a date, where it is known; else NaN */
    basin_names value; /* of a category, in the order of its features */
    int64_t first;     /* its first feature; for edges its first cell */
} basin_schema_column;

typedef struct basin_schema_table {
    basin_schema_column *column; /* [columns] */
    size_t columns, capacity;
} basin_schema_table;

/* A table: a CSV file by its path, or in memory where `data` is not NULL. */
typedef struct basin_csv_source {
    const char *path; /* what messages call it */
    const void *data;
    size_t size;
    bool no_header; /* as basin_network_options has it */
    bool exact;     /* a program wrote it, see basin_cell */
} basin_csv_source;

#endif
