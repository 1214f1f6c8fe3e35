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
    for (int i = 0; i < 2; i++) {
        bench b;
        bench_open(&b, i ? 1 : 3, 37, 50);
        basin_image_complete_options spec = {.rectangle = {11, 5, 21, 18}, .smooth = true};
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
        assert_int_equal(done.windows, i ? 6 : 2);
        basin_image_complete_result_free(&done);
        bench_close(&b);
    }
}

/* Smaller than a window, a line, a hole deeper than a window: only the hole changes. */
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
    BASIN_AT_EXIT(basin_picture_free) basin_picture mask = {0};
    bench_open(&b, 1, 40, 33);
    assert_ok(basin_picture_resize_memory(&mask, 40, 33, 1, &failure));
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
    assert_says(basin_image_complete(&none, b.model, &b.picture, 1, &by_mask, &failure),
                BASIN_BAD_SHAPE, "the mask has 33 x 20 pixels; expected the picture's 33 x 40");
}

/* Pictures of different sizes in one call are completed as each of them alone. */
TEST(a_batch_is_its_pictures_one_by_one) {
    BASIN_AT_EXIT(bench_close) bench b;
    basin_picture two[2] = {0};
    basin_image_complete_result both[2] = {0}, one = {0};
    basin_image_complete_options how = {.rectangle = {2, 3, 10, 9}, .seed = 5};
    bench_open(&b, 3, 20, 37);
    assert_ok(basin_picture_copy(&two[0], &b.picture, &failure));
    assert_ok(basin_picture_resize_memory(&two[1], 16, 16, 1, &failure));
    memset(two[1].pixel, 90, 16 * 16);
    assert_ok(basin_image_complete(both, b.model, two, 2, &how, &failure));
    for (int i = 0; i < 2; i++) {
        assert_ok(basin_image_complete(&one, b.model, &two[i], 1, &how, &failure));
        assert_int_equal(one.windows, both[i].windows);
        int64_t values = one.completed.height * one.completed.width * one.completed.channels;
        assert_memory_equal(one.completed.pixel, both[i].completed.pixel, (size_t)values);
        basin_image_complete_result_free(&one);
        basin_image_complete_result_free(&both[i]);
        basin_picture_free(&two[i]);
    }
}

/* Where the picture has room, what is missing begins with a patch, also near the picture's end. */
TEST(windows_begin_at_patches) {
    enum { SIDE = 16, PATCH = 4 };
    static const int64_t wide[] = {16, 18, 26, 40};
    for (int i = 0; i < 4; i++)
        for (int64_t left = 1; left < wide[i] - 5; left++) {
            BASIN_AT_EXIT(bench_close) bench b;
            BASIN_AT_EXIT(basin_hole_free) basin_hole hole;
            BASIN_AT_EXIT(basin_windows_free) basin_windows w = {0};
            basin_image_complete_options how = {.rectangle = {left, 4, 5, 5}};
            bench_open(&b, 3, SIDE, (int)wide[i]);
            basin_guessing g = {
                .model = b.model, .picture = &b.picture, .hole = &hole, .side = SIDE, .across = 4};
            assert_ok(basin_hole_make(&hole, &b.picture, PATCH, &how, 0, &failure));
            assert_ok(basin_windows_cover(&w, &g, &failure));
            int64_t start = w.window[0].left;
            assert_true(w.count == 1 && start <= left && left + 5 <= start + SIDE);
            assert_true(start >= 0 && start + SIDE <= wide[i]);
            if (wide[i] >= SIDE + PATCH && left + 5 <= wide[i] - PATCH)
                assert_int_equal((left - start) % PATCH, 0);
        }
}

/* Two windows, each twice half a patch apart, say black and white: where they overlap, steps
 * across their borders are no larger than the others. */
