/* Averages of parameters over the steps of a run, kept as states "average.NAME" beside them: a plan
 * of its own, so that a device does it where the parameters are. */
#ifndef BASIN_TRAIN_RUN_AVERAGE_H
#define BASIN_TRAIN_RUN_AVERAGE_H

#include "basin/params.h"

typedef struct basin_average {
    basin_graph *graph;
    basin_plan *plan;
    basin_expr keep; /* input [] */
    double most;     /* what `keep` rises to */
    basin_store *store;
    const basin_params *params;
} basin_average;

/* average <- keep average + (1 - keep) parameter, keep at most `most`. `params` must stay where
 * they are. */
basin_status basin_average_new(basin_average *average, basin_store *store,
                               const basin_params *params, double most, basin_error *error);
void basin_average_free(basin_average *average);
/* After step t = 1, 2, ..: early steps count more, keep = t / (10 + t), so that the first weights
 * are forgotten. */
basin_status basin_average_step(basin_average *average, int64_t t, basin_error *error);

/* The next three do nothing where there are no averages, all of them zeros. */
/* Averages begin as the parameters are. */
basin_status basin_average_begin(basin_average *average, basin_error *error);
/* Puts the averages in the place of the parameters, until they are asked back. */
basin_status basin_average_lend(basin_average *average, basin_error *error);
basin_status basin_average_end_lending(basin_average *average, basin_error *error);

#endif
