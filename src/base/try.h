/* Early return for functions that give a status; what a function owns is released on return. */
#ifndef BASIN_BASE_TRY_H
#define BASIN_BASE_TRY_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "basin/status.h"

/* Returns the status of `call` where it failed. */
#define BASIN_TRY(call)                                                                            \
    do {                                                                                           \
        basin_status try_status_ = (call);                                                         \
        if (try_status_) return try_status_;                                                       \
    } while (0)

/* The same, with `undo`, a call, made before. */
#define BASIN_TRY_OR(call, undo)                                                                   \
    do {                                                                                           \
        basin_status try_status_ = (call);                                                         \
        if (!try_status_) break;                                                                   \
        undo;                                                                                      \
        return try_status_;                                                                        \
    } while (0)

/* *pointer = `count` zeroed elements; a status, and "out of memory for WHAT" where it failed. */
#define BASIN_NEW(pointer, count, what, error)                                                     \
    ((*(pointer) = basin_zeros_new((size_t)(count), sizeof **(pointer)))                           \
         ? BASIN_OK                                                                                \
         : basin_fail_memory(error, what))
/* The same for elements that the caller fills: not zeroed. */
#define BASIN_NEW_RAW(pointer, count, what, error)                                                 \
    ((*(pointer) = basin_array_new((size_t)(count), sizeof **(pointer)))                           \
         ? BASIN_OK                                                                                \
         : basin_fail_memory(error, what))
/* BASIN_RESERVE with the status that BASIN_NEW gives. */
#define BASIN_GROW(array, capacity, need, what, error)                                             \
    (BASIN_RESERVE(array, capacity, need) ? BASIN_OK : basin_fail_memory(error, what))

/* A variable that is released when its scope ends: free for pointers to plain memory, or
 * basin_thing_free(thing *) through BASIN_AT_EXIT(function), which gets the variable's address. To
 * hand it over, copy the variable and set it to NULL. */
#define BASIN_AT_EXIT(function) __attribute__((cleanup(function), unused))
#define BASIN_FREE_AT_EXIT BASIN_AT_EXIT(basin_free_at)
static inline void basin_free_at(void *variable) { free(*(void **)variable); }

/* An array of a function's own, `type *name`: declared, allocated and freed when its scope ends. */
#define BASIN_SCRATCH(type, name, count, what, error)                                              \
    BASIN_FREE_AT_EXIT type *name = NULL;                                                          \
    BASIN_TRY(BASIN_NEW(&name, count, what, error))
#define BASIN_SCRATCH_RAW(type, name, count, what, error)                                          \
    BASIN_FREE_AT_EXIT type *name = NULL;                                                          \
    BASIN_TRY(BASIN_NEW_RAW(&name, count, what, error))

#endif
