/* What is missing in a picture; see complete.h. A mask, rectangles or drawn patches become a map of
 * the whole picture, of which the box around the hole is kept, with chessboard distances. */
#include "base/sort.h"
#include "tasks/pictures/complete/complete.h"

bool basin_hole_is_drawn(const basin_image_complete_options *how) {
    return !how->mask && how->rectangle[2] == 0 && how->rectangles == 0;
}

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

/* Patches in rows from the upper left corner; the last ones may be cut. */
static basin_status mark_drawn(uint8_t *map, const basin_image_complete_options *how,
                               int64_t number, int64_t patch, const basin_picture *p,
                               basin_error *error) {
    int64_t rows = (p->height + patch - 1) / patch, columns = (p->width + patch - 1) / patch;
    int64_t tokens = rows * columns, count = llround(how->ratio * (double)tokens);
    if (!(how->ratio >= 0 && how->ratio <= 1))
        return basin_fail(error, BASIN_BAD_VALUE, "ratio is %g; expected 0 to 1", how->ratio);
    BASIN_SCRATCH_RAW(uint8_t, drawn, tokens, "a mask", error);
    uint64_t stream = how->stream + (uint64_t)number;
    basin_image_mask_draw(drawn, tokens, count < 1 ? 1 : count, 0, how->seed, stream << 20);
    for (int64_t y = 0; y < p->height; y++)
        for (int64_t x = 0; x < p->width; x++)
            map[y * p->width + x] = drawn[y / patch * columns + x / patch] == BASIN_PATCH_REPLACED;
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

/* The depth beside a pixel of the box: 0 in the rest of the picture, no bound beyond it. */
static int32_t beside(const basin_hole *h, const basin_picture *p, int64_t y, int64_t x) {
    if (y >= 0 && x >= 0 && y < h->box.height && x < h->box.width)
        return h->depth[y * h->box.width + x];
    y += h->box.top, x += h->box.left;
    return y >= 0 && x >= 0 && y < p->height && x < p->width ? 0 : INT32_MAX - 1;
}

/* One sweep of the distance transform: `step` 1 from the upper left, -1 from the lower right.
 */
static void sweep_depth(basin_hole *h, const basin_picture *p, int step) {
    int64_t count = h->box.height * h->box.width;
    for (int64_t i = step > 0 ? 0 : count - 1; i >= 0 && i < count; i += step) {
        int64_t y = i / h->box.width, x = i % h->box.width;
        if (h->depth[i] == 0) continue;
        int32_t min = beside(h, p, y, x - step);
        for (int64_t dx = -1; dx <= 1; dx++) {
            int32_t other = beside(h, p, y - step, x + dx);
            if (min > other) min = other;
        }
        if (h->depth[i] > min + 1) h->depth[i] = min + 1;
    }
}

/* Depths where they are not 0. */
static void measure_depth(basin_hole *h, const basin_picture *p) {
    sweep_depth(h, p, 1);
    sweep_depth(h, p, -1);
    h->deepest = 0;
    for (int64_t i = 0; i < h->box.height * h->box.width; i++)
        h->deepest = basin_int_max(h->deepest, h->depth[i]);
}

/* A part is wide where a square of 2 wide - 1 pixels fits in, the ends of the picture being known.
 */
basin_status basin_hole_keep_wide(basin_hole *h, const basin_picture *p, int64_t patch,
                                  basin_error *error) {
    int64_t wide = 1 + basin_int_min(5 * patch / 16, 5);
    int64_t w = h->box.width, row = w + 1;
    BASIN_SCRATCH(int32_t, sum, (h->box.height + 1) * row, "a mask", error);
    for (int64_t i = 0; i < h->box.height * w; i++) {
        int64_t y = h->box.top + i / w, x = h->box.left + i % w, to = (i / w + 1) * row + i % w + 1;
        int64_t end =
            basin_int_min(basin_int_min(y + 1, p->height - y), basin_int_min(x + 1, p->width - x));
        bool middle = h->depth[i] >= wide && end >= wide;
        sum[to] = sum[to - 1] + sum[to - row] - sum[to - row - 1] + middle;
    }
    for (int64_t i = 0; i < h->box.height * w; i++) {
        int64_t top = basin_int_max(i / w - wide + 1, 0), left = basin_int_max(i % w - wide + 1, 0);
        int64_t bottom = basin_int_min(i / w + wide, h->box.height);
        int64_t right = basin_int_min(i % w + wide, w);
        bool kept = sum[bottom * row + right] - sum[bottom * row + left] - sum[top * row + right] +
                        sum[top * row + left] >
                    0;
        h->depth[i] = h->depth[i] && kept ? INT32_MAX - 1 : 0;
    }
    measure_depth(h, p);
    return BASIN_OK;
}

basin_status basin_hole_make(basin_hole *hole, const basin_picture *picture, int64_t patch,
                             const basin_image_complete_options *how, int64_t number,
                             basin_error *error) {
    *hole = (basin_hole){0};
    BASIN_SCRATCH(uint8_t, map, picture->height * picture->width, "a mask", error);
    if (how->mask)
        BASIN_TRY(mark_mask(map, &how->mask[number], picture, error));
    else if (basin_hole_is_drawn(how))
        BASIN_TRY(mark_drawn(map, how, number, patch, picture, error));
    else
        BASIN_TRY(mark_rectangles(map, how, picture, error));
    BASIN_TRY(find_box(hole, map, picture, patch, error));
    int64_t w = hole->box.width;
    BASIN_TRY(BASIN_NEW_RAW(&hole->depth, hole->box.height * w, "a mask", error));
    for (int64_t i = 0; i < hole->box.height * w; i++) {
        int64_t y = hole->box.top + i / w, x = hole->box.left + i % w;
        hole->depth[i] = map[y * picture->width + x] ? INT32_MAX - 1 : 0;
    }
    measure_depth(hole, picture);
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

/* ---- What follows from the rim of a hole: a first guess, the membrane through the known pixels
 * around it; and the correction of a model's guesses. Some windows also hide known pixels k beside
 * the hole, so that the error k - e of their guesses e is known there; elsewhere at the rim the
 * picture is taken as going on without a step, and the error as k - e of the guess next to it. The
 * correction is the membrane through these errors, held back by a spring so that it fades within L
 * pixels ---- */

typedef struct rim {
    const basin_picture *picture;
    const basin_hole *hole;
    const float *guess, *weight; /* [height, width, channels] [height, width] of the box, or NULL */
    int channel;
} rim;

/* The value that the known pixel (y, x) of the box gives its missing neighbour i: its own, or
 * the error of its guess. */
static double rim_value(const rim *r, int64_t i, int64_t y, int64_t x) {
    const basin_area *box = &r->hole->box;
    const basin_picture *p = r->picture;
    double known = p->pixel[((box->top + y) * p->width + box->left + x) * p->channels + r->channel];
    if (!r->guess) return known;
    int64_t at = y * box->width + x;
    bool guessed = y >= 0 && x >= 0 && y < box->height && x < box->width && r->weight[at] > 0;
    return known - r->guess[(guessed ? at : i) * p->channels + r->channel];
}

/* Ties missing pixels to their known neighbours. */
static void tie(basin_membrane *m, const rim *r) {
    static const int down[] = {-1, 1, 0, 0}, right[] = {0, 0, -1, 1};
    const basin_area *box = &r->hole->box;
    for (int64_t i = 0; i < box->height * box->width; i++) {
        m->free[i] = r->hole->depth[i] > 0;
        m->pull[i] = m->toward[i] = m->u[i] = 0;
        for (int k = 0; k < 4 && m->free[i]; k++) {
            int64_t y = i / box->width + down[k], x = i % box->width + right[k];
            int64_t py = box->top + y, px = box->left + x;
            if (py < 0 || px < 0 || py >= r->picture->height || px >= r->picture->width) continue;
            if (basin_hole_depth(r->hole, py, px) > 0) continue;
            m->pull[i] += 1;
            m->toward[i] += (float)rim_value(r, i, y, x);
        }
    }
}

/* Solves channel by channel; the surface is added to `to`. */
static basin_status add_membranes(float *to, rim *r, double spring, basin_error *error) {
    int64_t count = r->hole->box.height * r->hole->box.width;
    int channels = r->picture->channels;
    BASIN_AT_EXIT(basin_membrane_free) basin_membrane m = {0};
    BASIN_TRY(basin_membrane_new(&m, r->hole->box.height, r->hole->box.width, error));
    m.spring = spring;
    for (r->channel = 0; r->channel < channels; r->channel++) {
        tie(&m, r);
        BASIN_TRY(basin_membrane_solve(&m, error));
        for (int64_t i = 0; i < count; i++) to[i * channels + r->channel] += m.u[i];
    }
    return BASIN_OK;
}

basin_status basin_rim_match(float *guess, const float *weight, const basin_picture *picture,
                             const basin_hole *hole, double fade, basin_error *error) {
    rim r = {.picture = picture, .hole = hole, .guess = guess, .weight = weight};
    return add_membranes(guess, &r, 1 / (fade * fade), error);
}

basin_status basin_rim_span(float *guess, const basin_picture *picture, const basin_hole *hole,
                            basin_error *error) {
    rim r = {.picture = picture, .hole = hole};
    for (int64_t i = 0; i < hole->box.height * hole->box.width * picture->channels; i++)
        guess[i] = 0;
    return add_membranes(guess, &r, 0, error);
}

/* ---- Smooth surfaces over a hole; see complete.h: successive over-relaxation, begun with the
 * solution on a grid of half the size. Four free pixels that become one add up their pulls and
 * springs; the two links between neighbours are twice as long, so that they count as one ---- */

basin_status basin_membrane_new(basin_membrane *m, int64_t height, int64_t width,
                                basin_error *error) {
    static const char what[] = "a membrane over a hole";
    *m = (basin_membrane){.height = height, .width = width};
    BASIN_TRY(BASIN_NEW(&m->free, height * width, what, error));
    BASIN_TRY(BASIN_NEW(&m->pull, height * width, what, error));
    BASIN_TRY(BASIN_NEW(&m->toward, height * width, what, error));
    return BASIN_NEW(&m->u, height * width, what, error);
}

void basin_membrane_free(basin_membrane *m) {
    BASIN_FREE(m->free, m->pull, m->toward, m->u);
    *m = (basin_membrane){0};
}

static void relax(basin_membrane *m, int64_t y, int64_t x, float over) {
    int64_t i = y * m->width + x;
    float sum = m->toward[i], weight = m->pull[i] + (float)m->spring;
    if (y > 0 && m->free[i - m->width]) sum += m->u[i - m->width], weight += 1;
    if (x > 0 && m->free[i - 1]) sum += m->u[i - 1], weight += 1;
    if (x + 1 < m->width && m->free[i + 1]) sum += m->u[i + 1], weight += 1;
    if (y + 1 < m->height && m->free[i + m->width]) sum += m->u[i + m->width], weight += 1;
    if (weight > 0) m->u[i] += over * (sum / weight - m->u[i]);
}

/* Over-relaxation first, then plain sweeps, which smooth what it leaves. */
static void sweep(basin_membrane *m) {
    enum { SWEEPS = 40, PLAIN = 8 };
    for (int k = 0; k < SWEEPS; k++)
        for (int64_t i = 0; i < m->height * m->width; i++)
            if (m->free[i]) relax(m, i / m->width, i % m->width, k < SWEEPS - PLAIN ? 1.7F : 1);
}

static void reduce(basin_membrane *half, const basin_membrane *m) {
    half->spring = 4 * m->spring;
    for (int64_t i = 0; i < m->height * m->width; i++) {
        int64_t to = i / m->width / 2 * half->width + i % m->width / 2;
        if (!m->free[i]) continue;
        half->free[to] = 1;
        half->pull[to] += m->pull[i];
        half->toward[to] += m->toward[i];
    }
}

basin_status basin_membrane_solve(basin_membrane *m, basin_error *error) {
    enum { SMALL = 8 };
    BASIN_AT_EXIT(basin_membrane_free) basin_membrane half = {0};
    if (m->height > SMALL || m->width > SMALL) {
        BASIN_TRY(basin_membrane_new(&half, (m->height + 1) / 2, (m->width + 1) / 2, error));
        reduce(&half, m);
        BASIN_TRY(basin_membrane_solve(&half, error));
        for (int64_t i = 0; i < m->height * m->width; i++)
            if (m->free[i]) m->u[i] = half.u[i / m->width / 2 * half.width + i % m->width / 2];
    }
    sweep(m);
    return BASIN_OK;
}
