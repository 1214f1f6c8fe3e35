/* A file in memory; see memory_file.h. */
#include <stdlib.h>

#include "io/memory_file.h"

FILE *basin_memory_file_open(basin_memory_file *memory) {
    *memory = (basin_memory_file){0};
    memory->file = open_memstream(&memory->text, &memory->size);
    return memory->file;
}

char *basin_memory_file_close(basin_memory_file *memory) {
    int failed = ferror(memory->file);
    if (!fclose(memory->file) && !failed) return memory->text;
    free(memory->text);
    return NULL;
}
