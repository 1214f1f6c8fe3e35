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

#endif
