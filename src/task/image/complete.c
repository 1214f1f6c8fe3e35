/* Completing pictures of any size: cut into tiles of the model's size or resized to it, occluded,
 * completed, and put together again at the picture's own size. The tiles of all pictures go through
 * the model in batches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "basin/tasks/augment.h"
#include "task/given.h"
#include "task/image/report/look.h"

/* A part of the picture that the model sees as size x size pixels. */
typedef struct region {
    int64_t top, left, height, width;
} region;

/* One of the pictures. */
typedef struct subject {
    basin_image_completion *result;
    const basin_picture *mask; /* or NULL */
    uint64_t stream;
    region *tile; /* [tiles] */
    int64_t tiles;
    float *patches, *output; /* [tiles, N, P] parts of the state's */
    uint8_t *hidden;         /* [tiles, N] */
} subject;

typedef struct state {
    basin_image_model *model;
    const basin_image_completing *how;
    subject *subject; /* [count] */
    int64_t count, tiles, tokens, values;
    float *patches, *output; /* [tiles, N, P] of all pictures */
    uint8_t *hidden;         /* [tiles, N] */
    basin_picture scaled;    /* scratch: a part resized */
} state;

/* ---- tiles ---- */

/* Where tile i of `count` starts: the last one ends with the picture. */
static int64_t tile_start(int64_t i, int64_t count, int64_t length, int64_t size) {
    return i == count - 1 ? length - size : i * size;
}

static basin_status make_tiles(state *s, subject *one, basin_error *error) {
    const basin_picture *p = &one->result->original;
    int64_t size = s->model->settings.size;
    bool whole = s->how->resize || p->height < size || p->width < size;
    int64_t rows = whole ? 1 : (p->height + size - 1) / size;
    int64_t columns = whole ? 1 : (p->width + size - 1) / size;
    one->tiles = rows * columns;
    one->tile = basin_array_new((size_t)one->tiles, sizeof *one->tile);
    if (!one->tile) return basin_fail(error, BASIN_NO_MEMORY, "no memory for tiles");
    for (int64_t i = 0; i < one->tiles; i++) {
        one->tile[i] = (region){tile_start(i / columns, rows, p->height, size),
                                tile_start(i % columns, columns, p->width, size), size, size};
        if (whole) one->tile[i] = (region){0, 0, p->height, p->width};
    }
    s->tiles += one->tiles;
    return BASIN_OK;
}

static basin_status make_buffers(state *s, basin_error *error) {
    size_t patches = (size_t)(s->tiles * s->tokens);
    s->patches = basin_array_new(patches * (size_t)s->values, sizeof *s->patches);
    s->output = basin_array_new(patches * (size_t)s->values, sizeof *s->output);
    s->hidden = basin_array_new(patches, sizeof *s->hidden);
    if (!s->patches || !s->output || !s->hidden)
        return basin_fail(error, BASIN_NO_MEMORY, "no memory to complete %lld tiles",
                          (long long)s->tiles);
    for (int64_t i = 0, first = 0; i < s->count; first += s->subject[i++].tiles) {
        s->subject[i].patches = s->patches + first * s->tokens * s->values;
        s->subject[i].output = s->output + first * s->tokens * s->values;
        s->subject[i].hidden = s->hidden + first * s->tokens;
    }
    return BASIN_OK;
}

static basin_status copy_region(basin_picture *to, const basin_picture *from, region r,
                                basin_error *error) {
    basin_status status = basin_picture_resize_memory(to, r.height, r.width, from->channels, error);
    if (status) return status;
    size_t row = (size_t)(r.width * from->channels);
    for (int64_t y = 0; y < r.height; y++)
        memcpy(to->pixel + (size_t)y * row,
               from->pixel + ((r.top + y) * from->width + r.left) * from->channels, row);
    return BASIN_OK;
}

static basin_status read_tile(state *s, subject *one, int64_t i, basin_error *error) {
    basin_patching patching = basin_image_patching(&s->model->settings);
    int64_t size = patching.size;
    basin_picture part = {0};
    basin_status status = copy_region(&part, &one->result->original, one->tile[i], error);
    if (!status) status = basin_picture_scale(&s->scaled, &part, size, size, error);
    if (!status)
        basin_patches_from_pixels(one->patches + i * s->tokens * s->values, s->scaled.pixel,
                                  &patching);
    basin_picture_free(&part);
    return status;
}

/* ---- what is occluded ---- */

static bool in_rectangle(const int64_t r[4], int64_t x, int64_t y) {
    return x >= r[0] && y >= r[1] && x < r[0] + r[2] && y < r[1] + r[3];
}

/* Whether the user's mask or rectangle covers the pixel. */
static bool covered(const state *s, const subject *one, int64_t x, int64_t y) {
    const basin_picture *mask = one->mask;
    if (mask) return mask->pixel[(y * mask->width + x) * mask->channels] > 0;
    return in_rectangle(s->how->rectangle, x, y);
}

