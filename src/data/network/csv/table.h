/* Tables of nodes and of edges, read together into one network; what the files of this folder hand
 * to each other. In the order in which they work: header.c, nodes.c, facts.c, edges.c, base.c,
 * notes.c; csv.c calls them. */
#ifndef BASIN_DATA_NETWORK_CSV_TABLE_H
#define BASIN_DATA_NETWORK_CSV_TABLE_H

#include "data/network/csv/column.h"

enum { BASIN_MOST_TABLES = 64, BASIN_MOST_RELATIONS = 1000 };
/* What edges are called whose cell of relations is empty: "homo" would be the whole graph. */
#define BASIN_RELATION_EMPTY "(empty)"

typedef struct basin_table_file {
    const basin_csv_source *source;
    bool edges, headerless, latin;
    int id, label, split, mask[3];
    int from, to, type;
    basin_column *column; /* [columns] */
    char **name;          /* [columns] */
    size_t columns;
    basin_column **fact; /* [columns] of edges: who sees a cell, the first such table's column */
} basin_table_file;

typedef struct basin_edge_list {
    int32_t *pair;                   /* [count, 2]; of those in a file NULL until all are read */
    struct basin_edge_file *scratch; /* that file; NULL: they are held */
    size_t count, capacity;
    float *cell; /* [count, cells] of the schema; NULL: edges carry nothing */
    size_t cell_capacity;
    double *time; /* [count] NULL: no column has times */
    size_t time_capacity;
} basin_edge_list;

/* Ends of edges that no table of nodes has. */
typedef struct basin_unknown_ends {
    int64_t edges, nodes; /* that were skipped; that were added */
    char first[40];
} basin_unknown_ends;

typedef struct basin_tables {
    const basin_network_options *o;
    const basin_schema *known; /* the options', or NULL */
    basin_schema *schema;      /* of what is read */
    basin_column_rules rules;
    basin_table_file table[BASIN_MOST_TABLES];
    int tables, node_tables;
    basin_dictionary id, relation;
    basin_dictionary class_name; /* of labels, where the options have classes */
    int64_t base_nodes;          /* the first so many are those of the network that is added to */
    int32_t *seen;               /* [seen_capacity] 1 + the table that told of a node last */
    size_t seen_capacity;
    basin_edge_list edges[BASIN_MOST_RELATIONS];
    size_t edge_count, limit; /* of all relations; bytes that all this may take */
    basin_unknown_ends unknown;
    const basin_column *time; /* of edges, or NULL */
    double until;             /* the last that counts */
    int64_t late;             /* rows behind it */
    int64_t unnamed;          /* edges without a relation, in a table of relations */
    int64_t filled;           /* gaps in numbers of edges that were to be kept */
    double *since;            /* [since_capacity] of nodes, NaN: no edge yet */
    size_t since_capacity;
    basin_network *network;
    basin_error *error;
} basin_tables;

basin_status basin_tables_no_memory(basin_tables *tables, const char *path);
/* Fails where what is in memory, and what the network will take beside it, pass the limit. */
basin_status basin_tables_check_room(basin_tables *tables, const char *path);

/* Reads all headers and says what every column is for. */
basin_status basin_tables_read_headers(basin_tables *tables, const basin_csv_source *source,
                                       int count);
/* Whether options leave a column out; whether its name is that of labels. */
bool basin_tables_drop(const basin_tables *tables, const char *name);
bool basin_tables_is_label(const basin_tables *tables, const char *name);
/* Whether a column of that name, which may be none, can be a feature, or a fact of edges. */
bool basin_tables_has_name(const basin_tables *tables, bool edges, const char *name);
/* Says that a table, or where it is NULL all of them, lack a column, and which one may be meant. */
basin_status basin_tables_fail_absent(basin_tables *tables, const basin_table_file *table,
                                      const char *name, const char *what);
/* Labels that are classes by name (classes.c): a cell is seen; all are numbered, in the order of
 * their names; the number of a cell's, -1 where it has none. */
basin_status basin_tables_see_class(basin_tables *tables, const char *text);
basin_status basin_tables_number_classes(basin_tables *tables);
int32_t basin_tables_class(const basin_tables *tables, const char *text);
/* Sees every cell of the tables of nodes. */
basin_status basin_tables_see_nodes(basin_tables *tables);
/* Decides what columns become; makes the schema. */
basin_status basin_tables_settle(basin_tables *tables);
/* Features, labels and masks of the network. */
basin_status basin_tables_fill_nodes(basin_tables *tables);
basin_status basin_tables_read_edges(basin_tables *tables);
void basin_edge_list_free(basin_edge_list *list);

/* ---- facts.c: what edges carry ---- */

/* Which columns of edges may be facts; known ones as the schema has them. */
basin_status basin_tables_bind_facts(basin_tables *tables);
/* Sees every cell of those that no schema knows. */
basin_status basin_tables_see_facts(basin_tables *tables);
/* Decides what they become, and which one has the times. */
basin_status basin_tables_settle_facts(basin_tables *tables);
/* Once the schema stands: the column of times, and the last time that counts. */
basin_status basin_tables_find_time(basin_tables *tables);
/* When a row was, and whether it counts. */
basin_status basin_tables_read_time(basin_tables *tables, double *time, bool *counts,
                                    const basin_table_file *table, const basin_table_rows *rows);
/* The cells of a row, behind those of the list; both ends of the edge were there at that time. */
basin_status basin_tables_add_facts(basin_tables *tables, basin_edge_list *list,
                                    const basin_table_file *table, const basin_table_rows *rows,
                                    const int32_t end[2], double time);
/* The times of nodes' first edges become the network's. */
basin_status basin_tables_give_since(basin_tables *tables);

/* What tables add to: its ids before anything is read, its nodes' features and labels, its edges.
 */
basin_status basin_tables_begin_base(basin_tables *tables);
basin_status basin_tables_fill_base(basin_tables *tables);
basin_status basin_tables_join_base(basin_tables *tables);
/* Adds to the network's note what was read as what, and what was not read. */
void basin_tables_note(basin_tables *tables);

#endif