TEST(windows_leave_no_seam) {
    enum { WIDTH = 26, HOLE = 24 };
    static const int64_t left[] = {0, 2, 8, 10};
    BASIN_AT_EXIT(bench_close) bench b;
    BASIN_AT_EXIT(basin_hole_free) basin_hole hole;
    basin_image_complete_options how = {.rectangle = {1, 4, HOLE, 8}};
    float output[16 * 48];
    uint8_t hidden[16];
    bench_open(&b, 3, 16, WIDTH);
    BASIN_AT_EXIT(basin_guessing_free)
    basin_guessing g = {
        .model = b.model, .picture = &b.picture, .hole = &hole, .side = 16, .across = 4};
    assert_ok(basin_hole_make(&hole, &b.picture, 4, &how, 0, &failure));
    assert_ok(basin_guess_begin(&g, &failure));
    memset(hidden, BASIN_PATCH_REPLACED, sizeof hidden);
    for (int i = 0; i < 4; i++) {
        basin_window w = {.left = left[i], .side = 16};
        for (int k = 0; k < 16 * 48; k++) output[k] = i < 2 ? -2 : 2;
        assert_ok(basin_guess_add(&g, &w, hidden, output, &failure));
    }
    double value[WIDTH], at_borders = 0, elsewhere = 0;
    assert_int_equal(hole.box.width, WIDTH); /* with its margin all of the picture */
    for (int x = 0; x < WIDTH; x++) value[x] = g.sum[(7 * WIDTH + x) * 3] / g.weight[7 * WIDTH + x];
    assert_true(value[0] < 1 && value[WIDTH - 1] > 254);
    for (int x = 8; x <= 18; x++) {
        bool border = x == 8 || x == 10 || x == 16 || x == 18;
        *(border ? &at_borders : &elsewhere) += fabs(value[x] - value[x - 1]);
    }
    assert_true(at_borders / 4 <= 1.1 * elsewhere / 7);
}

/* A flat guess in a ramp comes to meet it at the rim, a perfect one stays; what is known of the
 * errors beside the hole counts for more than the step to it. */
TEST(a_guess_meets_its_rim) {
    enum { SIDE = 28, AREA = SIDE * SIDE, LOW = 4, HIGH = 24 };
    float ramp[AREA], flat[AREA], perfect[AREA], shifted[AREA], none[AREA] = {0}, some[AREA];
    uint8_t missing[AREA];
    basin_ties ties = {SIDE, SIDE, 1, missing, ramp, flat, none, 1.0 / 64};
    for (int i = 0; i < AREA; i++) {
        int y = i / SIDE, x = i % SIDE;
        missing[i] = y >= LOW && y < HIGH && x >= LOW && x < HIGH;
        flat[i] = 150, some[i] = 1;
        ramp[i] = perfect[i] = (float)(78 + x * 3);
        shifted[i] = perfect[i] + 20;
    }
    assert_ok(basin_membrane_add(flat, &ties, 1, &failure));
    ties.guess = perfect, ties.weight = some;
    assert_ok(basin_membrane_add(perfect, &ties, 1, &failure));
    ties.guess = shifted, ties.spring = 1e-6;
    assert_ok(basin_membrane_add(shifted, &ties, 1, &failure));
    for (int i = 0; i < AREA; i++) {
        if (!missing[i]) continue;
        if (i % SIDE == LOW || i % SIDE == HIGH - 1) assert_true(fabsf(flat[i] - ramp[i]) < 15);
        assert_true(fabsf(perfect[i] - ramp[i]) < 0.01F);
        assert_true(fabsf(shifted[i] - ramp[i]) < 0.5F);
    }
}

/* A membrane of 0 on the left and 1 on the right, loose above and below, is a ramp, however wide;
 * with a spring it hangs through. */
TEST(membranes_are_smooth) {
    enum { HEIGHT = 9, WIDTH = 302, AREA = HEIGHT * WIDTH };
    float known[AREA] = {0}, u[2][AREA] = {{0}};
    uint8_t missing[AREA];
    basin_ties ties = {HEIGHT, WIDTH, 1, missing, known, NULL, NULL, 0};
    for (int i = 0; i < AREA; i++) {
        known[i] = i % WIDTH == WIDTH - 1;
        missing[i] = i % WIDTH > 0 && i % WIDTH < WIDTH - 1;
    }
    assert_ok(basin_membrane_add(u[0], &ties, 1, &failure));
    for (int i = 0; i < AREA; i++)
        if (missing[i]) assert_true(fabs(u[0][i] - i % WIDTH / (WIDTH - 1.0)) < 0.02);
    ties.spring = 1.0 / 100;
    assert_ok(basin_membrane_add(u[1], &ties, 1, &failure));
    assert_true(u[1][5 * WIDTH - 2] > 0.8 && u[1][4 * WIDTH + WIDTH / 2] < 0.01);
}

