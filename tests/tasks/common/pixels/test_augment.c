/* From pictures to values: resizing against the formula in double, crops and jitter against
 * torchvision's definitions written out, patches, normalisation, and the same values whichever way
 * a picture was decoded. */
#include <math.h>

#include "basin/random.h"
#include "support/test.h"
#include "tasks/common/pixels/picture.h"
#include "tasks/nodes/network/make.h"

/* One picture as values, and back: the normalisation and the patches undone. */
static basin_status augment_apply(float *values, const basin_augment *a,
                                  const basin_picture *picture, uint64_t seed, int64_t epoch,
                                  int64_t index, basin_scratch *scratch, basin_error *error) {
    basin_drawn drawn;
    basin_augment_draw(&drawn, a, picture->height, picture->width, seed, epoch, index);
    return basin_augment_run(values, a, &drawn, picture, scratch, error);
}

static basin_status augment_picture(basin_picture *picture, const basin_augment *a,
                                    const float *values, basin_error *error) {
    basin_patching p = {a->size, a->patch ? a->patch : a->size, a->channels, {0}, {0}};
    for (int c = 0; c < 3; c++) p.mean[c] = a->mean[c], p.deviation[c] = a->deviation[c];
    basin_status status =
        basin_picture_resize_memory(picture, a->size, a->size, a->channels, error);
    if (!status) basin_patches_to_pixels(picture->pixel, values, &p);
    return status;
}

/* ---- resizing ---- */

/* One output by the definition, over the pixels of a box. */
static double resized(const basin_picture *p, int c, double y0, double x0, double h, double w,
                      int64_t height, int64_t width, int64_t y, int64_t x) {
    double sy = h / (double)height, sx = w / (double)width;
    double cy = y0 + ((double)y + 0.5) * sy, cx = x0 + ((double)x + 0.5) * sx;
    double ry = fmax(1, sy), rx = fmax(1, sx), sum = 0, weights = 0;
    for (int64_t i = (int64_t)y0; i < (int64_t)(y0 + h); i++) {
        double a = fmax(0, 1 - fabs((double)i + 0.5 - cy) / ry);
        for (int64_t j = (int64_t)x0; a > 0 && j < (int64_t)(x0 + w); j++) {
            double b = fmax(0, 1 - fabs((double)j + 0.5 - cx) / rx);
            sum += a * b * p->pixel[(i * p->width + j) * p->channels + c];
            weights += a * b;
        }
    }
    return sum / weights;
}

TEST(resize_follows_its_formula) {
    static const struct {
        basin_box box;
        int64_t height, width, y, x, out_height, out_width;
    } form[] = {
        {{0, 0, 37, 53}, 16, 16, 0, 0, 16, 16},  /* smaller */
        {{0, 0, 37, 53}, 80, 90, 0, 0, 80, 90},  /* larger */
        {{5, 7, 20, 31}, 16, 40, 0, 0, 16, 40},  /* a part, both ways */
        {{0, 0, 37, 53}, 32, 45, 8, 14, 16, 16}, /* the centre */
        {{36, 52, 1, 1}, 8, 8, 0, 0, 8, 8},      /* one pixel */
        {{0, 0, 37, 53}, 1, 1, 0, 0, 1, 1},      /* to one pixel */
        {{3, 4, 16, 16}, 16, 16, 0, 0, 16, 16},  /* nothing to do */
        {{3, 50, 30, 3}, 8, 224, 0, 0, 8, 224},
    };
    for (int channels = 1; channels <= 3; channels += 2)
        for (size_t k = 0; k < sizeof form / sizeof *form; k++)
            for (int flip = 0; flip <= 1; flip++) {
                basin_picture p = make_picture(37, 53, channels, 1);
                basin_scratch scratch = {0};
                basin_resize r = {form[k].box, form[k].height,     form[k].width,     form[k].y,
                                  form[k].x,   form[k].out_height, form[k].out_width, flip};
                int64_t h = r.out_height, w = r.out_width;
                float *plane = malloc((size_t)(h * w * channels) * sizeof *plane);
                assert_int_equal(basin_resize_run(plane, &r, &p, &scratch, NULL), BASIN_OK);
                for (int c = 0; c < channels; c++)
                    for (int64_t y = 0; y < h; y++)
                        for (int64_t x = 0; x < w; x++) {
                            double want = resized(&p, c, r.box.y, r.box.x, r.box.height,
                                                  r.box.width, r.height, r.width, r.y + y, r.x + x);
                            double got = (double)plane[(c * h + y) * w + (flip ? w - 1 - x : x)];
                            assert_true(fabs(got - want) < 1e-4);
                        }
                free(plane);
                basin_scratch_free(&scratch);
                basin_picture_free(&p);
            }
}

