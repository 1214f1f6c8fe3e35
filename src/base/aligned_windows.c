/* Aligned memory; see memory.h. Large pages need a right that few users of Windows have. */
#include <malloc.h>

#include "base/memory.h"

void *basin_aligned_new(size_t bytes) { return _aligned_malloc(bytes ? bytes : 1, 64); }

void *basin_large_new(size_t bytes) { return basin_aligned_new(bytes); }

void basin_aligned_free(void *memory) { _aligned_free(memory); }
