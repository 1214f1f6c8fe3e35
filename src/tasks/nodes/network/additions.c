/* Additions in JSON as tables; see journal.h. */
#include "base/clock.h"
#include "tasks/common/table/table.h"
#include "tasks/nodes/network/journal.h"

/* Larger numbers overflow in sums and squares of floats. */
#define MAX_NUMBER 1e19

static const char *const kinds[] = {"accounts", "edges"};
static const char *const usual[2][2] = {{"id", "id"}, {"source", "target"}};
static const basin_column_type role[2][2] = {{BASIN_COLUMN_ID, BASIN_COLUMN_ID},
                                             {BASIN_COLUMN_SOURCE, BASIN_COLUMN_TARGET}};

/* Where a row is, for errors, and what its values go by. */
typedef struct place {
    const char *path;
    int kind;
    long long row;
    const basin_schema *schema;
    const basin_schema_table *table;
    const char *date_format;
    const basin_door *door;
    FILE *file;
} place;

static place place_of(basin_additions *a, int kind, const char *path) {
    const basin_schema *s = a->schema;
    bool other = kind && s->edge_date_format;
    return (place){.path = path,
                   .kind = kind,
                   .schema = s,
                   .table = kind ? &s->edges : &s->nodes,
                   .date_format = other ? s->edge_date_format : s->date_format,
                   .door = a->door,
                   .file = a->file[kind].file};
}

static basin_status refuse(const place *at, basin_status status, const char *column,
                           const char *why, basin_error *error) {
    return basin_fail(error, status, "%s: %s[%lld]: column '%.100s' %s", at->path, kinds[at->kind],
                      at->row, column, why);
}

static const cJSON *get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* ---- values ---- */

static void put_quoted(FILE *file, const char *text) {
    fputc('"', file);
    for (; *text; text++) fputs(*text == '"' ? "\"\"" : (char[]){*text, 0}, file);
    fputc('"', file);
}

/* The text of a value that is not a number by its column; "" is a gap. Digits of ids are kept. */
static basin_status text_of(const char **text, char number[BASIN_NUMBER_TEXT], const place *at,
                            const cJSON *value, basin_error *error) {
    double x = cJSON_IsNumber(value) ? value->valuedouble : 0;
    *text = "";
    if (cJSON_IsArray(value) || cJSON_IsObject(value))
        return refuse(at, BASIN_BAD_FILE, value->string,
                      "is a list or an object, needs a string or a number", error);
    if (!(fabs(x) <= 9007199254740992.0) && (isinf(x) || floor(x) == x))
        return refuse(at, BASIN_BAD_VALUE, value->string,
                      "has more digits than JSON's numbers keep, needs a string", error);
    if (!value || cJSON_IsNull(value)) return BASIN_OK;
    *text = cJSON_IsString(value)  ? value->valuestring
            : cJSON_IsTrue(value)  ? "true"
            : cJSON_IsFalse(value) ? "false"
                                   : basin_number_print(number, x);
    return BASIN_OK;
}

/* A text is a number by the decimal mark that it allows. Where it allows both, a record of format 1
 * has the base's, and a new one is refused. */
static basin_status number_of(double *x, const place *at, const basin_schema_column *column,
                              const cJSON *value, basin_error *error) {
    basin_written w = {.valid = {true, true}};
    char why[200];
    *x = w.value[0] = w.value[1] = value->valuedouble;
    if (cJSON_IsString(value) && !basin_cell_written(&w, value->valuestring)) w.valid[0] = false;
    snprintf(why, sizeof why, "holds '%.60s', expected a number",
             cJSON_IsString(value) ? value->valuestring : "true or false");
    if (cJSON_IsBool(value) || (!w.valid[0] && !w.valid[1]))
        return refuse(at, BASIN_BAD_VALUE, column->name, why, error);
    bool both = w.valid[0] && w.valid[1], comma = both ? column->comma : w.valid[1];
    *x = w.value[comma];
    snprintf(why, sizeof why, "holds '%.60s', which is %.9g or %.9g; expected a JSON number",
             cJSON_IsString(value) ? value->valuestring : "", w.value[0], w.value[1]);
    if (at->door && both && w.value[0] != w.value[1])
        return refuse(at, BASIN_BAD_VALUE, column->name, why, error);
    if (at->door && !(fabs(*x) <= MAX_NUMBER))
        return refuse(at, BASIN_BAD_VALUE, column->name,
                      "is too large: sums of it would overflow; expected at most 1e19", error);
    return BASIN_OK;
}

