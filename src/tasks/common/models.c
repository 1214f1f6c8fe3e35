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
static bool is_in(char path[BASIN_MODEL_PATH], const char *folder, int length, const char *below,
                  const char *name) {
    int size =
        snprintf(path, BASIN_MODEL_PATH, "%.*s%s/%s.safetensors", length, folder, below, name);
    return size > 0 && size < BASIN_MODEL_PATH && access(path, R_OK) == 0;
}

basin_status basin_models_find(char path[BASIN_MODEL_PATH], const char *name, basin_error *error) {
    char home[BASIN_HOME];
    const char *set = getenv("BASIN_MODELS");
    if (strchr(name, '/'))
        return basin_fail(error, BASIN_BAD_VALUE, "model '%s': wanted a name without folders",
                          name);
    if (set && set[0]) {
        if (is_in(path, set, (int)strlen(set), "", name)) return BASIN_OK;
        return basin_fail(error, BASIN_IO, "%s: not there, though BASIN_MODELS names that folder",
                          path);
    }
    basin_home_find(home);
    char *slash = strrchr(home, '/');
    int length = slash ? (int)(slash - home) : 0;
    if (slash && is_in(path, home, length, "/../share/basin/models", name)) return BASIN_OK;
    if (is_in(path, BASIN_MODELS_FOLDER, (int)strlen(BASIN_MODELS_FOLDER), "", name))
        return BASIN_OK;
    if (slash && is_in(path, home, length, "/../models", name)) return BASIN_OK;
    return basin_fail(error, BASIN_IO,
                      "no model '%s': it is neither in %s nor beside the program; name a model, or "
                      "the folder that holds it in BASIN_MODELS",
                      name, BASIN_MODELS_FOLDER);
}
