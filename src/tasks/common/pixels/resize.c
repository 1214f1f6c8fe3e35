/* Pictures in memory, and resizing them: down the columns, then along rows. See picture.h. */
#include "base/try.h"
#include "base/wide.h"
#include "tasks/common/pixels/picture.h"

enum { LANES = 4 }; /* of a pixel when it is loaded with its neighbour */

/* Allocates `count` floats, which are the scratch's until the next call. */
static float *scratch_take(basin_scratch *scratch, size_t count) {
    if (count <= scratch->capacity) return scratch->memory;
    free(scratch->memory);
    scratch->capacity = 0;
    scratch->memory = basin_array_new(count, sizeof *scratch->memory);
    if (scratch->memory) scratch->capacity = count;
    return scratch->memory;
}

void basin_scratch_free(basin_scratch *scratch) {
    BASIN_FREE(scratch->memory, scratch->plane);
    basin_picture_free(&scratch->picture);
    *scratch = (basin_scratch){0};
}

/* For each output along one axis: the first source pixel and the weights of `taps` from there. */
typedef struct axis {
    int64_t outs, taps;
    int64_t *first; /* [outs] */
    float *weight;  /* [outs, taps] */
} axis;

typedef struct stretch {
    double begin, length; /* in the source */
    int64_t count;        /* pixels of the source */
    int64_t full;         /* outputs over the whole stretch */
    int64_t from, outs;   /* those requested */
} stretch;

/* Source pixels low .. high - 1 that output i touches, counted from floor(begin). */
static void reach(int64_t *low, int64_t *high, double *centre, const stretch *s, int64_t i) {
    double fraction = s->begin - floor(s->begin), scale = s->length / (double)s->full;
    double support = scale > 1 ? scale : 1;
    int64_t base = (int64_t)floor(s->begin);
    int64_t end = (int64_t)ceil(fraction + s->length);
    *centre = fraction + ((double)(s->from + i) + 0.5) * scale;
    *low = (int64_t)floor(*centre - support + 0.5);
    *high = (int64_t)floor(*centre + support + 0.5);
    if (*low < 0) *low = 0;
    if (*low + base < 0) *low = -base;
    if (*high > end) *high = end;
    if (*high + base > s->count) *high = s->count - base;
    if (*high <= *low) *high = *low + 1;
}

static int64_t axis_taps(const stretch *s) {
    int64_t taps = 1, low, high;
    double centre;
    for (int64_t i = 0; i < s->outs; i++) {
        reach(&low, &high, &centre, s, i);
        if (high - low > taps) taps = high - low;
    }
    return taps;
}

static void axis_fill(axis *a, const stretch *s) {
    double scale = s->length / (double)s->full, support = scale > 1 ? scale : 1;
    int64_t base = (int64_t)floor(s->begin);
    for (int64_t i = 0; i < a->outs; i++) {
        int64_t low, high;
        double centre, sum = 0;
        float *weight = a->weight + i * a->taps;
        reach(&low, &high, &centre, s, i);
        /* the weights end where the source does */
        int64_t first = low;
        if (first + base + a->taps > s->count) first = s->count - base - a->taps;
        for (int64_t j = low; j < high; j++)
            sum += fmax(0, 1 - fabs((double)j + 0.5 - centre) / support);
        for (int64_t k = 0; k < a->taps; k++) {
            int64_t j = first + k;
            double w = fmax(0, 1 - fabs((double)j + 0.5 - centre) / support);
            weight[k] = j >= low && j < high ? (sum > 0 ? (float)(w / sum) : 1.0F) : 0.0F;
        }
        a->first[i] = first + base;
    }
}

static basin_status axis_new(axis *a, const stretch *s, basin_error *error) {
    *a = (axis){.outs = s->outs, .taps = axis_taps(s)};
    BASIN_TRY(BASIN_NEW_RAW(&a->first, a->outs, "resizing a picture", error));
    BASIN_TRY(BASIN_NEW_RAW(&a->weight, a->outs * a->taps, "resizing a picture", error));
    axis_fill(a, s);
    return BASIN_OK;
}

static void axis_free(axis *a) { BASIN_FREE(a->first, a->weight); }

/* ---- down the columns ---- */

/* out[i] = sum over k of weight[k] row[k][i]; the first four rows are set, those that are missing
 * count 0, further ones are added. */
