/* Rehearsals beside a hole; see rehearse.h. They take place in windows as the model sees them. */
#include "task/image/complete/rehearse.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ---- where ---- */

/* How many hidden patches, moved so, lie in the window and are not hidden themselves; -1 where one
 * of them would be. */
static int64_t moved(uint8_t *place, const uint8_t *hidden, int64_t across, int64_t down,
                     int64_t right) {
    int64_t count = 0;
    if (place) memset(place, BASIN_PATCH_SHOWN, (size_t)(across * across));
    for (int64_t i = 0; i < across * across; i++) {
        int64_t y = i / across + down, x = i % across + right;
        if (hidden[i] == BASIN_PATCH_SHOWN) continue;
        if (y < 0 || x < 0 || y >= across || x >= across) continue;
        if (hidden[y * across + x] != BASIN_PATCH_SHOWN) return -1;
        if (place) place[y * across + x] = BASIN_PATCH_REPLACED;
        count++;
    }
    return count;
}

bool basin_rehearse_place(uint8_t *place, const uint8_t *hidden, int64_t across, int way) {
    int64_t all = 0, best = 0, best_down = 0, best_right = 0;
    for (int64_t i = 0; i < across * across; i++) all += hidden[i] != BASIN_PATCH_SHOWN;
    for (int64_t far = 1; far < across; far++)
        for (int64_t k = 0; k <= 2 * far; k++) { /* straight first, then askew */
            int64_t side = k % 2 ? (k + 1) / 2 : -k / 2, sign = way % 2 ? -1 : 1;
            int64_t down = way < 2 ? side : sign * far, right = way < 2 ? sign * far : side;
            int64_t count = moved(NULL, hidden, across, down, right);
            if (count > best) best = count, best_down = down, best_right = right;
        }
    if (2 * best < all || best == 0) return false;
    (void)moved(place, hidden, across, best_down, best_right);
    return true;
}

/* ---- what came of it ---- */

/* A rehearsal as a picture with a hole. */
typedef struct stage {
    basin_picture truth, guess, mask;
    basin_hole hole;
    float *model, *span, *weight; /* [box, channels] twice, [box] */
} stage;

static void stage_free(stage *s) {
    basin_picture_free(&s->truth);
    basin_picture_free(&s->guess);
    basin_picture_free(&s->mask);
    basin_hole_free(&s->hole);
    free(s->model);
    free(s->span);
    free(s->weight);
}

static basin_status paint(stage *s, const basin_image_model *model, const uint8_t *place,
                          const float *patches, const float *output, basin_error *error) {
    const basin_image_settings *c = &model->settings;
    basin_patching patching = basin_image_patching(c);
    int64_t size = c->size, across = size / c->patch;
    basin_status status =
        basin_picture_resize_memory(&s->truth, size, size, (int)c->channels, error);
    if (!status)
        status = basin_picture_resize_memory(&s->guess, size, size, (int)c->channels, error);
    if (!status) status = basin_picture_resize_memory(&s->mask, size, size, 1, error);
    if (status) return status;
    basin_patches_to_pixels(s->truth.pixel, patches, &patching);
    basin_patches_to_pixels(s->guess.pixel, output, &patching);
    for (int64_t i = 0; i < size * size; i++)
        s->mask.pixel[i] = place[i / size / c->patch * across + i % size / c->patch];
    basin_image_completing how = {.mask = &s->mask};
    return basin_hole_make(&s->hole, &s->truth, c->patch, &how, 0, error);
}

static basin_status fill(stage *s, double fade, basin_error *error) {
    const basin_area *box = &s->hole.box;
    size_t area = (size_t)(box->height * box->width), channels = (size_t)s->truth.channels;
    s->model = basin_array_new(area * channels, sizeof *s->model);
    s->span = basin_array_new(area * channels, sizeof *s->span);
    s->weight = calloc(area, sizeof *s->weight);
    if (!s->model || !s->span || !s->weight)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory to rehearse");
    for (int64_t y = 0; y < box->height; y++)
        for (int64_t i = 0; i < box->width * s->truth.channels; i++)
            s->model[y * box->width * s->truth.channels + i] =
                s->guess
                    .pixel[((box->top + y) * s->guess.width + box->left) * s->truth.channels + i];
    basin_status status = basin_rim_span(s->span, &s->truth, &s->hole, error);
    if (!status) status = basin_rim_match(s->model, s->weight, &s->truth, &s->hole, fade, error);
    return status;
}

static void judge(basin_trust *trust, const stage *s) {
    const basin_area *box = &s->hole.box;
    int channels = s->truth.channels;
    for (int64_t i = 0; i < box->height * box->width * channels; i++) {
        int64_t at = i / channels, y = box->top + at / box->width, x = box->left + at % box->width;
        if (s->hole.depth[at] == 0) continue;
        double truth = s->truth.pixel[(y * s->truth.width + x) * channels + i % channels];
        double departed = s->model[i] - s->span[i];
        trust->agreed += (truth - s->span[i]) * departed;
        trust->departed += departed * departed;
    }
}

basin_status basin_rehearse_judge(basin_trust *trust, const basin_image_model *model,
                                  const uint8_t *place, const float *patches, const float *output,
                                  double fade, basin_error *error) {
    stage s = {0};
    basin_status status = paint(&s, model, place, patches, output, error);
    if (!status) status = fill(&s, fade, error);
    if (!status) judge(trust, &s);
    stage_free(&s);
    return status;
}

double basin_trust_share(const basin_trust *trust) {
    if (!(trust->departed > 0)) return 0.5;
    double share = trust->agreed / trust->departed;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}
