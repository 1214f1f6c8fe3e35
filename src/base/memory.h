/* Allocation with overflow checks. */
#ifndef BASIN_BASE_MEMORY_H
#define BASIN_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "basin/status.h"

/* true and *product = a * b, or false where that overflows. */
bool basin_size_multiply(size_t *product, size_t a, size_t b);

/* malloc(count * size), or NULL on overflow. A count of 0 gives a valid pointer. */
void *basin_array_new(size_t count, size_t size);

/* The same, zeroed. */
void *basin_zeros_new(size_t count, size_t size);
/* BASIN_NO_MEMORY with "out of memory for WHAT"; see base/try.h. */
basin_status basin_fail_memory(basin_error *error, const char *what);

/* Grows *array to hold at least `need` elements, doubling; false (array unchanged) on failure. */
bool basin_array_reserve(void **array, size_t *capacity, size_t need, size_t size);

/* The same for *(array), of the size of its elements. */
#define BASIN_RESERVE(array, capacity, need)                                                       \
    basin_array_reserve((void **)(array), capacity, (size_t)(need), sizeof **(array))

/* 64-byte aligned memory, for SIMD. */
void *basin_aligned_new(size_t bytes);
/* The same, on large pages where these help: for tables that are read in any order. */
void *basin_large_new(size_t bytes);
/* Frees memory from the two functions above. */
void basin_aligned_free(void *memory);

/* Bytes of memory that programs could still take; half of all where the system does not say. */
size_t basin_memory_free(void);

/* What one purpose may take where nobody said: three quarters of that. */
size_t basin_memory_share(void);

/* Fails with `status` and one line where `bytes` are more than `limit` (0: basin_memory_share):
 * called with sizes that a file claims, before anything is allocated. `what` begins the line. */
basin_status basin_memory_check(double bytes, size_t limit, const char *what, basin_status status,
                                basin_error *error);

char *basin_string_copy(const char *text);

/* free for each of several pointers, all evaluated first: members of a struct and itself. */
#define BASIN_FREE(...)                                                                            \
    basin_free_all((void *[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))
void basin_free_all(void *const *memory, size_t count);

#endif
