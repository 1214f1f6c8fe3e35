/* Files and memory, plain or packed by gzip or zstd, read from the front. */
#ifndef BASIN_DATA_PACKED_H
#define BASIN_DATA_PACKED_H

#include <archive.h>
#include <archive_entry.h>
#include <stddef.h>
#include <zlib.h>

#include "base/library.h"

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

/* An error for tables of formats that are not read (Parquet, Arrow, ORC, Excel, SQLite), by their
 * first bytes, with the command that makes CSV of them. */
basin_status basin_packed_refuse(const void *data, size_t size, const char *path,
                                 basin_error *error);

/* ---- pipes ---- */

/* Whether `path` is "-" or names a descriptor that the process has (/dev/stdin, /dev/fd/3), as
 * shells give it for a pipe. */
bool basin_stream_is(const char *path);
/* All of it in memory; free it. More than `limit` bytes are an error. */
basin_status basin_stream_read(void **data, size_t *size, const char *path, size_t limit,
                               basin_error *error);

/* ---- archives ---- */

#define BASIN_ARCHIVE_FUNCTIONS(X)                                                                 \
    X(archive_read_new)                                                                            \
    X(archive_read_free)                                                                           \
    X(archive_read_open_memory)                                                                    \
    X(archive_read_open_fd)                                                                        \
    X(archive_read_next_header)                                                                    \
    X(archive_read_data)                                                                           \
    X(archive_read_data_block)                                                                     \
    X(archive_entry_pathname)                                                                      \
    X(archive_entry_pathname_utf8)                                                                 \
    X(archive_entry_filetype)                                                                      \
    X(archive_error_string)                                                                        \
    X(archive_read_support_format_tar)                                                             \
    X(archive_read_support_format_zip)                                                             \
    X(archive_read_support_format_raw)                                                             \
    X(archive_read_support_filter_gzip)                                                            \
    X(archive_read_support_filter_bzip2)                                                           \
    X(archive_read_support_filter_xz)                                                              \
    X(archive_read_support_filter_zstd)                                                            \
    X(archive_zlib_version)                                                                        \
    X(archive_bzlib_version)                                                                       \
    X(archive_liblzma_version)                                                                     \
    X(archive_libzstd_version)

/* An archive that is read, with libarchive's functions. */
typedef struct basin_archive {
    BASIN_ARCHIVE_FUNCTIONS(BASIN_LIBRARY_FIELD)
    struct archive *reader;
} basin_archive;

/* Reads tar and zip, plain or packed by gzip, bzip2, xz or zstd, from memory that must outlive it.
 * No other filter is let in: libarchive runs programs from PATH for some. `expected` is what the
 * file should have been, for errors. */
basin_status basin_archive_open(basin_archive *archive, const void *data, size_t size,
                                const char *path, const char *expected, basin_error *error);
void basin_archive_close(basin_archive *archive);
/* The error message of libarchive. */
const char *basin_archive_why(const basin_archive *archive);

#endif
