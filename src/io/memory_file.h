/* A file in memory, for what writes to files. */
#ifndef BASIN_IO_MEMORY_FILE_H
#define BASIN_IO_MEMORY_FILE_H

#include <stdio.h>

typedef struct basin_memory_file {
    FILE *file;
    char *text;
    size_t size;
} basin_memory_file;

/* The file to write to; NULL where memory is short. */
FILE *basin_memory_file_open(basin_memory_file *memory);
/* What was written, zero-terminated, for the caller to free; NULL where something failed. */
char *basin_memory_file_close(basin_memory_file *memory);

#endif
