/* Columns of tables of nodes on their way to features.
 *
 * A column is seen whole first, every cell of it; then it is settled: numbers and dates stay one
 * feature, texts become one a value, up to a limit. A column that a schema knows is settled from
 * the start, and seeing it finds what does not fit. Then rows are filled. */
#ifndef BASIN_DATA_NETWORK_CSV_COLUMN_H
#define BASIN_DATA_NETWORK_CSV_COLUMN_H

#include "data/network/csv/cell.h"
#include "data/network/csv/dictionary.h"
#include "data/network/csv/rows.h"
#include "data/network/schema/schema.h"

/* What cells may be read as. */
enum { BASIN_AS_POINT, BASIN_AS_COMMA, BASIN_AS_DATE, BASIN_AS_EPOCH, BASIN_READINGS };

typedef struct basin_reading {
    int64_t cells;    /* that can be read so */
    int64_t finite;   /* of these, as floats; others are gaps */
    double sum;       /* of those that are finite */
    int64_t odd_line; /* of the first that cannot; 0: none */
    char odd[40];
} basin_reading;

typedef struct basin_column {
    const char *name; /* the table's */
    basin_column_type type;
    bool feature; /* it may become one */
    bool known;   /* the schema says what it is */
    bool many;    /* more texts than the limit */
    bool epoch;   /* dates are seconds or milliseconds since 1970 */
    bool comma;
    bool currencies; /* more than one */
    const char *currency;
    unsigned marks;
    int64_t cells; /* that are not missing */
    basin_reading as[BASIN_READINGS];
    basin_dictionary category;
    int32_t *rank;   /* [categories] of each in alphabetical order; NULL: as they are numbered */
    int64_t other;   /* cells that no category of the schema has */
    char unseen[40]; /* the first of them */
    int64_t first;   /* its first feature */
} basin_column;

/* How columns are read. */
typedef struct basin_column_rules {
    int64_t most; /* values of a text column */
    const char *date_format;
} basin_column_rules;

/* Makes it what the schema says. */
basin_status basin_column_know(basin_column *column, const basin_schema_column *known,
                               basin_error *error);
/* Takes a cell into account. */
basin_status basin_column_see(basin_column *column, const basin_table_rows *rows, const char *text,
                              const basin_column_rules *rules, basin_error *error);
/* Decides what the column becomes and adds it to the schema. */
basin_status basin_column_settle(basin_column *column, basin_schema *schema,
                                 basin_schema_table *table, const char *path,
                                 const basin_column_rules *rules, basin_error *error);
/* The number or date in a cell; false where it is missing or of another kind. */
bool basin_column_read(double *value, const basin_column *column, const char *text,
                       const basin_column_rules *rules);
/* Whether a name speaks of time. */
bool basin_column_sounds_like_time(const char *name);
/* The features of one row, x [features]; a missing number is left as it is. */
void basin_column_fill(float *x, const basin_column *column, const char *text,
                       const basin_column_rules *rules);
void basin_column_free(basin_column *column);

#endif
