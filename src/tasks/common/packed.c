/* Archives and packed files; see packed.h. zlib reads gzip and plain files, libarchive the rest. */
#define _GNU_SOURCE /* memmem */
#include "tasks/common/packed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/try.h"

/* ---- archives ---- */

static const basin_library_function functions[] = {BASIN_ARCHIVE_FUNCTIONS(BASIN_LIBRARY_LINK){0}};

const char *basin_archive_why(const basin_archive *a) {
    const char *text = a->archive_error_string(a->reader);
    return text ? text : "unknown error";
}

/* A filter whose library is not linked in would run a program in its place. */
static void allow(const basin_archive *a) {
    a->archive_read_support_format_tar(a->reader);
    a->archive_read_support_format_zip(a->reader);
    if (a->archive_zlib_version()) a->archive_read_support_filter_gzip(a->reader);
    if (a->archive_bzlib_version()) a->archive_read_support_filter_bzip2(a->reader);
    if (a->archive_liblzma_version()) a->archive_read_support_filter_xz(a->reader);
    if (a->archive_libzstd_version()) a->archive_read_support_filter_zstd(a->reader);
}

/* A reader that knows no format yet. */
static basin_status begin(basin_archive *a, const char *path, basin_error *error) {
    *a = (basin_archive){0};
    BASIN_TRY(basin_library_load(a, BASIN_LIBRARY_ARCHIVE, functions, error));
    a->reader = a->archive_read_new();
    if (a->reader) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to read it", path);
}

basin_status basin_archive_open(basin_archive *a, const void *data, size_t size, const char *path,
                                const char *expected, basin_error *error) {
    BASIN_TRY(begin(a, path, error));
    allow(a);
    if (a->archive_read_open_memory(a->reader, data ? data : "", size) == ARCHIVE_OK)
        return BASIN_OK;
    basin_status status = basin_fail(error, BASIN_BAD_FILE, "%s: is not a %s: %s", path, expected,
                                     basin_archive_why(a));
    basin_archive_close(a);
    return status;
}

void basin_archive_close(basin_archive *a) {
    if (a->reader) a->archive_read_free(a->reader);
    a->reader = NULL;
}

/* ---- tables of other programs ---- */

/* Whether a zip has a workbook: by its names, at the end, or among what is there of it. */
static bool is_workbook(const char *data, size_t size) {
    static const char name[] = "xl/workbook.xml";
    size_t window = size < 1 << 16 ? size : 1 << 16;
    return memmem(data, window, name, sizeof name - 1) ||
           memmem(data + size - window, window, name, sizeof name - 1);
}

basin_status basin_packed_refuse(const void *data, size_t size, const char *path,
                                 basin_error *error) {
    static const struct {
        const char *bytes, *name, *reader;
        size_t length;
    } kind[] = {
        {"PAR1", "Parquet", "read_parquet", 4},
        {"ARROW1", "Arrow (Feather)", "read_feather", 6},
        {"FEA1", "Feather", "read_feather", 4},
        {"ORC", "ORC", "read_orc", 3},
        {"\xd0\xcf\x11\xe0", "Excel (xls)", "read_excel", 4},
        {"PK\3\4", "Excel (xlsx)", "read_excel", 4},
        {"SQLite format 3", "SQLite", NULL, 15},
        {"\x3f\xa1\xb4\x46\xf0\x4f\x2e\xdd", "graph file of DGL", "dgl", 8},
        {"MATLAB ", "MATLAB file", "mat", 7},
    };
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
        if (size <= kind[i].length || memcmp(data, kind[i].bytes, kind[i].length) != 0) continue;
        if (*kind[i].bytes == 'P' && kind[i].bytes[1] == 'K' && !is_workbook(data, size)) continue;
        if (strstr(kind[i].name, "file"))
            return basin_fail(error, BASIN_UNSUPPORTED,
                              "%s: is a %s, expected npz, which this command makes: python3 "
                              "share/basin/%s.py '%s' '%s.npz'",
                              path, kind[i].name, kind[i].reader, path, path);
        if (!kind[i].reader)
            return basin_fail(
                error, BASIN_UNSUPPORTED,
                "%s: is a database in the format SQLite, expected CSV, which this "
                "command makes of a table: sqlite3 -csv -header '%s' 'SELECT * FROM TABLE'",
                path, path);
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "%s: is a table in the format %s, expected CSV, which this command makes: python3 "
            "-c \"import pandas; pandas.%s('%s').to_csv('%s.csv', index=False)\"",
            path, kind[i].name, kind[i].reader, path, path);
    }
    return BASIN_OK;
}

