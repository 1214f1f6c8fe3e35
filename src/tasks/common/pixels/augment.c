/* Augmentation: what is drawn, and from pixels to normalised patches or planes. */
#include "base/try.h"
#include "base/wide.h"
#include "basin/random.h"
#include "tasks/common/pixels/picture.h"

basin_augment basin_augment_training(int64_t size, int channels, int64_t patch) {
    return (basin_augment){.size = size,
                           .channels = channels,
                           .patch = patch,
                           .fit = BASIN_PICTURE_FIT_RANDOM,
                           .enlarge = 1,
                           .scale_low = 0.08,
                           .scale_high = 1,
                           .ratio_low = 3.0 / 4.0,
                           .ratio_high = 4.0 / 3.0,
                           .flip = 0.5,
                           .brightness = 0.4,
                           .contrast = 0.4,
                           .saturation = 0.4,
                           .deviation = {1, 1, 1}};
}

basin_augment basin_augment_evaluation(int64_t size, int channels, int64_t patch) {
    return (basin_augment){.size = size,
                           .channels = channels,
                           .patch = patch,
                           .fit = BASIN_PICTURE_FIT_CROP,
                           .enlarge = 256.0 / 224.0,
                           .deviation = {1, 1, 1}};
}

int64_t basin_augment_values(const basin_augment *a) { return a->channels * a->size * a->size; }

basin_status basin_augment_check(const basin_augment *a, basin_error *error) {
    enum { SIDE = 1 << 14 };
    if (a->size < 1 || a->size > SIDE || (a->channels != 1 && a->channels != 3))
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "pictures of %lld pixels per side and %d channels; expected 1 to %d and 1 or 3",
            (long long)a->size, a->channels, SIDE);
    if (a->patch < 0 || (a->patch > 0 && a->size % a->patch))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "pictures of %lld pixels per side in patches of %lld", (long long)a->size,
                          (long long)a->patch);
    if (a->fit == BASIN_PICTURE_FIT_RANDOM &&
        !(a->scale_low > 0 && a->scale_low <= a->scale_high && a->scale_high <= 1 &&
          a->ratio_low > 0 && a->ratio_low <= a->ratio_high))
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "crops of area %g to %g and ratio %g to %g; expected 0 < low <= high, area "
            "at most 1",
            a->scale_low, a->scale_high, a->ratio_low, a->ratio_high);
    if (a->fit == BASIN_PICTURE_FIT_CROP && !(a->enlarge >= 1 && a->enlarge <= 16))
        return basin_fail(error, BASIN_BAD_VALUE, "the short side enlarged by %g; expected 1 to 16",
                          a->enlarge);
    for (int c = 0; c < a->channels; c++)
        if (!(a->deviation[c] > 0) || !isfinite(a->mean[c]))
            return basin_fail(error, BASIN_BAD_VALUE, "channel %d: mean %g, deviation %g", c,
                              (double)a->mean[c], (double)a->deviation[c]);
    return BASIN_OK;
}

/* ---- drawing ---- */

static double uniform(basin_random *random, double low, double high) {
    return low + (high - low) * ((double)basin_random_next(random) * 0x1p-32);
}

static basin_box random_part(const basin_augment *a, int64_t height, int64_t width,
                             basin_random *random) {
    enum { TRIES = 10 };
    double area = (double)height * (double)width;
    for (int i = 0; i < TRIES; i++) {
        double target = area * uniform(random, a->scale_low, a->scale_high);
        double ratio = exp(uniform(random, log(a->ratio_low), log(a->ratio_high)));
        int64_t w = llrint(sqrt(target * ratio)), h = llrint(sqrt(target / ratio));
        if (w < 1 || h < 1 || w > width || h > height) continue;
        int64_t y = (int64_t)basin_random_below(random, (uint64_t)(height - h + 1));
        int64_t x = (int64_t)basin_random_below(random, (uint64_t)(width - w + 1));
        return (basin_box){(double)y, (double)x, (double)h, (double)w};
    }
    int64_t h = height, w = width;
    if ((double)width < a->ratio_low * (double)height)
        h = llrint((double)width / a->ratio_low);
    else if ((double)width > a->ratio_high * (double)height)
        w = llrint((double)height * a->ratio_high);
    if (h < 1) h = 1;
    if (w < 1) w = 1;
    return (basin_box){(double)((height - h) / 2), (double)((width - w) / 2), (double)h, (double)w};
}

