/* What the cells of a table of nodes mean: numbers, labels, texts; and columns of them as features.
 *
 * A column is seen whole first: it is one of numbers or one of texts. Then it is settled: numbers
 * stay one feature, texts become one a value, up to a limit. Then rows are filled. */
#ifndef BASIN_DATA_NETWORK_CSV_COLUMN_H
#define BASIN_DATA_NETWORK_CSV_COLUMN_H

#include "data/network/csv/dictionary.h"
#include "data/network/csv/reader.h"

typedef enum basin_column_kind {
    BASIN_COLUMN_SKIP,
    BASIN_COLUMN_NUMBER,
    BASIN_COLUMN_TEXT,
} basin_column_kind;

typedef struct basin_column {
    basin_column_kind kind;
    bool feature; /* whether it may become one */
    bool many;    /* more texts than the limit */
    int64_t numbers, texts;
    int64_t text_line; /* where the first text stands */
    char text[40];
    basin_dictionary category;
    int32_t *rank; /* [categories] of each in alphabetical order */
    int64_t first; /* its first feature */
} basin_column;

/* "", "na", "null", "?" and the like. */
bool basin_cell_missing(const char *text);
bool basin_cell_number(double *value, const char *text);
/* A whole number, true or false, -1 where it is missing or "unknown". */
bool basin_cell_label(int32_t *label, const char *text);

/* Takes a cell into account; more than `most` texts are too many. */
basin_status basin_column_see(basin_column *column, const basin_csv *csv, const char *text,
                              int64_t most, basin_error *error);
/* Decides what the column becomes and adds the names of its features. */
basin_status basin_column_settle(basin_column *column, basin_names_builder *names,
                                 const char *title, const char *path, basin_error *error);
/* The features of one row, x [features]; a missing number is left as it is. */
void basin_column_fill(float *x, const basin_column *column, const char *text);
void basin_column_free(basin_column *column);

#endif
