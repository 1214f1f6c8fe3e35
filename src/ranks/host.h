/* The machine that this process runs on. */
#ifndef BASIN_RANKS_HOST_H
#define BASIN_RANKS_HOST_H

#include <stddef.h>
#include <stdint.h>

enum { BASIN_PROCESSOR_WORDS = 16 };

/* The processors that the process may use, a bit each. */
typedef struct basin_processors {
    uint64_t word[BASIN_PROCESSOR_WORDS];
} basin_processors;

void basin_processors_find(basin_processors *mine);
/* Its name, cut to `size`. */
void basin_host_name(char *name, size_t size);

#endif
