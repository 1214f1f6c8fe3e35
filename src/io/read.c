/* Files to bundles and back: which format a file has, and who keeps its map. */
#include "io/bundle.h"

basin_status basin_safetensors_read(basin_bundle **bundle, const char *path, basin_error *error) {
    basin_map map;
    *bundle = NULL;
    basin_status status = basin_map_open(&map, path, error);
    if (status != BASIN_OK) return status;
    status = basin_safetensors_parse(bundle, map.data, map.size, path, error);
    if (status == BASIN_OK) basin_bundle_keep(*bundle, &map);
    basin_map_close(&map);
    return status;
}

basin_status basin_bundle_read(basin_bundle **bundle, const char *path, basin_error *error) {
    return basin_safetensors_read(bundle, path, error);
}

basin_status basin_bundle_write(const char *path, const basin_bundle *bundle, basin_error *error) {
    return basin_safetensors_write(path, bundle, error);
}