static bool drawn(const state *s) { return !s->how->mask && s->how->rectangle[2] == 0; }

/* The patch of its tile that a pixel lies in. */
static int64_t patch_of(const state *s, region r, int64_t x, int64_t y) {
    int64_t across = s->model->settings.size / s->model->settings.patch;
    return (y - r.top) * across / r.height * across + (x - r.left) * across / r.width;
}

/* A patch is occluded where any of its pixels is covered. */
static void hide_patches(state *s, subject *one, int64_t i) {
    uint8_t *hidden = one->hidden + i * s->tokens;
    region r = one->tile[i];
    if (drawn(s)) {
        int64_t count = llround(s->how->ratio * (double)s->tokens);
        count = count < 1 ? 1 : count > s->tokens ? s->tokens : count;
        basin_image_mask_draw(hidden, s->tokens, count, 0, s->how->seed,
                              (one->stream << 20) + (uint64_t)i);
        return;
    }
    memset(hidden, BASIN_PATCH_SHOWN, (size_t)s->tokens);
    for (int64_t y = r.top; y < r.top + r.height; y++)
        for (int64_t x = r.left; x < r.left + r.width; x++)
            if (covered(s, one, x, y)) hidden[patch_of(s, r, x, y)] = BASIN_PATCH_REPLACED;
}

static basin_status check_mask(const subject *one, basin_error *error) {
    const basin_picture *mask = one->mask, *p = &one->result->original;
    if (!mask || (mask->pixel && mask->height == p->height && mask->width == p->width))
        return BASIN_OK;
    return basin_fail(
        error, BASIN_BAD_SHAPE, "the mask has %lld x %lld pixels, wanted the picture's %lld x %lld",
        (long long)mask->width, (long long)mask->height, (long long)p->width, (long long)p->height);
}

static basin_status check(const basin_image_completing *how, basin_error *error) {
    const int64_t *r = how->rectangle;
    if (!(how->ratio >= 0 && how->ratio <= 1))
        return basin_fail(error, BASIN_BAD_VALUE, "ratio is %g, wanted 0 to 1", how->ratio);
    if (r[0] >= 0 && r[1] >= 0 && r[2] >= 0 && r[3] >= 0 && r[0] <= INT32_MAX &&
        r[1] <= INT32_MAX && r[2] <= INT32_MAX && r[3] <= INT32_MAX)
        return BASIN_OK;
    return basin_fail(
        error, BASIN_BAD_VALUE, "the rectangle is %lld,%lld,%lld,%lld, wanted numbers from 0 to %d",
        (long long)r[0], (long long)r[1], (long long)r[2], (long long)r[3], INT32_MAX);
}

/* ---- putting together ---- */

/* Pixels of tile i: those of `part`, or grey where that is NULL. */
static void paste_tile(state *s, basin_picture *picture, const subject *one, int64_t i,
                       const basin_picture *part) {
    region r = one->tile[i];
    const uint8_t *hidden = one->hidden + i * s->tokens;
    size_t channels = (size_t)s->model->settings.channels;
    for (int64_t y = r.top; y < r.top + r.height; y++)
        for (int64_t x = r.left; x < r.left + r.width; x++) {
            if (hidden[patch_of(s, r, x, y)] == BASIN_PATCH_SHOWN) continue;
            if (!drawn(s) && !covered(s, one, x, y)) continue;
            uint8_t *to = picture->pixel + (size_t)(y * picture->width + x) * channels;
            if (part)
                memcpy(to, part->pixel + (size_t)((y - r.top) * r.width + x - r.left) * channels,
                       channels);
            else
                memset(to, 128, channels);
        }
}

/* Replaces what is occluded in `picture` by the tiles' outputs; without outputs, by grey. */
static basin_status paste(state *s, basin_picture *picture, const subject *one, const float *output,
                          basin_error *error) {
    const basin_image_settings *c = &s->model->settings;
    basin_patching patching = basin_image_patching(c);
    basin_picture tile = {0}, part = {0};
    basin_status status =
        basin_picture_resize_memory(&tile, c->size, c->size, (int)c->channels, error);
    for (int64_t i = 0; i < one->tiles && !status; i++) {
        if (output) {
            basin_patches_to_pixels(tile.pixel, output + i * s->tokens * s->values, &patching);
            status =
                basin_picture_scale(&part, &tile, one->tile[i].height, one->tile[i].width, error);
        }
        if (!status) paste_tile(s, picture, one, i, output ? &part : NULL);
    }
    basin_picture_free(&tile);
    basin_picture_free(&part);
    return status;
}

