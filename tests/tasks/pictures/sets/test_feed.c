/* The feed: the same batches for any number of threads, from any step on, and whether there is
 * memory to keep none, some or all of the decoded pictures; every item once an epoch; pictures that
 * cannot be read told once and replaced; nothing lost at the end of an evaluation. */
#include <sys/stat.h>

#include "support/folder.h"
#include "support/test.h"
#include "tasks/nodes/network/make.h"
#include "tasks/pictures/sets/pictures.h"

enum { FILES = 23, BATCH = 4, SIZE = 28 };

/* Files 3, 11 and 12 are no pictures: empty, cut, and text. */

static void put_file(void **state, int i) {
    char name[20];
    uint8_t *bytes;
    BASIN_AT_EXIT(basin_picture_free)
    basin_picture picture = make_picture(40 + i, 60 - i, i % 5 ? 3 : 1, i);
    size_t size = make_jpeg(&bytes, &picture, (jpeg_form){.quality = 95});
    snprintf(name, sizeof name, "%02d.%s", i, i % 2 ? "jpg" : "JPEG");
    if (i == 3) size = 0;
    if (i == 11) size = size / 2;
    if (i == 12) size = (size_t)snprintf((char *)bytes, size, "hello");
    assert_int_equal(file_put(folder_path(state, name), bytes, size), 0);
    free(bytes);
}

static int setup(void **state) {
    if (folder_new(state)) return -1;
    for (int i = 0; i < FILES; i++) put_file(state, i);
    return 0;
}

/* Sizes from below the crop's to eight times it; 2 is damaged, 5 grey, 7 lies on its side. */
static int setup_sizes(void **state) {
    if (folder_new(state)) return -1;
    for (int i = 0; i < FILES; i++) {
        char name[20];
        uint8_t *bytes;
        BASIN_AT_EXIT(basin_picture_free)
        basin_picture picture = make_picture(20 + 9 * i, 230 - 9 * i, i == 5 ? 1 : 3, i);
        jpeg_form form = {.quality = 92, .orientation = i == 7 ? 6 : 0};
        size_t size = make_jpeg(&bytes, &picture, form);
        snprintf(name, sizeof name, "%02d.jpg", i);
        assert_int_equal(file_put(folder_path(state, name), bytes, i == 2 ? size / 2 : size), 0);
        free(bytes);
    }
    return 0;
}

static basin_pictures *open_folder(void **state) {
    const char *path = *state;
    basin_pictures *pictures;
    assert_ok(basin_pictures_open(&pictures, &path, 1, BASIN_PICTURES_ALL, &failure));
    assert_int_equal(basin_pictures_count(pictures), FILES);
    return pictures;
}

typedef struct told {
    int count;
    char text[2000];
} told;

static void unreadable(void *context, const char *name, const char *why) {
    told *t = context;
    t->count++;
    snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), "%s|%s\n", name, why);
}

static basin_picture_feed *feed_new(const basin_picture_feed_config *config) {
    basin_picture_feed *feed;
    assert_ok(basin_picture_feed_new(&feed, config, &failure));
    return feed;
}

static void next(basin_picture_feed_batch *batch, basin_picture_feed *feed) {
    assert_ok(basin_picture_feed_next(batch, feed, &failure));
}

TEST(order_is_a_permutation) {
    for (int64_t n = 1; n < 70; n++)
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            bool seen[70] = {false};
            for (int64_t i = 0; i < n; i++) {
                int64_t at = basin_order_at(i, n, 5, epoch);
                assert_in_range(at, 0, n - 1);
                assert_false(seen[at]);
                seen[at] = true;
            }
        }
    int same = 0, fixed = 0;
    for (int64_t i = 0; i < 1000; i++) {
        same += basin_order_at(i, 1000, 5, 0) == basin_order_at(i, 1000, 5, 1);
        fixed += basin_order_at(i, 1000, 6, 0) == i;
    }
    assert_true(same < 8 && fixed < 8); /* one is expected of each */
}

static basin_picture_feed_config training(basin_pictures *pictures, told *t) {
    basin_picture_feed_config config = {.pictures = pictures,
                                        .augment = basin_augment_training(SIZE, 3, 7),
                                        .batch = BATCH,
                                        .training = true,
                                        .seed = 9,
                                        .threads = 1,
                                        .unreadable = unreadable,
                                        .context = t};
    return config;
}

enum { STEPS = 23, VALUES = SIZE * SIZE * 3 * BATCH };

typedef struct run {
    float values[STEPS][VALUES];
    int64_t index[STEPS][BATCH];
} run;

