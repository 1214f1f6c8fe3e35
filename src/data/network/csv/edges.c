/* Tables of edges: rows become edges of relations, what they carry becomes facts, and all of it is
 * added to the network that the tables extend; see table.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/try.h"
#include "data/network/csv/table.h"
#include "data/network/edge_file.h"

/* ---- what edges carry ---- */

/* ---- columns ---- */

static int column_of(const basin_table_file *t, const char *name) {
    for (size_t i = 0; i < t->columns; i++)
        if (!strcasecmp(t->name[i], name)) return (int)i;
    return -1;
}

static basin_table_file *first_edges(basin_tables *j) {
    for (int t = 0; t < j->tables; t++)
        if (j->table[t].edges) return &j->table[t];
    return NULL;
}

/* Edges that stay apart carry nothing: facts are of all rows that join two nodes. */
static bool may_be_fact(const basin_tables *j, const basin_table_file *t, int i) {
    return i >= 0 && !j->o->keep_duplicates && t->column[i].type == BASIN_COLUMN_DROPPED &&
           !basin_tables_drop(j, t->name[i]) && !basin_tables_is_label(j, t->name[i]) &&
           basin_tables_has_name(j, true, t->name[i]);
}

/* The first table of edges that lacks a column; NULL: all have it. */
static const basin_table_file *lacking(const basin_tables *j, const char *name) {
    for (int t = 0; t < j->tables; t++) {
        const basin_table_file *at = &j->table[t];
        if (at->edges && !may_be_fact(j, at, column_of(at, name))) return at;
    }
    return NULL;
}

/* Times are those of the column that had them in training. */
static basin_status check_time(basin_tables *j, const basin_schema_table *known) {
    for (size_t i = 0; j->o->time && i < known->columns; i++)
        if (known->column[i].time && strcasecmp(known->column[i].name, j->o->time) != 0)
            return basin_fail(j->error, BASIN_BAD_VALUE,
                              "%s: time is '%s'; in training it was '%s', wanted that",
                              first_edges(j)->source->path, j->o->time, known->column[i].name);
    return BASIN_OK;
}

/* The columns of a schema must be there. */
static basin_status know_columns(basin_tables *j, basin_table_file *first) {
    const basin_schema_table *known = &j->known->edges;
    if (check_time(j, known)) return BASIN_BAD_VALUE;
    for (size_t i = 0; i < known->columns; i++) {
        if (!basin_column_is_feature(known->column[i].type)) continue;
        const char *name = known->column[i].name;
        const basin_table_file *table = lacking(j, name);
        if (table && basin_tables_drop(j, name))
            return basin_fail(j->error, BASIN_BAD_VALUE,
                              "%s: column '%s' is dropped; the detector was trained with it",
                              table->source->path, name);
        if (table)
            return basin_tables_fail_absent(j, table, name,
                                            "of edges, with which the detector was trained");
        basin_column *c = &first->column[column_of(first, known->column[i].name)];
        basin_status status = basin_column_know(c, &known->column[i], j->error);
        if (status) return status;
    }
    return BASIN_OK;
}

basin_status basin_tables_bind_facts(basin_tables *j) {
    basin_table_file *first = first_edges(j);
    bool known = j->known && j->known->edges.columns;
    BASIN_TRY(known ? know_columns(j, first) : BASIN_OK);
    for (size_t i = 0; i < first->columns && !known; i++)
        first->column[i].feature = may_be_fact(j, first, (int)i) && !lacking(j, first->name[i]);
    for (int t = 0; t < j->tables; t++) {
        basin_table_file *at = &j->table[t];
        if (!at->edges) continue;
        BASIN_TRY(BASIN_NEW(&at->fact, at->columns, "a network", j->error));
        for (size_t i = 0; i < at->columns; i++) {
            int from = column_of(first, at->name[i]);
            if (from >= 0 && first->column[from].feature) at->fact[i] = &first->column[from];
        }
    }
    return BASIN_OK;
}

