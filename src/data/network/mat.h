/* The conversion from what matio has read, apart from the file, so that it can be tested with
 * anything in the structures. */
#ifndef BASIN_DATA_NETWORK_MAT_H
#define BASIN_DATA_NETWORK_MAT_H

#include <matio.h>

#include "data/network/network.h"

/* What a variable is to a network, by its name: a relation (*relation is what to call it),
 * features, labels, or nothing. */
typedef enum basin_mat_role {
    BASIN_MAT_OTHER,
    BASIN_MAT_RELATION,
    BASIN_MAT_FEATURES,
    BASIN_MAT_LABELS,
} basin_mat_role;

basin_mat_role basin_mat_role_of(const char **relation, const char *name);
/* How many nodes a variable of that role speaks of; -1 where it cannot be told. */
int64_t basin_mat_nodes(const matvar_t *variable, basin_mat_role role);
basin_status basin_mat_convert(basin_network *network, const matvar_t *variable,
                               const basin_network_options *options, basin_error *error);

/* ---- the frame of a MATLAB 5 file: tags and sizes, apart from the numbers ---- */

/* Walks through all tags of the file, those of compressed variables included, and refuses one that
 * is cut off, that does not unpack to its end, whose matrices hold other counts than their sizes
 * say, or that has a matrix of more than `limit` bytes (0: basin_memory_share). Files of other
 * versions pass. */
basin_status basin_mat_frame_check(const void *data, size_t size, size_t limit, const char *path,
                                   basin_error *error);

#endif
