/* Structs that can grow: the first member is the size that the caller knows, which may have been
 * compiled with other headers than the library. */
#ifndef BASIN_BASE_SIZED_H
#define BASIN_BASE_SIZED_H

#include <stddef.h>
#include <string.h>

#include "base/try.h"

/* A result: copies `all`, whose first member is a size_t that is ignored, to `info` [size_t size
 * first], and no more than that size. */
static inline void basin_info_fill(void *info, const void *all, size_t bytes) {
    size_t size;
    memcpy(&size, info, sizeof size);
    if (size > bytes) size = bytes;
    if (size > sizeof size)
        memcpy((char *)info + sizeof size, (const char *)all + sizeof size, size - sizeof size);
}

/* An error where a caller's struct has members that this version does not know. `size` is the
 * caller's value, 0 for the first layout. */
static inline basin_status basin_size_check(size_t size, size_t known, const char *name,
                                            basin_error *error) {
    if (size == 0 || size == known) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "%s has %zu bytes; this version of Basin knows %zu: the program was compiled "
                      "against another version's headers",
                      name, size, known);
}
#define BASIN_SIZE_CHECK(pointer, name, error)                                                     \
    basin_size_check((pointer) ? (pointer)->size : 0, sizeof *(pointer), name, error)

#endif