BASIN_WIDE static void blend(float *restrict out, const uint8_t *restrict from, size_t stride,
                             const float *weight, int64_t taps, size_t count) {
    const uint8_t *row[4];
    float w[4];
    for (int64_t k = 0; k < 4; k++)
        w[k] = k < taps ? weight[k] : 0, row[k] = k < taps ? from + (size_t)k * stride : from;
    const uint8_t *a = row[0], *b = row[1], *c = row[2], *d = row[3];
    float p = w[0], q = w[1], r = w[2], s = w[3];
    for (size_t i = 0; i < count; i++)
        out[i] = p * (float)a[i] + q * (float)b[i] + r * (float)c[i] + s * (float)d[i];
    for (int64_t k = 4; k < taps; k++) {
        a = from + (size_t)k * stride, p = weight[k];
        for (size_t i = 0; i < count; i++) out[i] += p * (float)a[i];
    }
}

/* ---- along the rows ---- */

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

static inline lanes load(const float *from) {
    lanes out;
    memcpy(&out, from, sizeof out);
    return out;
}

/* A pixel's three channels ride together, with a fourth number that nobody looks at. */
static void along_colour(float *plane, size_t area, const float *row, const axis *a, bool flip) {
    for (int64_t i = 0; i < a->outs; i++) {
        const float *from = row + 3 * a->first[i], *weight = a->weight + i * a->taps;
        lanes sum = weight[0] * load(from);
        for (int64_t k = 1; k < a->taps; k++) sum += weight[k] * load(from + 3 * k);
        int64_t to = flip ? a->outs - 1 - i : i;
        plane[to] = sum[0];
        plane[to + (int64_t)area] = sum[1];
        plane[to + 2 * (int64_t)area] = sum[2];
    }
}

static void along_grey(float *plane, const float *row, const axis *a, bool flip) {
    for (int64_t i = 0; i < a->outs; i++) {
        const float *from = row + a->first[i], *weight = a->weight + i * a->taps;
        float sum = 0;
        for (int64_t k = 0; k < a->taps; k++) sum += weight[k] * from[k];
        plane[flip ? a->outs - 1 - i : i] = sum;
    }
}

static void run(float *plane, const axis *down, const axis *along, const basin_picture *picture,
                float *row, bool flip) {
    size_t channels = (size_t)picture->channels, stride = (size_t)picture->width * channels;
    size_t area = (size_t)(down->outs * along->outs);
    int64_t left = along->first[0], right = along->first[along->outs - 1] + along->taps;
    size_t skip = (size_t)left * channels, count = (size_t)(right - left) * channels;
    for (int64_t i = 0; i < down->outs; i++) {
        blend(row + skip, picture->pixel + (size_t)down->first[i] * stride + skip, stride,
              down->weight + i * down->taps, down->taps, count);
        if (channels == 3)
            along_colour(plane + i * along->outs, area, row, along, flip);
        else
            along_grey(plane + i * along->outs, row, along, flip);
    }
}

/* Nothing to compute: the pixels themselves. */
static void copy(float *plane, const basin_resize *r, const basin_picture *picture) {
    int64_t top = (int64_t)r->box.y + r->y, left = (int64_t)r->box.x + r->x;
    int64_t channels = picture->channels;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = 0; y < r->out_height; y++) {
            const uint8_t *from =
                picture->pixel + ((top + y) * picture->width + left) * channels + c;
            for (int64_t x = 0; x < r->out_width; x++)
                plane[r->flip ? r->out_width - 1 - x : x] = from[x * channels];
            plane += r->out_width;
        }
}

basin_status basin_resize_run(float *plane, const basin_resize *r, const basin_picture *picture,
                              basin_scratch *scratch, basin_error *error) {
    stretch rows = {r->box.y, r->box.height, picture->height, r->height, r->y, r->out_height};
    stretch columns = {r->box.x, r->box.width, picture->width, r->width, r->x, r->out_width};
    BASIN_AT_EXIT(axis_free) axis down = {0};
    BASIN_AT_EXIT(axis_free) axis along = {0};
    const basin_box *box = &r->box;
    if (box->height == (double)r->height && box->width == (double)r->width &&
        box->y == floor(box->y) && box->x == floor(box->x)) {
        copy(plane, r, picture);
        return BASIN_OK;
    }
    size_t end = (size_t)picture->width * (size_t)picture->channels;
    float *row = scratch_take(scratch, end + LANES);
    if (!row) return basin_fail_memory(error, "resizing a picture");
    BASIN_TRY(axis_new(&down, &rows, error));
    BASIN_TRY(axis_new(&along, &columns, error));
    for (int i = 0; i < LANES; i++) row[end + (size_t)i] = 0;
    run(plane, &down, &along, picture, row, r->flip);
    return BASIN_OK;
}

