/* Columns of tables of nodes; see column.h. */
#define _GNU_SOURCE /* strcasestr */
#include "data/network/csv/column.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/memory.h"

/* ---- seeing ---- */

basin_status basin_column_know(basin_column *c, const basin_schema_column *known,
                               basin_error *error) {
    basin_status status = BASIN_OK;
    int32_t number;
    c->known = c->feature = true;
    c->type = known->type;
    c->comma = known->comma;
    c->first = known->first;
    for (int64_t i = 0; i < known->value.count && !status; i++)
        status = basin_dictionary_add(&c->category, &number, known->value.text + known->value.at[i],
                                      error);
    return status;
}

static void see_reading(basin_reading *r, bool can, double value, const basin_table_rows *rows,
                        const char *text) {
    if (can) {
        bool finite = isfinite((float)value);
        r->cells++;
        r->finite += finite;
        if (finite) r->sum += value;
    } else if (!r->odd_line) {
        r->odd_line = rows->line;
        snprintf(r->odd, sizeof r->odd, "%.*s", (int)sizeof r->odd - 1, text);
    }
}

/* A format is one more way to write dates: a table may have it in one column and ISO 8601 in
 * another. */
static bool read_day(double *days, const char *text, const char *format) {
    return basin_cell_date(days, text, format) || (format && basin_cell_date(days, text, NULL));
}

/* A date of the column's kind, whether the schema or the cells decided it. */
static bool read_date(double *days, const char *text, const char *format) {
    return read_day(days, text, format) || basin_cell_epoch(days, text);
}

static bool read_number(double *value, unsigned *marks, bool comma, const char *text) {
    basin_written w;
    if (!comma && basin_cell_number(value, text)) return true;
    if (!basin_cell_written(&w, text) || !w.valid[comma]) return false;
    *value = w.value[comma];
    *marks |= w.marks;
    return true;
}

/* A cell of a column whose type is known. */
static basin_status see_known(basin_column *c, const basin_table_rows *rows, const char *text,
                              const basin_column_rules *rules, basin_error *error) {
    double value;
    bool good = true;
    if (c->type == BASIN_COLUMN_CATEGORY && basin_dictionary_find(&c->category, text) < 0) {
        if (c->other++ == 0) snprintf(c->unseen, sizeof c->unseen, "%.39s", text);
    }
    if (c->type == BASIN_COLUMN_NUMBER) good = read_number(&value, &c->marks, c->comma, text);
    if (c->type == BASIN_COLUMN_DATE) good = read_date(&value, text, rules->date_format);
    if (good) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: line %" PRId64 ": column '%s' holds '%.40s', wanted a %s as in training",
                      rows->path, rows->line, c->name, text, basin_column_type_name(c->type));
}

/* Whether all cells before this one could be read so; one that could not decides it. */
static bool still(const basin_column *c, int reading) {
    return c->as[reading].cells == c->cells - 1;
}

static void see_written(basin_column *c, const basin_table_rows *rows, const char *text) {
    basin_written w;
    (void)basin_cell_written(&w, text);
    for (int d = 0; d < BASIN_DECIMALS; d++)
        see_reading(&c->as[BASIN_AS_POINT + d], w.valid[d], w.value[d], rows, text);
    c->marks |= w.marks;
    if (c->currency && w.currency && strcmp(c->currency, w.currency) != 0) c->currencies = true;
    if (w.currency) c->currency = w.currency;
}

/* A plain number is no other where a cell before it ruled that out: most cells end there. */
static void see_readings(basin_column *c, const basin_table_rows *rows, const char *text,
                         const char *date_format) {
    double value = 0, days = 0;
    bool plain = basin_cell_number(&value, text);
    if (plain && !still(c, BASIN_AS_COMMA))
        see_reading(&c->as[BASIN_AS_POINT], true, value, rows, text);
    else
        see_written(c, rows, text);
    if (still(c, BASIN_AS_EPOCH))
        see_reading(&c->as[BASIN_AS_EPOCH], basin_cell_epoch(&days, text), days, rows, text);
    bool date =
        (!plain || (date_format && still(c, BASIN_AS_DATE))) && read_day(&days, text, date_format);
    see_reading(&c->as[BASIN_AS_DATE], date, days, rows, text);
}

basin_status basin_column_see(basin_column *c, const basin_table_rows *rows, const char *text,
                              const basin_column_rules *rules, basin_error *error) {
    int32_t number;
    if (!c->feature || basin_cell_missing(text)) return BASIN_OK;
    c->cells++;
    if (c->known) return see_known(c, rows, text, rules, error);
    see_readings(c, rows, text, rules->date_format);
    if (c->many) return BASIN_OK;
    basin_status status = basin_dictionary_add(&c->category, &number, text, error);
    if (!status && c->category.names.names.count > rules->most) c->many = true;
    return status;
}

/* ---- settling ---- */

