/* Completing pictures of any size: what is not occluded stays as it is, the result has the
 * picture's size, tiles cover all of it, masks and rectangles are honoured to the pixel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "task/image/image.h"

typedef struct bench {
    basin_backend *backend;
    basin_image_model *model;
    basin_picture picture;
} bench;

static void must(basin_status status, const basin_error *error) {
    if (status) fail_msg("%s", error->text);
}

static void bench_open(bench *b, int channels, int64_t height, int64_t width) {
    basin_error error = {0};
    basin_image_settings s;
    *b = (bench){0};
    basin_image_task.fill(&s, "fashion");
    s.channels = channels;
    s.size = 16;
    s.dim = 16;
    s.heads = 2;
    s.head_dim = 8;
    s.memories = 24;
    s.steps = 2;
    s.occlude = 8;
    for (int c = 0; c < 3; c++) s.mean[c] = 0.5, s.deviation[c] = 0.25;
    must(basin_backend_open(&b->backend, "cpu", 1, &error), &error);
    must(basin_image_model_new(&b->model, &s, b->backend, &error), &error);
    must(basin_picture_resize_memory(&b->picture, height, width, 3, &error), &error);
    for (int64_t i = 0; i < height * width * 3; i++) b->picture.pixel[i] = (uint8_t)(i * 7 % 251);
}

static void bench_close(bench *b) {
    basin_picture_free(&b->picture);
    basin_image_close(b->model);
    basin_backend_close(b->backend);
}

static basin_image_completion complete(bench *b, const basin_image_completing *spec) {
    basin_error error = {0};
    basin_image_completion done;
    must(basin_image_complete(&done, b->model, &b->picture, 1, spec, &error), &error);
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

static void a_rectangle_is_all_that_changes(void **state) {
    (void)state;
    for (int tile = 0; tile < 2; tile++) {
        bench b;
        bench_open(&b, 3, 37, 50);
        basin_image_completing spec = {
            .size = sizeof spec, .rectangle = {11, 5, 21, 18}, .resize = !tile};
        basin_image_completion done = complete(&b, &spec);
        int64_t outside, changed;
        changed = differ(&outside, &done.completed, &b.picture, spec.rectangle);
        assert_int_equal(outside, 0);
        assert_true(changed > 21 * 18 * 9 / 10);
        changed = differ(&outside, &done.masked, &b.picture, spec.rectangle);
        assert_int_equal(outside, 0);
        assert_true(changed > 21 * 18 * 9 / 10);
        assert_int_equal(done.tiles, tile ? 3 * 4 : 1);
        basin_image_completion_free(&done);
        bench_close(&b);
    }
}

static void a_mask_is_a_rectangle_by_other_means(void **state) {
    (void)state;
    bench b;
    basin_error error = {0};
    basin_picture mask = {0};
    bench_open(&b, 1, 40, 33);
    must(basin_picture_resize_memory(&mask, 40, 33, 1, &error), &error);
    memset(mask.pixel, 0, 40 * 33);
    for (int y = 4; y < 20; y++) memset(mask.pixel + y * 33 + 6, 255, 13);
    basin_image_completing by_mask = {.size = sizeof by_mask, .mask = &mask};
    basin_image_completing by_rectangle = {.size = sizeof by_rectangle,
                                           .rectangle = {6, 4, 13, 16}};
    basin_image_completion one = complete(&b, &by_mask), two = complete(&b, &by_rectangle);
    assert_int_equal(one.completed.channels, 1);
    assert_memory_equal(one.completed.pixel, two.completed.pixel, 40 * 33);
    basin_image_completion_free(&one);
    basin_image_completion_free(&two);
    mask.height = 20;
    basin_image_completion none;
    assert_int_equal(basin_image_complete(&none, b.model, &b.picture, 1, &by_mask, &error),
                     BASIN_BAD_SHAPE);
    assert_string_equal(error.text, "the mask has 33 x 20 pixels, wanted the picture's 33 x 40");
    basin_picture_free(&mask);
    bench_close(&b);
}

static void random_masks_have_the_share_asked_for(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 3, 50, 34);
    basin_image_completing spec = {.size = sizeof spec, .ratio = 0.25, .seed = 3};
    basin_image_completion done = complete(&b, &spec);
    assert_int_equal(done.tiles, 4 * 3);
    assert_int_equal(done.patches, 12 * 16);
    assert_int_equal(done.occluded, 12 * 4);
    basin_image_completion_free(&done);
    bench_close(&b);
}

static void the_last_frame_is_the_completed_picture(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 3, 24, 20);
    basin_image_completing spec = {
        .size = sizeof spec, .ratio = 0.5, .resize = true, .frames = true};
    basin_image_completion done = complete(&b, &spec);
    assert_int_equal(done.frames, 3);
    for (int64_t i = 0; i < 24 * 20 * 3; i++) /* other plans round otherwise: a level at most */
        assert_in_range(done.frame[2].pixel[i] + 1 - done.completed.pixel[i], 0, 2);
    basin_image_completion_free(&done);
    bench_close(&b);
}

