/* Scoring completions; see image.h. */
#include "tasks/pictures/image.h"

#include "base/clock.h"
#include "base/sized.h"
#include "base/sort.h"
#include "basin/tasks/metrics.h"
#include "basin/tasks/metrics_picture.h"

typedef struct state {
    basin_image_model *model;
    const basin_image_set *set;
    const basin_image_evaluate_options *scoring;
    basin_image_evaluate_result *scores;
    basin_image_runner runner;
    basin_picture_feed *feed;
    int64_t batch, tokens, values; /* B, N, P */
    float *output;                 /* [B, N, P] */
    uint8_t *mask;                 /* [B, N] */
    double *sum;                   /* [MEASURES, masks] over pictures */
    float *plane[2];               /* [channels, size, size] completed and true, 0 .. 1 */
    bool structure;                /* whether a picture is large enough for SSIM's window */
} state;

/* Seed of mask seed 0, apart from those of training. */
enum { MASK_SEED = 0x6576616c };
enum { MSE, MEAN_MSE, PSNR, MEAN_PSNR, SSIM, MEASURES, SSIM_WINDOW = 7 };

double basin_image_masked_error(const float *output, const float *truth, const uint8_t *mask,
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

/* Each channel's mean over the shown patches: an answer that needs no model. */
static void mean_colour(double mean[3], const float *truth, const uint8_t *mask, int64_t tokens,
                        int64_t values, int64_t channels) {
    int64_t area = values / channels, shown = 0;
    mean[0] = mean[1] = mean[2] = 0;
    for (int64_t n = 0; n < tokens; n++) {
        if (mask[n] != BASIN_PATCH_SHOWN) continue;
        for (int64_t v = 0; v < values; v++) mean[v / area] += (double)truth[n * values + v];
        shown++;
    }
    for (int64_t c = 0; c < channels && shown; c++) mean[c] /= (double)(shown * area);
}

double basin_image_mean_error(const float *truth, const uint8_t *mask,
                              const basin_image_settings *s) {
    double mean[3], sum = 0;
    int64_t tokens = basin_image_tokens(s), values = basin_image_patch_values(s), count = 0;
    mean_colour(mean, truth, mask, tokens, values, s->channels);
    for (int64_t n = 0; n < tokens; n++) {
        if (mask[n] != BASIN_PATCH_REPLACED) continue;
        for (int64_t v = 0; v < values; v++, count++) {
            double error = (double)truth[n * values + v] - mean[v / (values / s->channels)];
            sum += error * error;
        }
    }
    return sum / (double)count;
}

void basin_image_mean_fill(float *out, const float *truth, const uint8_t *mask,
                           const basin_image_settings *s) {
    double mean[3];
    int64_t tokens = basin_image_tokens(s), values = basin_image_patch_values(s);
    int64_t area = values / s->channels;
    mean_colour(mean, truth, mask, tokens, values, s->channels);
    for (int64_t v = 0; v < tokens * values; v++)
        out[v] =
            mask[v / values] == BASIN_PATCH_REPLACED ? (float)mean[v % values / area] : truth[v];
}

void basin_image_paste(float *out, const float *output, const float *truth, const uint8_t *mask,
                       int64_t tokens, int64_t values) {
    for (int64_t n = 0; n < tokens; n++)
        memmove(out + n * values, (mask[n] == BASIN_PATCH_REPLACED ? output : truth) + n * values,
                (size_t)values * sizeof *out);
}

double basin_image_psnr(float *plane[2], const float *pasted, const float *truth,
                        const basin_image_settings *s) {
    basin_patching patching = basin_image_patching(s);
    basin_patches_to_planes(plane[0], pasted, &patching);
    basin_patches_to_planes(plane[1], truth, &patching);
    return basin_psnr(plane[0], plane[1], s->channels * s->size * s->size, 1);
}

/* PSNR and SSIM of picture i of the batch, its shown patches pasted into the output, and the PSNR
 * of the mean colour, added to the sums of mask m. */
static basin_status score_picture(state *s, int64_t i, const float *truth, int m,
                                  basin_error *error) {
    const basin_image_settings *c = &s->model->settings;
    const uint8_t *mask = s->mask + i * s->tokens;
    float *output = s->output + i * s->tokens * s->values;
    double *sum = s->sum + m, ssim = 0;
    int masks = s->scores->masks;
    basin_image_paste(output, output, truth, mask, s->tokens, s->values);
    sum[PSNR * masks] += basin_image_psnr(s->plane, output, truth, c);
    if (s->structure)
        BASIN_TRY(
            basin_ssim(&ssim, s->plane[0], s->plane[1], c->channels, c->size, c->size, 1, error));
    sum[SSIM * masks] += ssim;
    basin_image_mean_fill(output, truth, mask, c);
    sum[MEAN_PSNR * masks] += basin_image_psnr(s->plane, output, truth, c);
    return BASIN_OK;
}

void basin_image_evaluate_mask(uint8_t *mask, const basin_image_settings *settings, int64_t index,
                               uint64_t mask_seed) {
    basin_image_mask_draw(mask, basin_image_tokens(settings), basin_image_occluded(settings), 0,
                          MASK_SEED + mask_seed, (uint64_t)index);
}

static void draw_masks(state *s, const basin_picture_feed_batch *batch, uint64_t seed) {
    basin_image_settings masked = s->model->settings, *c = &masked;
    if (s->scoring->ratio > 0) c->occlude = fmax(1, round(s->scoring->ratio * (double)s->tokens));
    for (int64_t i = 0; i < batch->count; i++) {
        uint8_t *mask = s->mask + i * s->tokens;
        if (s->scoring->holes)
            basin_image_hole_draw(mask, c->size / c->patch, MASK_SEED + seed,
                                  (uint64_t)batch->index[i]);
        else
            basin_image_evaluate_mask(mask, c, batch->index[i], seed);
    }
}

static basin_status score_batch(state *s, const basin_picture_feed_batch *batch,
                                basin_error *error) {
    basin_image_evaluate_result *r = s->scores;
    int64_t size = s->tokens * s->values;
    for (int64_t i = 0; i < batch->count; i++) r->index[r->pictures + i] = batch->index[i];
    for (int m = 0; m < r->masks; m++) {
        draw_masks(s, batch, s->scoring->first_mask + (uint64_t)m);
        BASIN_TRY(basin_image_runner_run(&s->runner, s->output, batch->values, s->mask,
                                         batch->count, error));
        for (int64_t i = 0; i < batch->count; i++) {
            const float *truth = batch->values + i * size;
            const uint8_t *mask = s->mask + i * s->tokens;
            double mse =
                basin_image_masked_error(s->output + i * size, truth, mask, s->tokens, s->values);
            r->picture_mse[r->pictures + i] += mse / r->masks;
            s->sum[MSE * r->masks + m] += mse;
            s->sum[MEAN_MSE * r->masks + m] +=
                basin_image_mean_error(truth, mask, &s->model->settings);
            if (!s->scoring->fast) BASIN_TRY(score_picture(s, i, truth, m, error));
        }
    }
    r->pictures += batch->count;
    return BASIN_OK;
}

static basin_status score_all(state *s, basin_error *error) {
    double begun = basin_clock();
    for (;;) {
        basin_picture_feed_batch batch = {0};
        BASIN_TRY(basin_picture_feed_next(&batch, s->feed, error));
        if (!batch.count) return BASIN_OK;
        BASIN_TRY(score_batch(s, &batch, error));
        double speed = (double)s->scores->pictures / (basin_clock() - begun);
        basin_watch_progress(s->scoring->watch, "scoring", s->scores->pictures, s->set->items,
                             speed, "images");
    }
}

/* Equal errors in the order of the pictures. */
static basin_status rank(basin_image_evaluate_result *scores, basin_error *error) {
    BASIN_SCRATCH_RAW(basin_ranked, all, scores->pictures, "a ranking", error);
    BASIN_TRY(BASIN_NEW_RAW(&scores->order, scores->pictures, "a ranking", error));
    for (int64_t i = 0; i < scores->pictures; i++)
        all[i] = (basin_ranked){scores->picture_mse[i], i};
    qsort(all, (size_t)scores->pictures, sizeof *all, basin_lower_first);
    for (int64_t i = 0; i < scores->pictures; i++) scores->order[i] = all[i].at;
    return BASIN_OK;
}

/* Mean and deviation over masks of a mean over pictures; sums become means. */
static void spread(double *mean, double *deviation, state *s, int measure) {
    int masks = s->scores->masks;
    double *value = s->sum + measure * masks;
    for (int m = 0; m < masks; m++) value[m] /= (double)s->scores->pictures;
    basin_mean_deviation(mean, deviation, value, masks);
}

static void summarise(state *s) {
    basin_image_evaluate_result *r = s->scores;
    r->psnr = r->ssim = r->mean_psnr = NAN;
    double unused;
    spread(&r->mse, &r->mse_deviation, s, MSE);
    spread(&r->mean_mse, &unused, s, MEAN_MSE);
    if (!s->scoring->fast) spread(&r->psnr, &r->psnr_deviation, s, PSNR);
    if (!s->scoring->fast) spread(&r->mean_psnr, &unused, s, MEAN_PSNR);
    if (!s->scoring->fast && s->structure) spread(&r->ssim, &r->ssim_deviation, s, SSIM);
}

static basin_status make_buffers(state *s, basin_error *error) {
    const basin_image_settings *c = &s->model->settings;
    int64_t patches = s->batch * s->tokens, items = s->set->items;
    BASIN_TRY(BASIN_NEW_RAW(&s->output, patches * s->values, "scores", error));
    BASIN_TRY(BASIN_NEW_RAW(&s->mask, patches, "scores", error));
    BASIN_TRY(BASIN_NEW(&s->sum, s->scores->masks * MEASURES, "scores", error));
    for (int i = 0; i < 2; i++)
        BASIN_TRY(BASIN_NEW_RAW(&s->plane[i], c->channels * c->size * c->size, "scores", error));
    BASIN_TRY(BASIN_NEW_RAW(&s->scores->index, items, "scores", error));
    return BASIN_NEW(&s->scores->picture_mse, items, "scores", error);
}

static basin_status begin(state *s, basin_error *error) {
    const basin_image_settings *c = &s->model->settings;
    s->tokens = basin_image_tokens(c);
    s->values = basin_image_patch_values(c);
    s->structure = c->size >= SSIM_WINDOW;
    s->batch = s->scoring->batch > 0 ? s->scoring->batch : c->batch;
    if (s->batch > s->set->items) s->batch = s->set->items;
    BASIN_TRY(make_buffers(s, error));
    BASIN_TRY(basin_image_feed(&s->feed, s->set, c, &(basin_picture_feed_config){.batch = s->batch},
                               s->scoring->watch, error));
    return basin_image_runner_new(&s->runner, s->model, s->batch, error);
}

/* Whether the model was trained on these pictures, which is an error where they are said to be held
 * out: other paths, another number or another seed choose others. */
static basin_status check_seen(state *s, basin_error *error) {
    basin_image_overlap overlap = {.trained_on = -1};
    if (s->model->card.text) /* not yet while it is trained, whose pictures were compared before */
        BASIN_TRY(basin_image_card_compare(&overlap, &s->model->card, s->set, error));
    s->scores->trained_on = overlap.trained_on;
    s->scores->trained_on_about = overlap.trained_on >= 0 && !overlap.exact;
    if (!s->set->held || overlap.held_out || overlap.trained_on < 0) return BASIN_OK;
    if (overlap.trained_on > 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s%lld of the %lld pictures that hold_out chooses were trained on; "
                          "expected the paths, limit and hold_out of the training",
                          overlap.exact ? "" : "about ", (long long)overlap.trained_on,
                          (long long)s->set->items);
    basin_watch_note(s->scoring->watch,
                     "these are not the pictures that training held out; it has not seen them");
    return BASIN_OK;
}

static void end(state *s) {
    basin_image_runner_free(&s->runner);
    basin_picture_feed_free(s->feed);
    BASIN_FREE(s->output, s->mask, s->sum, s->plane[0], s->plane[1]);
}

static basin_status run(state *s, basin_error *error) {
    BASIN_TRY(check_seen(s, error));
    BASIN_TRY(begin(s, error));
    BASIN_TRY(score_all(s, error));
    if (!s->scores->pictures)
        return basin_fail(error, BASIN_BAD_VALUE, "none of the pictures could be read");
    BASIN_TRY(rank(s->scores, error));
    summarise(s);
    s->scores->unreadable = basin_picture_feed_count(s->feed).unreadable;
    basin_convergence_note(s->scoring->watch, "scoring", s->model->store);
    return BASIN_OK;
}

basin_status basin_image_evaluate_set(basin_image_evaluate_result *scores, basin_image_model *model,
                                      const basin_image_set *set,
                                      const basin_image_evaluate_options *scoring,
                                      basin_error *error) {
    BASIN_AT_EXIT(end)
    state s = {.model = model, .set = set, .scoring = scoring, .scores = scores};
    *scores = (basin_image_evaluate_result){.size = scores->size,
                                            .masks = scoring->masks > 0 ? scoring->masks : 1};
    BASIN_TRY_OR(run(&s, error), basin_image_evaluate_result_free(scores));
    return BASIN_OK;
}

static basin_status check_masks(const basin_image_evaluate_options *how, basin_error *error) {
    if (!(how->ratio >= 0 && how->ratio <= 1))
        return basin_fail(error, BASIN_BAD_VALUE, "ratio is %g; expected 0 to 1", how->ratio);
    if (how->ratio > 0 && how->holes)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "ratio is %g with holes, whose sizes are random; expected one of the two",
                          how->ratio);
    return BASIN_OK;
}

basin_status basin_image_evaluate(basin_image_evaluate_result *scores, basin_image_model *model,
                                  const basin_image_evaluate_options *scoring, basin_error *error) {
    BASIN_AT_EXIT(basin_image_set_close) basin_image_set set = {0};
    BASIN_TRY(BASIN_SIZE_CHECK(scores, "basin_image_evaluate_result", error));
    BASIN_TRY(BASIN_SIZE_CHECK(scoring, "basin_image_evaluate_options", error));
    *scores = (basin_image_evaluate_result){.size = scores->size};
    BASIN_TRY(check_masks(scoring, error));
    BASIN_TRY(
        basin_image_set_open(&set, scoring->source, true, (uint64_t)model->settings.seed, error));
    return basin_image_evaluate_set(scores, model, &set, scoring, error);
}

void basin_image_evaluate_result_free(basin_image_evaluate_result *scores) {
    BASIN_FREE(scores->index, scores->picture_mse, scores->order);
    *scores = (basin_image_evaluate_result){.size = scores->size};
}
