/* Tables of nodes, read twice: first every cell is seen, to learn what columns are, then features,
 * labels and splits are filled. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/sort.h"
#include "base/try.h"
#include "data/network/csv/table.h"

/* ---- labels that are classes by any name ---- */

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

static int by_number(const void *a, const void *b) {
    double x = 0, y = 0;
    (void)basin_cell_number(&x, *(const char *const *)a);
    (void)basin_cell_number(&y, *(const char *const *)b);
    return x != y ? (x > y) - (x < y) : basin_compare_text(a, b);
}

static bool are_numbers(const char *const *name, int64_t count) {
    double value;
    for (int64_t i = 0; i < count; i++)
        if (!basin_cell_number(&value, name[i])) return false;
    return true;
}

/* The names that a network to add to has, as many as its labels where they go by number. */
static basin_status begin_classes(basin_dictionary *sorted, const basin_network *base,
                                  basin_error *error) {
    int64_t count = base ? basin_network_greatest_label(base) + 1 : 0;
    if (base && base->class_name.count > count) count = base->class_name.count;
    for (int64_t i = 0; i < count; i++) {
        char text[BASIN_NODE_TEXT];
        int32_t number;
        BASIN_TRY(basin_dictionary_add(sorted, &number, basin_network_class(base, (int32_t)i, text),
                                       error));
    }
    return BASIN_OK;
}

basin_status basin_tables_number_classes(basin_tables *j) {
    const basin_names *names = &j->class_name.names.names;
    basin_dictionary sorted = {0};
    const char **name = basin_array_new((size_t)names->count, sizeof *name);
    if (!name) return basin_tables_no_memory(j, j->table[0].source->path);
    for (int64_t i = 0; i < names->count; i++) name[i] = names->text + names->at[i];
    bool numbers = are_numbers(name, names->count);
    qsort(name, (size_t)names->count, sizeof *name, numbers ? by_number : basin_compare_text);
    const basin_network *base = j->o->base;
    bool named = base && (j->o->classes || base->class_name.count);
    basin_status status = begin_classes(&sorted, named ? base : NULL, j->error);
    for (int64_t i = 0; i < names->count && !status; i++) {
        int32_t number;
        status = basin_dictionary_add(&sorted, &number, name[i], j->error);
    }
    free(name);
    basin_dictionary_free(&j->class_name);
    j->class_name = sorted;
    return status;
}

/* ---- the first pass ---- */

/* ---- the first pass ---- */

static basin_status see_node(basin_tables *j, int t, const basin_table_rows *rows) {
    int32_t node;
    basin_table_file *table = &j->table[t];
    const char *id = basin_table_rows_field(rows, (size_t)table->id);
    if (!*id)
        return basin_fail(j->error, BASIN_BAD_FILE,
                          "%s: line %" PRId64 ": column '%s' is empty, wanted the id of a node",
                          rows->path, rows->line, rows->name[table->id]);
    BASIN_TRY(basin_dictionary_add(&j->id, &node, id, j->error));
    if (node < j->base_nodes)
        return basin_fail(j->error, BASIN_BAD_FILE,
                          "%s: line %" PRId64 ": node '%s' is in %s already", rows->path,
                          rows->line, id, j->o->base->path);
    size_t had = j->seen_capacity;
    if (!basin_array_reserve((void **)&j->seen, &j->seen_capacity, (size_t)node + 1,
                             sizeof *j->seen))
        return basin_tables_no_memory(j, rows->path);
    memset(j->seen + had, 0, (j->seen_capacity - had) * sizeof *j->seen);
    if (j->seen[node] == t + 1)
        return basin_fail(j->error, BASIN_BAD_FILE,
                          "%s: line %" PRId64 ": node '%s' for the "
                          "second time",
                          rows->path, rows->line, id);
    j->seen[node] = t + 1;
    for (size_t i = 0; i < table->columns; i++)
        BASIN_TRY(basin_column_see(&table->column[i], rows, basin_table_rows_field(rows, i),
                                   &j->rules, j->error));
    if (table->label >= 0 && j->o->classes)
        BASIN_TRY(basin_tables_see_class(j, basin_table_rows_trimmed(rows, (size_t)table->label)));
    return basin_tables_check_room(j, rows->path);
}