enum { SIZE = 96 };

/* A picture of SIZE x SIZE pixels with a mask that is missing from `low` to `high`, both ways. */
static void holed(basin_picture *p, basin_picture *mask, int low, int high) {
    assert_ok(basin_picture_resize_memory(p, SIZE, SIZE, 3, &failure));
    assert_ok(basin_picture_resize_memory(mask, SIZE, SIZE, 1, &failure));
    for (int i = 0; i < SIZE * SIZE; i++) {
        int y = i / SIZE, x = i % SIZE;
        mask->pixel[i] = y >= low && y < high && x >= low && x < high ? 255 : 0;
        memset(p->pixel + 3 * i, x / 6 % 2 ? 200 : 60, 3);
    }
}

/* Stripes, 6 pixels wide, go on in a hole where a mean would be grey; nothing else changes; on each
 * grid the energy falls; another run gives the same bits, and another seed the same stripes. */
TEST(patches_go_on_in_a_hole) {
    enum { LOW = 39, HIGH = 63 };
    basin_picture truth = {0}, mask = {0}, p[3] = {0};
    basin_course course[3] = {{.steps = 0}};
    basin_hole hole;
    holed(&truth, &mask, LOW, HIGH);
    basin_image_complete_options how = {.mask = &mask};
    assert_ok(basin_hole_make(&hole, &truth, 4, &how, 0, &failure));
    for (int k = 0; k < 3; k++) {
        double error = 0;
        assert_ok(basin_picture_copy(&p[k], &truth, &failure));
        for (int i = 0; i < SIZE * SIZE; i++)
            if (mask.pixel[i]) memset(p[k].pixel + 3 * i, 130, 3);
        assert_ok(basin_memory_fill(&p[k], &hole, k == 2, NULL, &course[k], &failure));
        for (int i = 0; i < 3 * SIZE * SIZE; i++) {
            if (!mask.pixel[i / 3]) assert_int_equal(p[k].pixel[i], truth.pixel[i]);
            error += abs(p[k].pixel[i] - truth.pixel[i]);
        }
        assert_true(error / (3 * (HIGH - LOW) * (HIGH - LOW)) < 25); /* 70 before */
    }
    assert_memory_equal(p[0].pixel, p[1].pixel, 3 * SIZE * SIZE);
    assert_int_equal(course[0].steps, 4 + 5);
    assert_true(course[0].memory[8] + course[0].model[8] <
                course[0].memory[4] + course[0].model[4]);
    for (int i = 0; i < course[0].steps; i++) assert_true(course[0].model[i] >= 0);
    basin_hole_free(&hole);
    for (int k = 0; k < 3; k++) basin_picture_free(&p[k]);
    basin_picture_free(&truth);
    basin_picture_free(&mask);
}

/* Texture around a hole that is darker on the one side takes the colours of the start, which no
 * pattern has: patterns are shifted. */
TEST(patterns_are_shifted_to_the_start) {
    enum { LOW = 39, HIGH = 63, SHIFT = 8 };
    BASIN_AT_EXIT(basin_picture_free) basin_picture p = {0};
    BASIN_AT_EXIT(basin_picture_free) basin_picture mask = {0};
    BASIN_AT_EXIT(basin_hole_free) basin_hole hole;
    basin_course course = {.steps = 0};
    double sum = 0;
    holed(&p, &mask, LOW, HIGH);
    for (int i = 0; i < SIZE * SIZE; i++)
        memset(p.pixel + 3 * i, mask.pixel[i] ? 100 + SHIFT : 92 + i % SIZE / 2 % 2 * 16, 3);
    basin_image_complete_options how = {.mask = &mask};
    assert_ok(basin_hole_make(&hole, &p, 4, &how, 0, &failure));
    assert_ok(basin_memory_fill(&p, &hole, 1, NULL, &course, &failure));
    for (int y = LOW + 8; y < HIGH - 8; y++)
        for (int x = LOW + 8; x < HIGH - 8; x++) sum += p.pixel[3 * (y * SIZE + x)];
    assert_in_range((int64_t)(sum / 64), 100 + SHIFT / 3, 100 + SHIFT);
}

static bool stop_at_once(void *context) { return ++*(int *)context > 1; }

