/* Zip archives of stored and deflated entries, read from memory and written to a file. libarchive
 * hands out names only in the process's locale and hides the packed sizes by which a zip bomb is
 * recognised. */
#ifndef BASIN_IO_ZIP_H
#define BASIN_IO_ZIP_H

#include <zlib.h>

#include "base/file.h"

/* An archive being walked through, entry by entry of its central directory. */
typedef struct basin_zip {
    const char *path;
    const unsigned char *data; /* [size] */
    size_t size;
    size_t at, end;    /* what is left of the central directory */
    uint64_t left;     /* how many entries are */
    uint64_t packed;   /* bytes the entries so far claim to take */
    uint64_t unpacked; /* bytes they unpack to, */
    size_t limit;      /* of which at most this many are allowed */
} basin_zip;

typedef struct basin_zip_entry {
    const char *name; /* [name_length], no NUL at its end */
    int name_length;
    unsigned method;
    uint32_t crc;
    size_t packed, size;       /* bytes in the archive and unpacked; believable */
    const unsigned char *data; /* [packed] */
} basin_zip_entry;

basin_status basin_zip_open(basin_zip *zip, const void *data, size_t size, const char *path,
                            basin_error *error);
/* The next entry, checked against the archive; *more is false once there is none. */
basin_status basin_zip_next(basin_zip_entry *entry, bool *more, basin_zip *zip, basin_error *error);

/* The unpacked bytes of one entry, in order. Close what was opened. */
typedef struct basin_zip_stream {
    const basin_zip *zip;
    const basin_zip_entry *entry;
    z_stream inflate;
    size_t taken; /* bytes read so far */
    uint32_t crc;
} basin_zip_stream;

basin_status basin_zip_stream_open(basin_zip_stream *stream, const basin_zip *zip,
                                   const basin_zip_entry *entry, basin_error *error);
basin_status basin_zip_stream_read(basin_zip_stream *stream, void *out, size_t bytes,
                                   basin_error *error);
/* Checks that the entry ends here and that its checksum is right. */
basin_status basin_zip_stream_finish(basin_zip_stream *stream, basin_error *error);
void basin_zip_stream_close(basin_zip_stream *stream);

/* An archive being written, entries stored, of less than `limit` bytes: 4 GiB. */
typedef struct basin_zip_writer {
    basin_writer *file;
    uint64_t limit, at, count;
    unsigned char *directory;
    size_t used, capacity;
} basin_zip_writer;

enum { BASIN_ZIP_NAME_MAX = 65535 };

basin_zip_writer basin_zip_begin(basin_writer *file);
/* One entry whose content is `head` followed by `body`. */
basin_status basin_zip_add(basin_zip_writer *zip, const char *name, const void *head,
                           size_t head_bytes, const void *body, size_t body_bytes,
                           basin_error *error);
basin_status basin_zip_end(basin_zip_writer *zip, basin_error *error);
void basin_zip_free(basin_zip_writer *zip);

#endif
