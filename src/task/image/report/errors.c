/* PSNR of one picture, and what the mean colour would score; see look.h and report.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "basin/metrics_picture.h"
#include "task/image/report/report.h"

void basin_image_paste(float *out, const float *output, const float *truth, const uint8_t *mask,
                       int64_t tokens, int64_t values) {
    for (int64_t n = 0; n < tokens; n++)
        memcpy(out + n * values, (mask[n] == BASIN_PATCH_REPLACED ? output : truth) + n * values,
               (size_t)values * sizeof *out);
}

basin_status basin_image_masked_psnr(double *psnr, const float *output, const float *truth,
                                     const uint8_t *mask, const basin_image_settings *s,
                                     basin_error *error) {
    int64_t N = basin_image_tokens(s), P = basin_image_patch_values(s), size = N * P;
    basin_patching patching = basin_image_patching(s);
    float *room = basin_array_new((size_t)size * 3, sizeof *room);
    if (!room) return basin_fail(error, BASIN_NO_MEMORY, "out of memory to compare pictures");
    float *whole = room, *a = room + size, *b = room + 2 * size;
    basin_image_paste(whole, output, truth, mask, N, P);
    basin_patches_to_planes(a, whole, &patching);
    basin_patches_to_planes(b, truth, &patching);
    *psnr = basin_psnr(a, b, size, 1);
    free(room);
    return BASIN_OK;
}

/* ---- the mean colour ---- */

basin_status basin_image_baseline_add(basin_image_baseline *baseline, const float *zero,
                                      const float *truth, const uint8_t *mask,
                                      const basin_image_settings *s, basin_error *error) {
    double psnr = 0;
    basin_status status = basin_image_masked_psnr(&psnr, zero, truth, mask, s, error);
    baseline->psnr += psnr;
    baseline->mse += basin_image_masked_error(zero, truth, mask, basin_image_tokens(s),
                                              basin_image_patch_values(s));
    return status;
}

typedef struct tally {
    const basin_image_settings *settings;
    int masks;
    float *zero;   /* [N, P] the mean colour, normalised */
    uint8_t *mask; /* [N] */
    basin_image_baseline sum;
    int64_t pictures;
} tally;

static basin_status count_batch(tally *t, const basin_feed_batch *batch, basin_error *error) {
    const basin_image_settings *s = t->settings;
    int64_t N = basin_image_tokens(s), P = basin_image_patch_values(s);
    basin_status status = BASIN_OK;
    for (int64_t i = 0; i < batch->count; i++)
        for (int m = 0; m < t->masks && !status; m++) {
            basin_image_score_mask(t->mask, s, batch->index[i], (uint64_t)m);
            status = basin_image_baseline_add(&t->sum, t->zero, batch->values + i * N * P, t->mask,
                                              s, error);
        }
    t->pictures += batch->count;
    return status;
}

static basin_status count_all(tally *t, basin_feed *feed, basin_error *error) {
    for (;;) {
        basin_feed_batch batch;
        basin_status status = basin_feed_next(&batch, feed, error);
        if (status || !batch.count) return status;
        status = count_batch(t, &batch, error);
        if (status) return status;
    }
}

basin_status basin_image_baseline_new(basin_image_baseline *baseline, const basin_image_settings *s,
                                      const basin_image_set *set, int masks, basin_error *error) {
    enum { BATCH = 16 };
    int64_t N = basin_image_tokens(s), P = basin_image_patch_values(s);
    tally t = {.settings = s, .masks = masks};
    basin_feed *feed = NULL;
    t.zero = calloc((size_t)(N * P), sizeof *t.zero);
    t.mask = basin_array_new((size_t)N, 1);
    basin_status status = t.zero && t.mask
                              ? BASIN_OK
                              : basin_fail(error, BASIN_NO_MEMORY, "out of memory for a baseline");
    if (!status) status = basin_image_feed(&feed, set, s, BATCH, false, 0, NULL, error);
    if (!status) status = count_all(&t, feed, error);
    double all = (double)t.pictures * masks;
    if (!status)
        *baseline = (basin_image_baseline){.mse = t.sum.mse / all, .psnr = t.sum.psnr / all};
    basin_feed_free(feed);
    free(t.zero);
    free(t.mask);
    return status;
}
