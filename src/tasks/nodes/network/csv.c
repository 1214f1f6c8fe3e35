/* Networks as CSV or TSV: tables of edges, whose header has columns for both ends, and of nodes.
 * Tables are read twice: to learn what columns are, then to fill nodes and list edges. All of it
 * may be added to another network. */
#include <inttypes.h>
#include <strings.h>

#include "base/sort.h"
#include "tasks/nodes/network/tables.h"

enum { CATEGORIES = 32 };

/* A small compressed file can hold any number of rows. */
static basin_status check_room(basin_tables *j, const char *path) {
    const basin_names *names = &j->id.names;
    size_t ids = names->text_capacity + names->at_capacity * sizeof *names->at;
    size_t nodes = (size_t)names->count * 3 * sizeof(int64_t);
    size_t cells = j->schema ? (size_t)j->schema->cells : 0;
    size_t times = j->time ? 3 * sizeof(double) : 0;
    size_t edges = j->edge_count * (4 * sizeof(int32_t) + 3 * cells * sizeof(float) + times);
    size_t slots = j->id.slots * sizeof *j->id.slot + j->seen_capacity * sizeof *j->seen;
    return basin_memory_check((double)ids + (double)nodes + (double)edges + (double)slots, j->limit,
                              path, BASIN_NO_MEMORY, j->error);
}

/* ---- rows ---- */

typedef basin_status row_function(basin_tables *j, const basin_table_file *t,
                                  const basin_table_rows *rows);

static basin_status each_row(basin_tables *j, basin_table_file *t, row_function *read) {
    BASIN_AT_EXIT(basin_table_rows_close) basin_table_rows rows;
    bool more;
    BASIN_TRY(basin_table_rows_open(&rows, t->source, j->error));
    for (;;) {
        BASIN_TRY(basin_table_rows_next(&rows, &more, j->error));
        t->latin = t->latin || rows.latin;
        if (!more) return BASIN_OK;
        BASIN_TRY(read(j, t, &rows));
    }
}

static basin_status each_table(basin_tables *j, bool edges, row_function *read) {
    for (int t = 0; t < j->tables; t++)
        if (j->table[t].edges == edges) BASIN_TRY(each_row(j, &j->table[t], read));
    return BASIN_OK;
}

static basin_status see_cell(basin_tables *j, const basin_table_file *t,
                             const basin_table_rows *rows, int i) {
    basin_status status =
        basin_column_see(t->cell[i], rows, basin_table_rows_cell(rows, i), &t->rules, j->error);
    if (status && t->cell[i]->contrary) {
        j->contrary = t;
        j->contrary_mark = t->cell[i]->comma ? BASIN_DECIMAL_POINT : BASIN_DECIMAL_COMMA;
    }
    return status;
}

static basin_status see_cells(basin_tables *j, const basin_table_file *t,
                              const basin_table_rows *rows) {
    for (int i = 0; i < t->columns; i++)
        if (t->cell[i]) BASIN_TRY(see_cell(j, t, rows, i));
    return BASIN_OK;
}

/* ---- labels that are classes by any name ---- */

static bool is_none(const char *text) {
    double value;
    return basin_cell_missing(text) || (basin_cell_number(&value, text) && value == -1);
}

static int by_number(const void *a, const void *b) {
    double x = 0, y = 0;
    (void)basin_cell_number(&x, *(const char *const *)a);
    (void)basin_cell_number(&y, *(const char *const *)b);
    return x != y ? BASIN_COMPARE(x, y) : basin_compare_text(a, b);
}

/* Numbers classes in the order of their names, after those of the base. */
static basin_status sort_classes(basin_tables *j, basin_dictionary *sorted) {
    const basin_names *names = &j->class_name.names;
    const basin_network *base = j->o->base;
    bool named = base && (j->t->classes || base->class_name.count), numbers = true;
    int64_t had = named ? basin_network_greatest_label(base) + 1 : 0;
    if (named) had = basin_int_max(had, base->class_name.count);
    BASIN_FREE_AT_EXIT const char **name = NULL;
    int32_t number;
    double value;
    BASIN_TRY(BASIN_NEW_RAW(&name, names->count, "classes", j->error));
    for (int64_t i = 0; i < names->count; i++) {
        name[i] = names->text + names->at[i];
        numbers = numbers && basin_cell_number(&value, name[i]);
    }
    qsort(name, (size_t)names->count, sizeof *name, numbers ? by_number : basin_compare_text);
    for (int64_t i = 0; i < had; i++) {
        char text[BASIN_MAX_NODE];
        const char *class = basin_network_class(base, (int32_t)i, text);
        BASIN_TRY(basin_dictionary_add(sorted, &number, class, j->error));
    }
    for (int64_t i = 0; i < names->count; i++)
        BASIN_TRY(basin_dictionary_add(sorted, &number, name[i], j->error));
    return BASIN_OK;
}

static basin_status number_classes(basin_tables *j) {
    basin_dictionary sorted = {0};
    basin_status status = sort_classes(j, &sorted);
    basin_dictionary_free(&j->class_name);
    j->class_name = sorted;
    return status;
}

/* ---- nodes: the first pass ---- */

