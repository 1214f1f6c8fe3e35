/* Rest points that a run sought (basin_store_take_convergence): in its log, and a word where some
 * were not reached. */
#ifndef BASIN_TRAIN_RUN_RESTS_H
#define BASIN_TRAIN_RUN_RESTS_H

#include "basin/plan.h"
#include "io/json_writer.h"
#include "train/run/watch.h"

void basin_convergence_add(basin_convergence *sum, const basin_convergence *more);
/* Fields of a line of the log; none where no rest points were sought. */
void basin_convergence_log(basin_json *line, const basin_convergence *rests);
/* A line that says `when` and what was not reached; nothing where all was. */
void basin_convergence_note(const basin_watch *watch, const char *when,
                            const basin_convergence *rests);

#endif
