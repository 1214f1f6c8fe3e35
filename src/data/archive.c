/* Archives; see archive.h. */
#include "data/archive.h"
#include "base/try.h"

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

basin_status basin_archive_begin(basin_archive *a, const char *path, basin_error *error) {
    *a = (basin_archive){0};
    BASIN_TRY(basin_library_load(a, BASIN_LIBRARY_ARCHIVE, functions, error));
    a->reader = a->archive_read_new();
    if (a->reader) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to read it", path);
}

basin_status basin_archive_open(basin_archive *a, const void *data, size_t size, const char *path,
                                const char *wanted, basin_error *error) {
    basin_status status = basin_archive_begin(a, path, error);
    if (status) return status;
    allow(a);
    if (a->archive_read_open_memory(a->reader, data ? data : "", size) == ARCHIVE_OK)
        return BASIN_OK;
    status =
        basin_fail(error, BASIN_BAD_FILE, "%s: is no %s: %s", path, wanted, basin_archive_why(a));
    basin_archive_close(a);
    return status;
}

void basin_archive_close(basin_archive *a) {
    if (a->reader) a->archive_read_free(a->reader);
    a->reader = NULL;
}