static basin_status see_node(basin_tables *j, const basin_table_file *t,
                             const basin_table_rows *rows) {
    int32_t node, number = (int32_t)(t - j->table) + 1, class;
    int label = t->at[BASIN_ROLE_LABEL];
    const char *id = basin_table_rows_field(rows, t->at[BASIN_ROLE_ID]);
    if (!*id)
        return basin_table_rows_fail(rows, j->error,
                                     ": column '%s' is empty, expected the id of a node",
                                     t->column[t->at[BASIN_ROLE_ID]].name);
    BASIN_TRY(basin_dictionary_add(&j->id, &node, id, j->error));
    if (node >= j->base_nodes && j->absent && j->o->missing == BASIN_MISSING_ERROR)
        return basin_table_rows_fail(rows, j->error,
                                     ": node '%s' is not in %s, and no table has its column '%s' "
                                     "(the option missing fills such gaps)",
                                     id, j->o->base->path, j->absent);
    size_t had = j->seen_capacity;
    BASIN_TRY(BASIN_GROW(&j->seen, &j->seen_capacity, (size_t)node + 1, "nodes", j->error));
    memset(j->seen + had, 0, (j->seen_capacity - had) * sizeof *j->seen);
    if (j->seen[node] == number && !j->o->base)
        return basin_table_rows_fail(rows, j->error,
                                     ": node '%s' for the second time in column '%s'", id,
                                     t->column[t->at[BASIN_ROLE_ID]].name);
    j->counts.repeated += j->seen[node] == number;
    j->counts.updated += node < j->base_nodes && !j->seen[node];
    j->seen[node] = number;
    BASIN_TRY(see_cells(j, t, rows));
    const char *text = label >= 0 && j->t->classes ? basin_table_rows_trimmed(rows, label) : "";
    if (!is_none(text)) BASIN_TRY(basin_dictionary_add(&j->class_name, &class, text, j->error));
    return check_room(j, rows->path);
}

/* ---- what columns become ---- */

/* The option's column, else the first number or date with a name of time, else the first date. */
static basin_schema_column *choose_time(const basin_tables *j) {
    basin_schema_table *edges = &j->schema->edges;
    basin_schema_column *named = NULL, *date = NULL;
    for (size_t i = 0; i < edges->columns; i++) {
        basin_schema_column *c = &edges->column[i];
        bool number = c->type == BASIN_COLUMN_NUMBER || c->type == BASIN_COLUMN_DATE;
        bool spoken = basin_column_sounds_like_time(c->name) || !strcasecmp(c->name, "step");
        if (number && j->t->time && !strcasecmp(c->name, j->t->time)) return c;
        if (number && !named && spoken) named = c;
        if (!date && c->type == BASIN_COLUMN_DATE) date = c;
    }
    return j->t->time ? NULL : named ? named : date;
}

static basin_status settle_column(basin_tables *j, basin_column *c, const basin_table_file *t) {
    basin_schema_table *to = t->edges ? &j->schema->edges : &j->schema->nodes;
    basin_schema_column settled;
    basin_status status = basin_column_settle(&settled, c, t->source->path, &t->rules, j->error);
    if (!status) status = basin_schema_add(j->schema, to, &settled, j->error);
    if (!status) c->first = to->column[to->columns - 1].first;
    basin_names_free(&settled.value);
    return status;
}

/* A column whose cells allow one decimal mark settles it for the file, unless two differ. */
static void settle_mark(basin_table_file *t) {
    bool found[BASIN_DECIMALS] = {false};
    for (int i = 0; i < t->columns; i++) {
        int mark = basin_column_mark(&t->column[i]);
        if (mark >= 0) found[mark] = true;
    }
    if (found[BASIN_DECIMAL_COMMA] && !found[BASIN_DECIMAL_POINT])
        t->rules.mark = BASIN_DECIMAL_COMMA;
}

static basin_status settle_table(basin_tables *j, basin_table_file *t) {
    settle_mark(t);
    for (int i = 0; i < t->columns; i++) BASIN_TRY(settle_column(j, &t->column[i], t));
    return BASIN_OK;
}

/* Decides what columns become; makes the schema. Further tables of edges give roles only. */
static basin_status settle(basin_tables *j) {
    bool stands = j->known && (j->known->named || (j->o->base && !j->node_tables));
    if (stands) return basin_schema_copy(&j->schema, j->known, j->error);
    BASIN_TRY(basin_schema_new(&j->schema, j->error));
    basin_schema *s = j->schema;
    s->directed = j->o->directed;
    if (j->o->missing != BASIN_MISSING_KEEP) s->missing = j->o->missing;
    s->unknown = j->t->unknown;
    BASIN_TRY(basin_schema_set_formats(s, j->t->date_format, j->t->edge_date_format, j->error));
    for (int t = 0; t < j->tables; t++)
        if (!j->table[t].edges) BASIN_TRY(settle_table(j, &j->table[t]));
    if (j->first) BASIN_TRY(settle_table(j, j->first));
    for (int t = 0; t < j->tables; t++)
        for (int i = 0; j->table[t].edges && i < j->table[t].columns; i++) {
            const basin_column *from = &j->table[t].column[i];
            basin_schema_column c = {.name = from->name, .type = from->type, .mean = NAN};
            if (!basin_schema_find(&s->edges, c.name))
                BASIN_TRY(basin_schema_add(s, &s->edges, &c, j->error));
        }
    basin_schema_column *time = choose_time(j);
    if (time) time->time = true;
    if (time || !j->t->time) return BASIN_OK;
    return basin_fail(
        j->error, BASIN_BAD_FILE,
        "%s: column '%s' holds neither numbers nor dates, expected the times of edges",
        j->first->source->path, j->t->time);
}

