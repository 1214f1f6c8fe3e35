/* Reasons in words, in the user's units; see include/basin/tasks/nodes.h. */
#include <stdio.h>

#include "basin/tasks/nodes.h"
#include "data/network/network.h"
#include "task/nodes/nodes.h"

const char *basin_nodes_reason_name(char text[BASIN_REASON_TEXT], const basin_network *network,
                                    const basin_nodes_feature *f) {
    const basin_names *names = &network->column;
    char plain[BASIN_FACT_TEXT];
    int64_t features = network->feature ? network->features : 0;
    if (f->column < 0)
        snprintf(plain, sizeof plain, "known anomalies");
    else if (f->fact >= 0)
        basin_nodes_fact_name(plain, network, f->fact);
    else if (f->column >= features)
        snprintf(plain, sizeof plain, "number of neighbours");
    else if (names->count > f->column)
        snprintf(plain, sizeof plain, "%.140s", names->text + names->at[f->column]);
    else
        snprintf(plain, sizeof plain, "feature %lld", (long long)f->column);
    if (f->hop)
        snprintf(text, BASIN_REASON_TEXT, "%s, mean %lld hop%s away", plain, (long long)f->hop,
                 f->hop > 1 ? "s" : "");
    else
        snprintf(text, BASIN_REASON_TEXT, "%s", plain);
    return text;
}

const char *basin_nodes_reason_print(char text[BASIN_REASON_TEXT], const basin_nodes_explanation *e,
                                     const basin_network *network, const basin_schema *schema,
                                     int n) {
    char name[BASIN_REASON_TEXT], value[BASIN_VALUE_TEXT], typical[BASIN_VALUE_TEXT];
    *text = 0;
    for (int64_t i = 0; i < e->features; i++) {
        const basin_nodes_feature *f = &e->feature[i];
        if (!(f->share > 0) || n-- > 0) continue;
        basin_schema_value(value, schema, f->column, f->value, f->hop);
        basin_schema_value(typical, schema, f->column, f->typical, f->hop);
        snprintf(text, BASIN_REASON_TEXT, "%.180s %s (typical %s) %+.2f",
                 basin_nodes_reason_name(name, network, f), value, typical, f->share);
        break;
    }
    return text;
}
