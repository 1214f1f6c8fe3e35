/* Networks as CSV or TSV: files of edges (a row an edge: source, target and perhaps a relation) and
 * files of nodes (a row a node: id, features, label, split). A file is one of edges where its
 * header has columns for both ends. Ids are any text. See table.h for who does what. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/try.h"
#include "data/network/csv/table.h"

enum { CATEGORIES = 32 };

basin_status basin_tables_no_memory(basin_tables *j, const char *path) {
    return basin_fail(j->error, BASIN_NO_MEMORY, "%s: out of memory", path);
}

/* A small compressed file can hold any number of rows. */
basin_status basin_tables_check_room(basin_tables *j, const char *path) {
    const basin_names_builder *names = &j->id.names;
    size_t ids = names->text_capacity + names->at_capacity * sizeof *names->names.at;
    size_t nodes = (size_t)names->names.count * 3 * sizeof(int64_t);
    size_t cells = j->schema ? (size_t)j->schema->cells : 0;
    size_t times = j->time ? 3 * sizeof(double) : 0;
    size_t edges = j->edge_count * (4 * sizeof(int32_t) + 3 * cells * sizeof(float) + times);
    if (j->o->scratch) edges = 0;
    size_t slots = j->id.slots * sizeof *j->id.slot + j->seen_capacity * sizeof *j->seen;
    return basin_memory_check((double)ids + (double)nodes + (double)edges + (double)slots, j->limit,
                              path, BASIN_NO_MEMORY, j->error);
}

static basin_status make_nodes(basin_tables *j) {
    basin_network *n = j->network;
    basin_status status = basin_tables_fill_nodes(j);
    if (status) return status;
    /* Those of a table stay, though they be 0, 1, ..: tomorrow's may be in another order. */
    if (j->node_tables || !basin_names_are_numbers(&j->id.names.names)) {
        n->id = j->id.names.names;
        j->id.names.names = (basin_names){0};
    }
    if (!status) status = basin_schema_facts(&n->facts, j->schema, j->error);
    n->class_name = j->class_name.names.names;
    j->class_name.names.names = (basin_names){0};
    n->schema = j->schema;
    j->schema = NULL;
    if (!status && n->feature) status = basin_network_fill_missing(n, j->o->missing, j->error);
    if (!status && n->label) basin_network_finish_labels(n, j->o);
    if (!status) status = basin_tables_give_since(j);
    if (!status) basin_tables_note(j);
    return status;
}

/* How many different edges a relation has: loops once, others at both ends where they go both ways.
 */
static int64_t count_edges(const basin_relation *r, const basin_network *n) {
    int64_t loops = 0;
    for (int64_t i = 0; i < n->nodes; i++)
        for (int64_t e = r->row[i]; e < r->row[i + 1]; e++) loops += r->col[e] == i;
    return n->directed ? r->edges : loops + (r->edges - loops) / 2;
}

static bool has_kinds(const basin_facts *facts) {
    for (int64_t i = 0; i < facts->count; i++)
        if (facts->kind[i] == BASIN_FACT_KIND) return true;
    return false;
}

/* Rows that name the same two ends are one edge: what becomes of the others is said. */
static void note_repeats(basin_tables *j) {
    const basin_network *n = j->network;
    int64_t different = 0;
    if (j->o->keep_duplicates || j->o->self != BASIN_SELF_KEEP) return;
    for (int r = 0; r < n->relations; r++) different += count_edges(&n->relation[r], n);
    if (n->facts.count)
        basin_network_add_note(j->network,
                               "edges: %zu rows became %" PRId64
                               " edges that carry count%s, of numbers sum, mean and last%s%s",
                               j->edge_count, different,
                               n->directed ? "" : " (both directions together)",
                               n->facts.time < 0 ? "" : ", of times the last",
                               has_kinds(&n->facts) ? ", of texts the share of each value" : "");
    else if (different < (int64_t)j->edge_count)
        basin_network_add_note(j->network,
                               "edges: %" PRId64 " of %zu rows repeat others and count once",
                               (int64_t)j->edge_count - different, j->edge_count);
}

