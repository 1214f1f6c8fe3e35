/* Filling holes with what texture.c has chosen; see complete.h: copies are joined by their
 * gradients, and their colours and detail are mixed with a smooth filling. */
#include "base/sort.h"
#include "tasks/pictures/complete/texture.h"

enum { SHALLOW = 4 }; /* holes that are nowhere deeper are left as they are */

/* ---- joining copies: steps between neighbours are those of the sources, at seams the mean of
 * both; the completion holds them by a spring, so that colours over large distances stay its own
 * ---- */

typedef struct joint {
    const basin_scene *scene;
    const basin_picture *picture; /* the completion in the hole */
    const basin_hole *hole;
    const int32_t *label;
    basin_area box; /* of the hole, in the picture */
} joint;

/* The shift, in pixels of the picture, at (y, x); false where there is none. */
static bool shift_at(basin_shift *by, const joint *j, int64_t y, int64_t x) {
    const basin_scene *s = j->scene;
    int64_t v = (y - s->area.top) / s->by - s->box.top,
            u = (x - s->area.left) / s->by - s->box.left;
    if (y < j->box.top || x < j->box.left || y >= j->box.top + j->box.height ||
        x >= j->box.left + j->box.width || basin_hole_depth(j->hole, y, x) == 0)
        return false;
    int32_t label = j->label[v * s->box.width + u];
    if (label < 0) return false;
    *by = (basin_shift){s->label[label].down * s->by, s->label[label].right * s->by};
    return true;
}

/* A known value of the picture; false where it is missing or outside. */
static bool known_at(float *value, const joint *j, int64_t y, int64_t x, int c) {
    const basin_picture *p = j->picture;
    if (y < 0 || x < 0 || y >= p->height || x >= p->width || basin_hole_depth(j->hole, y, x) > 0)
        return false;
    *value = p->pixel[(y * p->width + x) * p->channels + c];
    return true;
}

/* The step from (y, x) to its neighbour that a shift copies. */
static bool step_of(float *step, const joint *j, basin_shift by, int64_t y, int64_t x, int64_t dy,
                    int64_t dx, int c) {
    float here, there;
    if (!known_at(&here, j, y + by.down, x + by.right, c) ||
        !known_at(&there, j, y + dy + by.down, x + dx + by.right, c))
        return false;
    *step = here - there;
    return true;
}

/* Ties pixel i of the membrane, whose surface is the filling itself. */
static void tie(basin_membrane *m, const joint *j, int64_t i, int c) {
    static const int down[] = {-1, 1, 0, 0}, right[] = {0, 0, -1, 1};
    int64_t y = j->box.top + i / j->box.width, x = j->box.left + i % j->box.width;
    const basin_picture *p = j->picture;
    basin_shift own, other;
    bool has = shift_at(&own, j, y, x);
    m->toward[i] = (float)m->spring * p->pixel[(y * p->width + x) * p->channels + c];
    for (int k = 0; k < 4; k++) {
        int64_t v = y + down[k], u = x + right[k];
        float sum = 0, step, known;
        int count = 0;
        if (v < 0 || u < 0 || v >= p->height || u >= p->width) continue;
        if (has && step_of(&step, j, own, y, x, down[k], right[k], c)) sum += step, count++;
        bool rim = known_at(&known, j, v, u, c);
        if (!rim && shift_at(&other, j, v, u) &&
            step_of(&step, j, other, y, x, down[k], right[k], c))
            sum += step, count++;
        if (rim) m->pull[i] += 1, m->toward[i] += known, sum *= 0.5F;
        if (count) m->toward[i] += sum / (float)count;
    }
}

/* Fills `to` [box.height, box.width, channels]. */
static basin_status join(float *to, const joint *j, basin_error *error) {
    const double length = 50;
    int64_t area = j->box.height * j->box.width;
    BASIN_AT_EXIT(basin_membrane_free) basin_membrane m = {0};
    BASIN_TRY(basin_membrane_new(&m, j->box.height, j->box.width, error));
    m.spring = 1 / (length * length);
    for (int c = 0; c < j->picture->channels; c++) {
        memset(m.pull, 0, (size_t)area * sizeof *m.pull);
        memset(m.u, 0, (size_t)area * sizeof *m.u);
        for (int64_t i = 0; i < area; i++) {
            int64_t y = j->box.top + i / j->box.width, x = j->box.left + i % j->box.width;
            m.free[i] = basin_hole_depth(j->hole, y, x) > 0;
            m.toward[i] = 0;
            if (m.free[i]) tie(&m, j, i, c);
        }
        BASIN_TRY(basin_membrane_solve(&m, error));
        for (int64_t i = 0; i < area; i++) to[i * j->picture->channels + c] = m.u[i];
    }
    return BASIN_OK;
}