static basin_status check_base(basin_tables *j, int64_t had, int64_t now, const char *of) {
    if (had == now) return BASIN_OK;
    return basin_fail(j->error, BASIN_BAD_SHAPE,
                      "%s: %" PRId64 " %s, expected the %" PRId64 " of the tables that are added",
                      j->o->base->path, had, of, now);
}

/* ---- nodes: the second pass ---- */

/* Numbers are gaps until a row fills them; a category that no row names is none of its values. */
static void empty_rows(float *x, const basin_schema *s, int64_t nodes) {
    for (size_t i = 0; i < s->nodes.columns; i++) {
        const basin_schema_column *c = &s->nodes.column[i];
        float empty = c->type == BASIN_COLUMN_CATEGORY ? 0 : NAN;
        for (int64_t f = c->first; f < c->first + basin_schema_width(c); f++)
            for (int64_t node = 0; node < nodes; node++) x[node * s->features + f] = empty;
    }
}

static basin_status alloc_labels(basin_tables *j) {
    basin_network *n = j->network;
    BASIN_TRY(BASIN_NEW_RAW(&n->label, n->nodes, "labels", j->error));
    for (int64_t i = 0; i < n->nodes; i++) n->label[i] = -1;
    return BASIN_OK;
}

static basin_status alloc_nodes(basin_tables *j) {
    basin_network *n = j->network;
    bool labels = false, masks = false;
    for (int t = 0; t < j->tables; t++) {
        labels = labels || j->table[t].at[BASIN_ROLE_LABEL] >= 0;
        for (int r = BASIN_ROLE_SPLIT; r < BASIN_ROLE_ID; r++)
            masks = masks || j->table[t].at[r] >= 0;
    }
    BASIN_TRY(basin_schema_names(&n->column, j->schema, j->error));
    if (j->schema->features) {
        BASIN_TRY(basin_network_alloc_features(n, j->schema->features, j->o, j->error));
        empty_rows(n->feature, j->schema, n->nodes);
    }
    if (labels) BASIN_TRY(alloc_labels(j));
    const basin_network *base = j->o->base;
    if (base && base->splits && masks) BASIN_TRY(check_base(j, base->splits, 1, "splits"));
    n->splits = base && base->splits ? base->splits : masks;
    if (!n->splits) return BASIN_OK;
    BASIN_TRY(BASIN_NEW(&n->train, n->splits * n->nodes, "masks", j->error));
    BASIN_TRY(BASIN_NEW(&n->val, n->splits * n->nodes, "masks", j->error));
    return BASIN_NEW(&n->test, n->splits * n->nodes, "masks", j->error);
}

static basin_status fill_split(basin_tables *j, const basin_table_file *t,
                               const basin_table_rows *rows, int32_t node) {
    uint8_t *part[] = {j->network->train, j->network->val, j->network->test};
    static const char *const word[] = {"train", "val", "test"};
    for (int i = 0; i < 3; i++) {
        int32_t in = 0;
        int at = t->at[BASIN_ROLE_MASK + i];
        if (at >= 0 && !basin_cell_label(&in, basin_table_rows_field(rows, at)))
            return basin_table_rows_fail(rows, j->error, ": mask '%s' is '%s', expected 0 or 1",
                                         word[i], basin_table_rows_field(rows, at));
        if (in > 0 || (at >= 0 && j->o->base)) part[i][node] = in > 0;
    }
    int split = t->at[BASIN_ROLE_SPLIT];
    const char *text = split >= 0 ? basin_table_rows_field(rows, split) : "";
    if (basin_cell_missing(text)) return BASIN_OK;
    for (int i = 0; i < 3 && j->o->base; i++) part[i][node] = 0;
    for (int i = 0; i < 3; i++)
        if (!strncasecmp(text, word[i], strlen(word[i]))) return part[i][node] = 1, BASIN_OK;
    return basin_table_rows_fail(rows, j->error,
                                 ": split is '%s', expected train, val, test or nothing", text);
}

/* One of several tables may have the label; what is added replaces that of the base. */
static basin_status fill_label(basin_tables *j, const basin_table_file *t,
                               const basin_table_rows *rows, int32_t node) {
    const char *text = basin_table_rows_trimmed(rows, t->at[BASIN_ROLE_LABEL]);
    int32_t *label = &j->network->label[node], found;
    if (j->t->classes)
        found = is_none(text) ? -1 : basin_dictionary_find(&j->class_name, text);
    else if (!basin_cell_label(&found, text))
        return basin_table_rows_fail(
            rows, j->error, ": the label '%s', expected 0 or 1, or nothing where it is not known",
            text);
    if (found >= 0 && *label >= 0 && found != *label && !j->o->base)
        return basin_table_rows_fail(
            rows, j->error,
            ": node '%s' has the label '%s', and another one in another file of nodes",
            basin_table_rows_field(rows, t->at[BASIN_ROLE_ID]), text);
    if (found >= 0) *label = found;
    return BASIN_OK;
}

