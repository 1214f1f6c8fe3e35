/* Pictures kept decoded: crops of them are the crops of files where nothing is reduced; what is
 * drawn does not depend on whether they are kept. */
#include <math.h>
#include <sys/stat.h>

#include "support/folder.h"
#include "support/test.h"
#include "tasks/nodes/network/make.h"
#include "tasks/pictures/sets/pictures.h"

enum { FILES = 13, BATCH = 4, SIZE = 28, STEPS = 9, VALUES = SIZE * SIZE * 3 };

/* Sizes from below the crop's to eight times it; 2 is damaged, 5 grey, 7 lies on its side. */
static void put_file(void **state, int i) {
    char path[PATH_TEXT], name[20];
    uint8_t *bytes;
    BASIN_AT_EXIT(basin_picture_free)
    basin_picture picture = make_picture(20 + 17 * i, 230 - 16 * i, i == 5 ? 1 : 3, i);
    jpeg_form form = {.quality = 92, .orientation = i == 7 ? 6 : 0};
    size_t size = make_jpeg(&bytes, &picture, form);
    snprintf(name, sizeof name, "%02d.jpg", i);
    assert_int_equal(file_put(folder_path(path, state, name), bytes, i == 2 ? size / 2 : size), 0);
    free(bytes);
}

static int setup(void **state) {
    if (folder_new(state)) return -1;
    for (int i = 0; i < FILES; i++) put_file(state, i);
    return 0;
}

static basin_picture_feed_config training(void **state, basin_pictures **pictures, basin_cut cut) {
    const char *path = *state;
    basin_error error;
    if (basin_pictures_open(pictures, &path, 1, NULL, &error)) fail_msg("%s", error.text);
    basin_picture_feed_config config = {.pictures = *pictures,
                                        .augment = basin_augment_training(SIZE, 3, 7),
                                        .batch = BATCH,
                                        .training = true,
                                        .seed = 4,
                                        .cut = cut,
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
    basin_picture_feed_batch batch;
    basin_error error;
    assert_non_null(r);
    if (basin_picture_feed_new(&feed, config, &error)) fail_msg("%s", error.text);
    for (int s = 0; s < STEPS; s++) {
        if (basin_picture_feed_next(&batch, feed, &error)) fail_msg("%s", error.text);
        memcpy(r->values[s], batch.values, sizeof r->values[s]);
        memcpy(r->index[s], batch.index, sizeof r->index[s]);
    }
    if (kept) *kept = basin_picture_feed_count(feed).kept;
    basin_picture_feed_free(feed);
    return r;
}

static double apart(const float *a, const float *b) {
    double sum = 0;
    for (int i = 0; i < VALUES; i++) sum += fabs((double)a[i] - (double)b[i]);
    return sum / VALUES;
}

/* Of files, a JPEG is reduced where a crop is at least twice SIZE: smaller pictures give the same
 * bits whole, larger ones nearly the same values, and reduced ones still the same part. */
TEST(crops_are_those_of_files) {
    BASIN_AT_EXIT(free_pictures) basin_pictures *pictures;
    int exact = 0;
    double worst = 0;
    basin_picture_feed_config config = training(state, &pictures, BASIN_CUT_FILES);
    run *files = run_new(&config, NULL);
    config.cut = BASIN_CUT_WHOLE;
    run *whole = run_new(&config, NULL);
    config.cut = BASIN_CUT_REDUCED;
    run *reduced = run_new(&config, NULL);
    assert_memory_equal(files->index, whole->index, sizeof files->index);
    assert_memory_equal(files->index, reduced->index, sizeof files->index);
    for (int s = 0; s < STEPS; s++)
        for (int i = 0; i < BATCH; i++) {
            int64_t k = files->index[s][i], height = 20 + 17 * k, width = 230 - 16 * k;
            const float *v = files->values[s][i];
            if (height < 2 * SIZE || width < 2 * SIZE) {
                assert_memory_equal(v, whole->values[s][i], sizeof files->values[s][i]);
                exact++;
            }
            worst = fmax(worst, apart(v, whole->values[s][i]));
            assert_true(apart(v, reduced->values[s][i]) < 0.06);
        }
    assert_true(exact > 5 && worst > 0 && worst < 0.02);
    free(files);
    free(whole);
    free(reduced);
}

TEST(memory_changes_nothing) {
    basin_pictures *pictures;
    for (int cut = BASIN_CUT_WHOLE; cut <= BASIN_CUT_REDUCED; cut++) {
        size_t none, some, all;
        basin_picture_feed_config config = training(state, &pictures, (basin_cut)cut);
        run *without = run_new(&config, &none);
        config.keep_bytes = 50000;
        run *with_some = run_new(&config, &some);
        config.keep_bytes = (size_t)1 << 30;
        run *with_all = run_new(&config, &all);
        assert_memory_equal(without, with_some, sizeof *without);
        assert_memory_equal(without, with_all, sizeof *without);
        assert_true(none == 0 && some > 0 && some <= 50000 && all > some);
        double guess = basin_kept_estimate(pictures, NULL, FILES, (basin_cut)cut, SIZE);
        assert_true(guess > 0.85 * (double)all && guess < 1.15 * (double)all);
        free(without);
        free(with_some);
        free(with_all);
        basin_pictures_free(pictures);
    }
}

TEST(sizes_kept) {
    const struct {
        basin_cut cut;
        int64_t height, width, size, kept_height, kept_width;
    } cases[] = {
        {BASIN_CUT_WHOLE, 375, 500, 224, 375, 500},
        {BASIN_CUT_REDUCED, 375, 500, 224, 256, 341},
        {BASIN_CUT_REDUCED, 500, 375, 224, 341, 256},
        {BASIN_CUT_REDUCED, 200, 900, 224, 200, 900},
        {BASIN_CUT_REDUCED, 256, 30000, 224, 122, 14336},
        {BASIN_CUT_WHOLE, 1, 6400, 50, 1, 3200},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t height, width;
        basin_kept_sizes(&height, &width, cases[i].height, cases[i].width, cases[i].cut,
                         cases[i].size);
        assert_int_equal(height, cases[i].kept_height);
        assert_int_equal(width, cases[i].kept_width);
    }
}

int main(void) { return tests_run(setup, folder_remove); }
