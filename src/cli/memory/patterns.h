/* Patterns that commands are given: pictures, or a file of vectors. */
#ifndef BASIN_CLI_MEMORY_PATTERNS_H
#define BASIN_CLI_MEMORY_PATTERNS_H

#include "basin/tasks/memory.h"

typedef struct basin_patterns {
    basin_tensor tensor; /* [count, D]; free it */
    int64_t height, width;
    int channels; /* 0: vectors */
} basin_patterns;

/* Reads all of them. Sizes other than 0 are those that pictures get. `name`: a tensor, or NULL. */
basin_status basin_patterns_read(basin_patterns *patterns, char **path, int paths, const char *name,
                                 int64_t limit, basin_error *error);

#endif