/* ---- the filling: colours and detail of the joined copies, each by as much as it is worth ---- */

/* How well the copies go on with what is known at the rim: 1 less their squared error there by the
 * variance of the same pixels, 0 to 1. */
static double confidence(const joint *j) {
    enum { AROUND = 3, SIDE = 2 * AROUND + 1 };
    double error = 0, sum = 0, square = 0, count = 0;
    for (int64_t i = 0; i < j->box.height * j->box.width; i++) {
        int64_t y = j->box.top + i / j->box.width, x = j->box.left + i % j->box.width;
        basin_shift by;
        if (basin_hole_depth(j->hole, y, x) != 1 || !shift_at(&by, j, y, x)) continue;
        for (int64_t k = 0; k < SIDE * SIDE * j->picture->channels; k++) {
            int64_t v = y + k / j->picture->channels / SIDE - AROUND;
            int64_t u = x + k / j->picture->channels % SIDE - AROUND;
            int c = (int)(k % j->picture->channels);
            float known, copied;
            if (!known_at(&known, j, v, u, c) ||
                !known_at(&copied, j, v + by.down, u + by.right, c))
                continue;
            error += (double)(known - copied) * (known - copied);
            sum += known, square += (double)known * known, count++;
        }
    }
    double variance = square - sum * sum / fmax(count, 1);
    return variance > 0 ? fmax(1 - error / variance, 0) : 0;
}

/* Part of a picture around a hole, in four degrees of smoothness. */
typedef struct layers {
    basin_area area;
    float *copy, *fine, *low,
        *wide;    /* [area, channels] as copied; smoothed by 1.5, 1.9, 7 pixels */
    float *shape; /* [area] how strong detail is to be there, beside other places */
} layers;

static void layers_free(layers *l) { BASIN_FREE(l->copy, l->fine, l->low, l->wide, l->shape); }

static basin_status layers_new(layers *l, const joint *j, const float *filled, basin_error *error) {
    enum { RING = 16 };
    const basin_picture *p = j->picture;
    int64_t top = basin_int_max(j->box.top - RING, 0), left = basin_int_max(j->box.left - RING, 0);
    int64_t height = basin_int_min(j->box.top + j->box.height + RING, p->height) - top;
    int64_t width = basin_int_min(j->box.left + j->box.width + RING, p->width) - left;
    int64_t C = p->channels, count = height * width * C;
    l->area = (basin_area){top, left, height, width};
    BASIN_TRY(BASIN_NEW_RAW(&l->copy, count, "texture", error));
    BASIN_TRY(BASIN_NEW_RAW(&l->fine, count, "texture", error));
    BASIN_TRY(BASIN_NEW_RAW(&l->low, count, "texture", error));
    BASIN_TRY(BASIN_NEW_RAW(&l->wide, count, "texture", error));
    BASIN_TRY(BASIN_NEW(&l->shape, height * width, "texture", error));
    for (int64_t i = 0; i < count; i++) {
        int64_t y = top + i / C / width, x = left + i / C % width;
        int64_t v = y - j->box.top, u = x - j->box.left;
        bool in = v >= 0 && u >= 0 && v < j->box.height && u < j->box.width;
        l->copy[i] = p->pixel[(y * p->width + x) * C + i % C];
        if (in && basin_hole_depth(j->hole, y, x) > 0)
            l->copy[i] = filled[(v * j->box.width + u) * C + i % C];
    }
    memcpy(l->fine, l->copy, (size_t)count * sizeof *l->fine);
    memcpy(l->low, l->copy, (size_t)count * sizeof *l->low);
    memcpy(l->wide, l->copy, (size_t)count * sizeof *l->wide);
    BASIN_TRY(basin_blur(l->fine, NULL, height, width, C, 1.5, error));
    BASIN_TRY(basin_blur(l->low, NULL, height, width, C, 1.9, error));
    BASIN_TRY(basin_blur(l->wide, NULL, height, width, C, 7, error));
    for (int64_t i = 0; i < count; i++) {
        float d = l->copy[i] - l->low[i];
        l->shape[i / C] += d * d;
    }
    return basin_blur(l->shape, NULL, height, width, 1, 2, error);
}