static basin_status replace(cJSON *object, const char *key, cJSON *by, basin_error *error) {
    if (by && cJSON_ReplaceItemInObjectCaseSensitive(object, key, by)) return BASIN_OK;
    cJSON_Delete(by);
    return basin_fail_memory(error, "an addition");
}

static basin_status put_number(const place *at, const basin_schema_column *column, cJSON *object,
                               const cJSON *value, basin_error *error) {
    char text[BASIN_NUMBER_TEXT];
    double x;
    BASIN_TRY(number_of(&x, at, column, value, error));
    if (cJSON_IsString(value))
        BASIN_TRY(replace(object, value->string, cJSON_CreateNumber(x), error));
    fputs(basin_number_print(text, x), at->file);
    return BASIN_OK;
}

/* Dates are in the base's format, ISO 8601, or seconds since 1970. */
static basin_status put_date(const place *at, const char *text, cJSON *object, const char *key,
                             basin_error *error) {
    char day[BASIN_TIME_TEXT], last[BASIN_TIME_TEXT], why[200];
    double days;
    bool format = at->date_format && basin_cell_date(&days, text, at->date_format);
    snprintf(why, sizeof why, "holds '%.60s', expected a date", text);
    if (!format && !basin_cell_date(&days, text, NULL) && !basin_cell_epoch(&days, text))
        return refuse(at, BASIN_BAD_VALUE, key, why, error);
    if (at->door && days > at->door->latest) {
        basin_time_print(last, at->door->latest, true);
        snprintf(why, sizeof why, "is '%.60s', in the future; expected at most %s", text, last);
        return refuse(at, BASIN_BAD_VALUE, key, why, error);
    }
    if (format || strpbrk(text, ",\"\r\n")) {
        basin_time_print(day, days, true);
        fputs(day, at->file);
        return replace(object, key, cJSON_CreateString(day), error);
    }
    fputs(text, at->file);
    return BASIN_OK;
}

/* A value that the base does not have, of a category or a relation; a label of no class. */
static basin_status check_kind(const place *at, const basin_schema_column *c, const char *text,
                               basin_error *error) {
    const basin_names *known = c->type == BASIN_COLUMN_RELATION ? &at->schema->relation : &c->value;
    bool asked = c->type == BASIN_COLUMN_CATEGORY || c->type == BASIN_COLUMN_RELATION;
    char why[200];
    int32_t label;
    snprintf(why, sizeof why, "holds '%.60s', expected 0 or 1", text);
    if (at->door && c->type == BASIN_COLUMN_LABEL && basin_cell_label(&label, text) && label > 1)
        return refuse(at, BASIN_BAD_VALUE, c->name, why, error);
    if (!at->door || at->door->any_kind || !asked || !known->count) return BASIN_OK;
    if (basin_cell_missing(text) || basin_names_find(known, text) >= 0) return BASIN_OK;
    snprintf(why, sizeof why, "holds '%.60s', which is not one of the %lld values of the base",
             text, (long long)known->count);
    return refuse(at, BASIN_BAD_VALUE, c->name, why, error);
}

static basin_status put_value(const place *at, const basin_schema_column *c, cJSON *object,
                              const cJSON *value, basin_error *error) {
    char number[BASIN_NUMBER_TEXT];
    const char *text = "";
    bool numbers = c->type == BASIN_COLUMN_NUMBER && cJSON_IsNumber(value);
    if (!numbers) BASIN_TRY(text_of(&text, number, at, value, error));
    if (!numbers && !*text) return BASIN_OK;
    if (c->type != BASIN_COLUMN_NUMBER && c->type != BASIN_COLUMN_DATE) {
        BASIN_TRY(check_kind(at, c, text, error));
        put_quoted(at->file, text);
        return BASIN_OK;
    }
    if (!numbers && basin_cell_missing(text)) return BASIN_OK;
    return c->type == BASIN_COLUMN_DATE ? put_date(at, text, object, value->string, error)
                                        : put_number(at, c, object, value, error);
}

/* ---- rows ---- */

/* A key of the object that is not a column, or is there twice. */
static basin_status refuse_key(const place *at, const cJSON *object, basin_error *error) {
    const char *last = "";
    for (const cJSON *key = object->child; key; key = key->next) {
        size_t c = 0;
        last = key->string;
        while (c < at->table->columns && strcmp(at->table->column[c].name, last) != 0) c++;
        if (c == at->table->columns && strcmp(last, usual[at->kind][0]) != 0 &&
            strcmp(last, usual[at->kind][1]) != 0)
            return refuse(at, BASIN_BAD_FILE, last, "is not a column of the base", error);
        if (get(object, last) != key) break;
    }
    return refuse(at, BASIN_BAD_FILE, last, "is there twice", error);
}

