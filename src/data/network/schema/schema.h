/* The schema inside the library: what every column of a table means, so that another table is read
 * as the first one was. Callers see the opaque basin_schema of basin/tasks/network.h.
 *
 * Columns of nodes are features (number, category, date) or have a role. Features stand in the
 * order of their columns: a number or a date is one, a category one a value. Columns of edges
 * likewise make the cells of a row, of which facts are made (facts.c). */
#ifndef BASIN_DATA_NETWORK_SCHEMA_SCHEMA_H
#define BASIN_DATA_NETWORK_SCHEMA_SCHEMA_H

#include "data/network/network.h"

typedef enum basin_column_type {
    BASIN_COLUMN_DROPPED, /* not read */
    BASIN_COLUMN_NUMBER,
    BASIN_COLUMN_CATEGORY,
    BASIN_COLUMN_DATE, /* days since 1970 */
    BASIN_COLUMN_ID,
    BASIN_COLUMN_LABEL,
    BASIN_COLUMN_SPLIT,
    BASIN_COLUMN_SOURCE,
    BASIN_COLUMN_TARGET,
    BASIN_COLUMN_RELATION,
    BASIN_COLUMN_TYPES,
} basin_column_type;

typedef struct basin_schema_column {
    char *name;
    basin_column_type type;
    bool comma;        /* its numbers have a decimal comma */
    bool time;         /* of edges: it says when an edge was */
    double mean;       /* of a number or a date, where it is known; else NaN */
    basin_names value; /* of a category, in the order of its features */
    int64_t first;     /* its first feature; of edges: its first cell */
} basin_schema_column;

typedef struct basin_schema_table {
    basin_schema_column *column; /* [columns] */
    size_t columns, capacity;
} basin_schema_table;

struct basin_schema {
    bool named;     /* columns have names; else they go by their place */
    bool of_arrays; /* basin_schema_of made it: types of columns are not known */
    bool directed;
    basin_missing missing;
    basin_unknown unknown;
    char *date_format; /* NULL: ISO 8601 */
    basin_schema_table nodes, edges;
    basin_names relation; /* of edges, without the union of several */
    int64_t features;
    int64_t cells; /* of a row of edges */
};

basin_status basin_schema_new(basin_schema **schema, basin_error *error);
/* Adds a column, and its features behind those that are there. `value` is copied. */
basin_status basin_schema_add(basin_schema *schema, basin_schema_table *table,
                              const basin_schema_column *column, basin_error *error);
bool basin_column_is_feature(basin_column_type type);
const char *basin_column_type_name(basin_column_type type);
/* How many features a column is. */
int64_t basin_schema_width(const basin_schema_column *column);
/* The column of that name, else one that differs by the case of letters alone; or NULL. */
const basin_schema_column *basin_schema_find(const basin_schema_table *table, const char *name);
/* The first column of a role, or NULL. */
const basin_schema_column *basin_schema_role(const basin_schema_table *table,
                                             basin_column_type type);
/* The names of all features: "age", "city=Rome"; free them. */
basin_status basin_schema_names(basin_names *names, const basin_schema *schema, basin_error *error);
/* What fills the gaps of every feature; `fill` [features]. */
void basin_schema_fill(float *fill, const basin_schema *schema, basin_missing missing);

/* The schema of a network that was not read from tables: numbers, by name or by place. */
basin_status basin_schema_of(basin_schema **schema, const basin_network *network,
                             basin_missing missing, basin_error *error);
/* Takes the names of the network's relations into the schema. */
basin_status basin_schema_set_relations(basin_schema *schema, const basin_network *network,
                                        basin_error *error);
/* The facts that its columns of edges become: none where there are no such columns. Free them. */
basin_status basin_schema_facts(basin_facts *facts, const basin_schema *schema, basin_error *error);
/* The facts of one row of edges, of its cells. */
void basin_schema_fill_facts(float *fact /* [facts] */, const basin_schema *schema,
                             const float *cell /* [cells] */);
/* basin_network_check_schema but for what edges carry, for models that do not read it. */
basin_status basin_network_check_columns(const basin_network *network, const basin_schema *schema,
                                         basin_error *error);
/* Where a schema decides, what options leave open comes from it; an error where they contradict. */
basin_status basin_schema_settle(basin_network_options *settled,
                                 const basin_network_options *options, const char *path,
                                 basin_error *error);

#endif
