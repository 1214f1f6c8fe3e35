/* Tables of edges: a row an edge, into one list a relation. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/network/csv/table.h"
#include "data/network/parts/edge_file.h"

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
    basin_status status = basin_tables_read_time(j, &time, &counts, t, rows);
    if (status || !counts) return status;
    status = end_of_edge(j, &pair[0], rows, t->from);
    if (!status) status = end_of_edge(j, &pair[1], rows, t->to);
    if (!status && (pair[0] < 0 || pair[1] < 0)) return j->unknown.edges++, BASIN_OK;
    if (!status)
        status =
            basin_dictionary_add(&j->relation, &r, relation_of(j, t, rows, file_name), j->error);
    if (status) return status;
    if (r >= BASIN_MOST_RELATIONS)
        return basin_fail(j->error, BASIN_BAD_FILE,
                          "%s: line %" PRId64 ": more than %d relations; is '%s' a kind of edge?",
                          rows->path, rows->line, BASIN_MOST_RELATIONS,
                          t->type >= 0 ? rows->name[t->type] : "the file");
    basin_edge_list *list = &j->edges[r];
    status = add_pair(j, list, pair, rows->path);
    if (!status) status = basin_tables_add_facts(j, list, t, rows, pair, time);
    if (status) return status;
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