/* ---- seeing and settling ---- */

static basin_status see_table(basin_tables *j, const basin_table_file *t) {
    basin_table_rows rows;
    bool more = true;
    basin_status status = basin_table_rows_open(&rows, t->source, j->error);
    if (status) return status;
    while (more && !status) {
        status = basin_table_rows_next(&rows, &more, j->error);
        for (size_t i = 0; more && i < t->columns && !status; i++)
            if (t->fact[i])
                status = basin_column_see(t->fact[i], &rows, basin_table_rows_field(&rows, i),
                                          &j->rules, j->error);
    }
    basin_table_rows_close(&rows);
    return status;
}

basin_status basin_tables_see_facts(basin_tables *j) {
    if (j->known && j->known->edges.columns) return BASIN_OK; /* they are seen as they are read */
    for (int t = 0; t < j->tables; t++) {
        const basin_table_file *at = &j->table[t];
        bool any = false;
        for (size_t i = 0; at->edges && i < at->columns; i++) any = any || at->fact[i];
        if (any) BASIN_TRY(see_table(j, at));
    }
    return BASIN_OK;
}

/* The option's column, else the first number or date of a name that speaks of time, else the first
 * date. */
static basin_schema_column *choose_time(const basin_tables *j) {
    basin_schema_table *edges = &j->schema->edges;
    basin_schema_column *named = NULL, *date = NULL;
    for (size_t i = 0; i < edges->columns; i++) {
        basin_schema_column *c = &edges->column[i];
        bool number = c->type == BASIN_COLUMN_NUMBER || c->type == BASIN_COLUMN_DATE;
        bool spoken = basin_column_sounds_like_time(c->name) || !strcasecmp(c->name, "step");
        if (number && j->o->time && !strcasecmp(c->name, j->o->time)) return c;
        if (number && !named && spoken) named = c;
        if (!date && c->type == BASIN_COLUMN_DATE) date = c;
    }
    return j->o->time ? NULL : named ? named : date;
}

/* Roles of the other tables of edges, which may have columns of their own. */
static basin_status settle_rest(basin_tables *j, const basin_table_file *t) {
    for (size_t i = 0; i < t->columns; i++) {
        basin_schema_column c = {.name = t->name[i], .type = t->column[i].type, .mean = NAN};
        if (!basin_schema_find(&j->schema->edges, c.name))
            BASIN_TRY(basin_schema_add(j->schema, &j->schema->edges, &c, j->error));
    }
    return BASIN_OK;
}

basin_status basin_tables_settle_facts(basin_tables *j) {
    basin_table_file *first = first_edges(j);
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < first->columns && !status; i++)
        status = basin_column_settle(&first->column[i], j->schema, &j->schema->edges,
                                     first->source->path, &j->rules, j->error);
    for (int t = 0; t < j->tables && !status; t++)
        if (j->table[t].edges) status = settle_rest(j, &j->table[t]);
    basin_schema_column *time = status ? NULL : choose_time(j);
    if (time) time->time = true;
    if (!status && j->o->time && !time)
        status = basin_fail(j->error, BASIN_BAD_FILE,
                            "%s: column '%s' holds neither numbers nor dates, wanted the times of "
                            "edges",
                            first->source->path, j->o->time);
    return status;
}

/* ---- times ---- */

basin_status basin_tables_find_time(basin_tables *j) {
    basin_table_file *first = first_edges(j);
    const char *until = j->o->until;
    for (size_t i = 0; i < j->schema->edges.columns; i++) {
        const basin_schema_column *c = &j->schema->edges.column[i];
        int at = c->time ? column_of(first, c->name) : -1;
        if (at >= 0) j->time = &first->column[at];
    }
    if (!until) return BASIN_OK;
    if (!j->time)
        return basin_fail(j->error, BASIN_BAD_VALUE,
                          "%s: no column has the times of edges, by which until %s could be judged "
                          "(the option time names one)",
                          first->source->path, until);
    if (basin_column_read(&j->until, j->time, until, &j->rules)) return BASIN_OK;
    return basin_fail(j->error, BASIN_BAD_VALUE, "%s: until is '%s', wanted a %s as in column '%s'",
                      first->source->path, until, basin_column_type_name(j->time->type),
                      j->time->name);
}

