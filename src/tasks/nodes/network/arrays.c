/* A network from arrays of the caller. */
#include "base/shape.h"
#include "base/sized.h"
#include "tasks/nodes/network/network.h"

static const char PATH[] = "arrays"; /* what errors call them */

static basin_status check(const basin_network_arrays *a, basin_error *error) {
    if (a->feature && a->features < 1)
        return basin_fail(error, BASIN_BAD_SHAPE, "%s: %lld features a node, expected some", PATH,
                          (long long)a->features);
    if (a->relations < 1 || !a->edges)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %d relations, expected at least one", PATH,
                          a->relations);
    for (int r = 0; r < a->relations; r++) {
        const basin_edges *e = &a->edges[r];
        if (e->stride < 1 || (e->count > 0 && (!e->from || !e->to)))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: relation %d has edges %lld apart; expected arrays from and to, "
                              "at least 1 apart",
                              PATH, r, (long long)e->stride);
    }
    return BASIN_OK;
}

static basin_status set_ids(basin_network *n, const char *const *id, basin_error *error) {
    BASIN_AT_EXIT(basin_dictionary_free) basin_dictionary seen = {0};
    for (int32_t i = 0, number; i < n->nodes; i++) {
        BASIN_TRY(basin_dictionary_add(&seen, &number, id[i], error));
        if (number != i)
            return basin_fail(error, BASIN_BAD_VALUE, "%s: nodes %d and %d have the id '%s'", PATH,
                              number, i, id[i]);
    }
    return basin_names_make(&n->id, id, n->nodes, error);
}

static basin_status set_nodes(basin_network *n, const basin_network_arrays *a,
                              const basin_network_options *options, basin_error *error) {
    static const char *const part[] = {"train", "val", "test"};
    const uint8_t *const mask[] = {a->train, a->val, a->test};
    basin_tensor x = basin_tensor_view(a->feature, BASIN_F32, BASIN_SHAPE(a->nodes, a->features));
    basin_tensor y = basin_tensor_view(a->label, BASIN_I32, BASIN_SHAPE(a->nodes));
    if (a->feature) BASIN_TRY(basin_network_set_features(n, &x, options, error));
    if (a->feature && a->column)
        BASIN_TRY(basin_names_make(&n->column, a->column, a->features, error));
    if (a->id) BASIN_TRY(set_ids(n, a->id, error));
    if (a->label) BASIN_TRY(basin_network_set_label_tensor(n, &y, options, error));
    for (int p = 0; p < 3; p++) {
        basin_tensor m = basin_tensor_view(mask[p], BASIN_U8, BASIN_SHAPE(a->nodes));
        if (mask[p]) BASIN_TRY(basin_network_set_masks(n, part[p], &m, error));
    }
    return BASIN_OK;
}

basin_status basin_network_from_arrays(basin_network **network, const basin_network_arrays *arrays,
                                       const basin_network_options *options, basin_error *error) {
    const basin_network_options *o = basin_network_options_or(options);
    const basin_network_arrays *a = arrays;
    basin_settled_options settled;
    basin_network_options *how = &settled.network;
    BASIN_NETWORK_AT_EXIT basin_network *n = NULL;
    *network = NULL;
    BASIN_TRY(BASIN_SIZE_CHECK(a, "basin_network_arrays", error));
    BASIN_TRY(basin_schema_settle(&settled, o, PATH, error));
    how->missing = BASIN_MISSING_KEEP; /* until the schema is known */
    BASIN_TRY(check(a, error));
    BASIN_TRY(basin_network_new(&n, PATH, a->nodes, error));
    BASIN_TRY(set_nodes(n, a, how, error));
    for (int r = 0; r < a->relations; r++) {
        char number[32] = "homo";
        if (a->relations > 1) snprintf(number, sizeof number, "relation %d", r);
        const char *name = a->name && a->name[r] ? a->name[r] : number;
        BASIN_TRY(basin_network_add_relation(n, name, &a->edges[r], how, error));
    }
    if (basin_network_main_relation(n) < 0) BASIN_TRY(basin_network_add_union(n, error));
    BASIN_TRY(basin_network_finish(n, o, error));
    *network = n, n = NULL;
    return BASIN_OK;
}
