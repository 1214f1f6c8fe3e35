/* Tables: rows.c splits text into fields, cells.c reads cells and columns. */
#ifndef BASIN_TASKS_COMMON_TABLE_H
#define BASIN_TASKS_COMMON_TABLE_H

#include "base/try.h"
#include "tasks/common/packed.h"
#include "tasks/common/table/columns.h"

/* ---- rows.c: the rows of a CSV file or of CSV in memory, one after the other, as text ---- */

typedef struct basin_table_field {
    size_t start; /* in the text of the row */
    bool quoted;
} basin_table_field;

typedef struct basin_table_rows {
    const char *path; /* what messages call the table */
    int64_t line;     /* where the row begins */
    size_t columns;   /* 0 before the header */
    bool headerless;  /* the file has no header */
    bool latin;       /* some text was not UTF-8 and was taken as Latin-1 */
    bool exact;       /* as the source has it */
    char *text;       /* the fields of the row, each ends with a zero byte */
    size_t length, capacity;
    basin_table_field *field; /* [fields] */
    size_t fields, field_capacity;
    basin_packed *file;
    unsigned char *buffer;
    const unsigned char *at, *end; /* what is left of the buffer */
    bool done;
    bool held; /* the first record is one of data and still to be given out */
    char delimiter;
    int64_t next_line; /* of what comes */
} basin_table_rows;

enum { BASIN_COLUMN_TEXT = 40 };

/* Opens and reads the header. What the source names must outlive it. */
basin_status basin_table_rows_open(basin_table_rows *rows, const basin_csv_source *source,
                                   basin_error *error);
void basin_table_rows_close(basin_table_rows *rows);
/* The next row; *more is false past the last. */
basin_status basin_table_rows_next(basin_table_rows *rows, bool *more, basin_error *error);
/* Field i of the row, valid until the next one. */
static inline char *basin_table_rows_field(const basin_table_rows *rows, int i) {
    return rows->text + rows->field[i].start;
}

/* A cell as text. Text has the decimal mark and the date format of its file. A number or an ISO
 * date that a program wrote is `exact`: it has a decimal point, whatever the table has. In a table
 * that a program wrote these are the cells without quotes. */
typedef struct basin_cell {
    const char *text;
    bool exact;
} basin_cell;
static inline basin_cell basin_table_rows_cell(const basin_table_rows *rows, int i) {
    return (basin_cell){basin_table_rows_field(rows, i), rows->exact && !rows->field[i].quoted};
}
/* The same without blanks around it. */
const char *basin_table_rows_trimmed(const basin_table_rows *rows, int i);
/* BASIN_BAD_FILE with "PATH: line N" and what is wrong there, which follows at once. */
basin_status basin_table_rows_fail(const basin_table_rows *rows, basin_error *error,
                                   const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- cells.c: a gap, a label, a number as people write it, a date ---- */

/* "", " ", "na", "null", "?" and the like. */
bool basin_cell_missing(const char *text);
/* A number as programs write it: -1.5e3. */
bool basin_cell_number(double *value, const char *text);
/* A whole number, true or false, -1 where it is missing or "unknown". */
bool basin_cell_label(int32_t *label, const char *text);

/* "3,066.82", "3.066,82", "$ 12", "12 EUR", "12.5 %" (which is 12.5), "(7)" and "7-" (-7). */
enum { BASIN_DECIMAL_POINT, BASIN_DECIMAL_COMMA, BASIN_DECIMALS };
enum { BASIN_MARK_GROUPS = 1, BASIN_MARK_CURRENCY = 2, BASIN_MARK_PERCENT = 4 };

typedef struct basin_written {
    bool valid[BASIN_DECIMALS]; /* whether it is one, read with that decimal mark */
    double value[BASIN_DECIMALS];
    unsigned marks;       /* what stood beside the digits */
    const char *currency; /* which, or NULL */
} basin_written;

/* False where it is not a number either way. */
bool basin_cell_written(basin_written *number, const char *text);

/* Days since 1970-01-01: ISO 8601 (without a zone UTC), or `text` as strptime reads `format`. */
bool basin_cell_date(double *days, const char *text, const char *format);
/* The same of seconds or milliseconds since 1970, from 1985 to 2103. */
bool basin_cell_epoch(double *days, const char *text);

/* ---- cells.c: columns on their way to features. A column is first seen whole, then settled:
 * numbers and dates are one feature, texts one per value up to a limit. One that a schema knows is
 * settled from the start. Then rows are filled. ---- */

enum { BASIN_AS_POINT, BASIN_AS_COMMA, BASIN_AS_DATE, BASIN_AS_EPOCH, BASIN_READINGS };

typedef struct basin_reading {
    int64_t cells;    /* that can be read so */
    int64_t finite;   /* of these, as floats; others are gaps */
    double sum[2];    /* of those that are finite, and what rounding lost of it */
    int64_t odd_line; /* of the first that cannot; 0: none */
    char odd[40];
} basin_reading;

typedef struct basin_column {
    char *name;
    basin_column_type type;
    bool feature; /* it may become one */
    bool known;   /* the schema says what it is */
    bool many;    /* more texts than the limit */
    bool epoch;   /* dates are seconds or milliseconds since 1970 */
    bool comma;
    bool ambiguous;  /* a cell is another number with the other decimal mark */
    bool contrary;   /* of a known column: a cell is a number only with the other mark */
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

typedef struct basin_column_rules {
    int64_t max_values; /* of a text column */
    const char *date_format;
    const char *origin; /* whose schema it is: "training" or "the base" */
    int mark;           /* the decimal mark of the file, where a cell settles it; or -1 */
} basin_column_rules;

basin_status basin_column_know(basin_column *column, const basin_schema_column *known,
                               basin_error *error);
/* In a known column a cell that only the other decimal mark can read is an error that sets
 * `contrary`, unless rules->mark says which the file has. */
basin_status basin_column_see(basin_column *column, const basin_table_rows *rows, basin_cell cell,
                              const basin_column_rules *rules, basin_error *error);
/* The only decimal mark that all cells of an unknown column allow; -1: none, or both. */
int basin_column_mark(const basin_column *column);
/* Decides what the column becomes. `settled` borrows its name; free its values, also after an
 * error. */
basin_status basin_column_settle(basin_schema_column *settled, basin_column *column,
                                 const char *path, const basin_column_rules *rules,
                                 basin_error *error);
/* The number or date in a cell; false where it is missing or of another kind. */
bool basin_column_read(double *value, const basin_column *column, basin_cell cell,
                       const basin_column_rules *rules);
/* The features of one row, x [features]; a missing number is left as it is. */
void basin_column_fill(float *x, const basin_column *column, basin_cell cell,
                       const basin_column_rules *rules);

#endif