/* The short side becomes size * enlarge, or stays at `size`; the middle is cut out. */
static void central(basin_resize *r, const basin_augment *a, int64_t height, int64_t width) {
    bool fits = (height < width ? height : width) == a->size;
    int64_t side = fits ? a->size : llrint((double)a->size * a->enlarge);
    r->box = (basin_box){0, 0, (double)height, (double)width};
    r->height = height <= width ? side : side * height / width;
    r->width = height <= width ? side * width / height : side;
    r->y = llrint((double)(r->height - a->size) / 2);
    r->x = llrint((double)(r->width - a->size) / 2);
}

static void draw_jitter(basin_drawn *drawn, const basin_augment *a, basin_random *random) {
    const double by[3] = {a->brightness, a->contrast, a->saturation};
    int64_t order[3] = {0, 1, 2};
    basin_random_shuffle(order, 3, random);
    for (int i = 0; i < 3; i++) {
        drawn->order[i] = (int)order[i];
        drawn->factor[i] = 1;
        if (by[i] > 0) drawn->factor[i] = (float)uniform(random, fmax(0, 1 - by[i]), 1 + by[i]);
    }
}

void basin_augment_draw(basin_drawn *drawn, const basin_augment *a, int64_t height, int64_t width,
                        uint64_t seed, int64_t epoch, int64_t index) {
    /* other streams than those of weights and masks */
    uint64_t stream = (uint64_t)1 << 63 | (uint64_t)epoch << 40 | (uint64_t)index;
    basin_random random = basin_random_start(seed, stream, 0);
    basin_resize *r = &drawn->resize;
    *drawn = (basin_drawn){.factor = {1, 1, 1}, .order = {0, 1, 2}};
    *r = (basin_resize){.box = {0, 0, (double)height, (double)width},
                        .height = a->size,
                        .width = a->size,
                        .out_height = a->size,
                        .out_width = a->size};
    if (a->fit == BASIN_PICTURE_FIT_RANDOM) r->box = random_part(a, height, width, &random);
    if (a->fit == BASIN_PICTURE_FIT_CROP) central(r, a, height, width);
    if (a->flip > 0) r->flip = uniform(&random, 0, 1) < a->flip;
    if (a->brightness > 0 || a->contrast > 0 || a->saturation > 0) draw_jitter(drawn, a, &random);
}

/* In training down to the crop's output, in evaluation to twice that. */
int basin_augment_reduction(const basin_augment *a, const basin_resize *r) {
    double gap = a->fit == BASIN_PICTURE_FIT_RANDOM ? 1 : 2;
    return basin_decoder_reduction(&r->box, gap * (double)r->height, gap * (double)r->width);
}

/* ---- doing ---- */

/* Along one axis: of `full` outputs over a stretch, `outs` after the first `first`. */
static void need(double *begin, double *length, int64_t full, int64_t first, int64_t outs,
                 int reduction) {
    double scale = *length / (double)full, more = fmax(scale, reduction) + reduction + 1;
    double from = fmax(*begin, *begin + (double)first * scale - more);
    *length = fmin(*begin + *length, *begin + (double)(first + outs) * scale + more) - from;
    *begin = from;
}

/* The part of the source that outputs depend on, reduced at most 8 times, or not at all. */
static basin_box resize_needs(const basin_resize *r, int reduction) {
    basin_box out = r->box;
    need(&out.y, &out.height, r->height, r->y, r->out_height, reduction);
    need(&out.x, &out.width, r->width, r->x, r->out_width, reduction);
    return out;
}