/* A day without edges has one empty relation. */
static basin_status make_relations(basin_tables *j) {
    const basin_names *names = &j->relation.names.names;
    const char *empty = j->known && j->known->relation.count ? j->known->relation.text : "homo";
    basin_status status = BASIN_OK;
    for (int64_t r = 0; (r < names->count || r == 0) && !status; r++) {
        const basin_edge_list *list = &j->edges[r];
        basin_edges edges = {list->pair, list->pair ? list->pair + 1 : NULL, BASIN_I32, 2,
                             (int64_t)list->count};
        const char *name = names->count ? names->text + names->at[r] : empty;
        if (names->count == 1 && j->unnamed == (int64_t)j->edge_count) name = empty;
        status = basin_network_add_relation(j->network, name, &edges, j->o, j->error);
        if (!status && j->network->facts.count)
            status = basin_network_add_facts(j->network, &j->network->relation[r], &edges,
                                             list->cell, list->time, j->error);
        basin_edge_list_free(&j->edges[r]);
    }
    return status;
}

/* The first file of nodes, and of edges, for what is said of them. */
static basin_status name_tables(basin_tables *j) {
    for (int t = 0; t < j->tables; t++) {
        char **path = &j->network->table_path[j->table[t].edges];
        if (!*path && !(*path = basin_string_copy(j->table[t].source->path)))
            return basin_tables_no_memory(j, j->network->path);
    }
    return BASIN_OK;
}

static basin_status make_network(basin_tables *j) {
    BASIN_TRY(basin_tables_begin_base(j));
    BASIN_TRY(basin_tables_see_nodes(j));
    BASIN_TRY(basin_tables_see_facts(j));
    BASIN_TRY(basin_tables_settle(j));
    if (j->o->scratch && j->schema->cells)
        BASIN_TRY(basin_fail(j->error, BASIN_UNSUPPORTED,
                             "%s: edges carry more than their ends (amounts, times, kinds), which "
                             "edges in files do not; wanted the option drop for these columns",
                             j->table[0].source->path));
    BASIN_TRY(basin_tables_find_time(j));
    BASIN_TRY(basin_tables_read_edges(j));
    const char *path = j->table[0].source->path;
    int64_t nodes = j->id.names.names.count;
    if (nodes == 0 || (j->relation.names.names.count == 0 && !j->node_tables))
        return basin_fail(j->error, BASIN_BAD_FILE, "%s: no row below the header", path);
    BASIN_TRY(basin_tables_number_classes(j));
    BASIN_TRY(basin_network_new(&j->network, path, nodes, j->error));
    BASIN_TRY(name_tables(j));
    BASIN_TRY(make_nodes(j));
    BASIN_TRY(make_relations(j));
    note_repeats(j);
    BASIN_TRY(basin_tables_join_base(j));
    return basin_network_check_note(j->network, j->error);
}

static void tables_free(basin_tables *j) {
    for (int t = 0; t < j->tables; t++) {
        basin_table_file *table = &j->table[t];
        for (size_t i = 0; table->column && i < table->columns; i++)
            basin_column_free(&table->column[i]);
        for (size_t i = 0; table->name && i < table->columns; i++) free(table->name[i]);
        free(table->column);
        free(table->name);
        free(table->fact);
    }
    for (int r = 0; r < BASIN_MOST_RELATIONS; r++) basin_edge_list_free(&j->edges[r]);
    basin_dictionary_free(&j->id);
    basin_dictionary_free(&j->relation);
    basin_dictionary_free(&j->class_name);
    basin_schema_free(j->schema);
    free(j->seen);
    free(j->since);
    free(j);
}

basin_status basin_network_csv_read(basin_network **network, const basin_csv_source *source,
                                    int sources, const basin_network_options *options,
                                    basin_error *error) {
    basin_network_options settled;
    *network = NULL;
    basin_status status =
        basin_schema_settle(&settled, basin_network_options_or(options), source[0].path, error);
    if (status) return status;
    basin_tables *j = calloc(1, sizeof *j);
    if (!j) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", source[0].path);
    j->o = &settled;
    j->known = settled.schema;
    j->rules = (basin_column_rules){
        settled.max_categories > 0 ? settled.max_categories : CATEGORIES, settled.date_format};
    j->error = error;
    j->until = INFINITY;
    j->limit = settled.memory ? settled.memory : basin_memory_share();
    status = basin_tables_read_headers(j, source, sources);
    if (!status) status = make_network(j);
    if (status) {
        basin_network_free(j->network);
        j->network = NULL;
    }
    *network = j->network;
    tables_free(j);
    return status;
}
