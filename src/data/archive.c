/* Archives; see archive.h. */
#include "data/archive.h"

const char *basin_archive_why(struct archive *archive) {
    const char *text = archive_error_string(archive);
    return text ? text : "unknown error";
}

/* A filter whose library is not linked in would run a program in its place. */
static void allow(struct archive *archive) {
    archive_read_support_format_tar(archive);
    archive_read_support_format_zip(archive);
    if (archive_zlib_version()) archive_read_support_filter_gzip(archive);
    if (archive_bzlib_version()) archive_read_support_filter_bzip2(archive);
    if (archive_liblzma_version()) archive_read_support_filter_xz(archive);
    if (archive_libzstd_version()) archive_read_support_filter_zstd(archive);
}

basin_status basin_archive_open(struct archive **archive, const void *data, size_t size,
                                const char *path, const char *wanted, basin_error *error) {
    *archive = archive_read_new();
    if (!*archive) return basin_fail(error, BASIN_NO_MEMORY, "%s: no memory to read it", path);
    allow(*archive);
    if (archive_read_open_memory(*archive, data ? data : "", size) == ARCHIVE_OK) return BASIN_OK;
    basin_status status = basin_fail(error, BASIN_BAD_FILE, "%s: is no %s: %s", path, wanted,
                                     basin_archive_why(*archive));
    archive_read_free(*archive);
    *archive = NULL;
    return status;
}
