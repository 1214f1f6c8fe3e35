/* Completing pictures of any size: what is not missing stays as it is, the result has the picture's
 * size and channels, masks and rectangles are honoured to the pixel, windows leave no seam, holes
 * that make no sense are refused. */
#include <math.h>

#include "support/test.h"
#include "tasks/pictures/complete/complete.h"

typedef struct bench {
    basin_backend *backend;
    basin_image_model *model;
    basin_picture picture;
} bench;

static void bench_open(bench *b, int channels, int64_t height, int64_t width) {
    basin_image_settings s;
    *b = (bench){0};
    assert_int_equal(basin_settings_preset(&s, &basin_image_task, "fashion", NULL), BASIN_OK);
    s.channels = channels;
    s.size = 16;
    s.dim = 16;
    s.heads = 2;
    s.head_dim = 8;
    s.memories = 24;
    s.steps = 2;
    s.occlude = 8;
    for (int c = 0; c < 3; c++) s.mean[c] = 0.5, s.deviation[c] = 0.25;
    assert_ok(basin_backend_open(&b->backend, &(basin_compute){.threads = 1}, &failure));
    assert_ok(basin_image_model_new(&b->model, &s, b->backend, &failure));
    assert_ok(basin_picture_resize_memory(&b->picture, height, width, 3, &failure));
    for (int64_t i = 0; i < height * width * 3; i++) b->picture.pixel[i] = (uint8_t)(i * 7 % 251);
}

static void bench_close(bench *b) {
    basin_picture_free(&b->picture);
    basin_image_close(b->model);
    basin_backend_close(b->backend);
}

static basin_image_complete_result complete(bench *b, const basin_image_complete_options *spec) {
    basin_image_complete_result done = {0};
    assert_ok(basin_image_complete(&done, b->model, &b->picture, 1, spec, &failure));
    assert_int_equal(done.completed.height, b->picture.height);
    assert_int_equal(done.completed.width, b->picture.width);
    return done;
}

/* The pixels in which two pictures differ, and how many of them lie outside the rectangle. */
static int64_t differ(int64_t *outside, const basin_picture *a, const basin_picture *b,
                      const int64_t r[4]) {
    int64_t count = 0;
    *outside = 0;
    for (int64_t y = 0; y < a->height; y++)
        for (int64_t x = 0; x < a->width; x++) {
            int64_t at = (y * a->width + x) * a->channels;
            if (!memcmp(a->pixel + at, b->pixel + at, (size_t)a->channels)) continue;
            count++;
            *outside += x < r[0] || y < r[1] || x >= r[0] + r[2] || y >= r[1] + r[3];
        }
    return count;
}

/* By a colour model and by a grey one, which sees the channels one by one. */
TEST(a_rectangle_is_all_that_changes) {
    for (int i = 0; i < 4; i++) {
        bench b;
        bench_open(&b, i & 2 ? 1 : 3, 37, 50);
        basin_image_complete_options spec = {.rectangle = {11, 5, 21, 18}, .resize = i & 1};
        basin_image_complete_result done = complete(&b, &spec);
        int64_t outside, changed;
        assert_int_equal(done.completed.channels, 3);
        changed = differ(&outside, &done.completed, &b.picture, spec.rectangle);
        assert_int_equal(outside, 0);
        assert_true(changed > 21 * 18 * 9 / 10);
        changed = differ(&outside, &done.masked, &b.picture, spec.rectangle);
        assert_int_equal(outside, 0);
        assert_true(changed > 21 * 18 * 9 / 10);
        assert_int_equal(done.missing, 21 * 18);
        assert_true(done.windows >= (i & 1 ? 1 : 8));
        basin_image_complete_result_free(&done);
        bench_close(&b);
    }
}

/* Smaller than a window, a line, a hole deeper than a window: always the hole alone changes. */
TEST(every_size_is_completed) {
    static const struct {
        int64_t height, width, hole[4];
    } sizes[] = {{1, 2, {0, 0, 1, 1}},    {2, 1, {0, 1, 1, 1}},         {3, 5, {1, 1, 3, 2}},
                 {7, 90, {20, 0, 30, 7}}, {90, 7, {0, 0, 6, 90}},       {16, 16, {0, 0, 16, 15}},
                 {15, 17, {4, 4, 8, 8}},  {150, 131, {10, 9, 110, 120}}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bench b;
        int64_t outside;
        bench_open(&b, 3, sizes[i].height, sizes[i].width);
        basin_image_complete_options spec = {0};
        memcpy(spec.rectangle, sizes[i].hole, sizeof spec.rectangle);
        basin_image_complete_result done = complete(&b, &spec);
        differ(&outside, &done.completed, &b.picture, spec.rectangle);
        assert_int_equal(outside, 0);
        basin_image_complete_result_free(&done);
        bench_close(&b);
    }
}

