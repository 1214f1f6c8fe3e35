/* What the anomaly commands share; see options.h. */
#include "cli/anomaly/options.h"

#include "cli/table.h"

basin_status basin_goal_check(const char *goal, basin_error *error) {
    double none;
    return goal ? basin_anomaly_threshold_for(&none, NULL, goal, NULL, 0, error) : BASIN_OK;
}

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

bool basin_cli_reliability_print(const basin_reliability *r) {
    basin_table rows = {.layout = "lrrr"};
    static const char *const heading[] = {"probability", "nodes", "predicted", "observed"};
    for (int i = 0; i < 4; i++) basin_table_add(&rows, "%s", heading[i]);
    for (int k = 0; k < BASIN_RELIABILITY_BINS; k++) {
        if (!r->bin[k].count) continue;
        basin_table_add(&rows, "%.1f to %.1f", (double)k / BASIN_RELIABILITY_BINS,
                        (double)(k + 1) / BASIN_RELIABILITY_BINS);
        basin_table_add(&rows, "%lld", (long long)r->bin[k].count);
        basin_table_add(&rows, "%.3f", r->bin[k].predicted);
        basin_table_add(&rows, "%.3f", r->bin[k].observed);
    }
    bool good = basin_table_print(&rows, stdout, 2);
    printf("  expected calibration error %.4f\n", r->ece);
    return good;
}

void basin_put_reliability(basin_json *json, const basin_reliability *r) {
    basin_json_object(json, "reliability");
    basin_json_number(json, "ece", r->ece);
    basin_json_array(json, "bins");
    for (int k = 0; k < BASIN_RELIABILITY_BINS; k++) {
        if (!r->bin[k].count) continue;
        basin_json_object(json, NULL);
        basin_json_number(json, "from", (double)k / BASIN_RELIABILITY_BINS);
        basin_json_integer(json, "nodes", r->bin[k].count);
        basin_json_number(json, "predicted", r->bin[k].predicted);
        basin_json_number(json, "observed", r->bin[k].observed);
        basin_json_end(json);
    }
    basin_json_end(json);
    basin_json_end(json);
}
