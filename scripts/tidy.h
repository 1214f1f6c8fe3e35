/* Included before every file that clang-tidy reads: basin_fail returns the status that it was
 * given, which is never BASIN_OK. Without this the analyzer follows paths on which a failure was
 * reported and things went on, and most of what it finds is on these. */
#include "basin/status.h"

#define basin_fail(error, status, ...) (basin_fail(error, status, __VA_ARGS__), (status))