TEST(a_mask_is_a_rectangle_by_other_means) {
    BASIN_AT_EXIT(bench_close) bench b;
    basin_error error = {0};
    BASIN_AT_EXIT(basin_picture_free) basin_picture mask = {0};
    bench_open(&b, 1, 40, 33);
    must(basin_picture_resize_memory(&mask, 40, 33, 1, &error), &error);
    memset(mask.pixel, 0, 40 * 33);
    for (int y = 4; y < 20; y++) memset(mask.pixel + y * 33 + 6, 255, 13);
    basin_image_complete_options by_mask = {.mask = &mask};
    static const int64_t two[] = {10, 4, 9, 16, 6, 12, 13, 8};
    basin_image_complete_options by_rectangle = {
        .rectangle = {6, 4, 4, 10}, .more_rectangles = two, .rectangles = 2};
    basin_image_complete_result one = complete(&b, &by_mask), other = complete(&b, &by_rectangle);
    assert_int_equal(one.missing, 13 * 16);
    assert_memory_equal(one.completed.pixel, other.completed.pixel, 40 * 33 * 3);
    basin_image_complete_result_free(&one);
    basin_image_complete_result_free(&other);
    mask.height = 20;
    basin_image_complete_result none = {0};
    assert_int_equal(basin_image_complete(&none, b.model, &b.picture, 1, &by_mask, &error),
                     BASIN_BAD_SHAPE);
    assert_string_equal(error.text, "the mask has 33 x 20 pixels; expected the picture's 33 x 40");
}

TEST(random_masks_have_the_share_asked_for) {
    BASIN_AT_EXIT(bench_close) bench b;
    bench_open(&b, 3, 50, 34);
    basin_image_complete_options spec = {.ratio = 0.25, .seed = 3};
    BASIN_AT_EXIT(basin_image_complete_result_free)
    basin_image_complete_result done = complete(&b, &spec);
    assert_in_range(done.missing, 24 * 16, 29 * 16); /* of 13 x 9 patches, some of them cut */
}

TEST(the_last_frame_is_the_completed_picture) {
    BASIN_AT_EXIT(bench_close) bench b;
    bench_open(&b, 3, 24, 20);
    basin_image_complete_options spec = {.ratio = 0.5, .resize = true, .frames = true};
    BASIN_AT_EXIT(basin_image_complete_result_free)
    basin_image_complete_result done = complete(&b, &spec);
    assert_int_equal(done.frames, 3);
    for (int64_t i = 0; i < 24 * 20 * 3; i++) /* other plans round otherwise: a level at most */
        assert_in_range(done.frame[2].pixel[i] + 1 - done.completed.pixel[i], 0, 2);
}

/* Pictures of different sizes in one call are completed as each of them alone. */
TEST(a_batch_is_its_pictures_one_by_one) {
    BASIN_AT_EXIT(bench_close) bench b;
    basin_picture two[2] = {0};
    basin_image_complete_result both[2] = {0}, one = {0};
    basin_image_complete_options how = {.ratio = 0.5, .seed = 5};
    bench_open(&b, 3, 20, 37);
    assert_ok(basin_picture_copy(&two[0], &b.picture, &failure));
    assert_ok(basin_picture_resize_memory(&two[1], 16, 16, 1, &failure));
    memset(two[1].pixel, 90, 16 * 16);
    assert_ok(basin_image_complete(both, b.model, two, 2, &how, &failure));
    for (int i = 0; i < 2; i++) {
        how.stream = (uint64_t)i;
        assert_ok(basin_image_complete(&one, b.model, &two[i], 1, &how, &failure));
        assert_int_equal(one.windows, both[i].windows);
        int64_t values = one.completed.height * one.completed.width * one.completed.channels;
        for (int64_t k = 0; k < values; k++)
            assert_in_range(one.completed.pixel[k] + 1 - both[i].completed.pixel[k], 0, 2);
        basin_image_complete_result_free(&one);
        basin_image_complete_result_free(&both[i]);
        basin_picture_free(&two[i]);
    }
}