/* Detail is stronger where copies have more of it, and at the rim; in all it gets an energy in
 * proportion to that around the hole: the more, the better copies fit. */
static void shape_detail(layers *l, const joint *j, double sure) {
    const double weakest = 0.4, fade = 20,
                 target = fmin(fmax(0.55 + 2 * (sure - 0.55), 0.55), 1.05);
    int64_t area = l->area.height * l->area.width, C = j->picture->channels, count[2] = {0};
    double sum[2] = {0};
    for (int64_t i = 0; i < area; i++) {
        int64_t y = l->area.top + i / l->area.width, x = l->area.left + i % l->area.width;
        int32_t depth = basin_hole_depth(j->hole, y, x);
        double strength = fmax(exp((1 - depth) / fade), weakest);
        l->shape[i] = depth ? (float)(strength * l->shape[i]) : 1;
        for (int64_t c = 0; c < C; c++) {
            double d = (double)l->shape[i] * (l->copy[i * C + c] - l->fine[i * C + c]);
            sum[depth > 0] += d * d;
            count[depth > 0]++;
        }
    }
    double gain = 0;
    if (sum[1] > 0 && count[0])
        gain = sqrt(target * sum[0] / (double)count[0] * (double)count[1] / sum[1]);
    for (int64_t i = 0; i < area; i++) l->shape[i] = fminf((float)gain * l->shape[i], 3);
}

/* How much of the copies' colours a pixel so deep in the hole takes. */
static double colour_share(double depth, double sure) {
    double far = (1 - sure) * 30 + 0.01;
    return 0.5 * sqrt(sure) * (1 - exp(-depth * depth / far)) * exp((sure - 1) * depth / 25);
}

/* Colours without detail go to `smooth` [box.height, box.width, channels]. Estimates vary less than
 * what they estimate, so `spread` of their distance from the mean over the hole is added. */
static void mix_colours(float *smooth, const joint *j, const layers *l, double sure,
                        double spread) {
    int64_t C = j->picture->channels, count = j->box.height * j->box.width * C;
    double mean[4] = {0}, pixels = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t y = j->box.top + i / C / j->box.width, x = j->box.left + i / C % j->box.width;
        int64_t at = ((y - l->area.top) * l->area.width + x - l->area.left) * C + i % C;
        double depth = basin_hole_depth(j->hole, y, x);
        double known = j->picture->pixel[(y * j->picture->width + x) * C + i % C];
        smooth[i] = (float)(known + colour_share(depth, sure) * (l->low[at] - known));
        if (depth > 0) mean[i % C] += smooth[i], pixels += i % C == 0;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t y = j->box.top + i / C / j->box.width, x = j->box.left + i / C % j->box.width;
        double inside = fmin(basin_hole_depth(j->hole, y, x) / 8.0, 1);
        smooth[i] += (float)(spread * inside * (smooth[i] - mean[i % C] / pixels));
    }
}

static basin_status blend(basin_picture *to, const joint *j, const float *filled, double texture,
                          basin_error *error) {
    BASIN_AT_EXIT(layers_free) layers l = {0};
    int64_t C = to->channels, count = j->box.height * j->box.width * C;
    BASIN_SCRATCH_RAW(float, smooth, count, "texture", error);
    BASIN_TRY(layers_new(&l, j, filled, error));
    double sure = confidence(j);
    shape_detail(&l, j, sure);
    texture *= fmin(4 * sure, 1); /* nothing fits: a smooth filling */
    mix_colours(smooth, j, &l, sure, 0.1 * texture);
    const double middle = 0.3 * fmin(fmax(4 * (sure - 0.55), 0), 1);
    for (int64_t i = 0; i < count; i++) {
        int64_t y = j->box.top + i / C / j->box.width, x = j->box.left + i / C % j->box.width;
        int64_t at = (y - l.area.top) * l.area.width + x - l.area.left, part = at * C + i % C;
        double depth = basin_hole_depth(j->hole, y, x);
        if (depth == 0) continue;
        double deep = 1 - exp(-depth * depth / 16), rest = 1 - colour_share(depth, sure);
        double sum = smooth[i] + texture * l.shape[at] * (l.copy[part] - l.low[part]);
        sum += texture * middle * rest * deep * (l.low[part] - l.wide[part]);
        to->pixel[(y * to->width + x) * C + i % C] = (uint8_t)lrint(fmin(fmax(sum, 0), 255));
    }
    return BASIN_OK;
}

/* ---- holes one by one ---- */

/* The box of the part of a hole around pixel `first` of its map, which is marked by `mark`; its
 * greatest depth goes to `deepest`. */
