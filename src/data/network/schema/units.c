/* Values of features as people know them; see include/basin/tasks/network.h. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "data/network/schema/schema.h"

static const basin_schema_column *column_of(const basin_schema *schema, int64_t feature) {
    for (size_t i = 0; schema && i < schema->nodes.columns; i++) {
        const basin_schema_column *c = &schema->nodes.column[i];
        int64_t width = basin_schema_width(c);
        if (feature >= c->first && feature < c->first + width) return c;
    }
    return NULL;
}

const char *basin_schema_value(char text[BASIN_VALUE_TEXT], const basin_schema *schema,
                               int64_t feature, double value, bool mean) {
    const basin_schema_column *c = column_of(schema, feature);
    char day[BASIN_DAY_TEXT];
    if (isnan(value))
        snprintf(text, BASIN_VALUE_TEXT, "-");
    else if (c && c->type == BASIN_COLUMN_CATEGORY && mean)
        snprintf(text, BASIN_VALUE_TEXT, "%.3g %%", 100 * value);
    else if (c && c->type == BASIN_COLUMN_CATEGORY)
        snprintf(text, BASIN_VALUE_TEXT, "%s", value > 0.5 ? "yes" : "no");
    else if (c && c->type == BASIN_COLUMN_DATE && fabs(value) < 2e6)
        snprintf(text, BASIN_VALUE_TEXT, "%.20s", basin_day_print(day, (int64_t)(value * 86400)));
    else
        snprintf(text, BASIN_VALUE_TEXT, "%.6g", value);
    return text;
}
