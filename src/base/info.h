/* What the engine reports about backends, plans and this machine, as values. */
#ifndef BASIN_BASE_INFO_H
#define BASIN_BASE_INFO_H

#include <math.h>

#include "basin/backend.h"
#include "basin/energy.h"
#include "basin/machine.h"
#include "basin/plan.h"

static inline basin_backend_info basin_backend_info_of(const basin_backend *backend) {
    basin_backend_info info = {.size = sizeof info};
    basin_backend_get_info(&info, backend);
    return info;
}

static inline basin_machine_info basin_machine_info_now(void) {
    basin_machine_info info = {.size = sizeof info};
    basin_machine_get_info(&info);
    return info;
}

static inline basin_plan_stats basin_plan_stats_of(const basin_plan *plan) {
    basin_plan_stats stats = {.size = sizeof stats};
    basin_plan_get_stats(&stats, plan);
    return stats;
}

static inline basin_convergence basin_convergence_of(basin_store *store) {
    basin_convergence convergence = {.size = sizeof convergence};
    basin_store_take_convergence(&convergence, store);
    return convergence;
}

static inline basin_block_view basin_block_view_of(const basin_block_bound *bound, basin_expr g) {
    basin_block_view view = {.size = sizeof view};
    basin_block_inspect(&view, bound, g);
    return view;
}

/* An output of one element; NaN if it cannot be read. */
static inline double basin_plan_scalar(basin_plan *plan, basin_expr output) {
    double value;
    return basin_plan_read_scalar(&value, plan, output, NULL) == BASIN_OK ? value : NAN;
}

#endif