/* ---- gzip ---- */

/* Plain files pass through. */
static basin_status gz_open(gzFile *file, const char *path, basin_error *error) {
    int fd;
    size_t size;
    BASIN_TRY(basin_file_open(&fd, &size, path, error));
    *file = gzdopen(fd, "rb");
    if (*file) return gzbuffer(*file, 1 << 18), BASIN_OK;
    close(fd);
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to read it", path);
}

static basin_status gz_read(size_t *got, void *to, size_t bytes, gzFile file, const char *path,
                            basin_error *error) {
    int count = gzread(file, to, (unsigned)bytes), code = Z_OK;
    const char *why = gzerror(file, &code);
    *got = count > 0 ? (size_t)count : 0;
    if (count >= 0 && (code == Z_OK || code == Z_STREAM_END)) return BASIN_OK;
    if (code == Z_ERRNO) return basin_fail_errno(path, "read", error);
    if (code == Z_MEM_ERROR)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to unpack it", path);
    const char *name_ends = strstr(why, ">: "); /* zlib calls it <fd:3> */
    return basin_fail(error, BASIN_BAD_FILE, "%s: damaged gz: %s", path,
                      code == Z_BUF_ERROR ? "it is cut off"
                      : name_ends         ? name_ends + 3
                                          : why);
}

/* ---- any packing ---- */

struct basin_packed {
    const char *path;
    gzFile gz;             /* a file that is plain or packed by gzip, */
    basin_archive archive; /* or an opened one, */
    int fd;
    const unsigned char *at, *end; /* or plain memory */
    size_t size, unpacked;         /* bytes as it is packed, and given out so far */
};

enum {
    BLOCK = 1 << 16,
    /* Tables and texts shrink to a tenth, at most to a hundredth. */
    MAX_RATIO = 200,
    ANY_TIMES = 1 << 26, /* bytes below which nobody minds */
};

static bool is_zstd(const unsigned char *head, size_t size) {
    return size >= 4 && !memcmp(head, "\x28\xb5\x2f\xfd", 4);
}

static bool is_gzip(const unsigned char *head, size_t size) {
    return size >= 2 && head[0] == 0x1f && head[1] == 0x8b;
}

static basin_status fail_archive(const basin_packed *p, basin_error *error) {
    return basin_fail(error, BASIN_BAD_FILE, "%s: damaged: %s", p->path,
                      basin_archive_why(&p->archive));
}

/* One stream without a container, from the descriptor or from memory. */
static basin_status open_raw(basin_packed *p, const void *data, size_t size, basin_error *error) {
    struct archive_entry *entry;
    basin_archive *a = &p->archive;
    BASIN_TRY(begin(a, p->path, error));
    if (!a->archive_libzstd_version() && !is_gzip(data, size))
        return basin_fail(error, BASIN_UNSUPPORTED, "%s: this libarchive does not read zstd",
                          p->path);
    a->archive_read_support_format_raw(a->reader);
    a->archive_read_support_filter_gzip(a->reader);
    if (a->archive_libzstd_version()) a->archive_read_support_filter_zstd(a->reader);
    int code = p->fd >= 0 ? a->archive_read_open_fd(a->reader, p->fd, BLOCK)
                          : a->archive_read_open_memory(a->reader, data, size);
    if (code == ARCHIVE_OK) code = a->archive_read_next_header(a->reader, &entry);
    return code == ARCHIVE_OK ? BASIN_OK : fail_archive(p, error);
}

static basin_status new_packed(basin_packed **packed, const char *path, basin_error *error) {
    *packed = basin_zeros_new(1, sizeof **packed);
    if (!*packed) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to read it", path);
    (*packed)->path = path;
    (*packed)->fd = -1;
    return BASIN_OK;
}

static basin_status finish(basin_packed **packed, basin_status status) {
    if (!status) return BASIN_OK;
    basin_packed_close(*packed);
    *packed = NULL;
    return status;
}

