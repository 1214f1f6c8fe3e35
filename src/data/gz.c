/* gzip through zlib; see gz.h. */
#include "data/gz.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "io/file.h"

basin_status basin_gz_open(gzFile *file, const char *path, basin_error *error) {
    int fd;
    size_t size;
    basin_status status = basin_file_open(&fd, &size, path, error);
    if (status) return status;
    *file = gzdopen(fd, "rb");
    if (*file) return BASIN_OK;
    close(fd);
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to read it", path);
}

basin_status basin_gz_read(size_t *got, void *to, size_t bytes, gzFile file, const char *path,
                           basin_error *error) {
    int count = gzread(file, to, (unsigned)bytes), code = Z_OK;
    const char *why = gzerror(file, &code);
    *got = count > 0 ? (size_t)count : 0;
    if (count >= 0 && (code == Z_OK || code == Z_STREAM_END)) return BASIN_OK;
    if (code == Z_ERRNO) return basin_fail(error, BASIN_IO, "%s: %s", path, strerror(errno));
    if (code == Z_MEM_ERROR)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to unpack it", path);
    const char *name_ends = strstr(why, ">: "); /* zlib calls it <fd:3> */
    return basin_fail(error, BASIN_BAD_FILE, "%s: damaged gz: %s", path,
                      code == Z_BUF_ERROR ? "it is cut off"
                      : name_ends         ? name_ends + 3
                                          : why);
}
