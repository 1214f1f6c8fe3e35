/* The machine that this process runs on. */
#ifndef BASIN_RANKS_HOST_H
#define BASIN_RANKS_HOST_H

#include <stddef.h>
#include <stdint.h>

enum { BASIN_PROCESSOR_WORDS = 16 };

/* The processors that the process may use, a bit each. */
typedef struct basin_processor_set {
    uint64_t word[BASIN_PROCESSOR_WORDS];
} basin_processor_set;

void basin_processor_set_find(basin_processor_set *mine);
/* Its name, cut to `size`. */
void basin_host_name(char *name, size_t size);

#endif