/* Two windows, each in two looks half a patch apart, say black and white: where they overlap, steps
 * across their borders are no larger than the others. */
TEST(windows_leave_no_seam) {
    enum { WIDTH = 26, HOLE = 24 };
    static const int64_t left[] = {0, 2, 8, 10};
    BASIN_AT_EXIT(bench_close) bench b;
    basin_filling f = {.levels = 1, .lanes = 1, .copies = 1};
    basin_image_complete_options how = {.rectangle = {1, 4, HOLE, 8}};
    float output[16 * 48];
    uint8_t hidden[16];
    bench_open(&b, 3, 16, WIDTH);
    basin_guessing l = {.fill = &f, .model = b.model};
    assert_ok(basin_picture_copy(&f.now, &b.picture, &failure));
    assert_ok(basin_hole_make(&f.hole, &b.picture, 4, &how, 0, &failure));
    f.sum = calloc(16 * WIDTH * 3, sizeof *f.sum);
    f.weight = calloc(16 * WIDTH, sizeof *f.weight);
    memset(hidden, BASIN_PATCH_REPLACED, sizeof hidden);
    for (int i = 0; i < 4; i++) {
        basin_window w = {.left = left[i], .height = 16, .width = 16};
        for (int k = 0; k < 16 * 48; k++) output[k] = i < 2 ? -2 : 2;
        assert_ok(basin_guess_weigh(&l, &w, &failure));
        assert_ok(basin_guess_add(&l, &w, hidden, output, 0, &failure));
    }
    double value[WIDTH], at_borders = 0, elsewhere = 0;
    assert_int_equal(f.hole.box.width, WIDTH); /* with its margin all of the picture */
    for (int x = 0; x < WIDTH; x++) value[x] = f.sum[(7 * WIDTH + x) * 3] / f.weight[7 * WIDTH + x];
    assert_true(value[0] < 1 && value[WIDTH - 1] > 254);
    for (int x = 8; x <= 18; x++) {
        bool border = x == 8 || x == 10 || x == 16 || x == 18;
        *(border ? &at_borders : &elsewhere) += fabs(value[x] - value[x - 1]);
    }
    assert_true(at_borders / 4 <= 1.1 * elsewhere / 7);
    basin_guessing_free(&l);
    basin_filling_free(&f);
}

/* A flat guess in a ramp comes to meet it at the rim, a perfect one stays; what is known of the
 * errors beside the hole counts for more than the step to it. */
TEST(a_hole_meets_its_rim) {
    enum { SIDE = 40, BOX = 28, AREA = BOX * BOX };
    basin_hole hole;
    BASIN_AT_EXIT(basin_picture_free) basin_picture ramp = {0};
    basin_image_complete_options how = {.rectangle = {10, 10, 20, 20}};
    float flat[AREA], perfect[AREA], shifted[AREA], none[AREA] = {0}, some[AREA];
    assert_ok(basin_picture_resize_memory(&ramp, SIDE, SIDE, 1, &failure));
    for (int i = 0; i < SIDE * SIDE; i++) ramp.pixel[i] = (uint8_t)(60 + i % SIDE * 3);
    assert_ok(basin_hole_make(&hole, &ramp, 4, &how, 0, &failure));
    assert_int_equal(hole.box.width, BOX);
    for (int i = 0; i < AREA; i++) {
        flat[i] = 150, some[i] = 1;
        perfect[i] = (float)(60 + (6 + i % BOX) * 3);
        shifted[i] = perfect[i] + 20;
    }
    assert_ok(basin_rim_match(flat, none, &ramp, &hole, 8, &failure));
    assert_ok(basin_rim_match(perfect, some, &ramp, &hole, 8, &failure));
    assert_ok(basin_rim_match(shifted, some, &ramp, &hole, 1000, &failure));
    for (int y = 4; y < 24; y++) {
        assert_true(fabsf(flat[y * BOX + 4] - 90) < 15 && fabsf(flat[y * BOX + 23] - 147) < 15);
        for (int x = 4; x < 24; x++) {
            assert_true(fabsf(perfect[y * BOX + x] - (float)(60 + (6 + x) * 3)) < 0.01F);
            assert_true(fabsf(shifted[y * BOX + x] - (float)(60 + (6 + x) * 3)) < 0.5F);
        }
    }
    basin_hole_free(&hole);
}