/* Pillow 13: Image.fromarray(...).resize((6, 5), BILINEAR) of the picture below, which rounds twice
 * on its way. */
TEST(resize_agrees_with_pillow) {
    static const uint8_t pillow[5][6] = {{38, 78, 153, 123, 138, 120},
                                         {105, 145, 148, 122, 123, 134},
                                         {179, 179, 110, 146, 133, 137},
                                         {110, 81, 128, 139, 120, 119},
                                         {68, 108, 170, 122, 128, 142}};
    BASIN_AT_EXIT(basin_picture_free) basin_picture p = {0}, got = {0};
    basin_picture_resize_memory(&p, 13, 17, 1, NULL);
    for (int y = 0; y < 13; y++)
        for (int x = 0; x < 17; x++) p.pixel[y * 17 + x] = (uint8_t)((x * x * 3 + y * 29) % 256);
    assert_int_equal(basin_picture_scale(&got, &p, 5, 6, NULL), BASIN_OK);
    for (int i = 0; i < 30; i++) assert_in_range(abs(got.pixel[i] - pillow[i / 6][i % 6]), 0, 1);
}

/* ---- what is drawn ---- */

TEST(crops_keep_their_bounds) {
    enum { DRAWS = 4000 };
    basin_augment a = basin_augment_training(224, 3, 16);
    double least = 1, most = 0, low = 9, high = 0, flips = 0, areas = 0, factor[3] = {0};
    int first[3] = {0};
    for (int i = 0; i < DRAWS; i++) {
        basin_drawn d;
        basin_augment_draw(&d, &a, 300, 400, 5, i % 7, i);
        const basin_box *b = &d.resize.box;
        assert_true(b->y >= 0 && b->x >= 0 && b->y + b->height <= 300 && b->x + b->width <= 400);
        double area = b->height * b->width / 120000, ratio = b->width / b->height;
        least = fmin(least, area), most = fmax(most, area), areas += area / DRAWS;
        low = fmin(low, ratio), high = fmax(high, ratio);
        flips += (double)d.resize.flip / DRAWS;
        first[d.order[0]]++;
        for (int k = 0; k < 3; k++) {
            assert_true(d.factor[k] >= 0.6F && d.factor[k] <= 1.4F);
            factor[k] += (double)d.factor[k] / DRAWS;
        }
    }
    assert_true(least > 0.075 && least < 0.09 && most > 0.97 && most <= 1);
    assert_true(low > 0.74 && low < 0.76 && high > 1.32 && high < 1.345);
    /* torchvision's crops of such a picture cover 0.433 of it on average (40,000 draws) */
    assert_true(fabs(areas - 0.433) < 0.015 && flips > 0.47 && flips < 0.53);
    for (int k = 0; k < 3; k++) {
        assert_true(fabs(factor[k] - 1) < 0.02);
        assert_true(abs(first[k] - DRAWS / 3) < 150);
    }
}

/* A picture too flat for any crop: after ten tries the largest central part within the ratios. */
TEST(crop_of_last_resort) {
    basin_augment a = basin_augment_training(8, 1, 0);
    basin_drawn d;
    a.scale_low = 0.9;
    basin_augment_draw(&d, &a, 10, 1000, 1, 0, 0);
    assert_true(d.resize.box.height == 10 && d.resize.box.width == 13 && d.resize.box.x == 493);
    basin_augment_draw(&d, &a, 1000, 10, 1, 0, 0);
    assert_true(d.resize.box.width == 10 && d.resize.box.height == 13 && d.resize.box.y == 493);
}

