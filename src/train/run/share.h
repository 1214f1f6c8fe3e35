/* What ranks of a run tell each other besides gradients: files that rank 0 has read, whether to
 * stop, scores, moments that are divided. Alone (no ranks) these do nothing. */
#ifndef BASIN_TRAIN_RUN_SHARE_H
#define BASIN_TRAIN_RUN_SHARE_H

#include "ranks/ranks.h"
#include "train/run/inside.h"

/* Rank 0 looked at the files of the run and `status` came of it: the others get the checkpoint, or
 * the model to begin with, so that only its host need have them. */
basin_status basin_run_share_files(basin_run *run, basin_status status, basin_error *error);
/* Before the first step: an error where ranks found other data or sizes than rank 0. */
basin_status basin_run_share_sizes(basin_run *run, basin_error *error);
/* Whether any rank wants to stop. */
basin_status basin_run_share_stop(basin_run *run, bool *stop, basin_error *error);
/* Rank 0's score, or its failure, to all. */
basin_status basin_run_share_score(basin_run *run, basin_score *score, basin_status status,
                                   basin_error *error);

/* Where the optimiser's state is divided: moments that rank 0 does not have into its bundle. All
 * ranks call it, with NULL where nothing is written. */
basin_status basin_run_share_moments(basin_run *run, basin_bundle *bundle, basin_error *error);
/* The checkpoint: the store and where the run stands, aside and renamed. */
basin_status basin_run_save(basin_run *run, basin_error *error);

#endif
