/* Schemas: made, asked, freed; see network.h. */
#include <strings.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sized.h"
#include "tasks/nodes/network/network.h"

basin_status basin_schema_new(basin_schema **schema, basin_error *error) {
    BASIN_TRY(BASIN_NEW(schema, 1, "a schema", error));
    (*schema)->named = (*schema)->extremes = true;
    return BASIN_OK;
}

static void table_free(basin_schema_table *table) {
    for (size_t i = 0; i < table->columns; i++) {
        free(table->column[i].name);
        basin_names_free(&table->column[i].value);
    }
    free(table->column);
}

void basin_schema_free(basin_schema *schema) {
    if (!schema) return;
    table_free(&schema->nodes);
    table_free(&schema->edges);
    basin_names_free(&schema->relation);
    BASIN_FREE(schema->date_format, schema->edge_date_format, schema);
}

int64_t basin_schema_width(const basin_schema_column *column) {
    if (column->type == BASIN_COLUMN_CATEGORY) return column->value.count;
    return basin_column_is_feature(column->type);
}

basin_status basin_schema_add(basin_schema *schema, basin_schema_table *table,
                              const basin_schema_column *column, basin_error *error) {
    BASIN_TRY(BASIN_GROW(&table->column, &table->capacity, table->columns + 1, "a schema", error));
    basin_schema_column *c = &table->column[table->columns];
    *c = *column;
    c->value = (basin_names){0};
    c->name = basin_string_copy(column->name);
    if (!c->name) return basin_fail_memory(error, "a schema");
    table->columns++;
    int64_t *end = table == &schema->edges ? &schema->cells : &schema->features;
    c->first = *end;
    BASIN_TRY(basin_names_copy(&c->value, &column->value, error));
    *end += basin_schema_width(c);
    return BASIN_OK;
}

basin_status basin_schema_set_formats(basin_schema *s, const char *nodes, const char *edges,
                                      basin_error *error) {
    bool differ = edges && (!nodes || strcmp(nodes, edges) != 0);
    if (nodes) s->date_format = basin_string_copy(nodes);
    if (differ) s->edge_date_format = basin_string_copy(edges);
    if ((nodes && !s->date_format) || (differ && !s->edge_date_format))
        return basin_fail_memory(error, "a schema");
    return BASIN_OK;
}

static void free_at(basin_schema **schema) { basin_schema_free(*schema); }

basin_status basin_schema_copy(basin_schema **copy, const basin_schema *schema,
                               basin_error *error) {
    BASIN_AT_EXIT(free_at) basin_schema *s = NULL;
    *copy = NULL;
    BASIN_TRY(basin_schema_new(&s, error));
    s->named = schema->named;
    s->directed = schema->directed;
    s->extremes = schema->extremes;
    s->missing = schema->missing;
    s->unknown = schema->unknown;
    BASIN_TRY(basin_schema_set_formats(s, schema->date_format, schema->edge_date_format, error));
    for (size_t i = 0; i < schema->nodes.columns; i++)
        BASIN_TRY(basin_schema_add(s, &s->nodes, &schema->nodes.column[i], error));
    for (size_t i = 0; i < schema->edges.columns; i++)
        BASIN_TRY(basin_schema_add(s, &s->edges, &schema->edges.column[i], error));
    BASIN_TRY(basin_names_copy(&s->relation, &schema->relation, error));
    *copy = s, s = NULL;
    return BASIN_OK;
}

/* ---- asking ---- */

const basin_schema_column *basin_schema_find(const basin_schema_table *table, const char *name) {
    for (size_t i = 0; i < table->columns; i++)
        if (!strcmp(table->column[i].name, name)) return &table->column[i];
    for (size_t i = 0; i < table->columns; i++)
        if (!strcasecmp(table->column[i].name, name)) return &table->column[i];
    return NULL;
}

static basin_status add_features(basin_names *names, const basin_schema_column *c,
                                 basin_error *error) {
    char text[300];
    if (c->type == BASIN_COLUMN_NUMBER || c->type == BASIN_COLUMN_DATE)
        return basin_names_add(names, c->name, error);
    for (int64_t i = 0; i < c->value.count; i++) {
        snprintf(text, sizeof text, "%.140s=%.140s", c->name, c->value.text + c->value.at[i]);
        BASIN_TRY(basin_names_add(names, text, error));
    }
    return BASIN_OK;
}