basin_status basin_tables_read_time(basin_tables *j, double *time, bool *counts,
                                    const basin_table_file *t, const basin_table_rows *rows) {
    *counts = true;
    *time = NAN;
    for (size_t i = 0; j->time && i < t->columns; i++)
        if (t->fact[i] == j->time)
            (void)basin_column_read(time, j->time, basin_table_rows_field(rows, i), &j->rules);
    if (isfinite(j->until) && isnan(*time))
        return basin_fail(j->error, BASIN_BAD_FILE,
                          "%s: line %" PRId64
                          ": column '%s' is empty, wanted a time to compare with "
                          "until",
                          rows->path, rows->line, j->time->name);
    *counts = !(*time > j->until);
    j->late += !*counts;
    return BASIN_OK;
}

static basin_status keep_since(basin_tables *j, int32_t node, double time) {
    size_t had = j->since_capacity;
    if (!basin_array_reserve((void **)&j->since, &j->since_capacity, (size_t)node + 1,
                             sizeof *j->since))
        return basin_tables_no_memory(j, j->table[0].source->path);
    for (size_t i = had; i < j->since_capacity; i++) j->since[i] = NAN;
    if (!(j->since[node] <= time)) j->since[node] = time;
    return BASIN_OK;
}

basin_status basin_tables_give_since(basin_tables *j) {
    basin_network *n = j->network;
    const basin_network *base = j->o->base;
    if (!j->time && !(base && base->since)) return BASIN_OK;
    n->since = n->own_since = basin_array_new((size_t)n->nodes, sizeof *n->since);
    if (!n->since) return basin_tables_no_memory(j, n->path);
    for (int64_t i = 0; i < n->nodes; i++) {
        double old = base && base->since && i < base->nodes ? base->since[i] : NAN;
        n->since[i] = (size_t)i < j->since_capacity ? fmin(j->since[i], old) : old;
    }
    return BASIN_OK;
}

/* ---- rows ---- */

/* A gap in a number: an error, or as the nodes' gaps are filled. */
static basin_status fill_gap(basin_tables *j, float *cell, const basin_column *c,
                             const basin_table_rows *rows) {
    const basin_schema_column *known = basin_schema_find(&j->schema->edges, c->name);
    if (j->o->missing == BASIN_MISSING_ERROR)
        return basin_fail(j->error, BASIN_BAD_FILE,
                          "%s: line %" PRId64 ": column '%s' is empty, wanted a %s (the option "
                          "missing: zero or mean fills such gaps)",
                          rows->path, rows->line, c->name, basin_column_type_name(c->type));
    bool zero = j->o->missing == BASIN_MISSING_ZERO || !isfinite(known->mean);
    j->filled += j->o->missing == BASIN_MISSING_KEEP;
    *cell = zero ? 0 : (float)known->mean;
    return BASIN_OK;
}

static basin_status fill_cells(basin_tables *j, float *cell, const basin_table_file *t,
                               const basin_table_rows *rows) {
    basin_status status = BASIN_OK;
    for (int64_t i = 0; i < j->schema->cells; i++) cell[i] = 0;
    for (size_t i = 0; i < t->columns && !status; i++) {
        basin_column *c = t->fact[i];
        if (!c || !basin_column_is_feature(c->type)) continue;
        const char *text = basin_table_rows_field(rows, i);
        if (c->known) status = basin_column_see(c, rows, text, &j->rules, j->error);
        bool number = c->type != BASIN_COLUMN_CATEGORY;
        if (number) cell[c->first] = NAN;
        if (!status) basin_column_fill(cell, c, text, &j->rules);
        if (!status && number && !isfinite(cell[c->first]))
            status = fill_gap(j, cell + c->first, c, rows);
    }
    return status;
}

