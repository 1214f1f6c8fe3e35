/* Opening a network, whatever its format: by the first bytes of the file, not by its name. */
#include <stdlib.h>
#include <string.h>

#include "data/network/network.h"
#include "io/file.h"

static basin_status open_bundle(basin_network **network, const char *path,
                                const basin_network_options *options, basin_error *error) {
    basin_bundle *bundle;
    basin_status status = basin_bundle_read(&bundle, path, error);
    if (status) return status;
    if (basin_network_file_is(bundle)) {
        status = basin_network_file_read(network, bundle, error);
        if (!status) return BASIN_OK;
    } else {
        status = basin_network_npz_read(network, bundle, options, error);
    }
    basin_bundle_free(bundle);
    return status;
}

/* A zip, or a header of safetensors: eight bytes of length, then a brace. */
static bool is_bundle(const basin_map *map) {
    return map->size >= 9 && (!memcmp(map->data, "PK\3\4", 4) || !memcmp(map->data, "PK\5\6", 4) ||
                              (map->data[8] == '{' && map->data[7] == 0 && map->data[6] == 0));
}

static basin_status open_csv(basin_network **network, const char *const *path, int paths,
                             const basin_network_options *options, basin_error *error) {
    basin_csv_source *source = calloc((size_t)paths, sizeof *source);
    if (!source) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", path[0]);
    for (int i = 0; i < paths; i++) source[i].path = path[i];
    basin_status status = basin_network_csv_read(network, source, paths, options, error);
    free(source);
    return status;
}

static basin_status open_any(basin_network **network, const char *const *path, int paths,
                             const basin_network_options *options, basin_error *error) {
    basin_map map;
    basin_status status = basin_map_open(&map, path[0], error);
    if (status) return status;
    bool dgl = basin_network_dgl_is(map.data, map.size), bundle = is_bundle(&map);
    bool mat = basin_network_mat_is(map.data, map.size);
    if ((dgl || bundle || mat) && paths > 1)
        status = basin_fail(error, BASIN_BAD_VALUE,
                            "%s: is a network by itself, wanted CSV where there are several files",
                            path[0]);
    else if (dgl)
        status = basin_network_dgl_parse(network, map.data, map.size, path[0], options, error);
    else if (mat)
        status = basin_network_mat_read(network, map.data, map.size, path[0], options, error);
    else if (bundle)
        status = open_bundle(network, path[0], options, error);
    else
        status = open_csv(network, path, paths, options, error);
    basin_map_close(&map);
    return status;
}

/* Readers look at what they build; a mapped file may hold anything. */
static basin_status check_mapped(basin_network *n, const basin_network_options *o,
                                 basin_error *error) {
    basin_status status = basin_network_check_tables(n, error);
    if (!status) status = basin_network_fill_missing(n, o->missing, error);
    return status ? status : basin_network_forget_labels(n, o, error);
}

basin_status basin_network_open(basin_network **network, const char *const *path, int paths,
                                const basin_network_options *options, basin_error *error) {
    const basin_network_options *o = basin_network_options_or(options);
    *network = NULL;
    if (paths < 1) return basin_fail(error, BASIN_BAD_VALUE, "no file to open");
    basin_status status = open_any(network, path, paths, o, error);
    if (!status && (*network)->file) status = check_mapped(*network, o, error);
    if (!status && o->unite && basin_network_main_relation(*network) < 0)
        status = basin_network_add_union(*network, error);
    if (status) {
        basin_network_free(*network);
        *network = NULL;
    }
    return status;
}