/* `kept`, where there is one: the bytes of pictures that were kept. */
static run *run_new(const basin_picture_feed_config *config, size_t *kept) {
    run *r = malloc(sizeof *r);
    assert_non_null(r);
    basin_picture_feed *feed = feed_new(config);
    for (int s = 0; s < STEPS; s++) {
        basin_picture_feed_batch batch = {0};
        next(&batch, feed);
        assert_int_equal(batch.count, BATCH);
        assert_int_equal(batch.step, s);
        assert_int_equal(batch.epoch, s / (FILES / BATCH));
        memcpy(r->values[s], batch.values, sizeof r->values[s]);
        memcpy(r->index[s], batch.index, sizeof r->index[s]);
    }
    if (kept) *kept = basin_picture_feed_count(feed).kept;
    basin_picture_feed_free(feed);
    return r;
}

TEST(threads_and_memory_change_nothing) {
    BASIN_AT_EXIT(free_pictures) basin_pictures *pictures = open_folder(state);
    told t = {0};
    basin_picture_feed_config config = training(pictures, &t);
    run *one = run_new(&config, NULL);
    assert_int_equal(t.count, 3);
    for (int form = 0; form < 4; form++) {
        told again = {0};
        config.context = &again;
        config.threads = 1 + form;
        config.ahead = form * 5;
        config.keep_bytes = form == 1 ? 50000 : form == 2 ? 1 << 24 : 0;
        run *other = run_new(&config, NULL);
        assert_memory_equal(one, other, sizeof *one);
        assert_int_equal(again.count, 3);
        free(other);
    }
    free(one);
}

TEST_WITH(memory_for_any_size_changes_nothing, setup_sizes, folder_remove) {
    BASIN_AT_EXIT(free_pictures) basin_pictures *pictures = open_folder(state);
    told t = {0};
    size_t none, some, all;
    basin_picture_feed_config config = training(pictures, &t);
    config.threads = 2;
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

TEST(resumes_from_any_step) {
    BASIN_AT_EXIT(free_pictures) basin_pictures *pictures = open_folder(state);
    told t = {0};
    basin_picture_feed_config config = training(pictures, &t);
    run *whole = run_new(&config, NULL);
    config.threads = 3;
    basin_picture_feed *feed = feed_new(&config);
    const int at[] = {7, 0, 22, 4, 5, 6, 6, 13};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        basin_picture_feed_seek(feed, at[i]);
        for (int s = at[i]; s < at[i] + 3 && s < STEPS; s++) {
            basin_picture_feed_batch batch = {0};
            next(&batch, feed);
            assert_int_equal(batch.step, s);
            assert_memory_equal(batch.values, whole->values[s], sizeof whole->values[s]);
            assert_memory_equal(batch.index, whole->index[s], sizeof whole->index[s]);
        }
    }
    basin_picture_feed_free(feed);
    free(whole);
}

/* A stopped feed leaves nothing behind, however little of it was used. */
/* Ranks that take some places of every batch see what one that takes all sees, bad files included.
 */
TEST(places_of_a_batch_are_dealt) {
    BASIN_AT_EXIT(free_pictures) basin_pictures *pictures = open_folder(state);
    told none = {0};
    basin_picture_feed_config config = training(pictures, &none);
    basin_picture_feed *whole = feed_new(&config), *part[2];
    size_t values = (size_t)basin_augment_values(&config.augment) * sizeof(float);
    for (int i = 0; i < 2; i++) {
        config.first = i ? 1 : 0;
        config.count = i ? BATCH - 1 : 1;
        part[i] = feed_new(&config);
    }
    for (int step = 0; step < 12; step++) {
        basin_picture_feed_batch all = {0}, some[2] = {0};
        next(&all, whole);
        for (int i = 0; i < 2; i++) next(&some[i], part[i]);
        assert_int_equal(some[0].count, 1);
        assert_int_equal(some[1].count, BATCH - 1);
        assert_memory_equal(some[0].values, all.values, values);
        assert_memory_equal(some[1].values, (const char *)all.values + values,
                            (BATCH - 1) * values);
    }
    basin_picture_feed_free(whole);
    for (int i = 0; i < 2; i++) basin_picture_feed_free(part[i]);
    config.first = 2;
    assert_int_equal(basin_picture_feed_new(&whole, &config, &failure), BASIN_BAD_VALUE);
}

