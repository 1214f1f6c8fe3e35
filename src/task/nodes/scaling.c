/* Several scalings in one table, and what of it each member sees; see net.h. For each hop
 * the table has the planes of the scaler one after the other, each with all features. */
#include <string.h>

#include "task/nodes/net.h"

/* Number `n` of the scalings joined by +, counted round and round. */
static basin_status pick(basin_scaler_kind *kind, const char *list, int64_t n, basin_error *error) {
    char name[32] = "";
    int64_t count = 1;
    for (const char *c = list; *c; c++) count += *c == '+';
    for (n %= count; n > 0; n--) list += strcspn(list, "+") + 1;
    size_t length = strcspn(list, "+");
    if (length < sizeof name) memcpy(name, list, length);
    return basin_scaler_parse(kind, name, error);
}

static bool joined(const basin_nodes_settings *settings) { return strchr(settings->scaling, '+'); }

basin_status basin_nodes_scaling_kind(basin_scaler_kind *kind, const basin_nodes_settings *settings,
                                      basin_error *error) {
    if (!joined(settings)) return basin_scaler_parse(kind, settings->scaling, error);
    *kind = strstr(settings->scaling, "bins") ? BASIN_SCALE_ALL : BASIN_SCALE_BOTH;
    return BASIN_OK;
}

basin_expr basin_nodes_mask_declare(basin_graph *graph, const basin_nodes_settings *settings,
                                    int64_t columns) {
    return joined(settings) ? basin_input(graph, "mask", BASIN_SHAPE(columns)) : NULL;
}

/* Planes of the table: standard, quantile, then bins. */
static bool sees(basin_scaler_kind kind, int64_t plane) {
    if (plane == 0) return kind == BASIN_SCALE_STANDARD || kind == BASIN_SCALE_BOTH;
    if (plane == 1) return kind == BASIN_SCALE_QUANTILE || kind == BASIN_SCALE_BOTH;
    return kind == BASIN_SCALE_BINS;
}

basin_status basin_nodes_mask_write(basin_plan *plan, basin_expr mask,
                                    const basin_nodes_settings *settings, int64_t member,
                                    basin_error *error) {
    basin_scaler_kind table, own;
    basin_tensor tensor;
    if (!mask) return BASIN_OK;
    int64_t columns = basin_expr_shape(mask).dim[0];
    basin_status status = basin_nodes_scaling_kind(&table, settings, error);
    if (!status) status = pick(&own, settings->scaling, member, error);
    if (!status) status = basin_tensor_new(&tensor, BASIN_F32, BASIN_SHAPE(columns), error);
    if (status) return status;
    int64_t planes = basin_scaler_planes(table), width = columns / (1 + settings->hops) / planes;
    for (int64_t c = 0; c < columns; c++) ((float *)tensor.data)[c] = sees(own, c / width % planes);
    status = basin_plan_write(plan, mask, &tensor, error);
    basin_tensor_free(&tensor);
    return status;
}