static uint8_t byte_of(float value) {
    return (uint8_t)lrintf(value < 0 ? 0 : value > 255 ? 255 : value);
}

basin_status basin_picture_scale_box(basin_picture *to, const basin_picture *from,
                                     const basin_box *box, int64_t height, int64_t width,
                                     basin_error *error) {
    BASIN_AT_EXIT(basin_scratch_free) basin_scratch scratch = {0};
    basin_resize resize = {
        .box = *box, .height = height, .width = width, .out_height = height, .out_width = width};
    size_t area = (size_t)height * (size_t)width, channels = (size_t)from->channels;
    BASIN_TRY(basin_picture_resize_memory(to, height, width, from->channels, error));
    BASIN_SCRATCH_RAW(float, plane, (area * channels), "resizing a picture", error);
    BASIN_TRY(basin_resize_run(plane, &resize, from, &scratch, error));
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < area; i++)
            to->pixel[i * channels + c] = byte_of(plane[c * area + i]);
    return BASIN_OK;
}

basin_status basin_picture_scale(basin_picture *to, const basin_picture *from, int64_t height,
                                 int64_t width, basin_error *error) {
    basin_box whole = {0, 0, (double)from->height, (double)from->width};
    return basin_picture_scale_box(to, from, &whole, height, width, error);
}

/* ---- pictures in memory ---- */

basin_status basin_picture_resize_memory(basin_picture *picture, int64_t height, int64_t width,
                                         int channels, basin_error *error) {
    size_t bytes;
    if (height < 1 || width < 1 || (channels != 1 && channels != 3) ||
        height > BASIN_MAX_PICTURE_PIXELS / width)
        return basin_fail(error, BASIN_BAD_SHAPE, "a picture of %lld x %lld pixels in %d channels",
                          (long long)height, (long long)width, channels);
    bytes = (size_t)height * (size_t)width * (size_t)channels;
    if (bytes > picture->capacity) {
        free(picture->pixel);
        picture->capacity = 0;
        picture->pixel = malloc(bytes);
        if (!picture->pixel) return basin_fail_memory(error, "a picture");
        picture->capacity = bytes;
    }
    picture->height = height;
    picture->width = width;
    picture->channels = channels;
    return BASIN_OK;
}

void basin_picture_free(basin_picture *picture) {
    free(picture->pixel);
    *picture = (basin_picture){0};
}

basin_status basin_picture_set_channels(basin_picture *picture, int channels, basin_error *error) {
    size_t count = (size_t)picture->height * (size_t)picture->width;
    if (channels == picture->channels) return BASIN_OK;
    if (channels == 1) {
        for (size_t i = 0; i < count; i++) {
            const uint8_t *p = picture->pixel + 3 * i;
            picture->pixel[i] =
                (uint8_t)((19595U * p[0] + 38470U * p[1] + 7471U * p[2] + 0x8000U) >> 16);
        }
        picture->channels = 1;
        return BASIN_OK;
    }
    basin_picture wide = {0};
    BASIN_TRY(basin_picture_resize_memory(&wide, picture->height, picture->width, channels, error));
    for (size_t i = 0; i < count; i++)
        wide.pixel[3 * i] = wide.pixel[3 * i + 1] = wide.pixel[3 * i + 2] = picture->pixel[i];
    basin_picture_free(picture);
    *picture = wide;
    return BASIN_OK;
}

/* ---- Pictures from pixels in memory: those of another picture, or floats ---- */

basin_status basin_picture_copy(basin_picture *to, const basin_picture *from, basin_error *error) {
    if (!from->pixel) return basin_fail(error, BASIN_BAD_VALUE, "a picture has no pixels");
    BASIN_TRY(basin_picture_resize_memory(to, from->height, from->width, from->channels, error));
    memcpy(to->pixel, from->pixel, (size_t)(from->height * from->width * from->channels));
    return BASIN_OK;
}

basin_status basin_picture_from_floats(basin_picture *picture, const float *value, int64_t height,
                                       int64_t width, int channels, basin_error *error) {
    BASIN_TRY(basin_picture_resize_memory(picture, height, width, channels, error));
    for (int64_t i = 0; i < height * width * channels; i++) {
        if (value[i] >= 0 && value[i] <= 1)
            picture->pixel[i] = (uint8_t)lrintf(255 * value[i]);
        else
            return basin_fail(error, BASIN_BAD_VALUE,
                              "value %lld of a picture is %g; expected 0 to 1", (long long)i,
                              (double)value[i]);
    }
    return BASIN_OK;
}