/* A watcher stops the model's windows, and the memory, also within a step: there are nine. */
TEST(completion_can_be_interrupted) {
    BASIN_AT_EXIT(bench_close) bench b;
    int asked = 0;
    basin_watch watch = {.stop = stop_at_once, .context = &asked};
    basin_image_complete_options how = {.rectangle = {30, 30, 40, 40}, .watch = &watch};
    basin_image_complete_result done = {0};
    bench_open(&b, 3, SIZE, SIZE);
    for (int i = 0; i < 3;
         i++, asked = i == 1 ? 1 : -20) { /* at the second, first, 22nd question */
        assert_says(basin_image_complete(&done, b.model, &b.picture, 1, &how, &failure),
                    BASIN_BAD_VALUE, "interrupted");
        assert_int_equal(asked, 2);
        assert_null(done.completed.pixel);
    }
}

/* A decoder of holes begins with zeros, so that its picture is the guess, the membrane. What it
 * changes stays within the range of what is known around the hole. */
TEST(a_model_with_a_decoder_of_holes_changes_the_membrane) {
    BASIN_AT_EXIT(bench_close) bench b;
    int64_t outside;
    bench_open(&b, 3, 24, 30);
    basin_image_settings s = b.model->settings;
    basin_image_close(b.model);
    s.holes_apart = true;
    assert_ok(basin_image_model_new(&b.model, &s, b.backend, &failure));
    memset(b.picture.pixel, 90, 24 * 30 * 3);
    basin_image_complete_options spec = {.rectangle = {5, 6, 8, 8}, .smooth = true};
    basin_image_complete_result done = complete(&b, &spec);
    assert_int_equal(differ(&outside, &done.completed, &b.picture, spec.rectangle), 0);
    basin_image_complete_result_free(&done);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor shift = {0};
    assert_ok(basin_store_get(&shift, b.model->store, "hole_b", &failure));
    for (int64_t i = 0; i < basin_shape_count(shift.shape); i++) ((float *)shift.data)[i] = 0.1F;
    assert_ok(basin_store_write(b.model->store, "hole_b", &shift, &failure));
    done = complete(&b, &spec); /* all around is 90 */
    assert_int_equal(differ(&outside, &done.completed, &b.picture, spec.rectangle), 0);
    basin_image_complete_result_free(&done);
    b.picture.pixel[(4 * 30 + 3) * 3] = 200; /* near the hole, of red only */
    done = complete(&b, &spec);
    int64_t at = (10 * 30 + 9) * 3; /* 0.1 deviations of 0.25, less what the rim corrects */
    assert_in_range(done.completed.pixel[at] - b.picture.pixel[at], 1, 7);
    assert_int_equal(done.completed.pixel[at + 1], 90);
    basin_image_complete_result_free(&done);
}

/* In an enlarged window pixels at the edge of a hidden patch mix with the patch beside it: with
 * what is known there, not with what the other decoder makes of it. */
TEST(shown_patches_are_what_is_known) {
    BASIN_AT_EXIT(bench_close) bench b;
    bench_open(&b, 3, SIZE, SIZE);
    basin_image_settings s = b.model->settings;
    basin_image_close(b.model);
    s.holes_apart = true;
    assert_ok(basin_image_model_new(&b.model, &s, b.backend, &failure));
    memset(b.picture.pixel, 30, 3 * SIZE * SIZE);
    memset(b.picture.pixel + 3 * (29 * SIZE + 29), 255, 3); /* the range of guesses */
    basin_image_complete_options spec = {.rectangle = {32, 32, 30, 30}, .smooth = true};
    basin_image_complete_result done = complete(&b, &spec);
    for (int y = 32; y < 62; y++)
        for (int x = 32; x < 62; x++)
            assert_in_range(done.completed.pixel[3 * (y * SIZE + x)], 29, y + x < 72 ? 60 : 34);
    basin_image_complete_result_free(&done);
}

