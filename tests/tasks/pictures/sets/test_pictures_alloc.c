/* Every allocation of reading, writing and feeding pictures fails once: an error each time, and
 * nothing leaks. The libraries of formats keep their own allocations. */
#include "basin/tasks/metrics_picture.h"
#include "support/alloc_fail.h"
#include "support/folder.h"
#include "support/test.h"
#include "tasks/common/pixels/picture.h"
#include "tasks/nodes/network/make.h"
#include "tasks/pictures/sets/pictures.h"

enum { FILES = 5 };

static int setup(void **state) {
    char name[20];
    if (folder_new(state)) return -1;
    for (int i = 0; i < FILES; i++) {
        uint8_t *bytes;
        size_t size;
        basin_picture picture = make_picture(20, 24, 3, i);
        snprintf(name, sizeof name, "%d.%s", i, i == 2 ? "png" : "jpg");
        if (i == 2) {
            if (basin_png_encode(&bytes, &size, &picture, NULL)) return -1;
        } else {
            size = make_jpeg(&bytes, &picture, (jpeg_form){.orientation = 5, .inks = i == 3});
        }
        file_put(folder_path(state, name), bytes, size);
        free(bytes);
        basin_picture_free(&picture);
    }
    return 0;
}

static basin_status read_all(void *folder) {
    const char *path = folder;
    basin_error error = {0};
    basin_pictures *pictures;
    basin_picture picture = {0};
    basin_status status = basin_pictures_open(&pictures, &path, 1, BASIN_PICTURES_ALL, &error);
    for (int64_t i = 0; i < FILES && !status; i++) {
        status = basin_pictures_load(&picture, pictures, i, &error);
        if (!status) status = basin_picture_set_channels(&picture, 1, &error);
        if (!status) status = basin_picture_set_channels(&picture, 3, &error);
    }
    basin_picture_free(&picture);
    basin_pictures_close(pictures);
    return error.status == status ? status : BASIN_BAD_VALUE;
}

/* One thread, so that the n-th allocation is the same one each time. Where keeping a picture fails
 * it is only not kept, so the feed here keeps none. */
static basin_status feed_all(void *folder) {
    const char *path = folder;
    basin_error error = {0};
    basin_pictures *pictures;
    basin_picture_feed *feed = NULL;
    basin_picture_feed_batch batch = {0};
    basin_status status = basin_pictures_open(&pictures, &path, 1, BASIN_PICTURES_ALL, &error);
    basin_picture_feed_config config = {.pictures = pictures,
                                        .augment = basin_augment_evaluation(16, 3, 4),
                                        .batch = 2,
                                        .threads = 1};
    if (!status) status = basin_picture_feed_new(&feed, &config, &error);
    if (!status) {
        do status = basin_picture_feed_next(&batch, feed, &error);
        while (!status && batch.count);
    }
    basin_picture_feed_free(feed);
    basin_pictures_close(pictures);
    return error.status == status ? status : BASIN_BAD_VALUE;
}

static basin_status write_all(void *folder) {
    char path[PATH_TEXT];
    basin_error error = {0};
    basin_picture picture = {0};
    double ssim;
    static float plane[64];
    snprintf(path, sizeof path, "%s/out.png", (const char *)folder);
    basin_status status = basin_picture_resize_memory(&picture, 9, 8, 1, &error);
    for (int k = 0; k < 72 && !status; k++) picture.pixel[k] = (uint8_t)k;
    if (!status) status = basin_picture_write_png(path, &picture, &error);
    if (!status) status = basin_ssim(&ssim, plane, plane, 1, 8, 8, 1, &error);
    basin_picture_free(&picture);
    return error.status == status ? status : BASIN_BAD_VALUE;
}

/* Noise, so that the bytes outgrow their first rooms. */
static basin_status pack_jpeg(void *folder) {
    enum { SIDE = 240 };
    static uint8_t pixel[SIDE * SIDE];
    const basin_picture noise = {SIDE, SIDE, 1, pixel, 0};
    basin_error error = {0};
    uint8_t *bytes;
    size_t size;
    (void)folder;
    for (uint32_t i = 0; i < SIDE * SIDE; i++) pixel[i] = (uint8_t)(i * 2654435761U >> 13);
    basin_status status = basin_jpeg_encode(&bytes, &size, &noise, 100, true, &error);
    if (!status && size < 2 * 16384) status = BASIN_BAD_VALUE;
    free(bytes);
    return error.status == status ? status : BASIN_BAD_VALUE;
}

TEST(reading) { assert_true(alloc_fail_sweep(read_all, *state) > 20); }
TEST(feeding) { assert_true(alloc_fail_sweep(feed_all, *state) > 30); }
TEST(packing) { assert_true(alloc_fail_sweep(pack_jpeg, *state) > 0); }
TEST(writing) { assert_true(alloc_fail_sweep(write_all, *state) > 2); }

int main(void) { return tests_run(setup, folder_remove); }
