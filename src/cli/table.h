/* A table on a terminal or in a pipe: columns as wide as their widest cell, numbers to the right.
 */
#ifndef BASIN_CLI_TABLE_H
#define BASIN_CLI_TABLE_H

#include <stdbool.h>
#include <stdio.h>

typedef struct basin_table {
    const char *layout; /* a letter a column: 'l' to the left, 'r' to the right */
    char **cell;
    size_t count, capacity;
    bool failed; /* an allocation did; printing says so */
} basin_table;

/* basin_table table = {.layout = "lrr"}; then cells row by row, the heading first. */
void basin_table_add(basin_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the rows, each behind `indent` blanks, and frees them. False where memory was short. */
bool basin_table_print(basin_table *table, FILE *file, int indent);

#endif
