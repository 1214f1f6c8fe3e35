/* Edges in files of a folder while a network is built from tables, so that memory holds a few bytes
 * a node and one range of rows at a time: for graphs that are cut without being loaded. */
#ifndef BASIN_DATA_NETWORK_EDGE_FILE_H
#define BASIN_DATA_NETWORK_EDGE_FILE_H

#include <stdio.h>

#include "data/network/network.h"
#include "io/file.h"

/* A file without a name that is written once, then mapped. */
typedef struct basin_edge_file {
    FILE *file;
    char *path;    /* for messages: it has no name any more */
    basin_map map; /* its bytes */
} basin_edge_file;

/* In a folder, which is made if absent. */
basin_status basin_edge_file_new(basin_edge_file **file, const char *folder, basin_error *error);
basin_status basin_edge_file_put(basin_edge_file *file, const void *data, size_t bytes,
                                 basin_error *error);
basin_status basin_edge_file_map(basin_edge_file *file, basin_error *error);
/* NULL is none. */
void basin_edge_file_free(basin_edge_file *file);

/* Fills the rows first .. last - 1 of a relation, sorted and merged, as rows 0 .. of `piece`. */
typedef basin_status (*basin_rows_maker)(basin_relation *piece, const void *context, int64_t first,
                                         int64_t last, basin_error *error);
/* The rows of a relation, range by range: its `col` lies in a file of the folder. A range has as
 * many entries as `memory` bytes hold, or one row; row i has at most entries[i] of them. */
basin_status basin_relation_make_in_file(basin_relation *relation, int64_t nodes,
                                         const int64_t *entries /* [nodes] */,
                                         basin_rows_maker make, const void *context,
                                         const char *folder, size_t memory, basin_error *error);

#endif
