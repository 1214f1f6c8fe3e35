/* A file in memory; see memory_file.h. Windows has none: a temporary file is read back. */
#include <stdlib.h>

#include "io/memory_file.h"

FILE *basin_memory_file_open(basin_memory_file *memory) {
    *memory = (basin_memory_file){.file = tmpfile()};
    return memory->file;
}

char *basin_memory_file_close(basin_memory_file *memory) {
    FILE *file = memory->file;
    long size = ferror(file) || fflush(file) ? -1 : ftell(file);
    char *text = size >= 0 ? malloc((size_t)size + 1) : NULL;
    rewind(file);
    if (text && fread(text, 1, (size_t)size, file) != (size_t)size) {
        free(text);
        text = NULL;
    }
    if (text) text[size] = 0;
    fclose(file);
    return text;
}
