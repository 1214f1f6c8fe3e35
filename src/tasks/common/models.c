/* Models that come with Basin; see basin/tasks/models.h. */
#include "basin/tasks/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/library.h"

#ifndef BASIN_MODELS_FOLDER
#define BASIN_MODELS_FOLDER "/usr/share/basin/models"
#endif

/* Whether FOLDER/BELOW/NAME.safetensors is there; `length` bytes of the folder count. */
static bool is_in(char *path, size_t size, const char *folder, int length, const char *below,
                  const char *name) {
    int used = snprintf(path, size, "%.*s%s/%s.safetensors", length, folder, below, name);
    return used > 0 && (size_t)used < size && access(path, R_OK) == 0;
}

basin_status basin_models_find(char *path, size_t size, const char *name, basin_error *error) {
    char home[BASIN_HOME];
    const char *set = getenv("BASIN_MODELS"), *built = BASIN_MODELS_FOLDER;
    if (strchr(name, '/'))
        return basin_fail(error, BASIN_BAD_VALUE, "model '%s': expected a name without folders",
                          name);
    if (set && set[0]) {
        if (is_in(path, size, set, (int)strlen(set), "", name)) return BASIN_OK;
        return basin_fail(error, BASIN_IO, "%s: not found in the folder that BASIN_MODELS names",
                          path);
    }
    basin_home_find(home);
    char *slash = strrchr(home, '/');
    int length = slash ? (int)(slash - home) : 0;
    if ((slash && is_in(path, size, home, length, "/../share/basin/models", name)) ||
        is_in(path, size, built, (int)strlen(built), "", name) ||
        (slash && is_in(path, size, home, length, "/../models", name)))
        return BASIN_OK;
    return basin_fail(error, BASIN_IO,
                      "no model '%s' in %s or beside the program; put models/%s.safetensors of "
                      "Basin's sources there, give a file, or set BASIN_MODELS to another folder",
                      name, built, name);
}
