/* Reasons as JSON; see reasons.h. */
#include "cli/anomaly/reasons.h"

static const char *label_name(const basin_network *network, int64_t node) {
    if (!network->label || network->label[node] < 0) return "-";
    return network->label[node] ? "anomalous" : "normal";
}

static void put_neighbours(basin_json *json, const basin_anomaly_explanation *e,
                           const basin_network *network, int64_t most) {
    char id[BASIN_NODE_TEXT];
    basin_json_array(json, "neighbours");
    for (int64_t i = 0; i < e->neighbours && i < most; i++) {
        const basin_anomaly_neighbour *n = &e->neighbour[i];
        basin_json_object(json, NULL);
        basin_json_text(json, "node", basin_network_id(network, n->node, id));
        basin_json_number(json, "moves", n->push);
        if (e->has_attention) {
            basin_json_number(json, "attention", n->share);
            basin_json_number(json, "returned", n->returned);
        }
        basin_json_number(json, "probability", n->probability);
        basin_json_text(json, "label", label_name(network, n->node));
        basin_json_end(json);
    }
    basin_json_end(json);
}

static void put_features(basin_json *json, const basin_anomaly_explanation *e,
                         const basin_network *network, const basin_schema *schema, int64_t most) {
    char name[BASIN_REASON_TEXT], text[BASIN_VALUE_TEXT];
    basin_json_array(json, "features");
    for (int64_t i = 0; i < e->features && i < most; i++) {
        const basin_anomaly_feature *f = &e->feature[i];
        basin_json_object(json, NULL);
        basin_json_text(json, "feature", basin_anomaly_reason_name(name, network, f));
        basin_json_integer(json, "column", f->column);
        basin_json_integer(json, "hop", f->hop);
        basin_json_number(json, "moves", f->share);
        basin_json_number(json, "value", f->value);
        basin_json_number(json, "typical", f->typical);
        basin_json_text(json, "shown",
                        basin_schema_value(text, schema, f->column, f->value, f->hop));
        basin_json_end(json);
    }
    basin_json_end(json);
}

void basin_put_reasons(basin_json *json, const basin_anomaly_explanation *e,
                       const basin_network *network, const basin_schema *schema, int64_t neighbours,
                       int64_t features) {
    basin_json_number(json, "logit", e->logit);
    basin_json_number(json, "typical_logit", e->typical_logit);
    basin_json_number(json, "own", e->own);
    basin_json_number(json, "rest", e->rest);
    put_neighbours(json, e, network, neighbours);
    put_features(json, e, network, schema, features);
}