TEST(evaluation_takes_the_centre) {
    basin_augment a = basin_augment_evaluation(224, 3, 16);
    basin_drawn d;
    basin_augment_draw(&d, &a, 375, 500, 1, 0, 0);
    /* Resize(256) makes it 256 x 341, CenterCrop(224) begins at 16 and 58 (58.5, to the even) */
    assert_true(d.resize.height == 256 && d.resize.width == 341);
    assert_true(d.resize.y == 16 && d.resize.x == 58 && !d.resize.flip);
    a.size = 28;
    basin_augment_draw(&d, &a, 28, 28, 1, 0, 0); /* stays what it is */
    assert_true(d.resize.height == 28 && d.resize.width == 28 && d.resize.y == 0);
    a.fit = BASIN_PICTURE_FIT_STRETCH;
    basin_augment_draw(&d, &a, 375, 500, 1, 0, 0);
    assert_true(d.resize.height == 28 && d.resize.width == 28 && d.resize.box.width == 500);
}

/* ---- jitter ---- */

static double clipped(double v) { return fmin(255, fmax(0, v)); }

static double grey(const double v[3]) { return 0.299 * v[0] + 0.587 * v[1] + 0.114 * v[2]; }

TEST(jitter_follows_torchvision) {
    enum { AREA = 1003 };
    static float plane[3 * AREA];
    static double want[AREA][3];
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int o = 0; o < 6; o++) {
        basin_drawn d = {.factor = {1.3F, 0.7F, 1.4F}};
        memcpy(d.order, orders[o], sizeof d.order);
        for (int i = 0; i < AREA; i++)
            for (int c = 0; c < 3; c++)
                want[i][c] = plane[c * AREA + i] = (float)((i * (7 + c) + 31 * c) % 256);
        basin_jitter(plane, 3, AREA, &d);
        for (int k = 0; k < 3; k++) {
            double mean = 0, f = (double)d.factor[d.order[k]];
            for (int i = 0; i < AREA; i++) mean += grey(want[i]) / AREA;
            for (int i = 0; i < AREA; i++) {
                double g = grey(want[i]);
                double rest[3] = {0, (1 - f) * mean, (1 - f) * g};
                for (int c = 0; c < 3; c++) want[i][c] = clipped(f * want[i][c] + rest[d.order[k]]);
            }
        }
        for (int i = 0; i < AREA; i++)
            for (int c = 0; c < 3; c++)
                assert_true(fabs((double)plane[c * AREA + i] - want[i][c]) < 1e-3);
    }
}

/* ---- values ---- */

TEST(patches_and_back) {
    basin_scratch scratch = {0};
    for (int channels = 1; channels <= 3; channels += 2) {
        basin_picture p = make_picture(12, 12, channels, 0), back = {0};
        basin_augment a = basin_augment_evaluation(12, channels, 4);
        float planes[3 * 144], patches[3 * 144];
        const float mean[3] = {0.4F, 0.5F, 0.6F}, deviation[3] = {0.2F, 0.25F, 0.3F};
        memcpy(a.mean, mean, sizeof mean);
        memcpy(a.deviation, deviation, sizeof deviation);
        assert_int_equal(augment_apply(patches, &a, &p, 1, 0, 0, &scratch, NULL), BASIN_OK);
        assert_int_equal(augment_picture(&back, &a, patches, NULL), BASIN_OK);
        assert_int_equal(picture_difference(&p, &back), 0);
        a.patch = 0;
        assert_int_equal(augment_apply(planes, &a, &p, 1, 0, 0, &scratch, NULL), BASIN_OK);
        assert_int_equal(augment_picture(&back, &a, planes, NULL), BASIN_OK);
        assert_int_equal(picture_difference(&p, &back), 0);
        for (int c = 0; c < channels; c++)
            for (int y = 0; y < 12; y++)
                for (int x = 0; x < 12; x++) {
                    double v = p.pixel[(y * 12 + x) * channels + c] / 255.0;
                    double want = (v - (double)mean[c]) / (double)deviation[c];
                    int n = y / 4 * 3 + x / 4, at = (c * 4 + y % 4) * 4 + x % 4;
                    assert_true(fabs((double)planes[(c * 12 + y) * 12 + x] - want) < 1e-5);
                    assert_true(fabs((double)patches[n * channels * 16 + at] - want) < 1e-5);
                }
        basin_picture_free(&p);
        basin_picture_free(&back);
    }
    basin_scratch_free(&scratch);
}