basin_status basin_tables_add_facts(basin_tables *j, basin_edge_list *list,
                                    const basin_table_file *t, const basin_table_rows *rows,
                                    const int32_t end[2], double time) {
    size_t cells = (size_t)j->schema->cells;
    basin_status status = BASIN_OK;
    for (int i = 0; i < 2 && j->time && !status; i++) status = keep_since(j, end[i], time);
    if (!cells || status) return status;
    if (!basin_array_reserve((void **)&list->cell, &list->cell_capacity, (list->count + 1) * cells,
                             sizeof *list->cell))
        return basin_tables_no_memory(j, rows->path);
    float *cell = list->cell + list->count * cells;
    status = fill_cells(j, cell, t, rows);
    if (status || !j->time) return status;
    if (!basin_array_reserve((void **)&list->time, &list->time_capacity, list->count + 1,
                             sizeof *list->time))
        return basin_tables_no_memory(j, rows->path);
    list->time[list->count] = isfinite(time) ? time : (double)cell[j->time->first];
    return BASIN_OK;
}

/* ---- rows ---- */

/* Whether something else than edges says which nodes there are. */
static bool has_nodes(const basin_tables *j) { return j->node_tables || j->base_nodes; }

static basin_status fail_end(basin_tables *j, const basin_table_rows *rows, const char *id) {
    return basin_fail(j->error, BASIN_BAD_FILE, "%s: line %" PRId64 ": node '%s' is %s", rows->path,
                      rows->line, id,
                      has_nodes(j) && *id
                          ? "in no file of nodes (the option unknown: skip or add lets such pass)"
                          : "no name that a node could have");
}

/* The node at an end of an edge; -1: the edge is to be skipped. */
static basin_status end_of_edge(basin_tables *j, int32_t *node, const basin_table_rows *rows,
                                int field) {
    const char *id = basin_table_rows_field(rows, (size_t)field);
    *node = basin_dictionary_find(&j->id, id);
    if (*node >= 0) return BASIN_OK;
    if (!has_nodes(j) && *id) return basin_dictionary_add(&j->id, node, id, j->error);
    if (!has_nodes(j) || j->o->unknown == BASIN_UNKNOWN_ERROR || !*id) return fail_end(j, rows, id);
    if (!*j->unknown.first) snprintf(j->unknown.first, sizeof j->unknown.first, "%.39s", id);
    if (j->o->unknown == BASIN_UNKNOWN_SKIP) return BASIN_OK;
    j->unknown.nodes++;
    return basin_dictionary_add(&j->id, node, id, j->error);
}

/* To the list, or to its file. */
static basin_status add_pair(basin_tables *j, basin_edge_list *list, const int32_t pair[2],
                             const char *path) {
    size_t bytes = 2 * sizeof *pair;
    if (j->o->scratch) {
        basin_status status = BASIN_OK;
        if (!list->scratch) status = basin_edge_file_new(&list->scratch, j->o->scratch, j->error);
        return status ? status : basin_edge_file_put(list->scratch, pair, bytes, j->error);
    }
    if (!basin_array_reserve((void **)&list->pair, &list->capacity, 2 * (list->count + 1),
                             sizeof *list->pair))
        return basin_tables_no_memory(j, path);
    memcpy(list->pair + 2 * list->count, pair, bytes);
    return BASIN_OK;
}

static const char *relation_of(basin_tables *j, const basin_table_file *t,
                               const basin_table_rows *rows, const char *file_name) {
    if (t->type < 0) return file_name;
    const char *type = basin_table_rows_field(rows, (size_t)t->type);
    if (type[strspn(type, " \t")]) return type;
    j->unnamed++;
    return BASIN_RELATION_EMPTY;
}