basin_status basin_schema_names(basin_names *names, const basin_schema *schema,
                                basin_error *error) {
    *names = (basin_names){0};
    for (size_t i = 0; i < schema->nodes.columns; i++)
        BASIN_TRY(add_features(names, &schema->nodes.column[i], error));
    return BASIN_OK;
}

void basin_schema_fill(float *fill, const basin_schema *schema, basin_missing missing) {
    for (int64_t f = 0; f < schema->features; f++) fill[f] = 0;
    if (missing == BASIN_MISSING_ZERO) return;
    for (size_t i = 0; i < schema->nodes.columns; i++) {
        const basin_schema_column *c = &schema->nodes.column[i];
        bool number = c->type == BASIN_COLUMN_NUMBER || c->type == BASIN_COLUMN_DATE;
        if (number && isfinite(c->mean)) fill[c->first] = (float)c->mean;
    }
}

/* ---- of a network ---- */

basin_status basin_schema_set_relations(basin_schema *schema, const basin_network *network,
                                        basin_error *error) {
    if (network->both) return BASIN_OK; /* the schema of what it was made from has it */
    basin_names_free(&schema->relation);
    for (int r = 0; r < network->relations; r++) {
        const char *name = network->relation[r].name;
        bool whole = network->relations > 1 && !strcmp(name, "homo");
        if (!whole) BASIN_TRY(basin_names_add(&schema->relation, name, error));
    }
    return BASIN_OK;
}

/* Every feature, with the mean of its finite numbers; 0 where there are none. */
static basin_status add_numbers(basin_schema *s, const basin_network *n, basin_error *error) {
    int64_t F = n->feature ? n->features : 0;
    BASIN_SCRATCH(double, sum, F, "a schema", error);
    BASIN_SCRATCH(int64_t, count, F, "a schema", error);
    for (int64_t i = 0; F && i < n->nodes; i++)
        for (int64_t f = 0; f < F; f++) {
            float x = n->feature[i * F + f];
            if (isfinite(x)) sum[f] += x, count[f]++;
        }
    for (int64_t f = 0; f < F; f++) {
        char number[32];
        snprintf(number, sizeof number, "%lld", (long long)f);
        basin_schema_column c = {.name = s->named ? n->column.text + n->column.at[f] : number,
                                 .type = BASIN_COLUMN_NUMBER,
                                 .mean = count[f] ? sum[f] / (double)count[f] : 0};
        BASIN_TRY(basin_schema_add(s, &s->nodes, &c, error));
    }
    return BASIN_OK;
}

basin_status basin_schema_of(basin_schema **schema, const basin_network *network,
                             basin_missing missing, basin_error *error) {
    BASIN_AT_EXIT(free_at) basin_schema *s = NULL;
    *schema = NULL;
    BASIN_TRY(basin_schema_new(&s, error));
    s->named = network->column.count > 0;
    s->of_arrays = true;
    s->directed = network->directed;
    if (missing != BASIN_MISSING_KEEP) s->missing = missing;
    BASIN_TRY(add_numbers(s, network, error));
    BASIN_TRY(basin_schema_set_relations(s, network, error));
    *schema = s, s = NULL;
    return BASIN_OK;
}

/* What is still open comes from the schema; what was refused explicitly is an error. */
static void settle_choices(basin_network_options *o, basin_table_options *t,
                           const basin_schema *s) {
    if (s && o->missing == BASIN_MISSING_ERROR) o->missing = s->missing;
    if (s && t->unknown == BASIN_UNKNOWN_ERROR) t->unknown = s->unknown;
    if (s && !t->date_format && !t->edge_date_format) t->edge_date_format = s->edge_date_format;
    if (s && !t->date_format) t->date_format = s->date_format;
    if (!t->edge_date_format) t->edge_date_format = t->date_format;
    if (o->missing == BASIN_MISSING_REFUSE) o->missing = BASIN_MISSING_ERROR;
    if (t->unknown == BASIN_UNKNOWN_REFUSE) t->unknown = BASIN_UNKNOWN_ERROR;
}

basin_status basin_schema_settle(basin_settled_options *settled,
                                 const basin_network_options *options, const char *path,
                                 basin_error *error) {
    basin_network_options *o = &settled->network;
    BASIN_TRY(BASIN_SIZE_CHECK(options, "basin_network_options", error));
    BASIN_TRY(BASIN_SIZE_CHECK(options->table, "basin_table_options", error));
    *o = *options;
    settled->table = *basin_table_options_of(options);
    o->table = &settled->table;
    if (!o->schema && options->base) o->schema = options->base->schema;
    const basin_schema *s = o->schema;
    settle_choices(o, &settled->table, s);
    if (!s) return BASIN_OK;
    if (options->directed && !s->directed)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: directed is asked for; the detector was trained on a graph whose "
                          "edges go both ways",
                          path);
    o->directed = s->directed;
    return BASIN_OK;
}