static basin_status fill_node(basin_tables *j, const basin_table_file *t,
                              const basin_table_rows *rows) {
    basin_network *n = j->network;
    int32_t node =
        basin_dictionary_find(&j->id, basin_table_rows_field(rows, t->at[BASIN_ROLE_ID]));
    if (node < 0)
        return basin_fail(j->error, BASIN_BAD_FILE, "%s: the file changed while it was read",
                          rows->path);
    if (t->at[BASIN_ROLE_LABEL] >= 0) BASIN_TRY(fill_label(j, t, rows, node));
    for (int i = 0; n->feature && i < t->columns; i++)
        if (t->cell[i])
            basin_column_fill(n->feature + node * n->features, t->cell[i],
                              basin_table_rows_cell(rows, i), &t->rules);
    return n->train ? fill_split(j, t, rows, node) : BASIN_OK;
}

/* Nodes that only edges name have the mean of every number. */
static basin_status fill_added(basin_tables *j) {
    basin_network *n = j->network;
    if (!j->counts.added || !n->feature) return BASIN_OK;
    BASIN_SCRATCH_RAW(float, fill, n->features, "features", j->error);
    basin_schema_fill(fill, j->schema, BASIN_MISSING_MEAN);
    for (int64_t i = j->base_nodes; i < n->nodes; i++)
        if ((size_t)i >= j->seen_capacity || !j->seen[i])
            memcpy(n->feature + i * n->features, fill, (size_t)n->features * sizeof *fill);
    return BASIN_OK;
}

/* ---- times of edges ---- */

/* Once the schema stands: the column of times, and the last time that counts. */
static basin_status find_time(basin_tables *j) {
    const char *until = j->t->until, *path = (j->first ? j->first : j->table)->source->path;
    for (size_t i = 0; i < j->schema->edges.columns; i++) {
        const basin_schema_column *c = &j->schema->edges.column[i];
        int at = c->time && j->first ? basin_table_column(j->first, c->name) : -1;
        if (at >= 0) j->time = &j->first->column[at];
    }
    if (!until) return BASIN_OK;
    if (!j->time)
        return basin_fail(j->error, BASIN_BAD_VALUE,
                          "%s: no column has the times of edges, by which until %s could be judged "
                          "(the option time names one)",
                          path, until);
    if (basin_column_read(&j->until, j->time, (basin_cell){until, true}, &j->first->rules))
        return BASIN_OK;
    return basin_fail(j->error, BASIN_BAD_VALUE,
                      "%s: until is '%s', expected a %s as in column '%s'", path, until,
                      basin_column_type_name(j->time->type), j->time->name);
}

static basin_status read_time(basin_tables *j, double *time, const basin_table_file *t,
                              const basin_table_rows *rows) {
    *time = NAN;
    for (int i = 0; j->time && i < t->columns; i++)
        if (t->cell[i] == j->time)
            (void)basin_column_read(time, j->time, basin_table_rows_cell(rows, i), &t->rules);
    if (!isfinite(j->until) || !isnan(*time)) return BASIN_OK;
    return basin_table_rows_fail(rows, j->error,
                                 ": column '%s' is empty, expected a time to compare with until",
                                 j->time->name);
}

static basin_status keep_since(basin_tables *j, int32_t node, double time) {
    size_t had = j->since_capacity;
    BASIN_TRY(
        BASIN_GROW(&j->since, &j->since_capacity, (size_t)node + 1, "times of nodes", j->error));
    for (size_t i = had; i < j->since_capacity; i++) j->since[i] = NAN;
    if (!(j->since[node] <= time)) j->since[node] = time;
    return BASIN_OK;
}

static basin_status give_since(basin_tables *j) {
    basin_network *n = j->network;
    const basin_network *base = j->o->base;
    if (!j->time && !(base && base->since)) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&n->since, n->nodes, "times of nodes", j->error));
    for (int64_t i = 0; i < n->nodes; i++) {
        double old = base && base->since && i < base->nodes ? base->since[i] : NAN;
        n->since[i] = (size_t)i < j->since_capacity ? fmin(j->since[i], old) : old;
    }
    return BASIN_OK;
}

/* ---- edges ---- */

/* A gap in a number: an error, or as the nodes' gaps are filled. */
static basin_status fill_gap(basin_tables *j, float *cell, const basin_column *c,
                             const basin_table_rows *rows, const char *text) {
    const basin_schema_column *known = basin_schema_find(&j->schema->edges, c->name);
    if (j->o->missing == BASIN_MISSING_ERROR)
        return basin_table_rows_fail(
            rows, j->error,
            ": column '%s' holds '%.60s', expected a %s (the option missing: zero or mean fills "
            "such gaps)",
            c->name, text, basin_column_type_name(c->type));
    bool zero = j->o->missing == BASIN_MISSING_ZERO || !isfinite(known->mean);
    j->counts.filled++;
    *cell = zero ? 0 : (float)known->mean;
    return BASIN_OK;
}

static basin_status fill_cells(basin_tables *j, float *cell, const basin_table_file *t,
                               const basin_table_rows *rows) {
    for (int64_t i = 0; i < j->schema->cells; i++) cell[i] = 0;
    for (int i = 0; i < t->columns; i++) {
        basin_column *c = t->cell[i];
        if (!c || !basin_column_is_feature(c->type)) continue;
        bool number = c->type != BASIN_COLUMN_CATEGORY;
        if (c->known) BASIN_TRY(see_cell(j, t, rows, i));
        if (number) cell[c->first] = NAN;
        basin_column_fill(cell, c, basin_table_rows_cell(rows, i), &t->rules);
        if (number && !isfinite(cell[c->first]))
            BASIN_TRY(fill_gap(j, cell + c->first, c, rows, basin_table_rows_field(rows, i)));
    }
    return BASIN_OK;
}