/* Pictures of different sizes in one call are completed as each of them alone. */
static void a_batch_is_its_pictures_one_by_one(void **state) {
    (void)state;
    bench b;
    basin_error error = {0};
    basin_picture two[2] = {0};
    basin_image_completion both[2], one;
    basin_image_completing how = {.size = sizeof how, .ratio = 0.5, .seed = 5};
    bench_open(&b, 3, 20, 37);
    must(basin_picture_copy(&two[0], &b.picture, &error), &error);
    must(basin_picture_resize_memory(&two[1], 16, 16, 1, &error), &error);
    memset(two[1].pixel, 90, 16 * 16);
    must(basin_image_complete(both, b.model, two, 2, &how, &error), &error);
    for (int i = 0; i < 2; i++) {
        how.stream = (uint64_t)i;
        must(basin_image_complete(&one, b.model, &two[i], 1, &how, &error), &error);
        assert_int_equal(one.tiles, both[i].tiles);
        for (int64_t k = 0; k < one.completed.height * one.completed.width * 3; k++)
            assert_in_range(one.completed.pixel[k] + 1 - both[i].completed.pixel[k], 0, 2);
        basin_image_completion_free(&one);
        basin_image_completion_free(&both[i]);
        basin_picture_free(&two[i]);
    }
    bench_close(&b);
}

static void what_cannot_be_completed_is_refused(void **state) {
    (void)state;
    bench b;
    basin_error error = {0};
    basin_image_completion done;
    basin_picture empty = {.height = 4, .width = 4, .channels = 3};
    basin_image_completing how = {.size = sizeof how, .ratio = 1.5};
    bench_open(&b, 3, 16, 16);
    assert_int_equal(basin_image_complete(&done, b.model, &b.picture, 1, &how, &error),
                     BASIN_BAD_VALUE);
    assert_string_equal(error.text, "ratio is 1.5, wanted 0 to 1");
    how.ratio = 0.5;
    assert_int_equal(basin_image_complete(&done, b.model, &empty, 1, &how, &error),
                     BASIN_BAD_VALUE);
    assert_string_equal(error.text, "a picture has no pixels");
    how.size = 0;
    assert_int_equal(basin_image_complete(&done, b.model, &b.picture, 1, &how, &error),
                     BASIN_BAD_VALUE);
    assert_string_equal(error.text, "the size of basin_image_completing is 0, wanted "
                                    "sizeof(basin_image_completing)");
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rectangle_is_all_that_changes),
        cmocka_unit_test(a_mask_is_a_rectangle_by_other_means),
        cmocka_unit_test(random_masks_have_the_share_asked_for),
        cmocka_unit_test(the_last_frame_is_the_completed_picture),
        cmocka_unit_test(a_batch_is_its_pictures_one_by_one),
        cmocka_unit_test(what_cannot_be_completed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
