/* Colour jitter as torchvision defines it, on planes of values 0 .. 255: brightness f x; contrast
 * f x + (1 - f) m, m the mean grey of the picture; saturation f x + (1 - f) g, g the pixel's grey;
 * each clipped. Grey is 0.299 R + 0.587 G + 0.114 B. */
#include "base/wide.h"
#include "picture/augment.h"

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

/* The sum of a plane, in an order of its own that vectors can follow. */
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
