/* Pictures kept decoded: crops have the same values whether there is memory to keep none, some or
 * all of those that are never reduced. */
#include <sys/stat.h>

#include "support/folder.h"
#include "support/test.h"
#include "tasks/nodes/network/make.h"
#include "tasks/pictures/sets/pictures.h"

enum { FILES = 13, BATCH = 4, SIZE = 28, STEPS = 9, VALUES = SIZE * SIZE * 3 };

/* Sizes from below the crop's to eight times it; 2 is damaged, 5 grey, 7 lies on its side. */
static void put_file(void **state, int i) {
    char name[20];
    uint8_t *bytes;
    BASIN_AT_EXIT(basin_picture_free)
    basin_picture picture = make_picture(20 + 17 * i, 230 - 16 * i, i == 5 ? 1 : 3, i);
    jpeg_form form = {.quality = 92, .orientation = i == 7 ? 6 : 0};
    size_t size = make_jpeg(&bytes, &picture, form);
    snprintf(name, sizeof name, "%02d.jpg", i);
    assert_int_equal(file_put(folder_path(state, name), bytes, i == 2 ? size / 2 : size), 0);
    free(bytes);
}

static int setup(void **state) {
    if (folder_new(state)) return -1;
    for (int i = 0; i < FILES; i++) put_file(state, i);
    return 0;
}

static basin_picture_feed_config training(void **state, basin_pictures **pictures) {
    const char *path = *state;
    assert_ok(basin_pictures_open(pictures, &path, 1, BASIN_PICTURES_ALL, &failure));
    basin_picture_feed_config config = {.pictures = *pictures,
                                        .augment = basin_augment_training(SIZE, 3, 7),
                                        .batch = BATCH,
                                        .training = true,
                                        .seed = 4,
                                        .threads = 2};
    return config;
}

typedef struct run {
    float values[STEPS][BATCH][VALUES];
    int64_t index[STEPS][BATCH];
} run;

static run *run_new(const basin_picture_feed_config *config, size_t *kept) {
    run *r = malloc(sizeof *r);
    basin_picture_feed *feed;
    basin_picture_feed_batch batch = {0};
    assert_non_null(r);
    assert_ok(basin_picture_feed_new(&feed, config, &failure));
    for (int s = 0; s < STEPS; s++) {
        assert_ok(basin_picture_feed_next(&batch, feed, &failure));
        memcpy(r->values[s], batch.values, sizeof r->values[s]);
        memcpy(r->index[s], batch.index, sizeof r->index[s]);
    }
    *kept = basin_picture_feed_count(feed).kept;
    basin_picture_feed_free(feed);
    return r;
}

TEST(memory_changes_nothing) {
    BASIN_AT_EXIT(free_pictures) basin_pictures *pictures;
    size_t none, some, all;
    basin_picture_feed_config config = training(state, &pictures);
    run *without = run_new(&config, &none);
    config.keep_bytes = 20000;
    run *with_some = run_new(&config, &some);
    config.keep_bytes = (size_t)1 << 30;
    run *with_all = run_new(&config, &all);
    assert_memory_equal(without, with_some, sizeof *without);
    assert_memory_equal(without, with_all, sizeof *without);
    assert_true(none == 0 && some > 0 && some <= 20000 && all > some);
    free(without);
    free(with_some);
    free(with_all);
}

int main(void) { return tests_run(setup, folder_remove); }
