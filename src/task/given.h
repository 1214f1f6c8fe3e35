/* Structs that callers fill: they begin with their size, and a caller who was compiled with an
 * older, shorter one gets zeros for the rest. */
#ifndef BASIN_TASK_GIVEN_H
#define BASIN_TASK_GIVEN_H

#include <stddef.h>

#include "basin/status.h"

/* Copies `given` into `taken` of `size` bytes. A size in `given` that leaves no room for anything
 * is an error; `name` is the struct's. */
basin_status basin_given_take(void *taken, size_t size, const void *given, const char *name,
                              basin_error *error);

#endif
