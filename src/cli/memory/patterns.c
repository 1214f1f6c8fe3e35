/* Reading patterns; see patterns.h. A name that ends as a file of vectors does is one. */
#include "cli/memory/patterns.h"

#include <string.h>

static bool is_vectors(const char *path) {
    static const char *const end[] = {".npz", ".safetensors", ".csv", ".tsv", NULL};
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && end[i]; i++)
        if (!strcmp(dot, end[i])) return true;
    return false;
}

basin_status basin_patterns_read(basin_patterns *patterns, char **path, int paths, const char *name,
                                 int64_t limit, basin_error *error) {
    basin_pictures *pictures = NULL;
    int vectors = 0;
    for (int i = 0; i < paths; i++) vectors += is_vectors(path[i]);
    if (vectors && paths > 1)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%d files, some of them vectors; wanted one file of vectors, or pictures",
                          paths);
    if (vectors) return basin_memory_load_vectors(&patterns->tensor, path[0], name, limit, error);
    if (name)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: the tensor %s of pictures, which have none",
                          path[0], name);
    basin_status status =
        basin_pictures_open(&pictures, (const char *const *)path, paths, NULL, error);
    if (!status)
        status = basin_memory_load_pictures(&patterns->tensor, &patterns->height, &patterns->width,
                                            &patterns->channels, pictures, limit, error);
    basin_pictures_free(pictures);
    return status;
}
