/* Options that open networks; see network_flags.h. */
#include "cli/data/network_options.h"

#include <string.h>

basin_network_options basin_network_flags_options(const basin_network_flags *f) {
    return (basin_network_options){
        .directed = f->directed,
        .keep_duplicates = f->keep_duplicates,
        .self = !strcmp(f->self, "add")    ? BASIN_SELF_ADD
                : !strcmp(f->self, "drop") ? BASIN_SELF_DROP
                                           : BASIN_SELF_KEEP,
        .missing = !strcmp(f->missing, "zero")   ? BASIN_MISSING_ZERO
                   : !strcmp(f->missing, "mean") ? BASIN_MISSING_MEAN
                                                 : BASIN_MISSING_ERROR,
        .unlabelled_first = f->unlabelled_first,
        .id = f->id,
        .label = f->label,
        .source = f->source,
        .target = f->target,
        .edge_type = f->edge_type,
        .drop = f->drop,
        .max_categories = f->max_categories,
    };
}

basin_status basin_network_flags_open(basin_network **network, const basin_network_flags *flags,
                                      int paths, char **path, bool quiet, basin_error *error) {
    basin_network_options o = basin_network_flags_options(flags);
    basin_status status = basin_network_open(network, (const char *const *)path, paths, &o, error);
    /* what was built has been looked at; what is mapped may hold anything */
    if (!status && (*network)->file) status = basin_network_check(*network, error);
    if (status) {
        basin_network_free(*network);
        *network = NULL;
    }
    if (!status && !quiet && (*network)->note)
        fprintf(stderr, "basin: note: %s: %s\n", (*network)->path, (*network)->note);
    return status;
}
