/* Opening a network as the anomaly commands' options say. */
#include "cli/anomaly/options.h"

#include <string.h>

basin_status basin_anomaly_open(basin_network **network, char **path, int paths,
                                const basin_data_options *o, basin_error *error) {
    basin_network_options options = {.directed = o->directed,
                                     .unlabelled_first = o->unlabelled_first,
                                     .id = o->id,
                                     .label = o->label,
                                     .source = o->source,
                                     .target = o->target,
                                     .edge_type = o->edge_type,
                                     .drop = o->drop};
    options.missing = !strcmp(o->missing, "zero")   ? BASIN_MISSING_ZERO
                      : !strcmp(o->missing, "mean") ? BASIN_MISSING_MEAN
                                                    : BASIN_MISSING_ERROR;
    basin_status status =
        basin_network_open(network, (const char *const *)path, paths, &options, error);
    if (status) return status;
    if (basin_network_main_relation(*network) < 0)
        status = basin_network_add_union(*network, error);
    if (status) {
        basin_network_free(*network);
        *network = NULL;
    }
    return status;
}