static basin_status read_edge(basin_tables *j, const basin_table_file *t,
                              const basin_table_rows *rows, const char *file_name) {
    int32_t pair[2], r;
    bool counts = true;
    double time = NAN;
    BASIN_TRY(basin_tables_read_time(j, &time, &counts, t, rows));
    if (!counts) return BASIN_OK;
    BASIN_TRY(end_of_edge(j, &pair[0], rows, t->from));
    BASIN_TRY(end_of_edge(j, &pair[1], rows, t->to));
    if ((pair[0] < 0 || pair[1] < 0)) return j->unknown.edges++, BASIN_OK;
    BASIN_TRY(basin_dictionary_add(&j->relation, &r, relation_of(j, t, rows, file_name), j->error));
    if (r >= BASIN_MOST_RELATIONS)
        return basin_fail(j->error, BASIN_BAD_FILE,
                          "%s: line %" PRId64 ": more than %d relations; is '%s' a kind of edge?",
                          rows->path, rows->line, BASIN_MOST_RELATIONS,
                          t->type >= 0 ? rows->name[t->type] : "the file");
    basin_edge_list *list = &j->edges[r];
    BASIN_TRY(add_pair(j, list, pair, rows->path));
    BASIN_TRY(basin_tables_add_facts(j, list, t, rows, pair, time));
    list->count++;
    j->edge_count++;
    return basin_tables_check_room(j, rows->path);
}

/* What edges without a relation are called: by their file where there are several, now or in
 * training, else as the only relation of training, else "homo". */
static void name_of_file(char name[100], const basin_tables *j, const char *path) {
    const char *slash = strrchr(path, '/');
    const basin_names *known = j->known ? &j->known->relation : NULL;
    bool several = j->tables - j->node_tables > 1 || (known && known->count > 1);
    const char *whole = known && known->count == 1 ? known->text : "homo";
    snprintf(name, 100, "%.*s", 99, several ? slash ? slash + 1 : path : whole);
    if (several) name[strcspn(name, ".")] = 0;
    if (!*name) strcpy(name, "homo");
}

static basin_status read_table(basin_tables *j, basin_table_file *t) {
    basin_table_rows rows;
    char name[100];
    bool more = true;
    basin_status status = basin_table_rows_open(&rows, t->source, j->error);
    if (status) return status;
    name_of_file(name, j, t->source->path);
    while (more && !status) {
        status = basin_table_rows_next(&rows, &more, j->error);
        if (!status && more) status = read_edge(j, t, &rows, name);
    }
    t->latin = rows.latin;
    basin_table_rows_close(&rows);
    return status;
}

basin_status basin_tables_read_edges(basin_tables *j) {
    basin_status status = BASIN_OK;
    for (int t = 0; t < j->tables && !status; t++)
        if (j->table[t].edges) status = read_table(j, &j->table[t]);
    for (int r = 0; r < BASIN_MOST_RELATIONS && !status; r++) {
        basin_edge_list *list = &j->edges[r];
        if (!list->scratch) continue;
        status = basin_edge_file_map(list->scratch, j->error);
        list->pair = (int32_t *)(uintptr_t)list->scratch->map.data;
    }
    return status;
}

void basin_edge_list_free(basin_edge_list *list) {
    if (!list->scratch) free(list->pair);
    basin_edge_file_free(list->scratch);
    free(list->cell);
    free(list->time);
    *list = (basin_edge_list){0};
}

/* ---- what tables add to ---- */