static basin_status see_table(basin_tables *j, int t) {
    basin_table_rows rows;
    bool more = true;
    basin_status status = basin_table_rows_open(&rows, j->table[t].source, j->error);
    if (status) return status;
    while (more && !status) {
        status = basin_table_rows_next(&rows, &more, j->error);
        if (!status && more) status = see_node(j, t, &rows);
    }
    j->table[t].latin = rows.latin;
    basin_table_rows_close(&rows);
    return status;
}

basin_status basin_tables_see_nodes(basin_tables *j) {
    for (int t = 0; t < j->tables; t++)
        if (!j->table[t].edges) BASIN_TRY(see_table(j, t));
    return BASIN_OK;
}

/* ---- what columns become ---- */

basin_status basin_tables_settle(basin_tables *j) {
    if (j->known && j->known->named) return basin_schema_copy(&j->schema, j->known, j->error);
    BASIN_TRY(basin_schema_new(&j->schema, j->error));
    j->schema->directed = j->o->directed;
    if (j->o->missing != BASIN_MISSING_KEEP) j->schema->missing = j->o->missing;
    j->schema->unknown = j->o->unknown;
    if (j->o->date_format && !(j->schema->date_format = basin_string_copy(j->o->date_format)))
        return basin_tables_no_memory(j, j->table[0].source->path);
    for (int t = 0; t < j->tables; t++) {
        basin_table_file *table = &j->table[t];
        for (size_t i = 0; !table->edges && i < table->columns; i++)
            BASIN_TRY(basin_column_settle(&table->column[i], j->schema, &j->schema->nodes,
                                          table->source->path, &j->rules, j->error));
    }
    return basin_tables_settle_facts(j);
}

/* ---- the second pass ---- */

static basin_status alloc_labels(basin_tables *j, bool labels, bool masks) {
    basin_network *n = j->network;
    size_t nodes = (size_t)n->nodes;
    if (labels) {
        BASIN_TRY(BASIN_NEW_RAW(&n->label, nodes, "a network", j->error));
        for (size_t i = 0; i < nodes; i++) n->label[i] = -1;
    }
    if (masks) {
        n->splits = 1;
        n->train = calloc(nodes, 1);
        n->val = calloc(nodes, 1);
        n->test = calloc(nodes, 1);
        if (!n->train || !n->val || !n->test) return basin_tables_no_memory(j, n->path);
    }
    return BASIN_OK;
}

/* Numbers are gaps until a row fills them; a category that no row names is none of its values. */
static void empty_rows(float *x, const basin_schema *s, int64_t nodes) {
    for (size_t i = 0; i < s->nodes.columns; i++) {
        const basin_schema_column *c = &s->nodes.column[i];
        float empty = c->type == BASIN_COLUMN_CATEGORY ? 0 : NAN;
        for (int64_t f = c->first; f < c->first + basin_schema_width(c); f++)
            for (int64_t node = 0; node < nodes; node++) x[node * s->features + f] = empty;
    }
}

static basin_status alloc_nodes(basin_tables *j) {
    basin_network *n = j->network;
    bool labels = false, masks = false;
    for (int t = 0; t < j->tables; t++) {
        const basin_table_file *at = &j->table[t];
        if (at->edges) continue;
        labels = labels || at->label >= 0;
        masks = masks || at->split >= 0 || at->mask[0] >= 0 || at->mask[1] >= 0 || at->mask[2] >= 0;
    }
    BASIN_TRY(basin_schema_names(&n->column, j->schema, j->error));
    if (j->schema->features)
        BASIN_TRY(basin_network_alloc_features(n, j->schema->features, j->o, j->error));
    if (n->feature) empty_rows(n->feature, j->schema, n->nodes);
    return alloc_labels(j, labels, masks);
}

