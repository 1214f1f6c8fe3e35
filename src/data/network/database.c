/* Networks from databases: a query that gives a row a node, one that gives a row an edge, read as
 * tables of files are (csv/). */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/database/database.h"
#include "data/network/network.h"
#include "data/packed.h"

static bool is_database(const char *path, const basin_network_options *o) {
    bool named = (o->nodes || o->edges) && basin_database_is_named(path);
    return !basin_stream_is(path) && (named || basin_database_is(path));
}

/* What is wrong with the options for a database that is so called. */
static basin_status check_queries(const char *name, int paths, const basin_network_options *o,
                                  basin_error *error) {
    if (paths > 1)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: is a database among %d files, wanted it alone: the options nodes "
                          "and edges are queries of it",
                          name, paths);
    if (o->edges && !o->no_header) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s: is a database, wanted %s", name,
                      o->edges ? "no option no_header"
                               : "the option edges: SQL that gives a row an edge");
}

basin_status basin_network_database_find(const char **database, const char *const *path, int paths,
                                         const basin_network_options *o, basin_error *error) {
    char *name;
    *database = NULL;
    for (int i = 0; i < paths && !*database; i++)
        if (is_database(path[i], o)) *database = path[i];
    if (!*database && !o->nodes && !o->edges) return BASIN_OK;
    if (!*database)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: is no database, wanted no option %s, which is a query", path[0],
                          o->nodes ? "nodes" : "edges");
    basin_status status = basin_database_mask(&name, *database, error);
    if (!status) status = check_queries(name, paths, o, error);
    free(name);
    return status;
}

/* What messages call the tables, e.g. "bank.db (nodes)". */
static basin_status name_tables(char *name[2], const char *database, basin_error *error) {
    static const char *const word[] = {"nodes", "edges"};
    size_t size = strlen(database) + 10;
    for (int i = 0; i < 2; i++) {
        if (!(name[i] = malloc(size)))
            return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", database);
        snprintf(name[i], size, "%s (%s)", database, word[i]);
    }
    return BASIN_OK;
}

/* The network is called as the database is. */
static basin_status rename_network(basin_network *network, const char *name, basin_error *error) {
    char *path = basin_string_copy(name);
    if (!path) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", name);
    free(network->path);
    network->path = path;
    return BASIN_OK;
}

basin_status basin_network_database_read(basin_network **network, const char *address,
                                         const basin_network_options *o, basin_error *error) {
    char *name[2] = {NULL, NULL};
    basin_database *database;
    basin_status status = basin_database_open(&database, address, error);
    if (status) return status;
    basin_query query[2] = {{.database = database, .sql = o->nodes},
                            {.database = database, .sql = o->edges, .edges = true}};
    status = name_tables(name, basin_database_name(database), error);
    basin_csv_source source[2] = {{.path = name[0], .query = &query[0]},
                                  {.path = name[1], .query = &query[1]}};
    int first = o->nodes ? 0 : 1;
    if (!status) status = basin_network_csv_read(network, source + first, 2 - first, o, error);
    if (!status) status = rename_network(*network, basin_database_name(database), error);
    free(name[0]);
    free(name[1]);
    basin_database_close(database);
    return status;
}
