/* Cells and columns of tables of nodes; see csv_column.h. */
#include "data/network/csv/column.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

/* ---- cells ---- */

bool basin_cell_missing(const char *text) {
    static const char *const word[] = {"", "na", "n/a", "nan", "null", "none", "?", NULL};
    for (const char *const *w = word; *w; w++)
        if (!strcasecmp(text, *w)) return true;
    return false;
}

bool basin_cell_number(double *value, const char *text) {
    char *end;
    while (isspace((unsigned char)*text)) text++;
    /* strtod also knows words and hexadecimals */
    if (!isdigit((unsigned char)*text) && *text != '-' && *text != '+' && *text != '.')
        return false;
    *value = strtod(text, &end);
    while (isspace((unsigned char)*end)) end++;
    return end != text && !*end && !strpbrk(text, "xXnN");
}

bool basin_cell_label(int32_t *label, const char *text) {
    static const struct {
        const char *text;
        int32_t label;
    } word[] = {{"true", 1}, {"yes", 1}, {"false", 0}, {"no", 0}, {"unknown", -1}};
    double value;
    if (basin_cell_missing(text)) {
        *label = -1;
        return true;
    }
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (!strcasecmp(text, word[i].text)) {
            *label = word[i].label;
            return true;
        }
    if (!basin_cell_number(&value, text) || value != floor(value) || value < -1 ||
        value > INT16_MAX)
        return false;
    *label = (int32_t)value;
    return true;
}

/* ---- columns ---- */

basin_status basin_column_see(basin_column *c, const basin_csv *csv, const char *text, int64_t most,
                              basin_error *error) {
    double value;
    int32_t number;
    if (!c->feature || basin_cell_missing(text)) return BASIN_OK;
    if (basin_cell_number(&value, text)) {
        c->numbers++;
    } else if (c->texts++ == 0) {
        c->text_line = csv->line;
        snprintf(c->text, sizeof c->text, "%.*s", (int)sizeof c->text - 1, text);
    }
    if (c->many) return BASIN_OK;
    basin_status status = basin_dictionary_add(&c->category, &number, text, error);
    if (!status && c->category.names.names.count > most) c->many = true;
    return status;
}

static int compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Categories in alphabetical order, so that the order of rows does not matter. */
static basin_status rank_categories(basin_column *c, basin_names_builder *names, const char *title,
                                    const char *path, basin_error *error) {
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
        char name[300];
        int length = snprintf(name, sizeof name, "%.140s=%.140s", title, sorted[i]);
        c->rank[basin_dictionary_find(&c->category, sorted[i])] = (int32_t)i;
        status = basin_names_add(names, name, (size_t)length, error);
    }
    free(sorted);
    return status;
}

basin_status basin_column_settle(basin_column *c, basin_names_builder *names, const char *title,
                                 const char *path, basin_error *error) {
    c->first = names->names.count;
    if (c->numbers > c->texts && c->texts)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: line %" PRId64 ": column '%s' holds '%s', wanted a number as in the "
                          "other rows (or leave the column out with drop)",
                          path, c->text_line, title, c->text);
    if (!c->feature || (!c->numbers && !c->texts)) return BASIN_OK;
    if (!c->texts) {
        c->kind = BASIN_COLUMN_NUMBER;
        return basin_names_add(names, title, strlen(title), error);
    }
    if (c->many) return BASIN_OK;
    c->kind = BASIN_COLUMN_TEXT;
    return rank_categories(c, names, title, path, error);
}

void basin_column_fill(float *x, const basin_column *c, const char *text) {
    double value;
    if (c->kind == BASIN_COLUMN_NUMBER && !basin_cell_missing(text) &&
        basin_cell_number(&value, text))
        x[c->first] = (float)value;
    if (c->kind != BASIN_COLUMN_TEXT) return;
    int64_t count = c->category.names.names.count;
    for (int64_t k = 0; k < count; k++) x[c->first + k] = 0;
    int32_t at = basin_cell_missing(text) ? -1 : basin_dictionary_find(&c->category, text);
    if (at >= 0) x[c->first + c->rank[at]] = 1;
}

void basin_column_free(basin_column *column) {
    basin_dictionary_free(&column->category);
    free(column->rank);
}
