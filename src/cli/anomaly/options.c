/* Opening a network as the anomaly commands' options say. */
#include "cli/anomaly/options.h"

#include <string.h>

basin_status basin_anomaly_open(basin_network **network, char **path, int paths,
                                const basin_data_options *o, basin_error *error) {
    basin_network_options options = {.directed = o->directed,
                                     .unlabelled_first = o->unlabelled_first,
                                     .unite = true,
                                     .id = o->id,
                                     .label = o->label,
                                     .source = o->source,
                                     .target = o->target,
                                     .edge_type = o->edge_type,
                                     .drop = o->drop};
    options.missing = !strcmp(o->missing, "zero")   ? BASIN_MISSING_ZERO
                      : !strcmp(o->missing, "mean") ? BASIN_MISSING_MEAN
                                                    : BASIN_MISSING_ERROR;
    return basin_network_open(network, (const char *const *)path, paths, &options, error);
}
