/* What is missing in a picture; see hole.h. A mask, rectangles or drawn patches become a map of the
 * whole picture, of which the box around the hole is kept, with chessboard distances. */
#include "task/image/complete/hole.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

bool basin_hole_is_drawn(const basin_image_completing *how) {
    return !how->mask && how->rectangle[2] == 0 && how->rectangles == 0;
}

/* ---- marking ---- */

static basin_status mark_mask(uint8_t *map, const basin_picture *mask, const basin_picture *p,
                              basin_error *error) {
    if (!mask->pixel || mask->height != p->height || mask->width != p->width)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "the mask has %lld x %lld pixels, wanted the picture's %lld x %lld",
                          (long long)mask->width, (long long)mask->height, (long long)p->width,
                          (long long)p->height);
    for (int64_t i = 0; i < p->height * p->width; i++)
        for (int c = 0; c < mask->channels; c++) map[i] |= mask->pixel[i * mask->channels + c] > 0;
    return BASIN_OK;
}

static basin_status mark_rectangle(uint8_t *map, const int64_t r[4], const basin_picture *p,
                                   basin_error *error) {
    if (r[0] < 0 || r[1] < 0 || r[2] < 1 || r[3] < 1)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the rectangle is %lld,%lld,%lld,%lld, wanted left and top from 0, width "
                          "and height from 1",
                          (long long)r[0], (long long)r[1], (long long)r[2], (long long)r[3]);
    if (r[0] > p->width - r[2] || r[1] > p->height - r[3])
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the rectangle %lld,%lld,%lld,%lld reaches out of the picture, which has "
                          "%lld x %lld pixels",
                          (long long)r[0], (long long)r[1], (long long)r[2], (long long)r[3],
                          (long long)p->width, (long long)p->height);
    for (int64_t y = r[1]; y < r[1] + r[3]; y++) memset(map + y * p->width + r[0], 1, (size_t)r[2]);
    return BASIN_OK;
}

static basin_status mark_rectangles(uint8_t *map, const basin_image_completing *how,
                                    const basin_picture *p, basin_error *error) {
    basin_status status = BASIN_OK;
    if (how->rectangle[2] != 0) status = mark_rectangle(map, how->rectangle, p, error);
    for (int64_t i = 0; i < how->rectangles && !status; i++)
        status = mark_rectangle(map, how->more_rectangles + 4 * i, p, error);
    return status;
}

/* Patches in rows from the upper left corner; the last ones may be cut. */
static basin_status mark_drawn(uint8_t *map, const basin_image_completing *how, int64_t number,
                               int64_t patch, const basin_picture *p, basin_error *error) {
    int64_t rows = (p->height + patch - 1) / patch, columns = (p->width + patch - 1) / patch;
    int64_t tokens = rows * columns, count = llround(how->ratio * (double)tokens);
    if (!(how->ratio >= 0 && how->ratio <= 1))
        return basin_fail(error, BASIN_BAD_VALUE, "ratio is %g, wanted 0 to 1", how->ratio);
    uint8_t *drawn = basin_array_new((size_t)tokens, 1);
    if (!drawn) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a mask");
    uint64_t stream = how->stream + (uint64_t)number;
    basin_image_mask_draw(drawn, tokens, count < 1 ? 1 : count, 0, how->seed, stream << 20);
    for (int64_t y = 0; y < p->height; y++)
        for (int64_t x = 0; x < p->width; x++)
            map[y * p->width + x] = drawn[y / patch * columns + x / patch] == BASIN_PATCH_REPLACED;
    free(drawn);
    return BASIN_OK;
}

/* ---- the hole ---- */