/* ---- as JSON ---- */

enum { VERSION = 1 };

static const char *const missing_name[] = {"error", "zero", "mean", NULL};
static const char *const unknown_name[] = {"error", "skip", "add", NULL};

/* ---- writing ---- */

static void put_names(basin_json *json, const char *key, const basin_names *names) {
    basin_json_array(json, key);
    for (int64_t i = 0; i < names->count; i++)
        basin_json_text(json, NULL, names->text + names->at[i]);
    basin_json_end(json);
}

static void put_columns(basin_json *json, const basin_schema_table *table) {
    basin_json_array(json, "columns");
    for (size_t i = 0; i < table->columns; i++) {
        const basin_schema_column *c = &table->column[i];
        basin_json_object(json, NULL);
        basin_json_text(json, "name", c->name);
        basin_json_text(json, "type", basin_column_type_name(c->type));
        if (c->type == BASIN_COLUMN_NUMBER || c->type == BASIN_COLUMN_DATE)
            basin_json_number(json, "mean", c->mean);
        if (c->comma) basin_json_text(json, "decimal", ",");
        if (c->time) basin_json_boolean(json, "time", true);
        if (c->type == BASIN_COLUMN_CATEGORY) put_names(json, "values", &c->value);
        basin_json_end(json);
    }
    basin_json_end(json);
}

char *basin_schema_print(const basin_schema *schema) {
    basin_memory_file memory;
    if (!basin_memory_file_open(&memory)) return NULL;
    basin_json json = basin_json_begin_line(memory.file);
    basin_json_integer(&json, "version", VERSION);
    basin_json_boolean(&json, "named", schema->named);
    basin_json_boolean(&json, "directed", schema->directed);
    basin_json_text(&json, "missing", missing_name[schema->missing]);
    basin_json_text(&json, "unknown", unknown_name[schema->unknown]);
    if (schema->date_format) basin_json_text(&json, "date_format", schema->date_format);
    if (schema->edge_date_format)
        basin_json_text(&json, "edge_date_format", schema->edge_date_format);
    basin_json_object(&json, "nodes");
    put_columns(&json, &schema->nodes);
    basin_json_end(&json);
    basin_json_object(&json, "edges");
    put_names(&json, "relations", &schema->relation);
    if (schema->extremes) basin_json_boolean(&json, "extremes", true);
    put_columns(&json, &schema->edges);
    basin_json_end(&json);
    basin_json_end(&json);
    char *text = basin_memory_file_close(&memory);
    if (text) text[strcspn(text, "\n")] = 0; /* a text, not a line */
    return text;
}

/* ---- reading ---- */

typedef struct reading {
    basin_schema *schema;
    const char *path;
    basin_error *error;
} reading;

static basin_status wrong(const reading *r, const char *what) {
    return basin_fail(r->error, BASIN_BAD_FILE, "%s: the schema has %s", r->path, what);
}

static const char *text_of(const cJSON *object, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static basin_status read_choice(const reading *r, int *value, const cJSON *object, const char *key,
                                const char *const *choice) {
    const char *text = text_of(object, key);
    *value = 0;
    if (!text) return BASIN_OK;
    for (; choice[*value]; ++*value)
        if (!strcmp(choice[*value], text)) return BASIN_OK;
    return basin_fail(r->error, BASIN_BAD_FILE, "%s: the schema has %s '%.60s'", r->path, key,
                      text);
}

static basin_status read_names(const reading *r, basin_names *names, const cJSON *list) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        const char *text = cJSON_GetStringValue(item);
        BASIN_TRY(text ? basin_names_add(names, text, r->error)
                       : wrong(r, "a name that is not a text"));
    }
    return BASIN_OK;
}

static basin_status read_type(const reading *r, basin_column_type *type, const cJSON *item) {
    const char *text = text_of(item, "type");
    for (int t = 0; text && t < BASIN_COLUMN_TYPES; t++)
        if (!strcmp(basin_column_type_name((basin_column_type)t), text)) {
            *type = (basin_column_type)t;
            return BASIN_OK;
        }
    return basin_fail(r->error, BASIN_BAD_FILE, "%s: the schema has a column of type '%.60s'",
                      r->path, text ? text : "absent");
}

