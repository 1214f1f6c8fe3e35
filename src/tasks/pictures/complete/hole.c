/* What is missing in a picture; see complete.h. A mask or rectangles become a map of the whole
 * picture, of which the box around the hole is kept, with chessboard distances. */
#include "base/sort.h"
#include "tasks/pictures/complete/complete.h"

enum { FAR = INT32_MAX - 1 };

/* ---- marking ---- */

static basin_status mark_mask(uint8_t *map, const basin_picture *mask, const basin_picture *p,
                              basin_error *error) {
    if (!mask->pixel || mask->height != p->height || mask->width != p->width)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "the mask has %lld x %lld pixels; expected the picture's %lld x %lld",
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
                          "the rectangle is %lld,%lld,%lld,%lld; expected left and top from 0, "
                          "width and height from 1",
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

static basin_status mark_rectangles(uint8_t *map, const basin_image_complete_options *how,
                                    const basin_picture *p, basin_error *error) {
    if (how->rectangle[2] != 0) BASIN_TRY(mark_rectangle(map, how->rectangle, p, error));
    for (int64_t i = 0; i < how->rectangles; i++)
        BASIN_TRY(mark_rectangle(map, how->more_rectangles + 4 * i, p, error));
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
            top = basin_int_min(top, y), bottom = y;
            left = basin_int_min(left, x), right = basin_int_max(right, x);
        }
    if (hole->missing == 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the mask hides nothing; expected the pixels to complete in white");
    if (hole->missing == p->height * p->width)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the mask hides the whole picture: nothing is left to complete it from");
    top = basin_int_max(top - margin, 0), left = basin_int_max(left - margin, 0);
    bottom = basin_int_min(bottom + margin, p->height - 1);
    right = basin_int_min(right + margin, p->width - 1);
    hole->box = (basin_area){top, left, bottom - top + 1, right - left + 1};
    return BASIN_OK;
}

/* One sweep of the distance transform: `step` 1 from the upper left, -1 from the lower right. What
 * is beyond the box has no depth: there the picture ends. */
static void sweep_depth(int32_t *depth, int64_t height, int64_t width, int step) {
    for (int64_t i = step > 0 ? 0 : height * width - 1; i >= 0 && i < height * width; i += step) {
        int64_t y = i / width - step, x = i % width, before = x - step;
        int32_t min = before >= 0 && before < width ? depth[i - step] : FAR;
        for (int64_t u = basin_int_max(x - 1, 0); u < basin_int_min(x + 2, width); u++)
            if (y >= 0 && y < height && depth[y * width + u] < min) min = depth[y * width + u];
        if (depth[i] > min + 1) depth[i] = min + 1;
    }
}

/* Depths where they are not 0. */
static void measure_depth(basin_hole *h) {
    sweep_depth(h->depth, h->box.height, h->box.width, 1);
    sweep_depth(h->depth, h->box.height, h->box.width, -1);
    h->deepest = 0;
    for (int64_t i = 0; i < h->box.height * h->box.width; i++)
        h->deepest = basin_int_max(h->deepest, h->depth[i]);
}

/* A pixel is in a wide part where it is less than `wide` from one that is `wide` deep. */
basin_status basin_hole_keep_wide(basin_hole *h, int64_t patch, basin_error *error) {
    int64_t wide = 1 + basin_int_min(5 * patch / 16, 5), n = h->box.height * h->box.width;
    BASIN_SCRATCH_RAW(int32_t, apart, n, "a mask", error);
    for (int64_t i = 0; i < n; i++) apart[i] = h->depth[i] >= wide ? 0 : FAR;
    sweep_depth(apart, h->box.height, h->box.width, 1);
    sweep_depth(apart, h->box.height, h->box.width, -1);
    for (int64_t i = 0; i < n; i++) h->depth[i] = h->depth[i] && apart[i] < wide ? FAR : 0;
    measure_depth(h);
    return BASIN_OK;
}

basin_status basin_hole_make(basin_hole *hole, const basin_picture *picture, int64_t margin,
                             const basin_image_complete_options *how, int64_t number,
                             basin_error *error) {
    *hole = (basin_hole){0};
    BASIN_SCRATCH(uint8_t, map, picture->height * picture->width, "a mask", error);
    if (how->mask)
        BASIN_TRY(mark_mask(map, &how->mask[number], picture, error));
    else
        BASIN_TRY(mark_rectangles(map, how, picture, error));
    BASIN_TRY(find_box(hole, map, picture, margin, error));
    int64_t w = hole->box.width;
    BASIN_TRY(BASIN_NEW_RAW(&hole->depth, hole->box.height * w, "a mask", error));
    for (int64_t i = 0; i < hole->box.height * w; i++) {
        int64_t y = hole->box.top + i / w, x = hole->box.left + i % w;
        hole->depth[i] = map[y * picture->width + x] ? FAR : 0;
    }
    measure_depth(hole);
    return BASIN_OK;
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

basin_area basin_hole_part(uint8_t *mark, int64_t *stack, const basin_hole *h, int64_t first,
                           int64_t *deepest) {
    int64_t width = h->box.width, height = h->box.height, count = 0;
    int64_t top = height, left = width, bottom = -1, right = -1;
    *deepest = 0;
    mark[first] = 1;
    stack[count++] = first;
    while (count) {
        int64_t at = stack[--count], y = at / width, x = at % width;
        *deepest = basin_int_max(*deepest, h->depth[at]);
        top = basin_int_min(top, y), bottom = basin_int_max(bottom, y);
        left = basin_int_min(left, x), right = basin_int_max(right, x);
        for (int k = 0; k < 9; k++) {
            int64_t v = y + k / 3 - 1, u = x + k % 3 - 1, to = v * width + u;
            if (v < 0 || u < 0 || v >= height || u >= width || mark[to] || !h->depth[to]) continue;
            mark[to] = 1;
            stack[count++] = to;
        }
    }
    return (basin_area){h->box.top + top, h->box.left + left, bottom - top + 1, right - left + 1};
}

/* ---- Smooth surfaces over a hole; see complete.h: successive over-relaxation, begun with the
 * solution on a grid of half the size. Four free pixels that become one add up their pulls and
 * springs; the two links between neighbours are twice as long, so that they count as one ---- */

typedef struct membrane {
    int64_t height, width;
    uint8_t *free;            /* [height, width] */
    float *pull, *toward, *u; /* fixed neighbours, the sum of their values, the surface; 0 where
                                 not free */
    double spring;
} membrane;

static void membrane_free(membrane *m) { BASIN_FREE(m->free, m->pull, m->toward, m->u); }

/* Zeroes; all pixels are not free. */
static basin_status membrane_new(membrane *m, int64_t height, int64_t width, basin_error *error) {
    static const char what[] = "a membrane over a hole";
    *m = (membrane){.height = height, .width = width};
    BASIN_TRY(BASIN_NEW(&m->free, height * width, what, error));
    BASIN_TRY(BASIN_NEW(&m->pull, height * width, what, error));
    BASIN_TRY(BASIN_NEW(&m->toward, height * width, what, error));
    return BASIN_NEW(&m->u, height * width, what, error);
}

static void relax(membrane *m, int64_t y, int64_t x, float over) {
    int64_t i = y * m->width + x;
    float sum = m->toward[i], weight = m->pull[i] + (float)m->spring;
    if (y > 0 && m->free[i - m->width]) sum += m->u[i - m->width], weight += 1;
    if (x > 0 && m->free[i - 1]) sum += m->u[i - 1], weight += 1;
    if (x + 1 < m->width && m->free[i + 1]) sum += m->u[i + 1], weight += 1;
    if (y + 1 < m->height && m->free[i + m->width]) sum += m->u[i + m->width], weight += 1;
    if (weight > 0) m->u[i] += over * (sum / weight - m->u[i]);
}

/* Over-relaxation first, then plain sweeps, which smooth what it leaves. */
static void sweep(membrane *m) {
    enum { SWEEPS = 40, PLAIN = 8 };
    for (int k = 0; k < SWEEPS; k++)
        for (int64_t i = 0; i < m->height * m->width; i++)
            if (m->free[i]) relax(m, i / m->width, i % m->width, k < SWEEPS - PLAIN ? 1.7F : 1);
}

static void reduce(membrane *half, const membrane *m) {
    half->spring = 4 * m->spring;
    for (int64_t i = 0; i < m->height * m->width; i++) {
        int64_t to = i / m->width / 2 * half->width + i % m->width / 2;
        if (!m->free[i]) continue;
        half->free[to] = 1;
        half->pull[to] += m->pull[i];
        half->toward[to] += m->toward[i];
    }
}

static basin_status solve(membrane *m, basin_error *error) {
    enum { SMALL = 8 };
    BASIN_AT_EXIT(membrane_free) membrane half = {0};
    if (m->height > SMALL || m->width > SMALL) {
        BASIN_TRY(membrane_new(&half, (m->height + 1) / 2, (m->width + 1) / 2, error));
        reduce(&half, m);
        BASIN_TRY(solve(&half, error));
        for (int64_t i = 0; i < m->height * m->width; i++)
            if (m->free[i]) m->u[i] = half.u[i / m->width / 2 * half.width + i % m->width / 2];
    }
    sweep(m);
    return BASIN_OK;
}

/* The value of fixed pixel o beside free pixel i, in channel c. */
static float tie(const basin_ties *t, int64_t o, int64_t i, int c) {
    float value = t->known[o * t->stride + c];
    if (!t->guess) return value;
    return value - t->guess[(!t->weight || t->weight[o] > 0 ? o : i) * t->stride + c];
}

basin_status basin_membrane_add(float *to, const basin_ties *t, int channels, basin_error *error) {
    static const int down[] = {-1, 1, 0, 0}, right[] = {0, 0, -1, 1};
    int64_t area = t->height * t->width;
    BASIN_AT_EXIT(membrane_free) membrane m = {0};
    BASIN_TRY(membrane_new(&m, t->height, t->width, error));
    memcpy(m.free, t->missing, (size_t)area);
    m.spring = t->spring;
    for (int c = 0; c < channels; c++) {
        for (int64_t i = 0; i < area; i++) {
            m.pull[i] = m.toward[i] = m.u[i] = 0;
            for (int k = 0; k < 4 && m.free[i]; k++) {
                int64_t y = i / m.width + down[k], x = i % m.width + right[k], o = y * m.width + x;
                if (y < 0 || x < 0 || y >= m.height || x >= m.width || m.free[o]) continue;
                m.pull[i] += 1;
                m.toward[i] += tie(t, o, i, c);
            }
        }
        BASIN_TRY(solve(&m, error));
        for (int64_t i = 0; i < area; i++)
            if (m.free[i]) to[i * t->stride + c] += m.u[i];
    }
    return BASIN_OK;
}
