/* Tables of nodes and of edges, read together into one network: header.c finds what columns are
 * for, csv.c reads the rows. */
#ifndef BASIN_TASKS_NODES_NETWORK_TABLES_H
#define BASIN_TASKS_NODES_NETWORK_TABLES_H

#include "tasks/common/table/table.h"
#include "tasks/nodes/network/network.h"

/* ---- all tables ---- */

enum { BASIN_MAX_TABLES = 64, BASIN_MAX_TABLE_RELATIONS = 1000 };
/* What edges are called whose cell of relations is empty: "homo" would be the whole graph. */
#define BASIN_RELATION_EMPTY "(empty)"

/* What a column may be for; masks in the order of train, val, test. */
typedef enum basin_role {
    BASIN_ROLE_SPLIT,
    BASIN_ROLE_MASK,
    BASIN_ROLE_ID = BASIN_ROLE_MASK + 3,
    BASIN_ROLE_LABEL,
    BASIN_ROLE_FROM,
    BASIN_ROLE_TO,
    BASIN_ROLE_TYPE,
    BASIN_ROLES,
} basin_role;

typedef struct basin_table_file {
    const basin_csv_source *source;
    bool edges, headerless, latin;
    char relation[100];  /* of its edges, where no column says it */
    int at[BASIN_ROLES]; /* the column of each role; -1: none */
    int columns;
    basin_column *column; /* [columns] */
    /* [columns] What reads a cell; NULL where it is neither a feature nor a fact of an edge. */
    basin_column **cell;
    basin_column_rules rules;
} basin_table_file;

typedef struct basin_edge_list {
    int32_t *pair; /* [count, 2] */
    size_t count, capacity;
    float *cell; /* [count, cells] of the schema; NULL: edges carry nothing */
    size_t cell_capacity;
    double *time; /* [count] NULL: no column has times */
    size_t time_capacity;
} basin_edge_list;

/* What was counted while rows were read, for the notes. */
typedef struct basin_table_counts {
    int64_t skipped, added; /* edges left out and nodes added since no table of nodes has an end */
    char unknown[40];       /* the first such end */
    int64_t late;           /* rows after the last time that counts */
    int64_t early;          /* rows not later than the latest of the base */
    int64_t updated;        /* nodes of the base that tables have */
    int64_t repeated;       /* rows of nodes that replace one before, in tables that add */
    int64_t loops;          /* edges from a node to itself */
    int64_t unnamed;        /* edges without a relation, in a table of relations */
    int64_t filled;         /* gaps in numbers of edges */
} basin_table_counts;

typedef struct basin_tables {
    const basin_network_options *o;
    const basin_table_options *t; /* of `o` */
    const basin_schema *known;    /* the options', or NULL */
    basin_schema *schema;         /* of what is read */
    basin_column_rules rules;
    basin_table_file table[BASIN_MAX_TABLES];
    int tables, node_tables;
    basin_table_file *first; /* table of edges */
    basin_dictionary id, relation;
    basin_dictionary class_name; /* of labels, where the options have classes */
    int64_t base_nodes;          /* the first so many are those of the network that is added to */
    const char *absent;          /* of tables that add: a feature that none has; NULL: none */
    int32_t *seen;               /* [seen_capacity] 1 + the last table with that node */
    size_t seen_capacity;
    basin_edge_list edges[BASIN_MAX_TABLE_RELATIONS];
    size_t edge_count, limit; /* of all relations; bytes that all this may take */
    const basin_column *time; /* of edges, or NULL */
    double until;             /* the last that counts */
    basin_table_counts counts;
    const basin_table_file *contrary; /* a cell settles its decimal mark, which is .. */
    int contrary_mark;                /* .. this one: all is read again by it */
    double *since;                    /* [since_capacity] of nodes, NaN: no edge yet */
    size_t since_capacity;
    basin_network *network;
    basin_error *error;
} basin_tables;

/* Reads all headers, says what every column is for and which cells are read. */
basin_status basin_tables_read_headers(basin_tables *tables, const basin_csv_source *source,
                                       int count);
/* The column of that name, by letters of any case, or -1. */
int basin_table_column(const basin_table_file *table, const char *name);
/* Adds to the network's note what was read as what, and what was not read. */
void basin_tables_note(basin_tables *tables);

#endif