/* A membrane of 0 on the left and 1 on the right, loose above and below, is a ramp, however wide;
 * with a spring it hangs through. */
TEST(membranes_are_smooth) {
    enum { HEIGHT = 9, WIDTH = 300 };
    basin_membrane m;
    assert_ok(basin_membrane_new(&m, HEIGHT, WIDTH, &failure));
    memset(m.free, 1, HEIGHT * WIDTH);
    for (int y = 0; y < HEIGHT; y++) {
        m.pull[y * WIDTH] = m.pull[y * WIDTH + WIDTH - 1] = 1;
        m.toward[y * WIDTH + WIDTH - 1] = 1;
    }
    assert_ok(basin_membrane_solve(&m, &failure));
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        assert_true(fabs(m.u[i] - (i % WIDTH + 1) / (WIDTH + 1.0)) < 0.02);
    m.spring = 1.0 / 100;
    assert_ok(basin_membrane_solve(&m, &failure));
    assert_true(m.u[4 * WIDTH + WIDTH - 1] > 0.8 && m.u[4 * WIDTH + WIDTH / 2] < 0.01);
    basin_membrane_free(&m);
}

/* A picture of stripes, 6 pixels wide, with a hole: kriging along them is closer than the
 * membrane, copies go on with them where a mean would be grey; nothing else changes, and the energy
 * falls from step to step. */
TEST(texture_goes_on_in_a_hole) {
    enum { SIZE = 96, LOW = 39, HIGH = 63 };
    BASIN_AT_EXIT(bench_close) bench b;
    basin_picture p = {0}, mask = {0}, truth = {0};
    basin_image_complete_options how = {.mask = &mask};
    basin_hole hole;
    basin_course course = {.steps = 0};
    bench_open(&b, 3, 16, 16);
    assert_ok(basin_picture_resize_memory(&p, SIZE, SIZE, 3, &failure));
    assert_ok(basin_picture_resize_memory(&mask, SIZE, SIZE, 1, &failure));
    for (int i = 0; i < SIZE * SIZE; i++) {
        int y = i / SIZE, x = i % SIZE;
        mask.pixel[i] = y >= LOW && y < HIGH && x >= LOW && x < HIGH;
        memset(p.pixel + 3 * i, x / 6 % 2 ? 200 : 60, 3);
    }
    assert_ok(basin_picture_copy(&truth, &p, &failure));
    assert_ok(basin_hole_make(&hole, &p, 4, &how, 0, &failure));
    for (int i = 0; i < SIZE * SIZE; i++)
        if (mask.pixel[i]) memset(p.pixel + 3 * i, 130, 3);
    static float span[3 * SIZE * SIZE];
    assert_ok(basin_rim_span(span, &p, &hole, &failure));
    enum { SIDE = HIGH - LOW };
    static float guess[3 * SIDE * SIDE];
    double far[2] = {0}; /* of the membrane and of kriging */
    assert_ok(basin_krige(guess, &p, &hole, (basin_area){LOW, LOW, SIDE, SIDE}, &failure));
    for (int i = 0; i < SIDE * SIDE; i++) {
        int64_t y = LOW + i / SIDE, x = LOW + i % SIDE, at = (y - hole.box.top) * hole.box.width;
        double true_ = truth.pixel[3 * (y * SIZE + x)];
        far[0] += fabs(span[3 * (at + x - hole.box.left)] - true_);
        far[1] += fabs(guess[3 * i] - true_);
    }
    assert_true(far[1] < 0.6 * far[0]);
    assert_ok(basin_texture_fill(&p, &hole, span, 1, b.model->backend, &course, &failure));
    double error = 0;
    for (int i = 0; i < 3 * SIZE * SIZE; i++) {
        if (!mask.pixel[i / 3]) assert_int_equal(p.pixel[i], truth.pixel[i]);
        error += abs(p.pixel[i] - truth.pixel[i]);
    }
    assert_true(error / (3 * (HIGH - LOW) * (HIGH - LOW)) < 20); /* 70 before */
    assert_int_equal(course.steps, 21);
    for (int i = 1; i < course.steps; i++)
        assert_true(course.energy[i] < course.energy[i - 1] + 1e-4);
    basin_hole_free(&hole);
    basin_picture_free(&p);
    basin_picture_free(&mask);
    basin_picture_free(&truth);
}

