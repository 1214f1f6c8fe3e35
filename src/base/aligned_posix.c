/* Aligned memory; see memory.h. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/memory.h"

void *basin_aligned_new(size_t bytes) {
    if (bytes > SIZE_MAX - 64) return NULL;
    return aligned_alloc(64, bytes ? (bytes + 63) / 64 * 64 : 64);
}

void *basin_large_new(size_t bytes) {
    size_t large = (size_t)2 << 20;
    if (bytes < 4 * large || bytes > SIZE_MAX - large) return basin_aligned_new(bytes);
    void *memory = aligned_alloc(large, (bytes + large - 1) / large * large);
#ifdef MADV_HUGEPAGE
    if (memory) (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

void basin_aligned_free(void *memory) { free(memory); }
