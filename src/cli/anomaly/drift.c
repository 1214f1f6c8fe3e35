/* Drift as a line and as JSON; see drift.h. */
#include "cli/anomaly/drift.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"

enum { NAMED = 3 };

/* "amount 0.61, country 0.35": those of at least this level, or the first few of any. */
static void list(char *text, size_t size, const basin_anomaly_drift *d, int level) {
    size_t used = 0;
    int shown = 0;
    *text = 0;
    for (int64_t i = 0; i < d->columns && shown < NAMED; i++) {
        const basin_anomaly_drift_column *c = &d->column[i];
        if (c->level < level) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%.60s %.2f", shown ? ", " : "",
                                 c->name, c->index);
        shown++;
    }
    int64_t all = level > 1 ? d->large : level ? d->some + d->large : shown;
    if (all > shown) snprintf(text + used, size - used, " and %lld more", (long long)all - shown);
}

void basin_cli_drift_say(const basin_anomaly_drift *d) {
    char text[300];
    list(text, sizeof text, d, d->large ? 2 : d->some ? 1 : 0);
    if (d->few)
        basin_say("basin: note: drift: %lld node%s too few to compare with training's",
                  (long long)d->nodes, d->nodes == 1 ? " is" : "s are");
    else if (d->large)
        basin_say("basin: note: drift is LARGE against training in %lld of %lld columns "
                  "(stability index above 0.25): %s; scores and thresholds may no longer hold",
                  (long long)d->large, (long long)d->columns, text);
    else if (d->some)
        basin_say("basin: note: some drift against training in %lld of %lld columns (stability "
                  "index above 0.1): %s",
                  (long long)d->some, (long long)d->columns, text);
    else
        basin_say("basin: note: little drift against training; the highest stability indices: %s",
                  text);
}

void basin_put_drift(basin_json *json, const basin_anomaly_drift *d) {
    static const char *const level[] = {"little", "some", "large"};
    basin_json_object(json, "drift");
    basin_json_integer(json, "nodes", d->nodes);
    basin_json_boolean(json, "too_few", d->few);
    basin_json_array(json, "columns");
    for (int64_t i = 0; i < d->columns; i++) {
        const basin_anomaly_drift_column *c = &d->column[i];
        basin_json_object(json, NULL);
        basin_json_text(json, "column", c->name);
        basin_json_number(json, "index", c->index);
        basin_json_text(json, "level", d->few ? "unknown" : level[c->level]);
        basin_json_number(json, c->category ? "unknown_in_training" : "median_in_training",
                          c->then);
        basin_json_number(json, c->category ? "unknown" : "median", c->now);
        basin_json_end(json);
    }
    basin_json_end(json);
    basin_json_end(json);
}