/* A picture of one colour that is too small to copy from keeps the smooth filling. */
TEST(nothing_to_copy_is_smooth) {
    BASIN_AT_EXIT(bench_close) bench b;
    basin_picture p = {0};
    basin_image_complete_options how = {.rectangle = {5, 5, 10, 10}};
    basin_hole hole;
    basin_course course = {.steps = 0};
    static float span[3 * 20 * 20];
    bench_open(&b, 3, 16, 16);
    assert_ok(basin_picture_resize_memory(&p, 20, 20, 3, &failure));
    memset(p.pixel, 77, 3 * 20 * 20);
    assert_ok(basin_hole_make(&hole, &p, 4, &how, 0, &failure));
    assert_ok(basin_rim_span(span, &p, &hole, &failure));
    memset(p.pixel + 3 * (10 * 20 + 10), 82, 3); /* a guess */
    assert_ok(basin_texture_fill(&p, &hole, span, 1, b.model->backend, &course, &failure));
    assert_int_equal(p.pixel[3 * (10 * 20 + 10)], 78);
    basin_hole_free(&hole);
    basin_picture_free(&p);
}

static void refuse(bench *b, const basin_image_complete_options *how, const char *why) {
    basin_error error = {0};
    basin_image_complete_result done = {0};
    assert_int_not_equal(basin_image_complete(&done, b->model, &b->picture, 1, how, &error),
                         BASIN_OK);
    assert_string_equal(error.text, why);
}

TEST(what_cannot_be_completed_is_refused) {
    BASIN_AT_EXIT(bench_close) bench b;
    basin_error error = {0};
    basin_image_complete_result done = {0};
    basin_picture empty = {.height = 4, .width = 4, .channels = 3}, mask = {0};
    basin_image_complete_options how = {.ratio = 1.5};
    bench_open(&b, 3, 16, 16);
    refuse(&b, &how, "ratio is 1.5; expected 0 to 1");
    how.ratio = 0.5;
    assert_int_equal(basin_image_complete(&done, b.model, &empty, 1, &how, &error),
                     BASIN_BAD_VALUE);
    assert_string_equal(error.text, "a picture has no pixels");
    how.rectangle[0] = 40, how.rectangle[2] = how.rectangle[3] = 3;
    refuse(&b, &how, "the rectangle 40,0,3,3 reaches out of the picture, which has 16 x 16 pixels");
    must(basin_picture_resize_memory(&mask, 16, 16, 1, &error), &error);
    memset(mask.pixel, 0, 16 * 16);
    how.mask = &mask;
    refuse(&b, &how, "the mask hides nothing; expected the pixels to complete in white");
    memset(mask.pixel, 255, 16 * 16);
    refuse(&b, &how, "the mask hides the whole picture: nothing is left to complete it from");
    basin_picture_free(&mask);
}

/* Also where the hole touches the end of the picture, so that windows cannot move on. */
TEST(patches_lie_in_four_ways_everywhere) {
    static const int64_t places[] = {0, 40, 96, 192};
    enum { HOLE = 64, SIDE = 224, PATCH = 16 };
    int32_t depth[HOLE * HOLE];
    for (int i = 0; i < HOLE * HOLE; i++) depth[i] = 1;
    for (int i = 0; i < 4; i++) {
        basin_windows w = {0};
        basin_hole hole = {.box = {places[i], places[3 - i], HOLE, HOLE},
                           .depth = depth,
                           .missing = (int64_t)HOLE * HOLE,
                           .deepest = 1};
        basin_cover cover = {.hole = &hole,
                             .height = 256,
                             .width = 256,
                             .side = SIDE,
                             .across = SIDE / PATCH,
                             .reach = 1,
                             .looks = BASIN_LOOKS,
                             .lanes = 1};
        assert_ok(basin_windows_cover(&w, &cover, &failure));
        unsigned down = 0, right = 0;
        for (size_t k = 0; k < w.count; k++) {
            down |= 1U << (w.window[k].top % PATCH);
            right |= 1U << (w.window[k].left % PATCH);
        }
        assert_int_equal(__builtin_popcount(down), 4);
        assert_int_equal(__builtin_popcount(right), 4);
        basin_windows_free(&w);
    }
}
