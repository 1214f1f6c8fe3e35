/* What the anomaly commands share; see options.h. */
#include "cli/anomaly/options.h"

#include <string.h>

basin_network_options basin_data_network_options(const basin_data_options *o) {
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
    return options;
}

basin_status basin_data_open(basin_network **network, char **path, int paths,
                             const basin_data_options *o, basin_error *error) {
    basin_network_options options = basin_data_network_options(o);
    return basin_network_open(network, (const char *const *)path, paths, &options, error);
}

void basin_put_percent(basin_json *json, const char *key, const basin_score *score) {
    if (!score) return;
    basin_json_object(json, key);
    for (int i = 0; i < score->measures; i++)
        basin_json_number(json, score->measure[i].name, 100 * score->measure[i].value);
    basin_json_end(json);
}
