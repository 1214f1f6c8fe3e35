/* The rows of a CSV file or of CSV in memory, one after the other, as text; see rows.c. */
#ifndef BASIN_DATA_NETWORK_CSV_ROWS_H
#define BASIN_DATA_NETWORK_CSV_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basin/status.h"
#include "data/network/network.h"
#include "data/packed.h"

typedef struct basin_table_rows {
    const char *path; /* what messages call the table */
    int64_t line;     /* where the row begins */
    size_t columns;   /* 0 before the header */
    char **name;      /* [columns] */
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

/* Opens and reads the header. What the source names must outlive it. */
basin_status basin_table_rows_open(basin_table_rows *rows, const basin_csv_source *source,
                                   basin_error *error);
void basin_table_rows_close(basin_table_rows *rows);
/* The next row; *more is false past the last. */
basin_status basin_table_rows_next(basin_table_rows *rows, bool *more, basin_error *error);
/* Field i of the row, valid until the next one. */
const char *basin_table_rows_field(const basin_table_rows *rows, size_t i);
/* The column of that name, by letters of any case, or -1. */
int basin_table_rows_column(const basin_table_rows *rows, const char *name);
/* A table that is read a second time and is not what it was. */
basin_status basin_table_rows_fail_changed(const basin_table_rows *rows, basin_error *error);

#endif