static basin_area flood(int32_t *mark, int64_t *stack, const basin_hole *h, int64_t first,
                        int32_t number, int32_t *deepest) {
    int64_t width = h->box.width, height = h->box.height, count = 0;
    int64_t top = height, left = width, bottom = -1, right = -1;
    *deepest = 0;
    mark[first] = number;
    stack[count++] = first;
    while (count) {
        int64_t at = stack[--count], y = at / width, x = at % width;
        if (h->depth[at] > *deepest) *deepest = h->depth[at];
        top = basin_int_min(top, y), bottom = basin_int_max(bottom, y);
        left = basin_int_min(left, x), right = basin_int_max(right, x);
        for (int k = 0; k < 9; k++) {
            int64_t v = y + k / 3 - 1, u = x + k % 3 - 1, to = v * width + u;
            if (v < 0 || u < 0 || v >= height || u >= width || mark[to] || !h->depth[to]) continue;
            mark[to] = number;
            stack[count++] = to;
        }
    }
    return (basin_area){h->box.top + top, h->box.left + left, bottom - top + 1, right - left + 1};
}

/* A smooth filling without copies: kriging, and a fifth of the mean of model and membrane. */
static basin_status fill_smooth(basin_picture *to, basin_picture *now, const basin_hole *hole,
                                basin_area box, const float *span, basin_error *error) {
    const float part = 0.2F;
    int64_t C = now->channels, count = box.height * box.width * C;
    BASIN_SCRATCH_RAW(float, guess, count, "texture", error);
    for (int64_t i = 0; i < count; i++) {
        int64_t y = box.top + i / C / box.width, x = box.left + i / C % box.width;
        int64_t at = (y - hole->box.top) * hole->box.width + x - hole->box.left;
        guess[i] = span[at * C + i % C];
    }
    BASIN_TRY(basin_krige(guess, now, hole, box, error));
    for (int64_t i = 0; i < count; i++) {
        int64_t y = box.top + i / C / box.width, x = box.left + i / C % box.width;
        int64_t at = (y * now->width + x) * C + i % C;
        float sum = guess[i] + part * ((float)now->pixel[at] - guess[i]);
        if (basin_hole_depth(hole, y, x))
            to->pixel[at] = now->pixel[at] = (uint8_t)lrintf(fminf(fmaxf(sum, 0), 255));
    }
    return BASIN_OK;
}

static basin_status fill_part(basin_picture *to, basin_picture *now, const basin_hole *hole,
                              basin_area box, const float *span, double texture,
                              basin_backend *backend, basin_course *course, basin_error *error) {
    BASIN_AT_EXIT(basin_scene_free) basin_scene s = {0};
    int64_t channels = now->channels;
    BASIN_TRY(fill_smooth(to, now, hole, box, span, error));
    BASIN_TRY(basin_scene_new(&s, now, hole, box, error));
    if (!s.labels) return BASIN_OK; /* nothing to copy from: a smooth filling */
    BASIN_SCRATCH_RAW(int32_t, label, s.box.height * s.box.width, "texture", error);
    BASIN_SCRATCH(float, filled, (box.height * box.width * channels), "texture", error);
    BASIN_TRY(basin_associate(label, &s, backend, course, error));
    joint j = {.scene = &s, .picture = now, .hole = hole, .label = label, .box = box};
    BASIN_TRY(join(filled, &j, error));
    return blend(to, &j, filled, texture, error);
}

basin_status basin_texture_fill(basin_picture *picture, const basin_hole *hole, const float *span,
                                double texture, basin_backend *backend, basin_course *course,
                                basin_error *error) {
    int64_t area = hole->box.height * hole->box.width;
    BASIN_AT_EXIT(basin_picture_free) basin_picture now = {0};
    if (hole->deepest < SHALLOW) return BASIN_OK;
    BASIN_TRY(basin_picture_copy(&now, picture, error));
    BASIN_SCRATCH(int32_t, mark, area, "texture", error);
    BASIN_SCRATCH_RAW(int64_t, stack, area, "texture", error);
    for (int64_t i = 0, number = 1; i < area; i++) {
        int32_t deepest;
        if (mark[i] || !hole->depth[i]) continue;
        basin_area box = flood(mark, stack, hole, i, (int32_t)number++, &deepest);
        if (deepest >= SHALLOW)
            BASIN_TRY(fill_part(picture, &now, hole, box, span, texture, backend, course, error));
    }
    return BASIN_OK;
}
