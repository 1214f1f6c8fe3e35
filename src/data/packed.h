/* Files and memory that may be packed by gzip or zstd, read from the front; plain ones pass
 * through. */
#ifndef BASIN_DATA_PACKED_H
#define BASIN_DATA_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <zlib.h>

#include "basin/status.h"

typedef struct basin_packed basin_packed;

/* Opens a regular file; `path` must outlive it. */
basin_status basin_packed_open(basin_packed **packed, const char *path, basin_error *error);
/* The same over memory, which is not copied; `path` is what errors call it. */
basin_status basin_packed_open_memory(basin_packed **packed, const void *data, size_t size,
                                      const char *path, basin_error *error);
/* Up to `bytes`; *got is 0 at the end. What is cut off or damaged, or unpacks to far more than
 * tables and texts do, is an error. */
basin_status basin_packed_read(size_t *got, void *to, size_t bytes, basin_packed *packed,
                               basin_error *error);
void basin_packed_close(basin_packed *packed);

/* ---- gzip alone; plain files pass through ---- */

/* Opens a regular file; close it with gzclose. */
basin_status basin_gz_open(gzFile *file, const char *path, basin_error *error);
/* Up to `bytes`; *got is 0 at the end. A packed file that is cut off or damaged is an error. */
basin_status basin_gz_read(size_t *got, void *to, size_t bytes, gzFile file, const char *path,
                           basin_error *error);

/* ---- pipes ---- */

/* Whether `path` is "-" or names a descriptor that the process has (/dev/stdin, /dev/fd/3), as
 * shells give it for a pipe. */
bool basin_stream_is(const char *path);
/* All of it in memory; free it. More than `limit` bytes are an error. */
basin_status basin_stream_read(void **data, size_t *size, const char *path, size_t limit,
                               basin_error *error);

#endif