static int compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Categories in alphabetical order, so that the order of rows does not matter. */
static basin_status rank_categories(basin_column *c, basin_names_builder *names, const char *path,
                                    basin_error *error) {
    size_t count = (size_t)c->category.names.names.count;
    const char **sorted = basin_array_new(count, sizeof *sorted);
    c->rank = basin_array_new(count, sizeof *c->rank);
    basin_status status = sorted && c->rank
                              ? BASIN_OK
                              : basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", path);
    for (size_t i = 0; i < count && !status; i++)
        sorted[i] = c->category.names.names.text + c->category.names.names.at[i];
    if (!status) qsort(sorted, count, sizeof *sorted, compare);
    for (size_t i = 0; i < count && !status; i++) {
        c->rank[basin_dictionary_find(&c->category, sorted[i])] = (int32_t)i;
        status = basin_names_add(names, sorted[i], strlen(sorted[i]), error);
    }
    free(sorted);
    return status;
}

/* Names that people give to times. */
bool basin_column_sounds_like_time(const char *name) {
    size_t length = strlen(name);
    const char *end = name + (length < 3 ? length : length - 3);
    return strcasestr(name, "time") || strcasestr(name, "date") || !strcasecmp(end, "_at") ||
           !strcasecmp(end, "_ts") || !strcasecmp(name, "ts");
}

/* The reading that all cells allow, the plainest first; -1: none. */
static int common_reading(const basin_column *c, const basin_column_rules *rules) {
    bool all[BASIN_READINGS];
    for (int r = 0; r < BASIN_READINGS; r++) all[r] = c->as[r].cells == c->cells;
    if (rules->date_format && all[BASIN_AS_DATE]) return BASIN_AS_DATE;
    if (all[BASIN_AS_EPOCH] && basin_column_sounds_like_time(c->name)) return BASIN_AS_EPOCH;
    for (int r = 0; r < BASIN_AS_EPOCH; r++)
        if (all[r]) return r;
    return -1;
}

/* A column that is mostly numbers, or dates, and has something else in it is a mistake. */
static basin_status check_odd(const basin_column *c, const char *path, basin_error *error) {
    static const char *const wanted[] = {"a number", "a number", "a date"};
    int most = BASIN_AS_POINT;
    for (int r = BASIN_AS_COMMA; r <= BASIN_AS_DATE; r++)
        if (c->as[r].cells > c->as[most].cells) most = r;
    const basin_reading *r = &c->as[most];
    if (2 * r->cells <= c->cells) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: line %" PRId64 ": column '%s' holds '%s', wanted %s as in the other "
                      "rows (or leave the column out with drop)",
                      path, r->odd_line, c->name, r->odd, wanted[most]);
}

static basin_status settle_type(basin_column *c, basin_schema_column *to, const char *path,
                                const basin_column_rules *rules, basin_error *error) {
    int reading = c->feature && c->cells ? common_reading(c, rules) : -1;
    if (!c->feature || !c->cells) return BASIN_OK;
    if (reading < 0) {
        basin_names_builder names = {0};
        basin_status status = check_odd(c, path, error);
        if (status || c->many) return status;
        c->type = to->type = BASIN_COLUMN_CATEGORY;
        status = rank_categories(c, &names, path, error);
        to->value = names.names;
        return status;
    }
    bool date = reading == BASIN_AS_DATE || reading == BASIN_AS_EPOCH;
    c->type = to->type = date ? BASIN_COLUMN_DATE : BASIN_COLUMN_NUMBER;
    c->epoch = reading == BASIN_AS_EPOCH;
    c->comma = to->comma = reading == BASIN_AS_COMMA;
    const basin_reading *r = &c->as[reading];
    to->mean = r->finite ? r->sum / (double)r->finite : 0;
    return BASIN_OK;
}

basin_status basin_column_settle(basin_column *c, basin_schema *schema, basin_schema_table *table,
                                 const char *path, const basin_column_rules *rules,
                                 basin_error *error) {
    basin_schema_column to = {.name = (char *)(uintptr_t)c->name, .type = c->type, .mean = NAN};
    basin_status status = settle_type(c, &to, path, rules, error);
    if (!status) status = basin_schema_add(schema, table, &to, error);
    if (!status) c->first = table->column[table->columns - 1].first;
    basin_names_free(&to.value);
    return status;
}

/* ---- filling ---- */

bool basin_column_read(double *value, const basin_column *c, const char *text,
                       const basin_column_rules *rules) {
    unsigned marks = 0;
    if (basin_cell_missing(text)) return false;
    if (c->type == BASIN_COLUMN_DATE) return read_date(value, text, rules->date_format);
    return c->type == BASIN_COLUMN_NUMBER && read_number(value, &marks, c->comma, text);
}

void basin_column_fill(float *x, const basin_column *c, const char *text,
                       const basin_column_rules *rules) {
    double value;
    if (!basin_column_is_feature(c->type)) return;
    if (c->type == BASIN_COLUMN_CATEGORY) {
        int32_t at = basin_dictionary_find(&c->category, text);
        if (at >= 0) x[c->first + (c->rank ? c->rank[at] : at)] = 1;
    } else if (basin_column_read(&value, c, text, rules)) {
        x[c->first] = (float)value;
    }
}

void basin_column_free(basin_column *column) {
    basin_dictionary_free(&column->category);
    free(column->rank);
}
