/* PSNR and SSIM against scikit-image 0.26: structural_similarity with its defaults. */
#include <math.h>

#include "basin/tasks/metrics_picture.h"
#include "support/test.h"

enum { MOST = 3 * 32 * 40 };

/* The pictures that the numbers below were computed on. */
static void make(float *a, float *b, int h, int w, int channels, double range) {
    for (int c = 0; c < channels; c++)
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++) {
                int u = (x * 7 + y * 13 + c * 29 + x * y % 17 * 3) % 256;
                int v = (u * 3 + (x * x + y * 5 + c) % 41 * 4) / 4 % 256;
                a[(c * h + y) * w + x] = (float)(u * range / 255);
                b[(c * h + y) * w + x] = (float)(v * range / 255);
            }
}

static const struct {
    int h, w, channels;
    double psnr, ssim;
} known[] = {
    {28, 28, 1, 19.945456127187818, 0.9107998746867151},
    {32, 40, 3, 20.20801418694189, 0.9115080368057726},
    {11, 11, 1, 21.996491780738747, 0.8951880406774254},
    {7, 9, 1, 26.125946628670796, 0.94644191340159},
};

TEST(agrees_with_scikit_image) {
    float a[MOST], b[MOST];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int unit = 0; unit <= 1; unit++) {
            int h = known[i].h, w = known[i].w, c = known[i].channels;
            double range = unit ? 1 : 255, got, limit = unit ? 2e-6 : 1e-12;
            make(a, b, h, w, c, range);
            assert_true(fabs(basin_psnr(a, b, h * w * c, range) - known[i].psnr) < 10 * limit);
            assert_int_equal(basin_ssim(&got, a, b, c, h, w, range, NULL), BASIN_OK);
            assert_true(fabs(got - known[i].ssim) < limit);
        }
}

TEST(equal_pictures) {
    float a[28 * 28], b[28 * 28];
    double got;
    make(a, b, 28, 28, 1, 1);
    assert_true(isinf(basin_psnr(a, a, 28 * 28, 1)));
    assert_int_equal(basin_ssim(&got, b, b, 1, 28, 28, 1, NULL), BASIN_OK);
    assert_true(fabs(got - 1) < 1e-12);
}

TEST(too_small) {
    float a[60] = {0};
    double got;
    assert_says(basin_ssim(&got, a, a, 1, 6, 10, 1, &failure), BASIN_BAD_SHAPE,
                "SSIM of 6 x 10 pixels; the minimum is 7 x 7");
}