basin_status basin_augment_decode(basin_picture *picture, basin_drawn *drawn,
                                  const basin_augment *a, basin_decoder *decoder, bool all,
                                  basin_error *error) {
    basin_box *box = &drawn->resize.box, inside;
    int by = decoder->png || decoder->webp ? 1 : basin_augment_reduction(a, &drawn->resize);
    basin_box needs = resize_needs(&drawn->resize, by);
    if (all) needs = (basin_box){0, 0, (double)decoder->height, (double)decoder->width};
    BASIN_TRY(basin_decoder_read(picture, &inside, decoder, &needs, by, error));
    *box = (basin_box){inside.y + (box->y - needs.y) / by, inside.x + (box->x - needs.x) / by,
                       box->height / by, box->width / by};
    return BASIN_OK;
}

/* The planes as the model's channels; in place, grey first or last. */
static void convert(float *plane, int to, int from, size_t area) {
    if (from == 1 && to == 3) {
        memcpy(plane + area, plane, area * sizeof *plane);
        memcpy(plane + 2 * area, plane, area * sizeof *plane);
    } else if (from == 3 && to == 1) {
        const float *g = plane + area, *b = g + area;
        for (size_t i = 0; i < area; i++)
            plane[i] = 0.299F * plane[i] + 0.587F * g[i] + 0.114F * b[i];
    }
}

static void normalise_row(float *to, const float *from, int64_t count, float factor, float offset) {
    for (int64_t i = 0; i < count; i++) to[i] = from[i] * factor + offset;
}

/* values[n, (c, i, j)] for patch n = (row, column), or values[c, y, x]. */
static void deliver(float *values, const basin_augment *a, const float *plane) {
    int64_t size = a->size, p = a->patch, across = p ? size / p : 1;
    int64_t length = (int64_t)a->channels * p * p;
    for (int c = 0; c < a->channels; c++) {
        float factor = 1 / (255 * a->deviation[c]), offset = -a->mean[c] / a->deviation[c];
        for (int64_t y = 0; y < size; y++, plane += size) {
            if (p == 0) {
                normalise_row(values, plane, size, factor, offset);
                values += size;
                continue;
            }
            float *to = values + y / p * across * length + (c * p + y % p) * p;
            for (int64_t n = 0; n < across; n++)
                normalise_row(to + n * length, plane + n * p, p, factor, offset);
        }
    }
}

basin_status basin_augment_run(float *values, const basin_augment *a, const basin_drawn *drawn,
                               const basin_picture *picture, basin_scratch *scratch,
                               basin_error *error) {
    size_t area = (size_t)(a->size * a->size);
    if (scratch->plane_capacity < 3 * area) {
        free(scratch->plane);
        scratch->plane_capacity = 0;
        BASIN_TRY(BASIN_NEW_RAW(&scratch->plane, 3 * area, "a resized picture", error));
        scratch->plane_capacity = 3 * area;
    }
    float *plane = scratch->plane;
    BASIN_TRY(basin_resize_run(plane, &drawn->resize, picture, scratch, error));
    if (picture->channels == 1) convert(plane, a->channels, 1, area);
    int colours = a->channels > picture->channels ? a->channels : picture->channels;
    basin_jitter(plane, colours, area, drawn);
    if (picture->channels == 3) convert(plane, a->channels, 3, area);
    deliver(values, a, plane);
    return BASIN_OK;
}

/* ---- Colour jitter as torchvision defines it, on planes of values 0 .. 255: brightness f x;
 * contrast f x + (1 - f) m, m the mean grey of the picture; saturation f x + (1 - f) g, g the
 * pixel's grey; each clipped. Grey is 0.299 R + 0.587 G + 0.114 B ---- */

enum { LANES = 16 };

static inline float clip(float value) {
    value = value < 0 ? 0 : value;
    return value > 255 ? 255 : value;
}