static basin_status find_box(basin_hole *hole, const uint8_t *map, const basin_picture *p,
                             int64_t margin, basin_error *error) {
    int64_t top = p->height, bottom = -1, left = p->width, right = -1;
    for (int64_t y = 0; y < p->height; y++)
        for (int64_t x = 0; x < p->width; x++) {
            if (!map[y * p->width + x]) continue;
            hole->missing++;
            if (top > y) top = y;
            bottom = y;
            if (left > x) left = x;
            if (right < x) right = x;
        }
    if (hole->missing == 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the mask hides nothing: wanted the pixels to complete in white");
    if (hole->missing == p->height * p->width)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the mask hides the whole picture: nothing is left to complete it from");
    top = top > margin ? top - margin : 0, left = left > margin ? left - margin : 0;
    bottom = bottom < p->height - margin ? bottom + margin : p->height - 1;
    right = right < p->width - margin ? right + margin : p->width - 1;
    hole->box = (basin_area){top, left, bottom - top + 1, right - left + 1};
    return BASIN_OK;
}

/* The depth beside a pixel of the box: 0 in the rest of the picture, no bound beyond it. */
static int32_t beside(const basin_hole *h, const basin_picture *p, int64_t y, int64_t x) {
    if (y >= 0 && x >= 0 && y < h->box.height && x < h->box.width)
        return h->depth[y * h->box.width + x];
    y += h->box.top, x += h->box.left;
    return y >= 0 && x >= 0 && y < p->height && x < p->width ? 0 : INT32_MAX - 1;
}

/* One sweep of the distance transform: `step` 1 from the upper left, -1 from the lower right. */
static void sweep(basin_hole *h, const basin_picture *p, int step) {
    int64_t count = h->box.height * h->box.width;
    for (int64_t i = step > 0 ? 0 : count - 1; i >= 0 && i < count; i += step) {
        int64_t y = i / h->box.width, x = i % h->box.width;
        if (h->depth[i] == 0) continue;
        int32_t least = beside(h, p, y, x - step);
        for (int64_t dx = -1; dx <= 1; dx++) {
            int32_t other = beside(h, p, y - step, x + dx);
            if (least > other) least = other;
        }
        if (h->depth[i] > least + 1) h->depth[i] = least + 1;
    }
}

static basin_status measure_depth(basin_hole *h, const uint8_t *map, const basin_picture *p,
                                  basin_error *error) {
    int64_t count = h->box.height * h->box.width;
    h->depth = basin_array_new((size_t)count, sizeof *h->depth);
    if (!h->depth) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a mask");
    for (int64_t y = 0; y < h->box.height; y++)
        for (int64_t x = 0; x < h->box.width; x++)
            h->depth[y * h->box.width + x] =
                map[(h->box.top + y) * p->width + h->box.left + x] ? INT32_MAX - 1 : 0;
    sweep(h, p, 1);
    sweep(h, p, -1);
    for (int64_t i = 0; i < count; i++)
        if (h->deepest < h->depth[i]) h->deepest = h->depth[i];
    return BASIN_OK;
}

basin_status basin_hole_make(basin_hole *hole, const basin_picture *picture, int64_t patch,
                             const basin_image_completing *how, int64_t number,
                             basin_error *error) {
    *hole = (basin_hole){0};
    uint8_t *map = calloc((size_t)picture->height, (size_t)picture->width);
    basin_status status = BASIN_OK;
    if (!map) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a mask");
    if (how->mask)
        status = mark_mask(map, &how->mask[number], picture, error);
    else if (basin_hole_is_drawn(how))
        status = mark_drawn(map, how, number, patch, picture, error);
    else
        status = mark_rectangles(map, how, picture, error);
    if (!status) status = find_box(hole, map, picture, patch, error);
    if (!status) status = measure_depth(hole, map, picture, error);
    free(map);
    if (status) basin_hole_free(hole);
    return status;
}

void basin_hole_free(basin_hole *hole) {
    free(hole->depth);
    *hole = (basin_hole){0};
}

int32_t basin_hole_depth(const basin_hole *h, int64_t y, int64_t x) {
    y -= h->box.top, x -= h->box.left;
    if (y < 0 || x < 0 || y >= h->box.height || x >= h->box.width) return 0;
    return h->depth[y * h->box.width + x];
}