/* What a row carries, after the cells of the list; both ends were there at that time. */
static basin_status add_cells(basin_tables *j, basin_edge_list *list, const basin_table_file *t,
                              const basin_table_rows *rows, const int32_t end[2], double time) {
    size_t cells = (size_t)j->schema->cells;
    for (int i = 0; i < 2 && j->time; i++) BASIN_TRY(keep_since(j, end[i], time));
    if (!cells) return BASIN_OK;
    if (!BASIN_RESERVE(&list->cell, &list->cell_capacity, (list->count + 1) * cells) ||
        (j->time && !BASIN_RESERVE(&list->time, &list->time_capacity, list->count + 1)))
        return basin_fail_memory(j->error, "facts of edges");
    float *cell = list->cell + list->count * cells;
    BASIN_TRY(fill_cells(j, cell, t, rows));
    if (j->time) list->time[list->count] = isfinite(time) ? time : (double)cell[j->time->first];
    return BASIN_OK;
}

/* The node at an end of an edge; -1: the edge is to be skipped. */
static basin_status end_of_edge(basin_tables *j, int32_t *node, const basin_table_rows *rows,
                                int field) {
    const char *id = basin_table_rows_field(rows, field);
    bool listed = j->node_tables || j->base_nodes; /* something else says which nodes there are */
    *node = basin_dictionary_find(&j->id, id);
    if (*node >= 0) return BASIN_OK;
    if (!*id) return basin_table_rows_fail(rows, j->error, ": an end of the edge is empty");
    if (listed && j->t->unknown == BASIN_UNKNOWN_ERROR)
        return basin_table_rows_fail(
            rows, j->error,
            ": node '%s' is %s, where %s%.40s%s (the option unknown, set to skip or add, allows "
            "it)",
            id,
            j->base_nodes ? "neither in the base nor in a file of nodes" : "in no file of nodes",
            j->id.names.count ? "ids are like '" : "there is no row",
            j->id.names.count ? j->id.names.text : "", j->id.names.count ? "'" : "");
    if (listed && !*j->counts.unknown)
        snprintf(j->counts.unknown, sizeof j->counts.unknown, "%.39s", id);
    if (listed && j->t->unknown == BASIN_UNKNOWN_SKIP) return BASIN_OK;
    j->counts.added += listed;
    return basin_dictionary_add(&j->id, node, id, j->error);
}

static basin_status add_pair(basin_tables *j, basin_edge_list *list, const int32_t pair[2]) {
    size_t bytes = 2 * sizeof *pair;
    BASIN_TRY(BASIN_GROW(&list->pair, &list->capacity, 2 * (list->count + 1), "edges", j->error));
    memcpy(list->pair + 2 * list->count, pair, bytes);
    return BASIN_OK;
}

/* Edges without a relation: by their file if several, else the only relation, else "homo". */
static void name_by_file(basin_table_file *t, const basin_tables *j) {
    const char *path = t->source->path, *slash = strrchr(path, '/');
    char *name = t->relation;
    const basin_names *known = j->known ? &j->known->relation : NULL;
    bool several = known && known->count > 1;
    if (!j->o->base || !known || known->count != 1)
        several = several || j->tables - j->node_tables > 1;
    const char *whole = known && known->count == 1 ? known->text : "homo";
    snprintf(name, sizeof t->relation, "%.*s", (int)sizeof t->relation - 1,
             !several ? whole
             : slash  ? slash + 1
                      : path);
    if (several) name[strcspn(name, ".")] = 0;
    if (!*name) strcpy(name, "homo");
}

static basin_status find_relation(basin_tables *j, basin_edge_list **list,
                                  const basin_table_file *t, const basin_table_rows *rows) {
    int type = t->at[BASIN_ROLE_TYPE];
    const char *name = type >= 0 ? basin_table_rows_field(rows, type) : t->relation;
    int32_t r;
    if (type >= 0 && !name[strspn(name, " \t")]) {
        name = BASIN_RELATION_EMPTY;
        j->counts.unnamed++;
    }
    BASIN_TRY(basin_dictionary_add(&j->relation, &r, name, j->error));
    *list = &j->edges[r < BASIN_MAX_TABLE_RELATIONS ? r : 0];
    if (r < BASIN_MAX_TABLE_RELATIONS) return BASIN_OK;
    return basin_table_rows_fail(
        rows, j->error, ": more than %d relations; is '%s' a kind of edge?",
        BASIN_MAX_TABLE_RELATIONS, type >= 0 ? t->column[type].name : "the file");
}

