/* Structs that the library fills for a caller who may have been compiled with an older header: the
 * first member is the size that the caller knows, and no more than that is written. */
#ifndef BASIN_ENGINE_CORE_INFO_H
#define BASIN_ENGINE_CORE_INFO_H

#include <stddef.h>
#include <string.h>

/* Copies `all`, whose first member is a size_t that is ignored, to `info` [size_t size first]. */
static inline void basin_info_fill(void *info, const void *all, size_t bytes) {
    size_t size;
    memcpy(&size, info, sizeof size);
    if (size > bytes) size = bytes;
    if (size > sizeof size)
        memcpy((char *)info + sizeof size, (const char *)all + sizeof size, size - sizeof size);
}

#endif
