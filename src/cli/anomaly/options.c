/* What the anomaly commands share; see options.h. */
#include "cli/anomaly/options.h"

void basin_put_percent(basin_json *json, const char *key, const basin_score *score) {
    if (!score) return;
    basin_json_object(json, key);
    for (int i = 0; i < score->measures; i++)
        basin_json_number(json, score->measure[i].name, 100 * score->measure[i].value);
    basin_json_end(json);
}
