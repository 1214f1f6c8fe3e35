/* Completing pictures; see image_complete.h. */
#include "task/image/complete.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "basin/tasks/augment.h"
#include "task/image/look.h"

/* A part of the picture that the model sees as size x size pixels. */
typedef struct region {
    int64_t top, left, height, width;
} region;

typedef struct state {
    basin_image_completion *result;
    basin_image_session *session;
    const basin_image_completing *spec;
    region *tile;   /* [tiles] */
    float *patches; /* [tiles, N, P] */
    uint8_t *mask;  /* [tiles, N] */
    float *output;  /* [tiles, N, P] */
    int64_t tiles, tokens, values;
    basin_picture scaled; /* scratch: a part resized */
} state;

/* ---- tiles ---- */

/* Where tile i of `count` starts: the last one ends with the picture. */
static int64_t tile_start(int64_t i, int64_t count, int64_t length, int64_t size) {
    return i == count - 1 ? length - size : i * size;
}

static basin_status make_tiles(state *s, basin_error *error) {
    const basin_picture *p = &s->result->original;
    int64_t size = s->session->settings.size;
    bool whole = !s->spec->tile || p->height < size || p->width < size;
    int64_t rows = whole ? 1 : (p->height + size - 1) / size;
    int64_t columns = whole ? 1 : (p->width + size - 1) / size;
    s->tiles = rows * columns;
    s->tile = basin_array_new((size_t)s->tiles, sizeof *s->tile);
    if (!s->tile) return basin_fail(error, BASIN_NO_MEMORY, "no memory for tiles");
    for (int64_t i = 0; i < s->tiles; i++) {
        s->tile[i] = (region){tile_start(i / columns, rows, p->height, size),
                              tile_start(i % columns, columns, p->width, size), size, size};
        if (whole) s->tile[i] = (region){0, 0, p->height, p->width};
    }
    return BASIN_OK;
}

static basin_status make_buffers(state *s, basin_error *error) {
    const basin_image_settings *c = &s->session->settings;
    s->tokens = basin_image_tokens(c);
    s->values = basin_image_patch_values(c);
    size_t patches = (size_t)(s->tiles * s->tokens);
    s->patches = basin_array_new(patches * (size_t)s->values, sizeof *s->patches);
    s->output = basin_array_new(patches * (size_t)s->values, sizeof *s->output);
    s->mask = basin_array_new(patches, sizeof *s->mask);
    if (s->patches && s->output && s->mask) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "no memory to complete %lld tiles",
                      (long long)s->tiles);
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

static basin_status read_tile(state *s, int64_t i, basin_error *error) {
    basin_patching patching = basin_image_patching(&s->session->settings);
    int64_t size = patching.size;
    basin_picture part = {0};
    basin_status status = copy_region(&part, &s->result->original, s->tile[i], error);
    if (!status) status = basin_picture_scale(&s->scaled, &part, size, size, error);
    if (!status)
        basin_patches_from_pixels(s->patches + i * s->tokens * s->values, s->scaled.pixel,
                                  &patching);
    basin_picture_free(&part);
    return status;
}

/* ---- what is occluded ---- */

static bool in_rectangle(const int64_t r[4], int64_t x, int64_t y) {
    return x >= r[0] && y >= r[1] && x < r[0] + r[2] && y < r[1] + r[3];
}

/* Whether the user's mask or rectangle covers the pixel. */
static bool covered(const basin_image_occlusion *o, int64_t x, int64_t y) {
    if (o->mask) return o->mask->pixel[(y * o->mask->width + x) * o->mask->channels] > 0;
    return in_rectangle(o->rectangle, x, y);
}

static bool drawn(const basin_image_occlusion *o) { return !o->mask && o->rectangle[2] == 0; }

/* The patch of its tile that a pixel lies in. */
static int64_t patch_of(const state *s, region r, int64_t x, int64_t y) {
    int64_t across = s->session->settings.size / s->session->settings.patch;
    return (y - r.top) * across / r.height * across + (x - r.left) * across / r.width;
}

/* A patch is occluded where any of its pixels is covered. */
static void mask_tile(state *s, int64_t i) {
    const basin_image_occlusion *o = &s->spec->occlusion;
    uint8_t *mask = s->mask + i * s->tokens;
    region r = s->tile[i];
    if (drawn(o)) {
        int64_t count = llround(o->ratio * (double)s->tokens);
        count = count < 1 ? 1 : count > s->tokens ? s->tokens : count;
        basin_image_mask_draw(mask, s->tokens, count, 0, o->seed, (o->stream << 20) + (uint64_t)i);
        return;
    }
    memset(mask, BASIN_PATCH_SHOWN, (size_t)s->tokens);
    for (int64_t y = r.top; y < r.top + r.height; y++)
        for (int64_t x = r.left; x < r.left + r.width; x++)
            if (covered(o, x, y)) mask[patch_of(s, r, x, y)] = BASIN_PATCH_REPLACED;
}

static basin_status check(const state *s, basin_error *error) {
    const basin_image_occlusion *o = &s->spec->occlusion;
    const basin_picture *p = &s->result->original;
    if (o->mask && (o->mask->height != p->height || o->mask->width != p->width))
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "the mask has %lld x %lld pixels, wanted the picture's %lld x %lld",
                          (long long)o->mask->width, (long long)o->mask->height,
                          (long long)p->width, (long long)p->height);
    return BASIN_OK;
}

