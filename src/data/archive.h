/* Opening archives through libarchive, with a list of formats that are allowed. */
#ifndef BASIN_DATA_ARCHIVE_H
#define BASIN_DATA_ARCHIVE_H

#include <archive.h>
#include <archive_entry.h>
#include <stddef.h>

#include "basin/status.h"

/* Reads tar and zip, plain or packed by gzip, bzip2, xz or zstd, from memory that must outlive it.
 * No other filter is let in: libarchive runs programs from PATH for some. Free with
 * archive_read_free. `wanted` is what the file should have been, for errors. */
basin_status basin_archive_open(struct archive **archive, const void *data, size_t size,
                                const char *path, const char *wanted, basin_error *error);
/* What libarchive says is wrong. */
const char *basin_archive_why(struct archive *archive);

#endif
