/* Networks from a caller's arrays, by the same checked steps that the readers take; see
 * basin/tasks/network.h. */
#include <stdio.h>
#include <string.h>

#include "data/network/schema/schema.h"

static const char PATH[] = "arrays"; /* what errors call them */

static basin_status check(const basin_network_arrays *a, basin_error *error) {
    if (a->feature && a->features < 1)
        return basin_fail(error, BASIN_BAD_SHAPE, "%s: %lld features a node, wanted some", PATH,
                          (long long)a->features);
    if (a->relations < 1 || !a->edges)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %d relations, wanted at least one", PATH,
                          a->relations);
    for (int r = 0; r < a->relations; r++) {
        const basin_edges *e = &a->edges[r];
        bool whole = e->dtype == BASIN_I32 || e->dtype == BASIN_I64;
        if (e->count < 0 || e->stride < 1 || !whole || (e->count && (!e->from || !e->to)))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: relation %d has %lld edges of type %s, %lld apart; wanted "
                              "arrays from and to of I32 or I64, at least 1 apart",
                              PATH, r, (long long)e->count, basin_dtype_name(e->dtype),
                              (long long)e->stride);
    }
    return BASIN_OK;
}

static basin_tensor borrow(const void *data, basin_dtype dtype, basin_shape shape) {
    return basin_tensor_borrow(data, dtype, shape);
}

static basin_status set_columns(basin_network *n, const basin_network_arrays *a,
                                basin_error *error) {
    basin_names_builder names = {0};
    basin_status status = BASIN_OK;
    for (int64_t f = 0; a->feature && a->column && f < a->features && !status; f++)
        status = basin_names_add(&names, a->column[f], strlen(a->column[f]), error);
    n->column = names.names;
    return status;
}

static basin_status set_nodes(basin_network *n, const basin_network_arrays *a,
                              const basin_network_options *options, basin_error *error) {
    basin_status status = BASIN_OK;
    if (a->feature) {
        basin_tensor x = borrow(a->feature, BASIN_F32, BASIN_SHAPE(a->nodes, a->features));
        status = basin_network_set_features(n, &x, options, error);
    }
    if (!status) status = set_columns(n, a, error);
    if (!status && a->label) {
        basin_tensor y = borrow(a->label, BASIN_I32, BASIN_SHAPE(a->nodes));
        status = basin_network_set_label_tensor(n, &y, options, error);
    }
    return status;
}

static basin_status set_parts(basin_network *n, const basin_network_arrays *a, basin_error *error) {
    const uint8_t *const mask[] = {a->train, a->val, a->test};
    static const char *const name[] = {"train", "val", "test"};
    basin_status status = BASIN_OK;
    for (int p = 0; p < 3 && !status; p++) {
        if (!mask[p]) continue;
        basin_tensor m = borrow(mask[p], BASIN_U8, BASIN_SHAPE(a->nodes));
        status = basin_network_set_masks(n, name[p], &m, error);
    }
    return status;
}

static basin_status add_relations(basin_network *n, const basin_network_arrays *a,
                                  const basin_network_options *options, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int r = 0; r < a->relations && !status; r++) {
        char number[32];
        snprintf(number, sizeof number, a->relations > 1 ? "relation %d" : "homo", r);
        const char *name = a->name && a->name[r] ? a->name[r] : number;
        status = basin_network_add_relation(n, name, &a->edges[r], options, error);
    }
    if (!status && basin_network_main_relation(n) < 0) status = basin_network_add_union(n, error);
    return status;
}

static basin_status make(basin_network **network, const basin_network_arrays *a,
                         const basin_network_options *o, basin_error *error) {
    basin_network_options how;
    basin_status status = basin_schema_settle(&how, o, PATH, error);
    how.missing = BASIN_MISSING_KEEP; /* until the schema is known */
    if (!status) status = check(a, error);
    if (!status) status = basin_network_new(network, PATH, a->nodes, error);
    if (!status) status = set_nodes(*network, a, &how, error);
    if (!status) status = set_parts(*network, a, error);
    if (!status) status = add_relations(*network, a, &how, error);
    return status ? status : basin_network_finish(*network, o, error);
}

basin_status basin_network_from_arrays(basin_network **network, const basin_network_arrays *arrays,
                                       const basin_network_options *options, basin_error *error) {
    *network = NULL;
    basin_status status = make(network, arrays, basin_network_options_or(options), error);
    if (status) {
        basin_network_free(*network);
        *network = NULL;
    }
    return status;
}
