/* Completing pictures of any size: what is missing is filled by a model (filling.h), everything
 * else stays as it is. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/given.h"
#include "task/image/complete/filling.h"

static basin_status check(const basin_image_completing *how, const basin_image_model *model,
                          basin_error *error) {
    if (how->frames && model->descent.until > 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "frames want a number of steps that is the same for all windows: leave "
                          "out until, or frames");
    if (how->looks < 0 || how->looks > BASIN_LOOKS)
        return basin_fail(error, BASIN_BAD_VALUE, "looks is %d, wanted 0 to %d", how->looks,
                          BASIN_LOOKS);
    if (how->rectangles > 0 && !how->more_rectangles)
        return basin_fail(error, BASIN_BAD_VALUE, "%lld rectangles, but no list of them",
                          (long long)how->rectangles);
    return BASIN_OK;
}

/* The first guess. */
static basin_status span(basin_filling *fill, basin_error *error) {
    size_t area = (size_t)(fill->hole.box.height * fill->hole.box.width);
    fill->span = basin_array_new(area * (size_t)fill->now.channels, sizeof *fill->span);
    if (!fill->span)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory to complete a picture");
    basin_status status = basin_rim_span(fill->span, &fill->now, &fill->hole, error);
    if (!status) basin_filling_write(&fill->now, &fill->hole, fill->span);
    return status;
}

static basin_status begin(basin_filling *fill, basin_image_completion *r,
                          const basin_picture *picture, int64_t patch,
                          const basin_image_completing *how, int64_t number, basin_error *error) {
    basin_status status = basin_picture_copy(&r->original, picture, error);
    if (!status) status = basin_hole_make(&fill->hole, picture, patch, how, number, error);
    if (!status) status = basin_picture_copy(&fill->now, picture, error);
    if (!status) status = span(fill, error);
    return status;
}

/* Gives missing pixels one value. */
static void paint(basin_picture *picture, const basin_hole *hole, uint8_t value) {
    for (int64_t i = 0; i < hole->box.height * hole->box.width; i++) {
        int64_t y = hole->box.top + i / hole->box.width, x = hole->box.left + i % hole->box.width;
        for (int c = 0; c < picture->channels && hole->depth[i] > 0; c++)
            picture->pixel[(y * picture->width + x) * picture->channels + c] = value;
    }
}

static basin_status make_masks(basin_image_completion *r, const basin_hole *hole,
                               basin_error *error) {
    const basin_picture *p = &r->original;
    basin_status status = basin_picture_copy(&r->masked, p, error);
    if (!status) status = basin_picture_resize_memory(&r->hole, p->height, p->width, 1, error);
    if (status) return status;
    memset(r->hole.pixel, 0, (size_t)(p->height * p->width));
    paint(&r->masked, hole, 128);
    paint(&r->hole, hole, 255);
    return BASIN_OK;
}

static basin_status make_frames(basin_image_completion *r, const basin_filling *fill,
                                basin_error *error) {
    int64_t area = fill->hole.box.height * fill->hole.box.width;
    basin_status status = BASIN_OK;
    r->frame = calloc((size_t)fill->copies, sizeof *r->frame);
    if (!r->frame) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for frames");
    r->frames = fill->copies;
    for (int t = 0; t < r->frames && !status; t++) {
        status = basin_picture_copy(&r->frame[t], &r->original, error);
        if (!status)
            basin_filling_write(&r->frame[t], &fill->hole,
                                fill->sum + t * area * r->original.channels);
    }
    return status;
}

static basin_status finish(basin_image_completion *r, basin_filling *fill, bool frames,
                           basin_error *error) {
    basin_status status = make_masks(r, &fill->hole, error);
    if (!status && frames) status = make_frames(r, fill, error);
    r->completed = fill->now;
    fill->now = (basin_picture){0};
    r->windows = fill->windows;
    r->missing = fill->hole.missing;
    r->steps = fill->steps;
    r->share = fill->share;
    return status;
}

basin_status basin_image_complete(basin_image_completion *completion, basin_image_model *model,
                                  const basin_picture *picture, int64_t count,
                                  const basin_image_completing *how, basin_error *error) {
    basin_image_completing taken;
    for (int64_t i = 0; i < count; i++) completion[i] = (basin_image_completion){0};
    basin_status status =
        basin_given_take(&taken, sizeof taken, how, "basin_image_completing", error);
    if (!status) status = check(&taken, model, error);
    if (status || count < 1) return status;
    if (taken.looks == 0) taken.looks = BASIN_LOOKS;
    basin_filling *fill = calloc((size_t)count, sizeof *fill);
    if (!fill) return basin_fail(error, BASIN_NO_MEMORY, "out of memory to complete pictures");
    for (int64_t i = 0; i < count && !status; i++)
        status =
            begin(&fill[i], &completion[i], &picture[i], model->settings.patch, &taken, i, error);
    if (!status) status = basin_filling_run(fill, count, model, &taken, error);
    for (int64_t i = 0; i < count && !status; i++)
        status = finish(&completion[i], &fill[i], taken.frames, error);
    for (int64_t i = 0; i < count; i++) {
        basin_filling_free(&fill[i]);
        if (status) basin_image_completion_free(&completion[i]);
    }
    free(fill);
    return status;
}

void basin_image_completion_free(basin_image_completion *completion) {
    basin_picture_free(&completion->original);
    basin_picture_free(&completion->masked);
    basin_picture_free(&completion->completed);
    basin_picture_free(&completion->hole);
    for (int i = 0; i < completion->frames && completion->frame; i++)
        basin_picture_free(&completion->frame[i]);
    free(completion->frame);
    *completion = (basin_image_completion){0};
}