BASIN_WIDE static void blend_all(float *restrict x, size_t count, float factor, float offset) {
    for (size_t i = 0; i < count; i++) x[i] = clip(factor * x[i] + offset);
}

BASIN_WIDE static void saturate(float *restrict r, float *restrict g, float *restrict b,
                                size_t count, float factor) {
    float rest = 1 - factor;
    for (size_t i = 0; i < count; i++) {
        float grey = rest * (0.299F * r[i] + 0.587F * g[i] + 0.114F * b[i]);
        r[i] = clip(factor * r[i] + grey);
        g[i] = clip(factor * g[i] + grey);
        b[i] = clip(factor * b[i] + grey);
    }
}

/* The sum of a plane, in an order that vectors can follow. */
BASIN_WIDE static double plane_sum(const float *x, size_t count) {
    float lane[LANES] = {0};
    double total = 0;
    size_t i = 0;
    while (i + LANES <= count) {
        size_t end = i + LANES * 64 <= count ? i + LANES * 64 : count - (count - i) % LANES;
        for (; i < end; i += LANES)
            for (int k = 0; k < LANES; k++) lane[k] += x[i + (size_t)k];
        for (int k = 0; k < LANES; k++) {
            total += (double)lane[k];
            lane[k] = 0;
        }
    }
    for (; i < count; i++) total += (double)x[i];
    return total;
}

static float mean_grey(const float *plane, int channels, size_t area) {
    double sum = plane_sum(plane, area);
    if (channels == 3)
        sum = 0.299 * sum + 0.587 * plane_sum(plane + area, area) +
              0.114 * plane_sum(plane + 2 * area, area);
    return (float)(sum / (double)area);
}

void basin_jitter(float *plane, int channels, size_t area, const basin_drawn *drawn) {
    for (int k = 0; k < 3; k++) {
        int which = drawn->order[k];
        float f = drawn->factor[which];
        if (f == 1) continue;
        if (which == 0)
            blend_all(plane, (size_t)channels * area, f, 0);
        else if (which == 1)
            blend_all(plane, (size_t)channels * area, f,
                      (1 - f) * mean_grey(plane, channels, area));
        else if (channels == 3)
            saturate(plane, plane + area, plane + 2 * area, area, f);
    }
}

/* ---- Patches to pictures and back; see picture.h ---- */

/* The place among values of a channel of the pixel (y, x). */
static int64_t place(const basin_patching *p, int64_t c, int64_t y, int64_t x) {
    int64_t side = p->patch, across = p->size / side;
    int64_t patch = y / side * across + x / side;
    return ((patch * p->channels + c) * side + y % side) * side + x % side;
}

/* What a value shows, 0 .. 1; NaN shows 0. */
static double shown(const basin_patching *p, const float *values, int64_t c, int64_t y, int64_t x) {
    double value = values[place(p, c, y, x)] * p->deviation[c] + p->mean[c];
    return fmin(fmax(value, 0), 1);
}

void basin_patches_to_pixels(uint8_t *pixel, const float *values, const basin_patching *p) {
    for (int64_t y = 0; y < p->size; y++)
        for (int64_t x = 0; x < p->size; x++)
            for (int64_t c = 0; c < p->channels; c++)
                *pixel++ = (uint8_t)lrint(255 * shown(p, values, c, y, x));
}

void basin_patches_from_pixels(float *values, const uint8_t *pixel, const basin_patching *p) {
    for (int64_t y = 0; y < p->size; y++)
        for (int64_t x = 0; x < p->size; x++)
            for (int64_t c = 0; c < p->channels; c++)
                values[place(p, c, y, x)] =
                    (float)((*pixel++ / 255.0 - p->mean[c]) / p->deviation[c]);
}

void basin_patches_to_planes(float *plane, const float *values, const basin_patching *p) {
    for (int64_t c = 0; c < p->channels; c++)
        for (int64_t y = 0; y < p->size; y++)
            for (int64_t x = 0; x < p->size; x++) *plane++ = (float)shown(p, values, c, y, x);
}