TEST(stops_at_once) {
    BASIN_AT_EXIT(free_pictures) basin_pictures *pictures = open_folder(state);
    told t = {0};
    basin_picture_feed_config config = training(pictures, &t);
    config.threads = 4;
    for (int i = 0; i < 20; i++) {
        basin_picture_feed *feed = feed_new(&config);
        basin_picture_feed_batch batch = {0};
        if (i % 2) next(&batch, feed);
        if (i % 3 == 2) basin_picture_feed_seek(feed, i);
        basin_picture_feed_free(feed);
    }
}

TEST(evaluation_covers_all) {
    BASIN_AT_EXIT(free_pictures) basin_pictures *pictures = open_folder(state);
    int64_t item[] = {20, 3, 4, 11, 12, 0, 7, 22, 9};
    told t = {0};
    basin_picture_feed_config config = {.pictures = pictures,
                                        .item = item,
                                        .items = 9,
                                        .augment = basin_augment_evaluation(16, 1, 0),
                                        .batch = 2,
                                        .threads = 2,
                                        .unreadable = unreadable,
                                        .context = &t};
    basin_picture_feed *feed = feed_new(&config);
    const int64_t want[] = {20, 4, 0, 7, 22, 9};
    const int64_t counts[] = {1, 1, 1, 2, 1}; /* one pair could not be read at all */
    for (int round = 0; round < 2; round++) {
        basin_picture_feed_batch batch = {0};
        int seen = 0, batches = 0;
        for (;;) {
            next(&batch, feed);
            if (!batch.count) break;
            assert_int_equal(batch.count, counts[batches++]);
            for (int64_t i = 0; i < batch.count; i++)
                assert_int_equal(batch.index[i], want[seen++]);
        }
        assert_int_equal(seen, 6);
        basin_picture_feed_seek(feed, 0);
    }
    assert_int_equal(t.count, 3);
    assert_int_equal(basin_picture_feed_count(feed).unreadable, 3);
    assert_non_null(strstr(t.text, "03.jpg|"));
    assert_non_null(strstr(t.text, "11.jpg: cut short"));
    assert_non_null(strstr(t.text, "12.JPEG: is not a picture; expected JPEG, PNG or WebP"));
    basin_picture_feed_free(feed);
}

TEST(every_item_once_an_epoch) {
    const char *path = "shapes:40:3:12x12x1";
    BASIN_AT_EXIT(free_pictures) basin_pictures *pictures;
    assert_ok(basin_pictures_open(&pictures, &path, 1, BASIN_PICTURES_TRAIN, &failure));
    basin_picture_feed_config config = {.pictures = pictures,
                                        .augment = basin_augment_evaluation(12, 1, 4),
                                        .batch = 8,
                                        .training = true,
                                        .threads = 2,
                                        .seed = 1};
    basin_picture_feed *feed = feed_new(&config);
    for (int epoch = 0; epoch < 3; epoch++) {
        int seen[40] = {0};
        for (int s = 0; s < 5; s++) {
            basin_picture_feed_batch batch = {0};
            next(&batch, feed);
            for (int64_t i = 0; i < batch.count; i++) seen[batch.index[i]]++;
        }
        for (int i = 0; i < 40; i++) assert_int_equal(seen[i], 1);
    }
    basin_picture_feed_free(feed);
}

TEST(says_what_is_wrong) {
    BASIN_AT_EXIT(free_pictures) basin_pictures *pictures = open_folder(state);
    int64_t bad[] = {3, 11, 12};
    basin_picture_feed_config config = {.pictures = pictures,
                                        .item = bad,
                                        .items = 3,
                                        .augment = basin_augment_training(16, 3, 4),
                                        .batch = 2,
                                        .training = true};
    basin_picture_feed *feed = feed_new(&config);
    basin_picture_feed_batch batch = {0};
    basin_error error;
    assert_says(basin_picture_feed_next(&batch, feed, &failure), BASIN_BAD_FILE,
                "none of 3 pictures can be read");
    basin_picture_feed_free(feed);
    config.batch = 4;
    assert_says(basin_picture_feed_new(&feed, &config, &failure), BASIN_BAD_VALUE,
                "batches of 4 from 3 pictures");
    config.batch = 1;
    bad[1] = FILES;
    assert_says(basin_picture_feed_new(&feed, &config, &failure), BASIN_BAD_VALUE,
                "item 1 is picture 23; expected 0 to 22");
    bad[1] = 1;
    config.augment.patch = 5;
    assert_int_equal(basin_picture_feed_new(&feed, &config, &error), BASIN_BAD_VALUE);
    assert_null(feed);
}

int main(void) { return tests_run(setup, folder_remove); }
