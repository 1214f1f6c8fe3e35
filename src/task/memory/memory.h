/* What the files of this folder share: separation functions, and a memory with its keys. */
#ifndef BASIN_TASK_MEMORY_MEMORY_H
#define BASIN_TASK_MEMORY_MEMORY_H

#include "basin/tasks/memory.h"

typedef enum basin_separation {
    BASIN_SEPARATION_CLASSICAL,
    BASIN_SEPARATION_POWER,
    BASIN_SEPARATION_SOFTMAX,
    BASIN_SEPARATION_ENTMAX15,
    BASIN_SEPARATION_SPARSEMAX,
    BASIN_SEPARATION_NORMMAX2,
    BASIN_SEPARATION_LSR,
    BASIN_SEPARATIONS,
} basin_separation;

struct basin_memory {
    basin_memory_spec spec; /* .function is one of the table's */
    basin_separation kind;
    basin_tensor patterns; /* [M, D] F32 */
    basin_tensor keys;     /* [M, D] F32, of length 1 */
    float *mean;           /* [D] of the patterns */
    float *length;         /* [M] of the patterns without their mean */
    float low, high;       /* the least and the largest value of all patterns */
};

/* The function of that name; an error that lists them where there is none. */
basin_status basin_separation_find(basin_separation *kind, const char *name, basin_error *error);
/* The power of the function, checked: 2 for the classical one. */
basin_status basin_separation_power(double *power, basin_separation kind, double given,
                                    basin_error *error);
int64_t basin_memory_dim(const basin_memory *memory);
int64_t basin_memory_count(const basin_memory *memory);
/* The key of a pattern, of length 1 where all is known; what is not known is 0. Returns the length
 * before scaling. */
double basin_memory_encode(float *key /* [D] */, const basin_memory *memory,
                           const float *pattern /* [D] */,
                           const unsigned char *known /* [D] or NULL */);

#endif