TEST(channels_follow_the_model) {
    basin_scratch scratch = {0};
    BASIN_AT_EXIT(basin_picture_free)
    basin_picture colour = make_picture(8, 8, 3, 0), grey_one = make_picture(8, 8, 1, 0);
    basin_augment a = basin_augment_evaluation(8, 1, 0);
    float values[3 * 64];
    assert_int_equal(augment_apply(values, &a, &colour, 1, 0, 0, &scratch, NULL), BASIN_OK);
    for (int i = 0; i < 64; i++) {
        const uint8_t *p = colour.pixel + 3 * i;
        double want = (0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]) / 255;
        assert_true(fabs((double)values[i] - want) < 1e-5);
    }
    a.channels = 3;
    assert_int_equal(augment_apply(values, &a, &grey_one, 1, 0, 0, &scratch, NULL), BASIN_OK);
    for (int i = 0; i < 64; i++)
        assert_true(values[i] == values[64 + i] && values[i] == values[128 + i]);
    basin_scratch_free(&scratch);
}

/* A window of a JPEG, decoded alone, gives the values of the whole to the bit; a reduced one
 * nearly, in a picture without detail that only one of them could have. */
TEST(decoding_changes_nothing) {
    enum { LARGE_H = 700, LARGE_W = 900 };
    static double across[LARGE_W], down[LARGE_H][3];
    basin_scratch scratch = {0};
    for (int i = 0; i < LARGE_W; i++) across[i] = sin((double)i / 60);
    for (int i = 0; i < LARGE_H * 3; i++) down[i / 3][i % 3] = cos((double)(i / 3) / 50 + i % 3);
    for (int form = 0; form < 60; form++) {
        bool large = form >= 40;
        int64_t h = large ? LARGE_H : 60 + form, w = large ? LARGE_W : 130 - form;
        basin_picture p = make_picture(h, w, 3, 0), whole = {0}, part = {0};
        for (int64_t k = 0; large && k < h * w * 3; k++)
            p.pixel[k] = (uint8_t)(128 + 100 * across[k / 3 % w] * down[k / 3 / w][k % 3]);
        uint8_t *bytes;
        jpeg_form f = {.orientation = 1 + form % 8, .progressive = form % 3 == 0, .quality = 95};
        size_t size = make_jpeg(&bytes, &p, f);
        basin_augment a = basin_augment_training(32, 3, 8);
        if (form % 2) a = basin_augment_evaluation(32, 3, 8);
        float one[3 * 32 * 32], two[3 * 32 * 32];
        basin_decoder decoder;
        basin_drawn drawn;
        assert_int_equal(basin_picture_decode(&whole, bytes, size, "f", NULL), BASIN_OK);
        assert_int_equal(augment_apply(one, &a, &whole, 1, 0, form, &scratch, NULL), BASIN_OK);
        assert_int_equal(basin_decoder_open(&decoder, bytes, size, "f", NULL), BASIN_OK);
        basin_augment_draw(&drawn, &a, decoder.height, decoder.width, 1, 0, form);
        int by = basin_augment_reduction(&a, &drawn.resize);
        assert_int_equal(basin_augment_decode(&part, &drawn, &a, &decoder, false, NULL), BASIN_OK);
        basin_decoder_close(&decoder);
        assert_int_equal(basin_augment_run(two, &a, &drawn, &part, &scratch, NULL), BASIN_OK);
        if (by == 1) assert_memory_equal(one, two, sizeof one);
        for (int i = 0; large && i < 3 * 32 * 32; i++) assert_true(fabsf(one[i] - two[i]) < 0.025F);
        if (large) assert_true(by > 1);
        basin_picture_free(&p);
        basin_picture_free(&whole);
        basin_picture_free(&part);
        free(bytes);
    }
    basin_scratch_free(&scratch);
}