static basin_status read_column(const reading *r, basin_schema_table *table, const cJSON *item) {
    const char *decimal = text_of(item, "decimal");
    const cJSON *mean = cJSON_GetObjectItemCaseSensitive(item, "mean");
    basin_schema_column c = {
        .name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name")),
        .mean = cJSON_IsNumber(mean) ? mean->valuedouble : NAN,
        .comma = decimal && !strcmp(decimal, ","),
        .time = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "time"))};
    if (!c.name) return wrong(r, "a column without a name");
    BASIN_TRY(read_type(r, &c.type, item));
    basin_status status = BASIN_OK;
    if (c.type == BASIN_COLUMN_CATEGORY)
        status = read_names(r, &c.value, cJSON_GetObjectItemCaseSensitive(item, "values"));
    if (!status) status = basin_schema_add(r->schema, table, &c, r->error);
    basin_names_free(&c.value);
    return status;
}

static basin_status read_columns(const reading *r, basin_schema_table *table,
                                 const cJSON *section) {
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(section, "columns")) {
        BASIN_TRY(read_column(r, table, item));
    }
    return BASIN_OK;
}

static basin_status read_tree(const reading *r, const cJSON *tree) {
    basin_schema *s = r->schema;
    int missing = 0, unknown = 0;
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(tree, "version");
    const cJSON *edges = cJSON_GetObjectItemCaseSensitive(tree, "edges");
    if (!cJSON_IsNumber(version) || version->valuedouble != VERSION)
        return wrong(r, "another version than 1; is Basin older than the file?");
    s->named = !cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(tree, "named"));
    s->directed = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(tree, "directed"));
    BASIN_TRY(basin_schema_set_formats(s, text_of(tree, "date_format"),
                                       text_of(tree, "edge_date_format"), r->error));
    BASIN_TRY(read_choice(r, &missing, tree, "missing", missing_name));
    BASIN_TRY(read_choice(r, &unknown, tree, "unknown", unknown_name));
    s->missing = (basin_missing)missing;
    s->unknown = (basin_unknown)unknown;
    s->extremes = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(edges, "extremes"));
    BASIN_TRY(read_columns(r, &s->nodes, cJSON_GetObjectItemCaseSensitive(tree, "nodes")));
    BASIN_TRY(read_columns(r, &s->edges, edges));
    return read_names(r, &s->relation, cJSON_GetObjectItemCaseSensitive(edges, "relations"));
}

basin_status basin_schema_parse(basin_schema **schema, const char *json, const char *path,
                                basin_error *error) {
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    BASIN_AT_EXIT(free_at) basin_schema *s = NULL;
    *schema = NULL;
    BASIN_TRY(basin_json_parse(&tree, json, strlen(json), path, "the schema", error));
    BASIN_TRY(basin_schema_new(&s, error));
    BASIN_TRY(read_tree(&(reading){s, path, error}, tree));
    *schema = s, s = NULL;
    return BASIN_OK;
}

basin_status basin_schema_read(basin_schema **schema, const char *json, int64_t features,
                               const char *path, basin_error *error) {
    BASIN_TRY(basin_schema_parse(schema, json, path, error));
    if ((*schema)->features == features) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: the schema has %lld features, expected %lld",
                      path, (long long)(*schema)->features, (long long)features);
}

/* ---- values as people know them ---- */

bool basin_schema_has_dates(const basin_schema *schema) {
    for (size_t i = 0; i < schema->edges.columns; i++) {
        const basin_schema_column *c = &schema->edges.column[i];
        if (c->time && c->type == BASIN_COLUMN_DATE) return true;
    }
    return false;
}

void basin_time_print(char text[BASIN_TIME_TEXT], double time, bool date) {
    if (!date || !(time > -2e6 && time < 2932897)) { /* the year 10,000 */
        snprintf(text, BASIN_TIME_TEXT, "%g", time);
        return;
    }
    double whole = floor(time), seconds = floor((time - whole) * 86400e6 + 0.5) / 1e6;
    int minutes = (int)(seconds / 60);
    basin_day_print(text, (int64_t)whole * 86400);
    if (seconds > 0)
        snprintf(text + strlen(text), BASIN_TIME_TEXT - strlen(text), "T%02d:%02d:%0*.*f",
                 minutes / 60, minutes % 60, floor(seconds) < seconds ? 9 : 2,
                 floor(seconds) < seconds ? 6 : 0, seconds - 60 * minutes);
}

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
