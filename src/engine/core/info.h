/* Structs that the library fills for a caller who may have been compiled with an older header: the
 * first member is the size that the caller knows, and no more than that is written. */
#ifndef BASIN_ENGINE_CORE_INFO_H
#define BASIN_ENGINE_CORE_INFO_H

#include <stddef.h>
#include <string.h>

#include "basin/status.h"

/* Copies `all`, whose first member is a size_t that is ignored, to `info` [size_t size first]. */
static inline void basin_info_fill(void *info, const void *all, size_t bytes) {
    size_t size;
    memcpy(&size, info, sizeof size);
    if (size > bytes) size = bytes;
    if (size > sizeof size)
        memcpy((char *)info + sizeof size, (const char *)all + sizeof size, size - sizeof size);
}

/* An error where a caller's struct has members that this version does not know. `size` is the
 * caller's value, 0 for the layout of 1.0. */
basin_status basin_size_check(size_t size, size_t known, const char *name, basin_error *error);
#define BASIN_SIZE_CHECK(pointer, name, error)                                                     \
    basin_size_check((pointer) ? (pointer)->size : 0, sizeof *(pointer), name, error)

#endif
