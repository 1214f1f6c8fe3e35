/* Opening a network, whatever its format: by the first bytes of the file, not by its name. */
#include <stdio.h>
#include <string.h>

#include "data/network.h"
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

basin_status basin_network_open(basin_network **network, const char *const *path, int paths,
                                const basin_network_options *options, basin_error *error) {
    basin_map map;
    *network = NULL;
    if (paths != 1)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: one file alone makes a network", path[0]);
    basin_status status = basin_map_open(&map, path[0], error);
    if (status) return status;
    if (basin_network_dgl_is(map.data, map.size))
        status = basin_network_dgl_parse(network, map.data, map.size, path[0], options, error);
    else
        status = open_bundle(network, path[0], options, error);
    basin_map_close(&map);
    return status;
}