/* The name of the id, or of an end. */
static const char *end_name(const place *at, int end) {
    for (size_t c = 0; c < at->table->columns; c++)
        if (at->table->column[c].type == role[at->kind][end]) return at->table->column[c].name;
    return usual[at->kind][end];
}

static bool is_end(const place *at, const basin_schema_column *c) {
    return c->type == role[at->kind][0] || c->type == role[at->kind][1];
}

static void put_heading(const place *at) {
    for (int end = 0; end <= at->kind; end++) {
        if (end) fputc(',', at->file);
        put_quoted(at->file, end_name(at, end));
    }
    for (size_t i = 0; i < at->table->columns; i++) {
        const basin_schema_column *c = &at->table->column[i];
        if (is_end(at, c) || c->type == BASIN_COLUMN_DROPPED) continue;
        fputc(',', at->file);
        put_quoted(at->file, c->name);
    }
    fputc('\n', at->file);
}

static basin_status put_row(const place *at, cJSON *object, basin_error *error) {
    int found = 0;
    for (int end = 0; end <= at->kind; end++, found++) {
        char number[BASIN_NUMBER_TEXT];
        const char *text;
        const cJSON *value = get(object, usual[at->kind][end]);
        if (!value) value = get(object, end_name(at, end));
        if (end) fputc(',', at->file);
        if (at->door && (cJSON_IsNumber(value) || cJSON_IsBool(value)))
            return refuse(at, BASIN_BAD_FILE, value->string, "is an id, expected a string", error);
        BASIN_TRY(text_of(&text, number, at, value, error));
        if (!*text)
            return refuse(at, BASIN_BAD_FILE, end_name(at, end), "is absent or empty", error);
        put_quoted(at->file, text);
    }
    for (size_t i = 0; i < at->table->columns; i++) {
        const basin_schema_column *c = &at->table->column[i];
        const cJSON *value = is_end(at, c) ? NULL : get(object, c->name);
        found += value != NULL;
        if (is_end(at, c) || c->type == BASIN_COLUMN_DROPPED) continue;
        fputc(',', at->file);
        BASIN_TRY(put_value(at, c, object, value, error));
    }
    fputc('\n', at->file);
    return found != cJSON_GetArraySize(object) ? refuse_key(at, object, error) : BASIN_OK;
}

static basin_status begin_table(basin_additions *a, int kind, basin_error *error) {
    if (!basin_memory_file_open(&a->file[kind])) return basin_fail_memory(error, "additions");
    place at = place_of(a, kind, "");
    put_heading(&at);
    return BASIN_OK;
}

basin_status basin_additions_put(basin_additions *a, cJSON *tree, const char *path,
                                 basin_error *error) {
    int64_t before = a->rows[0] + a->rows[1];
    for (cJSON *list = tree->child; list; list = list->next) {
        int kind = !strcmp(list->string, kinds[1]);
        if (get(tree, kinds[kind]) != list || !cJSON_IsArray(list))
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: key '%.100s', needs \"accounts\" and \"edges\", each once and "
                              "an array of objects",
                              path, list->string);
        if (!a->file[kind].file && list->child) BASIN_TRY(begin_table(a, kind, error));
        place at = place_of(a, kind, path);
        for (cJSON *object = list->child; object; object = object->next, at.row++) {
            if (!cJSON_IsObject(object))
                return basin_fail(error, BASIN_BAD_FILE, "%s: %s[%lld] is not an object", path,
                                  kinds[kind], at.row);
            BASIN_TRY(put_row(&at, object, error));
            a->rows[kind]++;
        }
    }
    if (a->rows[0] + a->rows[1] > before) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: nothing to add, needs \"accounts\" or \"edges\" with an entry", path);
}

basin_status basin_additions_put_none(basin_additions *a, basin_error *error) {
    return a->rows[0] || a->rows[1] ? BASIN_OK : begin_table(a, 1, error);
}

basin_status basin_additions_finish(basin_additions *a, basin_error *error) {
    for (int kind = 0; kind < 2; kind++) {
        if (!a->file[kind].file) continue;
        a->table[kind] = basin_memory_file_close(&a->file[kind]);
        a->file[kind].file = NULL;
        if (!a->table[kind]) return basin_fail_memory(error, "additions");
    }
    return BASIN_OK;
}

void basin_additions_free(basin_additions *a) {
    basin_error error;
    while (basin_additions_finish(a, &error)) {}
    BASIN_FREE(a->table[0], a->table[1]);
}
