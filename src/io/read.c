/* Files to bundles and back: which format a file has, and who keeps its map. */
#include <string.h>

#include "io/bundle.h"

typedef basin_status parser(basin_bundle **bundle, const void *data, size_t size, const char *path,
                            basin_error *error);

/* Zip files start with a local header or, when empty, with the end of the directory. */
static bool is_zip(const basin_map *map) {
    return map->size >= 4 &&
           (memcmp(map->data, "PK\3\4", 4) == 0 || memcmp(map->data, "PK\5\6", 4) == 0);
}

/* `parse` NULL: decide by content. */
static basin_status read_file(basin_bundle **bundle, const char *path, parser *parse,
                              basin_error *error) {
    basin_map map;
    *bundle = NULL;
    basin_status status = basin_map_open(&map, path, error);
    if (status != BASIN_OK) return status;
    if (!parse) parse = is_zip(&map) ? basin_npz_parse : basin_safetensors_parse;
    status = parse(bundle, map.data, map.size, path, error);
    if (status == BASIN_OK && parse == basin_safetensors_parse) basin_bundle_keep(*bundle, &map);
    basin_map_close(&map);
    return status;
}

basin_status basin_bundle_read(basin_bundle **bundle, const char *path, basin_error *error) {
    return read_file(bundle, path, NULL, error);
}

basin_status basin_safetensors_read(basin_bundle **bundle, const char *path, basin_error *error) {
    return read_file(bundle, path, basin_safetensors_parse, error);
}

basin_status basin_npz_read(basin_bundle **bundle, const char *path, basin_error *error) {
    return read_file(bundle, path, basin_npz_parse, error);
}

basin_status basin_bundle_write(const char *path, const basin_bundle *bundle, basin_error *error) {
    size_t length = strlen(path);
    if (length >= 4 && strcmp(path + length - 4, ".npz") == 0)
        return basin_npz_write(path, bundle, error);
    return basin_safetensors_write(path, bundle, error);
}