static basin_status make_frames(state *s, subject *one, basin_error *error) {
    basin_image_completion *r = one->result;
    basin_image_trace trace;
    basin_status status =
        basin_image_trace_new(&trace, s->model, one->patches, one->hidden, one->tiles, error);
    if (status) return status;
    r->frames = trace.steps + 1;
    r->frame = calloc((size_t)r->frames, sizeof *r->frame);
    if (!r->frame) status = basin_fail(error, BASIN_NO_MEMORY, "no memory for frames");
    for (int t = 0; t < r->frames && !status; t++) {
        const float *token = trace.token + t * one->tiles * s->tokens * s->values;
        status = basin_picture_copy(&r->frame[t], &r->original, error);
        if (!status) status = paste(s, &r->frame[t], one, token, error);
    }
    basin_image_trace_free(&trace);
    return status;
}

static basin_status put_together(state *s, subject *one, basin_error *error) {
    basin_image_completion *r = one->result;
    basin_status status = basin_picture_copy(&r->masked, &r->original, error);
    if (!status) status = basin_picture_copy(&r->completed, &r->original, error);
    if (!status) status = paste(s, &r->masked, one, NULL, error);
    if (!status) status = paste(s, &r->completed, one, one->output, error);
    if (!status && s->how->frames) status = make_frames(s, one, error);
    r->tiles = one->tiles;
    r->patches = one->tiles * s->tokens;
    for (int64_t i = 0; i < r->patches; i++) r->occluded += one->hidden[i] != BASIN_PATCH_SHOWN;
    return status;
}

/* ---- the whole ---- */

static basin_status run_tiles(state *s, basin_error *error) {
    enum { BATCH = 32 };
    basin_image_runner runner;
    int64_t batch = s->tiles < BATCH ? s->tiles : BATCH, size = s->tokens * s->values;
    basin_status status = basin_image_runner_new(&runner, s->model, batch, error);
    if (status) return status;
    for (int64_t i = 0; i < s->tiles && !status; i += batch)
        status = basin_image_runner_run(&runner, s->output + i * size, s->patches + i * size,
                                        s->hidden + i * s->tokens,
                                        s->tiles - i < batch ? s->tiles - i : batch, error);
    basin_image_runner_free(&runner);
    return status;
}

static basin_status begin(state *s, const basin_picture *picture,
                          basin_image_completion *completion, basin_error *error) {
    const basin_image_settings *c = &s->model->settings;
    basin_status status = check(s->how, error);
    s->tokens = basin_image_tokens(c);
    s->values = basin_image_patch_values(c);
    s->subject = basin_array_new((size_t)s->count, sizeof *s->subject);
    if (!s->subject) return basin_fail(error, BASIN_NO_MEMORY, "no memory to complete pictures");
    for (int64_t i = 0; i < s->count; i++)
        s->subject[i] = (subject){.result = &completion[i],
                                  .mask = s->how->mask ? &s->how->mask[i] : NULL,
                                  .stream = s->how->stream + (uint64_t)i};
    for (int64_t i = 0; i < s->count && !status; i++) {
        basin_picture *original = &completion[i].original;
        status = basin_picture_copy(original, &picture[i], error);
        if (!status) status = basin_picture_set_channels(original, (int)c->channels, error);
        if (!status) status = check_mask(&s->subject[i], error);
        if (!status) status = make_tiles(s, &s->subject[i], error);
    }
    return status;
}

static basin_status complete(state *s, basin_error *error) {
    basin_status status = make_buffers(s, error);
    for (int64_t k = 0; k < s->count && !status; k++)
        for (int64_t i = 0; i < s->subject[k].tiles && !status; i++) {
            status = read_tile(s, &s->subject[k], i, error);
            hide_patches(s, &s->subject[k], i);
        }
    if (!status) status = run_tiles(s, error);
    for (int64_t k = 0; k < s->count && !status; k++)
        status = put_together(s, &s->subject[k], error);
    return status;
}

basin_status basin_image_complete(basin_image_completion *completion, basin_image_model *model,
                                  const basin_picture *picture, int64_t count,
                                  const basin_image_completing *how, basin_error *error) {
    basin_image_completing taken;
    state s = {.model = model, .how = &taken, .count = count};
    for (int64_t i = 0; i < count; i++) completion[i] = (basin_image_completion){0};
    basin_status status =
        basin_given_take(&taken, sizeof taken, how, "basin_image_completing", error);
    if (status || count < 1) return status;
    status = begin(&s, picture, completion, error);
    if (!status) status = complete(&s, error);
    for (int64_t i = 0; i < count && s.subject; i++) free(s.subject[i].tile);
    free(s.subject);
    free(s.patches);
    free(s.output);
    free(s.hidden);
    basin_picture_free(&s.scaled);
    for (int64_t i = 0; i < count && status; i++) basin_image_completion_free(&completion[i]);
    return status;
}

void basin_image_completion_free(basin_image_completion *completion) {
    basin_picture_free(&completion->original);
    basin_picture_free(&completion->masked);
    basin_picture_free(&completion->completed);
    for (int i = 0; i < completion->frames && completion->frame; i++)
        basin_picture_free(&completion->frame[i]);
    free(completion->frame);
    *completion = (basin_image_completion){0};
}
