/* The settings that a run trains with: those asked for, with what was left open; see start.h. */
#include "task/image/start.h"

#include <string.h>

#include "task/image/adopt.h"
#include "train/shards/shards.h"

/* A rehearsal asks for the time of a step alone, and saves the pass over the pictures; rank 0 makes
 * it for all. */
static basin_status measure(basin_image_settings *settings, const basin_training *training,
                            const basin_image_set *set, basin_error *error) {
    basin_ranks *ranks = training->ranks;
    basin_status status = BASIN_OK;
    if (training->rehearse > 0) {
        for (int c = 0; c < 3 && !(settings->deviation[c] > 0); c++)
            settings->mean[c] = 0.5, settings->deviation[c] = 0.25;
        return BASIN_OK;
    }
    if (basin_ranks_rank(ranks) == 0) status = basin_image_measure(settings, set, error);
    status = basin_ranks_agree(ranks, status, error);
    if (!status)
        status = basin_ranks_broadcast(ranks, settings->mean, sizeof settings->mean, 0, error);
    if (!status)
        status =
            basin_ranks_broadcast(ranks, settings->deviation, sizeof settings->deviation, 0, error);
    return status;
}

/* Statistics that were not given are those of the checkpoint or of the model to begin with, whose
 * weights know them. */
static void inherit(basin_image_settings *settings, const basin_image_settings *from) {
    if (settings->deviation[0] > 0) return;
    memcpy(settings->mean, from->mean, sizeof settings->mean);
    memcpy(settings->deviation, from->deviation, sizeof settings->deviation);
}

static basin_status go_on(basin_image_settings *settings, const basin_bundle *checkpoint,
                          const basin_watch *watch, basin_error *error) {
    basin_image_settings saved;
    basin_status status = basin_image_settings_read(&saved, checkpoint, error);
    if (status) return status;
    inherit(settings, &saved);
    settings->shards = basin_shards_choose(settings->shards, saved.shards, settings->batch, NULL);
    status = basin_settings_match(&saved, settings, basin_image_task.table,
                                  basin_bundle_path(checkpoint), error);
    if (!status && saved.epochs != settings->epochs)
        basin_watch_note(watch,
                         "the run was to have %lld epochs; from here on the learning rate is that "
                         "of a run of %lld",
                         (long long)saved.epochs, (long long)settings->epochs);
    return status;
}

static basin_status begin(basin_image_settings *settings, const basin_training *training,
                          const basin_bundle *from, const basin_image_set *set,
                          basin_error *error) {
    basin_image_settings first;
    basin_status status = from ? basin_image_settings_read(&first, from, error) : BASIN_OK;
    if (!status && from) inherit(settings, &first);
    if (!status && from) status = basin_image_adopt_check(settings, from, error);
    settings->shards = basin_shards_choose(settings->shards, 0, settings->batch, training->ranks);
    return status ? status : measure(settings, training, set, error);
}

static basin_status check_shards(const basin_image_settings *settings, basin_error *error) {
    if (settings->batch % settings->shards == 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "shards is %lld, wanted a divisor of the batch, %lld",
                      (long long)settings->shards, (long long)settings->batch);
}

basin_status basin_image_start(basin_image_settings *settings, const basin_run *run,
                               const basin_image_set *set, basin_error *error) {
    const basin_training *training = basin_run_training(run);
    const basin_bundle *checkpoint = basin_run_checkpoint(run);
    basin_status status = checkpoint ? go_on(settings, checkpoint, training->watch, error)
                                     : begin(settings, training, basin_run_from(run), set, error);
    return status ? status : check_shards(settings, error);
}
