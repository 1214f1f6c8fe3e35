/* What the anomaly commands share; see options.h. */
#include "cli/anomaly/options.h"

basin_status basin_open_as_trained(basin_network **network, const basin_anomaly_model *model,
                                   const char *model_path, const basin_network_flags *flags,
                                   double gib, int paths, char **path, bool quiet,
                                   basin_error *error) {
    const basin_schema *schema = basin_anomaly_get_schema(model);
    if (!schema && !quiet)
        basin_say("basin: note: %s: keeps no names of columns (a file of 0.1): they must stand in "
                  "the order of training, read with the options of training",
                  model_path);
    return basin_network_flags_open(network, flags, schema, gib, paths, path, quiet, error);
}

void basin_put_percent(basin_json *json, const char *key, const basin_score *score) {
    if (!score) return;
    basin_json_object(json, key);
    for (int i = 0; i < score->measures; i++)
        basin_json_number(json, score->measure[i].name, 100 * score->measure[i].value);
    basin_json_end(json);
}
