/* Folders that commands write into; see folder.h. */
#include "cli/folder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

basin_status basin_folder_make(const char *path, basin_error *error) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return BASIN_OK;
    return basin_fail(error, BASIN_IO, "%s: %s", path, strerror(errno));
}