/* Something that looks like nothing at the rim is not retrieved, however well it fits the start. */
TEST(what_is_far_from_the_rim_is_not_retrieved) {
    enum { LOW = 39, HIGH = 63, FOREIGN = 20 };
    basin_picture p = {0}, mask = {0};
    basin_course course = {.steps = 0};
    basin_hole hole;
    holed(&p, &mask, LOW, HIGH);
    for (int i = 0; i < SIZE * SIZE; i++) {
        bool foreign = i / SIZE < FOREIGN && i % SIZE < FOREIGN;
        uint8_t red[] = {250, 0, 0}, grey = (uint8_t)(100 + i * 7 % 11);
        memset(p.pixel + 3 * i, grey, 3);
        if (foreign || mask.pixel[i]) memcpy(p.pixel + 3 * i, red, 3); /* the start as well */
    }
    basin_image_complete_options how = {.mask = &mask};
    assert_ok(basin_hole_make(&hole, &p, 4, &how, 0, &failure));
    assert_ok(basin_memory_fill(&p, &hole, 1, NULL, &course, &failure));
    for (int y = LOW; y < HIGH; y++) { /* half of the way back to the start is allowed */
        const uint8_t *pixel = p.pixel + 3 * (y * SIZE + LOW + 2);
        assert_true(pixel[1] > 40);
    }
    basin_hole_free(&hole);
    basin_picture_free(&p);
    basin_picture_free(&mask);
}

/* A square on one of two crossed lines is all that is left of the hole; the lines are filled by the
 * membrane, without the model. */
TEST(narrow_parts_need_no_model) {
    BASIN_AT_EXIT(bench_close) bench b;
    basin_picture mask = {0};
    basin_hole hole;
    bench_open(&b, 3, SIZE, SIZE);
    holed(&b.picture, &mask, 40, 42);
    for (int i = 0; i < SIZE * SIZE; i++)
        if (i / SIZE == 20 || i % SIZE / 2 == 2) mask.pixel[i] = 255;
    basin_image_complete_options how = {.mask = &mask};
    basin_image_complete_result done = complete(&b, &how);
    assert_int_equal(done.windows, 0);
    assert_int_equal(done.energies, 0);
    basin_image_complete_result_free(&done);
    for (int y = 60; y < 80; y++) memset(mask.pixel + y * SIZE, 255, 30);
    assert_ok(basin_hole_make(&hole, &b.picture, 4, &how, 0, &failure));
    int64_t missing = hole.missing;
    assert_ok(basin_hole_keep_wide(&hole, 16, &failure));
    assert_int_equal(basin_hole_depth(&hole, 70, 20), 10);
    assert_int_equal(basin_hole_depth(&hole, 20, 50), 0);
    assert_int_equal(basin_hole_depth(&hole, 41, 41), 0);
    assert_int_equal(hole.missing, missing);
    basin_hole_free(&hole);
    basin_picture_free(&mask);
}

/* A picture of one colour that is too small to store a patch of keeps the smooth filling. */
TEST(nothing_stored_is_smooth) {
    basin_picture p = {0};
    basin_image_complete_options how = {.rectangle = {5, 5, 10, 10}};
    basin_hole hole;
    basin_course course = {.steps = 0};
    assert_ok(basin_picture_resize_memory(&p, 20, 20, 3, &failure));
    memset(p.pixel, 77, 3 * 20 * 20);
    assert_ok(basin_hole_make(&hole, &p, 4, &how, 0, &failure));
    memset(p.pixel + 3 * (10 * 20 + 10), 82, 3); /* a guess */
    assert_ok(basin_memory_fill(&p, &hole, 1, NULL, &course, &failure));
    assert_int_equal(course.steps, 0);
    assert_int_equal(p.pixel[3 * (10 * 20 + 10)], 82);
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
    basin_image_complete_result done = {0};
    basin_picture empty = {.height = 4, .width = 4, .channels = 3}, mask = {0};
    basin_image_complete_options how = {.rectangle = {0}};
    bench_open(&b, 3, 16, 16);
    assert_says(basin_image_complete(&done, b.model, &empty, 1, &how, &failure), BASIN_BAD_VALUE,
                "a picture has no pixels");
    how.rectangle[0] = 40, how.rectangle[2] = how.rectangle[3] = 3;
    refuse(&b, &how, "the rectangle 40,0,3,3 reaches out of the picture, which has 16 x 16 pixels");
    assert_ok(basin_picture_resize_memory(&mask, 16, 16, 1, &failure));
    memset(mask.pixel, 0, 16 * 16);
    how.mask = &mask;
    refuse(&b, &how, "the mask hides nothing; expected the pixels to complete in white");
    memset(mask.pixel, 255, 16 * 16);
    refuse(&b, &how, "the mask hides the whole picture: nothing is left to complete it from");
    basin_picture_free(&mask);
}