static basin_status fill_split(basin_tables *j, const basin_table_file *t,
                               const basin_table_rows *rows, int32_t node) {
    uint8_t *part[] = {j->network->train, j->network->val, j->network->test};
    static const char *const word[] = {"train", "val", "test"};
    for (int i = 0; i < 3; i++) {
        int32_t in = 0;
        if (t->mask[i] >= 0 &&
            !basin_cell_label(&in, basin_table_rows_field(rows, (size_t)t->mask[i])))
            return basin_fail(
                j->error, BASIN_BAD_FILE, "%s: line %" PRId64 ": mask '%s' is '%s', wanted 0 or 1",
                rows->path, rows->line, word[i], basin_table_rows_field(rows, (size_t)t->mask[i]));
        if (in > 0) part[i][node] = 1;
    }
    const char *text = t->split >= 0 ? basin_table_rows_field(rows, (size_t)t->split) : "";
    if (basin_cell_missing(text)) return BASIN_OK;
    for (int i = 0; i < 3; i++)
        if (!strncasecmp(text, word[i], strlen(word[i]))) {
            part[i][node] = 1;
            return BASIN_OK;
        }
    return basin_fail(j->error, BASIN_BAD_FILE,
                      "%s: line %" PRId64 ": split is '%s', wanted train, val, test or nothing",
                      rows->path, rows->line, text);
}

/* Of several tables with labels one may know what another does not. */
static basin_status fill_label(basin_tables *j, const basin_table_file *t,
                               const basin_table_rows *rows, int32_t node) {
    const char *text = basin_table_rows_trimmed(rows, (size_t)t->label);
    int32_t *label = &j->network->label[node], found;
    if (j->o->classes)
        found = basin_tables_class(j, text);
    else if (!basin_cell_label(&found, text))
        return basin_fail(j->error, BASIN_BAD_FILE,
                          "%s: line %" PRId64 ": the label '%s', wanted 0 or 1, or nothing "
                          "where it is not known",
                          rows->path, rows->line, text);
    if (found >= 0 && *label >= 0 && found != *label)
        return basin_fail(j->error, BASIN_BAD_FILE,
                          "%s: line %" PRId64 ": node '%s' has the label '%s', and another one in "
                          "another file of nodes",
                          rows->path, rows->line, basin_table_rows_field(rows, (size_t)t->id),
                          text);
    if (found >= 0) *label = found;
    return BASIN_OK;
}

static basin_status fill_node(basin_tables *j, const basin_table_file *t,
                              const basin_table_rows *rows) {
    int32_t node = basin_dictionary_find(&j->id, basin_table_rows_field(rows, (size_t)t->id));
    if (node < 0) return basin_table_rows_fail_changed(rows, j->error);
    BASIN_TRY(t->label >= 0 ? fill_label(j, t, rows, node) : BASIN_OK);
    if (j->network->feature) {
        float *x = j->network->feature + (int64_t)node * j->network->features;
        for (size_t i = 0; i < t->columns; i++)
            basin_column_fill(x, &t->column[i], basin_table_rows_field(rows, i), &j->rules);
    }
    return j->network->train ? fill_split(j, t, rows, node) : BASIN_OK;
}

static basin_status fill_table(basin_tables *j, const basin_table_file *t) {
    basin_table_rows rows;
    bool more = true;
    basin_status status = basin_table_rows_open(&rows, t->source, j->error);
    if (status) return status;
    while (more && !status) {
        status = basin_table_rows_next(&rows, &more, j->error);
        if (!status && more) status = fill_node(j, t, &rows);
    }
    basin_table_rows_close(&rows);
    return status;
}

/* Nodes that edges alone know have the mean of every number. */
static basin_status fill_added(basin_tables *j) {
    basin_network *n = j->network;
    if (!j->unknown.nodes || !n->feature) return BASIN_OK;
    float *fill = basin_array_new((size_t)n->features, sizeof *fill);
    if (!fill) return basin_tables_no_memory(j, n->path);
    basin_schema_fill(fill, j->schema, BASIN_MISSING_MEAN);
    for (int64_t i = j->base_nodes; i < n->nodes; i++)
        if ((size_t)i >= j->seen_capacity || !j->seen[i])
            memcpy(n->feature + i * n->features, fill, (size_t)n->features * sizeof *fill);
    free(fill);
    return BASIN_OK;
}

basin_status basin_tables_fill_nodes(basin_tables *j) {
    BASIN_TRY(alloc_nodes(j));
    for (int t = 0; t < j->tables; t++)
        if (!j->table[t].edges) BASIN_TRY(fill_table(j, &j->table[t]));
    BASIN_TRY(fill_added(j));
    return basin_tables_fill_base(j);
}
