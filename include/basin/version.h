/* The version of Basin. This header is the one place that states it; CMake reads it from here. */
#ifndef BASIN_VERSION_H
#define BASIN_VERSION_H

#include "basin/export.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BASIN_VERSION_MAJOR 1
#define BASIN_VERSION_MINOR 0
#define BASIN_VERSION_PATCH 0
#define BASIN_VERSION_STRING "1.0.0"

/* The version of the library that runs, which may be newer than the header compiled against.
 */
BASIN_API const char *basin_version(void);
#define BASIN_VERSION_NUMBER                                                                       \
    (10000 * BASIN_VERSION_MAJOR + 100 * BASIN_VERSION_MINOR + BASIN_VERSION_PATCH)
/* A SHA-256 of the headers that the library was built from, for bindings that copied them. */
BASIN_API const char *basin_header_digest(void);

#ifdef __cplusplus
}
#endif
#endif