static basin_status read_edge(basin_tables *j, const basin_table_file *t,
                              const basin_table_rows *rows) {
    int32_t pair[2];
    double time;
    basin_edge_list *list;
    BASIN_TRY(read_time(j, &time, t, rows));
    if (time > j->until) return j->counts.late++, BASIN_OK;
    if (j->o->base && j->o->base->facts.time >= 0) j->counts.early += time <= j->o->base->facts.now;
    BASIN_TRY(end_of_edge(j, &pair[0], rows, t->at[BASIN_ROLE_FROM]));
    BASIN_TRY(end_of_edge(j, &pair[1], rows, t->at[BASIN_ROLE_TO]));
    if (pair[0] < 0 || pair[1] < 0) return j->counts.skipped++, BASIN_OK;
    j->counts.loops += pair[0] == pair[1];
    BASIN_TRY(find_relation(j, &list, t, rows));
    BASIN_TRY(add_pair(j, list, pair));
    BASIN_TRY(add_cells(j, list, t, rows, pair, time));
    list->count++;
    j->edge_count++;
    return check_room(j, rows->path);
}

static void list_free(basin_edge_list *list) {
    BASIN_FREE(list->pair, list->cell, list->time);
    *list = (basin_edge_list){0};
}

/* Different edges: loops once, others at both ends where they go both ways. */
static int64_t count_edges(const basin_relation *r, const basin_network *n) {
    int64_t loops = 0;
    for (int64_t i = 0; i < n->nodes; i++)
        for (int64_t e = r->row[i]; e < r->row[i + 1]; e++) loops += r->col[e] == i;
    return n->directed ? r->edges : loops + (r->edges - loops) / 2;
}

/* Rows that name the same two ends are one edge: what becomes of the others is said. */
static void note_repeats(basin_tables *j) {
    const basin_network *n = j->network;
    const basin_facts *facts = &n->facts;
    int64_t different = 0;
    bool kinds = false;
    if (j->counts.loops)
        basin_network_add_note(j->network, "edges: %" PRId64 " of %zu rows join a node to itself",
                               j->counts.loops, j->edge_count);
    for (int r = 0; r < n->relations; r++) different += count_edges(&n->relation[r], n);
    for (int64_t i = 0; i < facts->count; i++) kinds = kinds || facts->kind[i] == BASIN_FACT_KIND;
    if (facts->count)
        basin_network_add_note(
            j->network,
            "edges: %zu rows became %" PRId64
            " edges that carry count%s, of numbers sum, mean, last, max, min and "
            "deviation%s%s",
            j->edge_count, different, n->directed ? "" : " (both directions together)",
            facts->time < 0 ? "" : ", of times the first and the last",
            kinds ? ", of texts the share of each value" : "");
    else if (different < (int64_t)j->edge_count)
        basin_network_add_note(j->network,
                               "edges: %" PRId64 " of %zu rows repeat others and count once; edges "
                               "carry counts where rows have a third column, such as 1",
                               (int64_t)j->edge_count - different, j->edge_count);
}

/* ---- what tables add to ---- */

/* Whether the union of the base's relations is one of them: it is made anew. */
static bool has_union(const basin_network *base) {
    return base->relations > 1 && basin_network_relation(base, "homo") >= 0;
}

/* The ids and relations of the base are known before those of the tables. */
static basin_status begin_base(basin_tables *j) {
    const basin_network *base = j->o->base;
    char text[BASIN_MAX_NODE];
    int32_t number;
    j->base_nodes = base ? base->nodes : 0;
    for (int r = 0; base && r < base->relations; r++)
        if (!has_union(base) || strcmp(base->relation[r].name, "homo") != 0)
            BASIN_TRY(
                basin_dictionary_add(&j->relation, &number, base->relation[r].name, j->error));
    for (int64_t i = 0; i < j->base_nodes; i++) {
        int32_t node;
        const char *id = basin_network_id(base, i, text);
        BASIN_TRY(basin_dictionary_add(&j->id, &node, id, j->error));
        if (node != i)
            return basin_fail(j->error, BASIN_BAD_FILE, "%s: node '%s' is there twice", base->path,
                              id);
    }
    return BASIN_OK;
}

static basin_status fill_base(basin_tables *j) {
    const basin_network *base = j->o->base;
    basin_network *n = j->network;
    if (!base) return BASIN_OK;
    BASIN_TRY(check_base(j, base->feature ? base->features : 0, n->feature ? n->features : 0,
                         "features a node"));
    if (n->feature)
        memcpy(n->feature, base->feature,
               (size_t)(base->nodes * base->features) * sizeof *n->feature);
    if (base->label && !n->label) BASIN_TRY(alloc_labels(j));
    if (base->label) memcpy(n->label, base->label, (size_t)base->nodes * sizeof *n->label);
    uint8_t *const to[] = {n->train, n->val, n->test};
    const uint8_t *const from[] = {base->train, base->val, base->test};
    for (int64_t s = 0; s < base->splits; s++)
        for (int i = 0; i < 3; i++)
            if (from[i])
                memcpy(to[i] + s * n->nodes, from[i] + s * base->nodes, (size_t)base->nodes);
    return BASIN_OK;
}

