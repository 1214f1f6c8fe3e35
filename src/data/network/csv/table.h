/* Tables of nodes and of edges, read together into one network: rows.c splits text into fields,
 * cells.c reads cells and columns, header.c finds what columns are for, csv.c reads the rows. */
#ifndef BASIN_DATA_NETWORK_CSV_TABLE_H
#define BASIN_DATA_NETWORK_CSV_TABLE_H

#include "data/network/network.h"
#include "data/packed.h"

/* ---- rows.c: the rows of a CSV file or of CSV in memory, one after the other, as text ---- */

typedef struct basin_table_rows {
    const char *path; /* what messages call the table */
    int64_t line;     /* where the row begins */
    size_t columns;   /* 0 before the header */
    bool headerless;  /* the file has no header */
    bool latin;       /* some text was not UTF-8 and was taken as Latin-1 */
    char *text;       /* the fields of the row, each ends with a zero byte */
    size_t length, capacity;
    size_t *start; /* [fields] */
    size_t fields, start_capacity;
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
    return rows->text + rows->start[i];
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

/* False where it is no number either way. */
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
    double sum;       /* of those that are finite */
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
    int64_t most; /* values of a text column */
    const char *date_format;
    const char *origin; /* whose schema it is: "training" or "the base" */
} basin_column_rules;

basin_status basin_column_know(basin_column *column, const basin_schema_column *known,
                               basin_error *error);
basin_status basin_column_see(basin_column *column, const basin_table_rows *rows, const char *text,
                              const basin_column_rules *rules, basin_error *error);
/* Decides what the column becomes and adds it to the schema. */
basin_status basin_column_settle(basin_column *column, basin_schema *schema,
                                 basin_schema_table *table, const char *path,
                                 const basin_column_rules *rules, basin_error *error);
/* The number or date in a cell; false where it is missing or of another kind. */
bool basin_column_read(double *value, const basin_column *column, const char *text,
                       const basin_column_rules *rules);
bool basin_column_sounds_like_time(const char *name);
/* The features of one row, x [features]; a missing number is left as it is. */
void basin_column_fill(float *x, const basin_column *column, const char *text,
                       const basin_column_rules *rules);

/* ---- all tables ---- */

enum { BASIN_MOST_TABLES = 64, BASIN_MOST_RELATIONS = 1000 };
/* What edges are called whose cell of relations is empty: "homo" would be the whole graph. */
#define BASIN_RELATION_EMPTY "(empty)"

/* What a column may be for; masks in the order of train, val, test. */
typedef enum basin_role {
    BASIN_ROLE_SPLIT,
    BASIN_ROLE_MASK,
    BASIN_ROLE_ID = BASIN_ROLE_MASK + 3,
    BASIN_ROLE_LABEL,
    BASIN_ROLE_FROM,
    BASIN_ROLE_TO,
    BASIN_ROLE_TYPE,
    BASIN_ROLES,
} basin_role;

typedef struct basin_table_file {
    const basin_csv_source *source;
    bool edges, headerless, latin;
    char relation[100];  /* of its edges, where no column says it */
    int at[BASIN_ROLES]; /* the column of each role; -1: none */
    int columns;
    basin_column *column; /* [columns] */
    /* [columns] What reads a cell; NULL where it is neither a feature nor a fact of an edge. */
    basin_column **cell;
} basin_table_file;

typedef struct basin_edge_list {
    int32_t *pair; /* [count, 2] */
    size_t count, capacity;
    float *cell; /* [count, cells] of the schema; NULL: edges carry nothing */
    size_t cell_capacity;
    double *time; /* [count] NULL: no column has times */
    size_t time_capacity;
} basin_edge_list;

/* What was counted while rows were read, for the notes. */
typedef struct basin_table_counts {
    int64_t skipped, added; /* edges left out and nodes added since no table of nodes has an end */
    char unknown[40];       /* the first such end */
    int64_t late;           /* rows behind the last time that counts */
    int64_t early;          /* rows not later than the latest of the base */
    int64_t updated;        /* nodes of the base that tables have */
    int64_t repeated;       /* rows of nodes that replace one before, in tables that add */
    int64_t unnamed;        /* edges without a relation, in a table of relations */
    int64_t filled;         /* gaps in numbers of edges that were to be kept */
} basin_table_counts;

typedef struct basin_tables {
    const basin_network_options *o;
    const basin_schema *known; /* the options', or NULL */
    basin_schema *schema;      /* of what is read */
    basin_column_rules rules;
    basin_table_file table[BASIN_MOST_TABLES];
    int tables, node_tables;
    basin_table_file *first; /* table of edges */
    basin_dictionary id, relation;
    basin_dictionary class_name; /* of labels, where the options have classes */
    int64_t base_nodes;          /* the first so many are those of the network that is added to */
    const char *absent;          /* of tables that add: a feature that none has; NULL: none */
    int32_t *seen;               /* [seen_capacity] 1 + the table that told of a node last */
    size_t seen_capacity;
    basin_edge_list edges[BASIN_MOST_RELATIONS];
    size_t edge_count, limit; /* of all relations; bytes that all this may take */
    const basin_column *time; /* of edges, or NULL */
    double until;             /* the last that counts */
    basin_table_counts counts;
    double *since; /* [since_capacity] of nodes, NaN: no edge yet */
    size_t since_capacity;
    basin_network *network;
    basin_error *error;
} basin_tables;

/* Reads all headers, says what every column is for and which cells are read. */
basin_status basin_tables_read_headers(basin_tables *tables, const basin_csv_source *source,
                                       int count);
/* The column of that name, by letters of any case, or -1. */
int basin_table_column(const basin_table_file *table, const char *name);
/* Adds to the network's note what was read as what, and what was not read. */
void basin_tables_note(basin_tables *tables);

#endif
