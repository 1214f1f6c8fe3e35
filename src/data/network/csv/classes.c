/* Labels that are classes by any name; see table.h. Numbers are numbered as numbers, so that
 * classes 0, 1, .. keep their places; -1 and an empty cell are no class. Those of a network that
 * tables add to come first. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/csv/table.h"

static bool is_none(const char *text) {
    double value;
    return basin_cell_missing(text) || (basin_cell_number(&value, text) && value == -1);
}

basin_status basin_tables_see_class(basin_tables *j, const char *text) {
    int32_t number;
    return is_none(text) ? BASIN_OK : basin_dictionary_add(&j->class_name, &number, text, j->error);
}

int32_t basin_tables_class(const basin_tables *j, const char *text) {
    return is_none(text) ? -1 : basin_dictionary_find(&j->class_name, text);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_number(const void *a, const void *b) {
    double x = 0, y = 0;
    (void)basin_cell_number(&x, *(const char *const *)a);
    (void)basin_cell_number(&y, *(const char *const *)b);
    return x != y ? (x > y) - (x < y) : by_text(a, b);
}

static bool are_numbers(const char *const *name, int64_t count) {
    double value;
    for (int64_t i = 0; i < count; i++)
        if (!basin_cell_number(&value, name[i])) return false;
    return true;
}

/* The names that a network to add to has, as many as its labels where they go by number. */
static basin_status begin(basin_dictionary *sorted, const basin_network *base, basin_error *error) {
    int64_t count = base ? basin_network_greatest_label(base) + 1 : 0;
    basin_status status = BASIN_OK;
    if (base && base->class_name.count > count) count = base->class_name.count;
    for (int64_t i = 0; i < count && !status; i++) {
        char text[BASIN_NODE_TEXT];
        int32_t number;
        status = basin_dictionary_add(sorted, &number, basin_network_class(base, (int32_t)i, text),
                                      error);
    }
    return status;
}

basin_status basin_tables_number_classes(basin_tables *j) {
    const basin_names *names = &j->class_name.names.names;
    basin_dictionary sorted = {0};
    const char **name = basin_array_new((size_t)names->count, sizeof *name);
    if (!name) return basin_tables_no_memory(j, j->table[0].source->path);
    for (int64_t i = 0; i < names->count; i++) name[i] = names->text + names->at[i];
    bool numbers = are_numbers(name, names->count);
    qsort(name, (size_t)names->count, sizeof *name, numbers ? by_number : by_text);
    const basin_network *base = j->o->base;
    bool named = base && (j->o->classes || base->class_name.count);
    basin_status status = begin(&sorted, named ? base : NULL, j->error);
    for (int64_t i = 0; i < names->count && !status; i++) {
        int32_t number;
        status = basin_dictionary_add(&sorted, &number, name[i], j->error);
    }
    free(name);
    basin_dictionary_free(&j->class_name);
    j->class_name = sorted;
    return status;
}
