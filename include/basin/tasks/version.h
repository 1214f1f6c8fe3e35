/* Which headers the applications were built from. */
#ifndef BASIN_TASKS_VERSION_H
#define BASIN_TASKS_VERSION_H

#include "basin/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As basin_header_digest() of the engine: a SHA-256 of the headers in basin/tasks. */
BASIN_API const char *basin_tasks_header_digest(void);

#ifdef __cplusplus
}
#endif
#endif