/* The ids of the base are known before those of the tables. */
basin_status basin_tables_begin_base(basin_tables *j) {
    const basin_network *base = j->o->base;
    char text[BASIN_NODE_TEXT];
    j->base_nodes = base ? base->nodes : 0;
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

/* Features and labels of the base's nodes. */
basin_status basin_tables_fill_base(basin_tables *j) {
    const basin_network *base = j->o->base;
    basin_network *n = j->network;
    if (!base) return BASIN_OK;
    if ((base->feature ? base->features : 0) != (n->feature ? n->features : 0))
        return basin_fail(j->error, BASIN_BAD_SHAPE,
                          "%s: %" PRId64 " features a node, wanted the %" PRId64
                          " of the tables that are added",
                          base->path, base->features, n->features);
    if (n->feature)
        memcpy(n->feature, base->feature,
               (size_t)(base->nodes * base->features) * sizeof *n->feature);
    if (base->label && !n->label) {
        BASIN_TRY(BASIN_NEW_RAW(&n->label, n->nodes, "a network", j->error));
        for (int64_t i = base->nodes; i < n->nodes; i++) n->label[i] = -1;
    }
    if (base->label) memcpy(n->label, base->label, (size_t)base->nodes * sizeof *n->label);
    return BASIN_OK;
}

/* Adds the base's edges to a relation, row by row; what they carry was before that of the new. */
static basin_status add_rows(basin_relation *to, const basin_relation *from, int64_t nodes,
                             int64_t old, bool merge, const basin_facts *facts,
                             basin_error *error) {
    basin_relation tables = *to;
    int64_t edges = to->edges + from->edges, at = 0;
    int64_t *row = basin_array_new((size_t)nodes + 1, sizeof *row);
    int32_t *col = basin_array_new((size_t)edges, sizeof *col);
    if (!row || !col) {
        free(row);
        free(col);
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %" PRId64 " edges", edges);
    }
    row[0] = 0;
    for (int64_t i = 0; i < nodes; i++) {
        size_t own = (size_t)(to->row[i + 1] - to->row[i]);
        size_t more = i < old ? (size_t)(from->row[i + 1] - from->row[i]) : 0;
        memcpy(col + at, to->col + to->row[i], own * sizeof *col);
        if (more) memcpy(col + at + own, from->col + from->row[i], more * sizeof *col);
        row[i + 1] = at += (int64_t)(own + more);
    }
    to->row = row;
    to->col = col;
    to->edges = edges;
    to->fact = NULL;
    basin_status status = basin_relation_tidy(to, nodes, merge, error);
    if (!status) status = basin_relation_alloc_facts(to, facts, error);
    if (!status) basin_relation_merge_facts(to, from, old, facts);
    if (!status) basin_relation_merge_facts(to, &tables, nodes, facts);
    tables.name = NULL;
    basin_relation_free(&tables);
    return status;
}

static basin_status join_relation(basin_tables *j, const basin_relation *from) {
    static const int32_t none = 0;
    basin_network *n = j->network;
    basin_edges empty = {&none, &none, BASIN_I32, 2, 0};
    if (basin_network_relation(n, from->name) < 0)
        BASIN_TRY(basin_network_add_relation(n, from->name, &empty, j->o, j->error));
    basin_relation *to = &n->relation[basin_network_relation(n, from->name)];
    return add_rows(to, from, n->nodes, j->base_nodes, !j->o->keep_duplicates, &n->facts, j->error);
}

basin_status basin_tables_join_base(basin_tables *j) {
    const basin_network *base = j->o->base;
    if (!base) return BASIN_OK;
    if (base->facts.count != j->network->facts.count)
        return basin_fail(j->error, BASIN_BAD_SHAPE,
                          "%s: %" PRId64 " facts an edge, wanted the %" PRId64
                          " of the tables that are added",
                          base->path, base->facts.count, j->network->facts.count);
    basin_network_add_note(j->network,
                           "%" PRId64 " nodes and %zu edges added to the %" PRId64 " nodes of %s",
                           j->network->nodes - base->nodes, j->edge_count, base->nodes, base->path);
    if (basin_network_relation(base, "homo") >= 0)
        BASIN_TRY(basin_network_add_union(j->network, j->error));
    for (int r = 0; r < base->relations; r++) BASIN_TRY(join_relation(j, &base->relation[r]));
    return BASIN_OK;
}
