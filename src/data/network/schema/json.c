/* A schema as JSON, as model files and networks carry it; docs/formats.md has the form. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/network/schema/schema.h"
#include "io/file.h"
#include "io/json.h"
#include "io/json_writer.h"

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
    basin_json_object(&json, "nodes");
    put_columns(&json, &schema->nodes);
    basin_json_end(&json);
    basin_json_object(&json, "edges");
    put_names(&json, "relations", &schema->relation);
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
    basin_names_builder builder = {0};
    basin_status status = BASIN_OK;
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        const char *text = cJSON_GetStringValue(item);
        if (status) break;
        status = text ? basin_names_add(&builder, text, strlen(text), r->error)
                      : wrong(r, "a name that is no text");
    }
    *names = builder.names;
    return status;
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
    const char *name = text_of(item, "name"), *decimal = text_of(item, "decimal");
    const cJSON *mean = cJSON_GetObjectItemCaseSensitive(item, "mean");
    basin_schema_column c = {.mean = cJSON_IsNumber(mean) ? mean->valuedouble : NAN,
                             .comma = decimal && !strcmp(decimal, ","),
                             .time = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "time"))};
    if (!name) return wrong(r, "a column without a name");
    basin_status status = read_type(r, &c.type, item);
    if (!status && c.type == BASIN_COLUMN_CATEGORY)
        status = read_names(r, &c.value, cJSON_GetObjectItemCaseSensitive(item, "values"));
    c.name = basin_string_copy(name);
    if (!status && !c.name) status = basin_fail(r->error, BASIN_NO_MEMORY, "out of memory");
    if (!status) status = basin_schema_add(r->schema, table, &c, r->error);
    free(c.name);
    basin_names_free(&c.value);
    return status;
}

static basin_status read_columns(const reading *r, basin_schema_table *table,
                                 const cJSON *section) {
    basin_status status = BASIN_OK;
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(section, "columns")) {
        if (!status) status = read_column(r, table, item);
    }
    return status;
}

static basin_status read_tree(const reading *r, const cJSON *tree) {
    basin_schema *s = r->schema;
    int missing = 0, unknown = 0;
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(tree, "version");
    const cJSON *edges = cJSON_GetObjectItemCaseSensitive(tree, "edges");
    const char *format = text_of(tree, "date_format");
    if (!cJSON_IsNumber(version) || version->valuedouble != VERSION)
        return wrong(r, "another version than 1; is Basin older than the file?");
    s->named = !cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(tree, "named"));
    s->directed = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(tree, "directed"));
    if (format && !(s->date_format = basin_string_copy(format)))
        return basin_fail(r->error, BASIN_NO_MEMORY, "out of memory for a schema");
    basin_status status = read_choice(r, &missing, tree, "missing", missing_name);
    if (!status) status = read_choice(r, &unknown, tree, "unknown", unknown_name);
    s->missing = (basin_missing)missing;
    s->unknown = (basin_unknown)unknown;
    if (!status)
        status = read_columns(r, &s->nodes, cJSON_GetObjectItemCaseSensitive(tree, "nodes"));
    if (!status) status = read_columns(r, &s->edges, edges);
    if (!status)
        status = read_names(r, &s->relation, cJSON_GetObjectItemCaseSensitive(edges, "relations"));
    return status;
}

basin_status basin_schema_parse(basin_schema **schema, const char *json, const char *path,
                                basin_error *error) {
    cJSON *tree = NULL;
    *schema = NULL;
    basin_status status = basin_json_parse(&tree, json, strlen(json), path, "the schema", error);
    if (!status) status = basin_schema_new(schema, error);
    if (!status) status = read_tree(&(reading){*schema, path, error}, tree);
    cJSON_Delete(tree);
    if (!status) return BASIN_OK;
    basin_schema_free(*schema);
    *schema = NULL;
    return status;
}