basin_status basin_packed_open(basin_packed **packed, const char *path, basin_error *error) {
    unsigned char head[4] = {0};
    basin_status status = new_packed(packed, path, error);
    if (status) return status;
    status = basin_file_open(&(*packed)->fd, &(*packed)->size, path, error);
    if (status) return finish(packed, status);
    ssize_t got = pread((*packed)->fd, head, sizeof head, 0);
    if (is_zstd(head, got < 0 ? 0 : (size_t)got))
        return finish(packed, open_raw(*packed, head, sizeof head, error));
    close((*packed)->fd);
    (*packed)->fd = -1;
    return finish(packed, gz_open(&(*packed)->gz, path, error));
}

basin_status basin_packed_open_memory(basin_packed **packed, const void *data, size_t size,
                                      const char *path, basin_error *error) {
    BASIN_TRY(new_packed(packed, path, error));
    (*packed)->size = size;
    if (is_zstd(data, size) || is_gzip(data, size))
        return finish(packed, open_raw(*packed, data, size, error));
    (*packed)->at = data;
    (*packed)->end = (const unsigned char *)data + size;
    return BASIN_OK;
}

static basin_status read_some(size_t *got, void *to, size_t bytes, basin_packed *packed,
                              basin_error *error) {
    *got = 0;
    if (packed->gz) return gz_read(got, to, bytes, packed->gz, packed->path, error);
    if (packed->archive.reader) {
        la_ssize_t count = packed->archive.archive_read_data(packed->archive.reader, to, bytes);
        *got = count > 0 ? (size_t)count : 0;
        return count >= 0 ? BASIN_OK : fail_archive(packed, error);
    }
    size_t left = (size_t)(packed->end - packed->at);
    *got = left < bytes ? left : bytes;
    if (*got) memcpy(to, packed->at, *got);
    packed->at += *got;
    return BASIN_OK;
}

/* A few bytes may unpack to any number of them: such a file is refused, not waited for. */
basin_status basin_packed_read(size_t *got, void *to, size_t bytes, basin_packed *packed,
                               basin_error *error) {
    basin_status status = read_some(got, to, bytes, packed, error);
    packed->unpacked += *got;
    if (status || packed->unpacked < ANY_TIMES || packed->unpacked / MAX_RATIO <= packed->size)
        return status;
    return basin_fail(
        error, BASIN_BAD_FILE,
        "%s: unpacks to more than %d times its size; if it is meant to, unpack it first",
        packed->path, MAX_RATIO);
}

void basin_packed_close(basin_packed *packed) {
    if (!packed) return;
    if (packed->gz) gzclose(packed->gz);
    basin_archive_close(&packed->archive);
    if (packed->fd >= 0) close(packed->fd);
    free(packed);
}

/* ---- descriptors ---- */

bool basin_stream_is(const char *path) {
    struct stat info;
    static const char *const folder[] = {"/dev/fd/", "/proc/self/fd/", NULL};
    bool named = !strcmp(path, "/dev/stdin");
    if (!strcmp(path, "-")) return true;
    for (const char *const *f = folder; *f; f++) named = named || !strncmp(path, *f, strlen(*f));
    /* A regular file there is opened as any other, and may be read twice. */
    return named && !stat(path, &info) && !S_ISREG(info.st_mode);
}

static basin_status read_all(void **data, size_t *size, int fd, const char *path, size_t limit,
                             basin_error *error) {
    size_t capacity = 0;
    for (ssize_t got = 1; got; *size += (size_t)got) {
        basin_status status =
            basin_memory_check((double)*size, limit, path, BASIN_NO_MEMORY, error);
        if (status) return status;
        if (!basin_array_reserve(data, &capacity, *size + BLOCK, 1))
            return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to read it", path);
        got = read(fd, (char *)*data + *size, BLOCK);
        if (got < 0) return basin_fail_errno(path, "read", error);
    }
    return BASIN_OK;
}

basin_status basin_stream_read(void **data, size_t *size, const char *path, size_t limit,
                               basin_error *error) {
    int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
    *data = NULL;
    *size = 0;
    if (fd < 0) return basin_fail_errno(path, "open for reading", error);
    basin_status status = read_all(data, size, fd, path, limit, error);
    close(fd);
    if (!status) return BASIN_OK;
    free(*data);
    *data = NULL;
    return status;
}
