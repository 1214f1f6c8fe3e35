/* Files that may be packed by gzip; plain ones pass through. */
#ifndef BASIN_DATA_GZ_H
#define BASIN_DATA_GZ_H

#include <stddef.h>
#include <zlib.h>

#include "basin/status.h"

/* Opens a regular file; close it with gzclose. */
basin_status basin_gz_open(gzFile *file, const char *path, basin_error *error);
/* Up to `bytes`; *got is 0 at the end. A packed file that is cut off or damaged is an error. */
basin_status basin_gz_read(size_t *got, void *to, size_t bytes, gzFile file, const char *path,
                           basin_error *error);

#endif