/* The base's edges and those of the tables, row by row, and what the base's carry. */
static basin_status join_rows(basin_tables *j, basin_relation *to, const basin_relation *tables,
                              const basin_relation *from) {
    int64_t nodes = j->network->nodes, old = j->base_nodes, at = 0;
    const basin_facts *facts = &j->network->facts;
    to->edges = tables->edges + from->edges;
    BASIN_TRY(BASIN_NEW(&to->row, nodes + 1, "edges", j->error));
    BASIN_TRY(BASIN_NEW_RAW(&to->col, to->edges, "edges", j->error));
    for (int64_t i = 0; i < nodes; i++) {
        size_t own = (size_t)(tables->row[i + 1] - tables->row[i]);
        size_t more = i < old ? (size_t)(from->row[i + 1] - from->row[i]) : 0;
        memcpy(to->col + at, tables->col + tables->row[i], own * sizeof *to->col);
        if (more) memcpy(to->col + at + own, from->col + from->row[i], more * sizeof *to->col);
        to->row[i + 1] = at += (int64_t)(own + more);
    }
    BASIN_TRY(basin_relation_tidy(to, nodes, j->error));
    BASIN_TRY(basin_relation_alloc_facts(to, facts, j->error));
    basin_relation_merge_facts(to, from, old, facts);
    return BASIN_OK;
}

/* Adds the base's edges to a relation that has those of the tables, without facts yet. */
static basin_status join_relation(basin_tables *j, basin_relation *to) {
    const basin_network *base = j->o->base;
    int r = base ? basin_network_relation(base, to->name) : -1;
    if (r < 0) return BASIN_OK;
    BASIN_AT_EXIT(basin_relation_free) basin_relation tables = *to;
    *to = (basin_relation){.name = tables.name};
    tables.name = NULL;
    return join_rows(j, to, &tables, &base->relation[r]);
}

/* Relations in the order of their names, where rows name them; after those of the base. */
static basin_status sort_relations(const char ***name, const basin_tables *j) {
    const basin_names *names = &j->relation.names;
    bool typed = false;
    int64_t had = j->o->base ? j->o->base->relations - has_union(j->o->base) : 0;
    BASIN_TRY(BASIN_NEW_RAW(name, names->count + 1, "relations", j->error));
    for (int64_t r = 0; r < names->count; r++) (*name)[r] = names->text + names->at[r];
    for (int t = 0; t < j->tables; t++) typed = typed || j->table[t].at[BASIN_ROLE_TYPE] >= 0;
    if (typed && names->count > had)
        qsort(*name + had, (size_t)(names->count - had), sizeof **name, basin_compare_text);
    return BASIN_OK;
}

/* A day without edges has one empty relation. Rows follow the base's, which keeps the bits. */
static basin_status make_relations(basin_tables *j) {
    const basin_names *names = &j->relation.names;
    BASIN_FREE_AT_EXIT const char **sorted = NULL;
    BASIN_TRY(sort_relations(&sorted, j));
    const char *empty = j->known && j->known->relation.count ? j->known->relation.text : "homo";
    bool unnamed = j->counts.unnamed && j->counts.unnamed == (int64_t)j->edge_count;
    for (int64_t r = 0; r < names->count || r == 0; r++) {
        int64_t at = names->count ? basin_dictionary_find(&j->relation, sorted[r]) : 0;
        basin_edge_list *list = &j->edges[at];
        basin_edges edges = {list->pair, list->pair ? list->pair + 1 : NULL, BASIN_I32, 2,
                             (int64_t)list->count};
        const char *name = names->count ? sorted[r] : empty;
        if (names->count == 1 && unnamed) name = empty;
        BASIN_TRY(basin_network_add_relation(j->network, name, &edges, j->o, j->error));
        BASIN_TRY(join_relation(j, &j->network->relation[r]));
        if (j->network->facts.count)
            BASIN_TRY(basin_network_add_facts(j->network, &j->network->relation[r], &edges,
                                              list->cell, list->time, j->error));
        list_free(list);
    }
    return BASIN_OK;
}

static void note_base(basin_tables *j) {
    const basin_network *base = j->o->base;
    const basin_table_counts *c = &j->counts;
    char updated[80] = "";
    if (c->updated)
        snprintf(updated, sizeof updated, ", of which %" PRId64 " were updated", c->updated);
    basin_network_add_note(
        j->network, "%" PRId64 " nodes and %zu edges added to the %" PRId64 " nodes of %s%s",
        j->network->nodes - base->nodes, j->edge_count, base->nodes, base->path, updated);
    if (c->repeated)
        basin_network_add_note(j->network,
                               "%" PRId64 " rows repeat the id of a row before, which they replace",
                               c->repeated);
    if (c->early)
        basin_network_add_note(j->network,
                               "edges: %" PRId64 " of %zu rows are not later than the latest of "
                               "%s; rows that it has already count twice",
                               c->early, j->edge_count, base->path);
}

static basin_status join_base(basin_tables *j) {
    const basin_network *base = j->o->base;
    if (!base) return BASIN_OK;
    BASIN_TRY(check_base(j, base->facts.count, j->network->facts.count, "facts an edge"));
    note_base(j);
    return has_union(base) ? basin_network_add_union(j->network, j->error) : BASIN_OK;
}

/* ---- the network ---- */

static basin_status make_nodes(basin_tables *j) {
    basin_network *n = j->network;
    BASIN_TRY(alloc_nodes(j));
    BASIN_TRY(fill_base(j));
    BASIN_TRY(each_table(j, false, fill_node));
    BASIN_TRY(fill_added(j));
    /* Those of a table stay, though they be 0, 1, ..: tomorrow's may be in another order. */
    bool named = j->node_tables || (j->o->base && j->o->base->id.count);
    if (named || !basin_names_are_numbers(&j->id.names)) {
        n->id = j->id.names;
        j->id.names = (basin_names){0};
    }
    BASIN_TRY(basin_schema_facts(&n->facts, j->schema, j->error));
    n->class_name = j->class_name.names;
    j->class_name.names = (basin_names){0};
    n->schema = j->schema;
    j->schema = NULL;
    if (n->feature) BASIN_TRY(basin_network_fill_missing(n, j->o->missing, j->error));
    if (n->label) basin_network_finish_labels(n, j->o);
    BASIN_TRY(give_since(j));
    basin_tables_note(j);
    return BASIN_OK;
}