/* ---- putting together ---- */

/* Replaces what is occluded in `picture` by the tiles' outputs; without outputs, by grey. */
static basin_status paste(state *s, basin_picture *picture, const float *output,
                          basin_error *error) {
    const basin_image_occlusion *o = &s->spec->occlusion;
    const basin_image_settings *c = &s->session->settings;
    basin_patching patching = basin_image_patching(c);
    basin_picture tile = {0}, part = {0};
    basin_status status =
        basin_picture_resize_memory(&tile, c->size, c->size, (int)c->channels, error);
    for (int64_t i = 0; i < s->tiles && !status; i++) {
        region r = s->tile[i];
        if (output) {
            basin_patches_to_pixels(tile.pixel, output + i * s->tokens * s->values, &patching);
            status = basin_picture_scale(&part, &tile, r.height, r.width, error);
            if (status) break;
        }
        for (int64_t y = r.top; y < r.top + r.height; y++)
            for (int64_t x = r.left; x < r.left + r.width; x++) {
                if (s->mask[i * s->tokens + patch_of(s, r, x, y)] == BASIN_PATCH_SHOWN) continue;
                if (!drawn(o) && !covered(o, x, y)) continue;
                uint8_t *to = picture->pixel + (y * picture->width + x) * c->channels;
                if (output)
                    memcpy(to, part.pixel + ((y - r.top) * r.width + x - r.left) * c->channels,
                           (size_t)c->channels);
                else
                    memset(to, 128, (size_t)c->channels);
            }
    }
    basin_picture_free(&tile);
    basin_picture_free(&part);
    return status;
}

static basin_status copy_picture(basin_picture *to, const basin_picture *from, basin_error *error) {
    return copy_region(to, from, (region){0, 0, from->height, from->width}, error);
}

static basin_status run_tiles(state *s, basin_error *error) {
    enum { BATCH = 32 };
    basin_image_runner runner;
    int64_t batch = s->tiles < BATCH ? s->tiles : BATCH, size = s->tokens * s->values;
    basin_status status = basin_image_runner_new(&runner, s->session, batch, error);
    if (status) return status;
    for (int64_t i = 0; i < s->tiles && !status; i += batch)
        status = basin_image_runner_run(&runner, s->output + i * size, s->patches + i * size,
                                        s->mask + i * s->tokens,
                                        s->tiles - i < batch ? s->tiles - i : batch, error);
    basin_image_runner_free(&runner);
    return status;
}

static basin_status make_frames(state *s, basin_error *error) {
    basin_image_completion *r = s->result;
    basin_image_trace trace;
    basin_status status =
        basin_image_trace_new(&trace, s->session, s->patches, s->mask, s->tiles, error);
    if (status) return status;
    r->frames = trace.steps + 1;
    r->frame = calloc((size_t)r->frames, sizeof *r->frame);
    if (!r->frame) status = basin_fail(error, BASIN_NO_MEMORY, "no memory for frames");
    for (int t = 0; t < r->frames && !status; t++) {
        const float *token = trace.token + t * s->tiles * s->tokens * s->values;
        status = copy_picture(&r->frame[t], &r->original, error);
        if (!status) status = paste(s, &r->frame[t], token, error);
    }
    basin_image_trace_free(&trace);
    return status;
}

static basin_status complete(state *s, const basin_picture *picture, basin_error *error) {
    basin_image_completion *r = s->result;
    basin_status status = copy_picture(&r->original, picture, error);
    if (!status)
        status =
            basin_picture_set_channels(&r->original, (int)s->session->settings.channels, error);
    if (!status) status = check(s, error);
    if (!status) status = make_tiles(s, error);
    if (!status) status = make_buffers(s, error);
    for (int64_t i = 0; i < s->tiles && !status; i++) {
        status = read_tile(s, i, error);
        mask_tile(s, i);
    }
    if (!status) status = run_tiles(s, error);
    if (!status) status = copy_picture(&r->masked, &r->original, error);
    if (!status) status = copy_picture(&r->completed, &r->original, error);
    if (!status) status = paste(s, &r->masked, NULL, error);
    if (!status) status = paste(s, &r->completed, s->output, error);
    if (!status && s->spec->frames) status = make_frames(s, error);
    if (status) return status;
    r->tiles = s->tiles;
    r->patches = s->tiles * s->tokens;
    for (int64_t i = 0; i < r->patches; i++) r->occluded += s->mask[i] != BASIN_PATCH_SHOWN;
    return BASIN_OK;
}

basin_status basin_image_complete(basin_image_completion *completion, basin_image_session *session,
                                  const basin_picture *picture,
                                  const basin_image_completing *completing, basin_error *error) {
    state s = {.result = completion, .session = session, .spec = completing};
    *completion = (basin_image_completion){0};
    basin_status status = complete(&s, picture, error);
    free(s.tile);
    free(s.patches);
    free(s.output);
    free(s.mask);
    basin_picture_free(&s.scaled);
    if (status) basin_image_completion_free(completion);
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
