/* Chosen pictures, read a second time and completed; see report.h. So memory does not grow with the
 * number of pictures that are scored. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/image/report/report.h"

enum { BATCH = 16 };

static basin_status make_room(basin_image_exhibit *e, const basin_image_settings *s,
                              basin_error *error) {
    size_t tokens, values;
    e->index = basin_array_new((size_t)e->count, sizeof *e->index);
    e->mse = basin_array_new((size_t)e->count, sizeof *e->mse);
    if (basin_size_multiply(&tokens, (size_t)e->count, (size_t)basin_image_tokens(s)) &&
        basin_size_multiply(&values, tokens, (size_t)basin_image_patch_values(s))) {
        e->mask = basin_array_new(tokens, 1);
        e->patches = basin_array_new(values, sizeof *e->patches);
        e->output = basin_array_new(values, sizeof *e->output);
    }
    if (e->index && e->mse && e->mask && e->patches && e->output) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the pictures of a report");
}

static basin_status complete(basin_image_exhibit *e, basin_image_model *model, basin_feed *feed,
                             basin_image_runner *runner, basin_error *error) {
    const basin_image_settings *s = &model->settings;
    int64_t N = basin_image_tokens(s), size = N * basin_image_patch_values(s);
    for (int64_t done = 0; done < e->count;) {
        basin_feed_batch batch;
        basin_status status = basin_feed_next(&batch, feed, error);
        if (status) return status;
        if (batch.count == 0 || done + batch.count > e->count)
            return basin_fail(error, BASIN_BAD_FILE,
                              "of %lld chosen pictures %lld can be read again: did the files "
                              "change?",
                              (long long)e->count, (long long)done);
        for (int64_t i = 0; i < batch.count; i++)
            basin_image_score_mask(e->mask + (done + i) * N, s, e->index[done + i], 0);
        memcpy(e->patches + done * size, batch.values,
               (size_t)(batch.count * size) * sizeof *e->patches);
        status = basin_image_runner_run(runner, e->output + done * size, e->patches + done * size,
                                        e->mask + done * N, batch.count, error);
        if (status) return status;
        done += batch.count;
    }
    return BASIN_OK;
}

basin_status basin_image_exhibit_new(basin_image_exhibit *e, basin_image_model *model,
                                     const basin_image_set *set, const basin_image_scores *scores,
                                     const int64_t *place, int64_t count, const basin_watch *watch,
                                     basin_error *error) {
    basin_feed *feed = NULL;
    basin_image_runner runner = {0};
    *e = (basin_image_exhibit){.count = count};
    basin_status status = make_room(e, &model->settings, error);
    for (int64_t i = 0; i < count && !status; i++) {
        e->index[i] = scores->index[place[i]];
        e->mse[i] = scores->picture_mse[place[i]];
    }
    basin_image_set chosen = {.pictures = set->pictures, .item = e->index, .items = count};
    if (!status)
        status = basin_image_feed(&feed, &chosen, &model->settings, BATCH, false, 0, watch, error);
    if (!status) status = basin_image_runner_new(&runner, model, BATCH, error);
    if (!status) status = complete(e, model, feed, &runner, error);
    basin_image_runner_free(&runner);
    basin_feed_free(feed);
    if (status) basin_image_exhibit_free(e);
    return status;
}

void basin_image_exhibit_free(basin_image_exhibit *e) {
    free(e->index);
    free(e->mse);
    free(e->patches);
    free(e->output);
    free(e->mask);
    *e = (basin_image_exhibit){0};
}
