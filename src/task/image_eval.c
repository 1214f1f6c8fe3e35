/* Scoring completions; see image_eval.h. */
#include "task/image_eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef struct state {
    basin_image_session *session;
    const basin_image_scoring *scoring;
    basin_image_scores *scores;
    basin_image_runner runner;
    basin_feed *feed;
    int64_t batch, tokens, values; /* B, N, P */
    float *output;                 /* [B, N, P] */
    uint8_t *mask;                 /* [B, N] */
    double *sum;                   /* [masks] of errors */
} state;

/* The mean squared error over the replaced patches of one picture. */
static double masked_error(const float *output, const float *truth, const uint8_t *mask,
                           int64_t tokens, int64_t values) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t n = 0; n < tokens; n++) {
        if (mask[n] != BASIN_PATCH_REPLACED) continue;
        for (int64_t v = n * values; v < (n + 1) * values; v++)
            sum += ((double)output[v] - truth[v]) * ((double)output[v] - truth[v]);
        count += values;
    }
    return sum / (double)count;
}

/* Mask number m of picture i: a stream of its own, the same whatever the batch. */
static void draw(state *s, uint8_t *mask, int64_t picture, int m) {
    uint64_t seed = 0x6576616c + s->scoring->first_mask + (uint64_t)m;
    basin_image_mask_draw(mask, s->tokens, s->session->settings.occlude, 0, seed,
                          (uint64_t)picture);
}

static basin_status score_batch(state *s, const basin_batch *batch, basin_error *error) {
    basin_image_scores *r = s->scores;
    int64_t size = s->tokens * s->values;
    for (int64_t i = 0; i < batch->count; i++) r->index[r->pictures + i] = batch->index[i];
    for (int m = 0; m < r->masks; m++) {
        for (int64_t i = 0; i < batch->count; i++)
            draw(s, s->mask + i * s->tokens, batch->index[i], m);
        basin_status status = basin_image_runner_run(&s->runner, s->output, batch->values, s->mask,
                                                     batch->count, error);
        if (status) return status;
        for (int64_t i = 0; i < batch->count; i++) {
            double mse = masked_error(s->output + i * size, batch->values + i * size,
                                      s->mask + i * s->tokens, s->tokens, s->values);
            r->picture_mse[r->pictures + i] += mse / r->masks;
            s->sum[m] += mse;
        }
    }
    r->pictures += batch->count;
    return BASIN_OK;
}

static basin_status score_all(state *s, basin_error *error) {
    double begun = basin_task_clock();
    for (;;) {
        basin_batch batch;
        basin_status status = basin_feed_next(&batch, s->feed, error);
        if (status) return status;
        if (!batch.count) return BASIN_OK;
        status = score_batch(s, &batch, error);
        if (status) return status;
        double speed = (double)s->scores->pictures / (basin_task_clock() - begun);
        basin_news news = {.what = "scoring",
                           .done = s->scores->pictures,
                           .total = s->scoring->data->items,
                           .loss = NAN,
                           .speed = speed,
                           .unit = "images",
                           .seconds_left = NAN};
        basin_watch_show(s->scoring->watch, &news);
    }
}

/* Mean and sample deviation. */
static void spread(double *mean, double *deviation, const double *value, int count) {
    double sum = 0, squares = 0;
    for (int i = 0; i < count; i++) sum += value[i];
    *mean = sum / count;
    for (int i = 0; i < count; i++) squares += (value[i] - *mean) * (value[i] - *mean);
    *deviation = count > 1 ? sqrt(squares / (count - 1)) : 0;
}

static void summarise(state *s) {
    basin_image_scores *r = s->scores;
    for (int m = 0; m < r->masks; m++) s->sum[m] /= (double)r->pictures;
    spread(&r->mse, &r->mse_deviation, s->sum, r->masks);
}

static basin_status begin(state *s, basin_error *error) {
    const basin_image_settings *c = &s->session->settings;
    const basin_image_data *data = s->scoring->data;
    s->tokens = basin_image_tokens(c);
    s->values = basin_image_patch_values(c);
    s->batch = s->scoring->batch > 0 ? s->scoring->batch : c->batch;
    if (s->batch > data->items) s->batch = data->items;
    size_t patches = (size_t)(s->batch * s->tokens);
    s->output = basin_array_new(patches * (size_t)s->values, sizeof *s->output);
    s->mask = basin_array_new(patches, sizeof *s->mask);
    s->sum = calloc((size_t)s->scores->masks, sizeof *s->sum);
    s->scores->index = basin_array_new((size_t)data->items, sizeof *s->scores->index);
    s->scores->picture_mse = calloc((size_t)data->items, sizeof *s->scores->picture_mse);
    if (!s->output || !s->mask || !s->sum || !s->scores->index || !s->scores->picture_mse)
        return basin_fail(error, BASIN_NO_MEMORY, "no memory to score pictures");
    basin_status status =
        basin_image_feed(&s->feed, data, c, s->batch, false, 0, s->scoring->watch, error);
    if (!status) status = basin_image_runner_new(&s->runner, s->session, s->batch, error);
    return status;
}

basin_status basin_image_score(basin_image_scores *scores, basin_image_session *session,
                               const basin_image_scoring *scoring, basin_error *error) {
    state s = {.session = session, .scoring = scoring, .scores = scores};
    *scores = (basin_image_scores){.masks = scoring->masks};
    basin_status status = begin(&s, error);
    if (!status) status = score_all(&s, error);
    if (!status && !scores->pictures)
        status = basin_fail(error, BASIN_BAD_VALUE, "no picture that can be read, to score");
    if (!status) {
        summarise(&s);
        scores->unreadable = basin_feed_unreadable(s.feed);
    }
    basin_image_runner_free(&s.runner);
    basin_feed_free(s.feed);
    free(s.output);
    free(s.mask);
    free(s.sum);
    if (status) basin_image_scores_free(scores);
    return status;
}

void basin_image_scores_free(basin_image_scores *scores) {
    free(scores->index);
    free(scores->picture_mse);
    *scores = (basin_image_scores){0};
}
