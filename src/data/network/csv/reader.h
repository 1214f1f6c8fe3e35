/* Reading CSV and TSV record by record, from a file or from memory, plain or packed by gzip or
 * zstd.
 *
 * Fields may be quoted, with "" for a quote and line breaks within. The delimiter is told from the
 * first record: a tab if there is one, else a comma, else a semicolon. Empty lines are passed over,
 * so is a byte order mark. Text that is not UTF-8 is taken as Latin-1. All records have as many
 * fields as the first.
 *
 * Lists of edges come without a header as well: where the first line that is no comment (#) has two
 * to four numbers, the first two of them whole, the columns are called src, dst, "column 3", ..
 * Where the caller says that there is none, two or three columns are src, dst and relation. */
#ifndef BASIN_DATA_NETWORK_CSV_READER_H
#define BASIN_DATA_NETWORK_CSV_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basin/status.h"
#include "data/network/network.h"
#include "data/packed.h"

typedef struct basin_csv {
    const char *path; /* as the caller gave it */
    basin_packed *file;
    unsigned char *buffer;
    const unsigned char *at, *end; /* what is left of the buffer */
    bool done;
    bool headerless; /* the first record is one of data, */
    bool held;       /* and still to be given out */
    bool latin;      /* some text was not UTF-8 and was taken as Latin-1 */
    char delimiter;
    int64_t line, next_line; /* of the record, and of what comes */
    char *text;              /* the fields of the record, each ends with a zero byte */
    size_t length, capacity;
    size_t *start; /* [fields] */
    size_t fields, start_capacity;
    size_t columns; /* fields of the first record; 0 before it */
    char **name;    /* [columns] the first record, the header */
} basin_csv;

/* Opens and reads the header. What the source names must outlive it. */
basin_status basin_csv_open(basin_csv *csv, const basin_csv_source *source, basin_error *error);
void basin_csv_close(basin_csv *csv);
/* The next record; *more is false past the last. */
basin_status basin_csv_next(basin_csv *csv, bool *more, basin_error *error);
/* Field i of the record, valid until the next one. */
const char *basin_csv_field(const basin_csv *csv, size_t i);
/* The column of that name, by letters of any case, or -1. */
int basin_csv_column(const basin_csv *csv, const char *name);

#endif
