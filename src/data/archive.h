/* Opening archives through libarchive, which is opened at run time, with a list of formats that
 * are allowed. */
#ifndef BASIN_DATA_ARCHIVE_H
#define BASIN_DATA_ARCHIVE_H

#include <archive.h>
#include <archive_entry.h>
#include <stddef.h>

#include "base/library.h"

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
 * No other filter is let in: libarchive runs programs from PATH for some. `wanted` is what the file
 * should have been, for errors. */
basin_status basin_archive_open(basin_archive *archive, const void *data, size_t size,
                                const char *path, const char *wanted, basin_error *error);
/* A reader that knows no format yet. */
basin_status basin_archive_begin(basin_archive *archive, const char *path, basin_error *error);
void basin_archive_close(basin_archive *archive);
/* What libarchive says is wrong. */
const char *basin_archive_why(const basin_archive *archive);

#endif