/* The first file of nodes, and of edges, which notes name. */
static basin_status name_tables(basin_tables *j) {
    for (int t = 0; t < j->tables; t++) {
        char **path = &j->network->table_path[j->table[t].edges];
        if (!*path && !(*path = basin_string_copy(j->table[t].source->path)))
            return basin_fail_memory(j->error, "names of files");
    }
    return BASIN_OK;
}

/* What no schema knows of edges is seen before they are read. */
static basin_status see_edges(basin_tables *j) {
    bool any = false;
    for (int i = 0; j->first && i < j->first->columns; i++) any = any || j->first->cell[i];
    if (!any || (j->known && j->known->edges.columns)) return BASIN_OK;
    return each_table(j, true, see_cells);
}

static basin_status make_network(basin_tables *j) {
    const char *path = j->table[0].source->path;
    BASIN_TRY(begin_base(j));
    BASIN_TRY(each_table(j, false, see_node));
    BASIN_TRY(see_edges(j));
    BASIN_TRY(settle(j));
    BASIN_TRY(find_time(j));
    for (int t = 0; t < j->tables; t++) name_by_file(&j->table[t], j);
    BASIN_TRY(each_table(j, true, read_edge));
    int64_t nodes = j->id.names.count;
    if (nodes == 0 || (j->relation.names.count == 0 && !j->node_tables))
        return basin_fail(j->error, BASIN_BAD_FILE, "%s: no row below the header", path);
    BASIN_TRY(number_classes(j));
    BASIN_TRY(basin_network_new(&j->network, path, nodes, j->error));
    BASIN_TRY(name_tables(j));
    BASIN_TRY(make_nodes(j));
    BASIN_TRY(make_relations(j));
    if (!j->o->base) note_repeats(j);
    BASIN_TRY(join_base(j));
    return basin_network_check_note(j->network, j->error);
}

static void column_free(basin_column *column) {
    free(column->name);
    basin_dictionary_free(&column->category);
    free(column->rank);
}

static void tables_free(basin_tables *j) {
    for (int t = 0; t < j->tables; t++) {
        for (int i = 0; i < j->table[t].columns; i++) column_free(&j->table[t].column[i]);
        BASIN_FREE(j->table[t].column, j->table[t].cell);
    }
    for (int r = 0; r < BASIN_MAX_TABLE_RELATIONS; r++) list_free(&j->edges[r]);
    basin_dictionary_free(&j->id);
    basin_dictionary_free(&j->relation);
    basin_dictionary_free(&j->class_name);
    basin_schema_free(j->schema);
    basin_network_close(j->network);
    BASIN_FREE(j->seen, j->since, j);
}

/* What the cells of each table are read by; `mark` are the decimal marks that are settled. */
static void set_rules(basin_tables *j, const int *mark) {
    for (int t = 0; t < j->tables; t++) {
        basin_table_file *table = &j->table[t];
        table->rules = j->rules;
        table->rules.mark = mark[t];
        if (table->edges) table->rules.date_format = j->t->edge_date_format;
    }
}

/* *again: a cell has settled the decimal mark of its table, and all is to be read by it. */
static basin_status read_once(basin_network **network, const basin_csv_source *source, int sources,
                              const basin_settled_options *settled, int *mark, bool *again,
                              basin_error *error) {
    basin_tables *j;
    *again = false;
    BASIN_TRY(BASIN_NEW(&j, 1, "tables", error));
    const basin_network_options *o = j->o = &settled->network;
    j->t = &settled->table;
    j->known = o->schema;
    j->rules = (basin_column_rules){
        j->t->max_categories > 0 ? j->t->max_categories : CATEGORIES, j->t->date_format,
        o->base && o->schema == o->base->schema ? "the base" : "training", -1};
    j->error = error;
    j->until = INFINITY;
    j->limit = o->memory ? o->memory : basin_memory_share();
    basin_status status = basin_tables_read_headers(j, source, sources);
    set_rules(j, mark);
    if (!status) status = make_network(j);
    *again = status && j->contrary;
    if (*again) mark[j->contrary - j->table] = j->contrary_mark;
    if (!status) *network = j->network, j->network = NULL;
    tables_free(j);
    return status;
}

basin_status basin_network_csv_read(basin_network **network, const basin_csv_source *source,
                                    int sources, const basin_network_options *options,
                                    basin_error *error) {
    basin_settled_options settled;
    int mark[BASIN_MAX_TABLES];
    bool again = true;
    basin_status status = BASIN_OK;
    *network = NULL;
    BASIN_TRY(
        basin_schema_settle(&settled, basin_network_options_or(options), source[0].path, error));
    for (int t = 0; t < BASIN_MAX_TABLES; t++) mark[t] = -1;
    while (again) status = read_once(network, source, sources, &settled, mark, &again, error);
    return status;
}
