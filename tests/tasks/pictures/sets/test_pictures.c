/* Collections of pictures: folders, archives, idx, CIFAR, shapes; their order and halves; joining;
 * and what they say about files that are not what they claim. */
#include "tasks/pictures/sets/collections.h"

#include <math.h>

static const char *const ordered[] = {"test/a/3.jpeg", "train/a/0.jpg", "train/a/1.PNG",
                                      "train/b/2.jpg"};

/* All that should be seen of the four files, in order. */
static void assert_four(const basin_pictures *pictures) {
    const int height[] = {12, 13, 11, 10};
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = {0};
    assert_int_equal(basin_pictures_count(pictures), 4);
    for (int i = 0; i < 4; i++) {
        assert_name(pictures, i, ordered[i]);
        assert_int_equal(basin_pictures_load(&picture, pictures, i, NULL), BASIN_OK);
        assert_int_equal(picture.height, height[i]);
        assert_int_equal(picture.width, 20);
    }
}

static void assert_halves(const char *path) {
    basin_pictures *pictures = open_one(path, BASIN_PICTURES_ALL);
    assert_four(pictures);
    basin_pictures_close(pictures);
    pictures = open_one(path, BASIN_PICTURES_TEST);
    assert_true(basin_pictures_divided(pictures));
    assert_int_equal(basin_pictures_count(pictures), 1);
    assert_name(pictures, 0, "test/a/3.jpeg");
    basin_pictures_close(pictures);
    pictures = open_one(path, BASIN_PICTURES_TRAIN);
    assert_int_equal(basin_pictures_count(pictures), 3);
    assert_name(pictures, 0, "train/a/0.jpg");
    basin_pictures_close(pictures);
}

TEST(folder) {
    char path[PATH_TEXT + 40];
    static const char *const folders[] = {"", "/train", "/train/a", "/train/b", "/test", "/test/a"};
    char *root = folder_path(state, "folder");
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0777), 0);
    }
    for (int i = 0; i < 4; i++) {
        uint8_t *bytes;
        size_t size = make_file(&bytes, i);
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        assert_int_equal(file_put(path, bytes, size), 0);
        free(bytes);
    }
    snprintf(path, sizeof path, "%s/train/a/notes.txt", root);
    assert_int_equal(file_put(path, "x", 1), 0);
    assert_halves(root);
    snprintf(path, sizeof path, "%s/train/a", root); /* no halves in there: all of it */
    basin_pictures *pictures = open_one(path, BASIN_PICTURES_TEST);
    assert_false(basin_pictures_divided(pictures));
    assert_int_equal(basin_pictures_count(pictures), 2);
    basin_pictures_close(pictures);
    snprintf(path, sizeof path, "%s/train/a/0.jpg", root);
    pictures = open_one(path, BASIN_PICTURES_ALL); /* a picture by itself */
    assert_int_equal(basin_pictures_count(pictures), 1);
    basin_picture picture = {0};
    assert_int_equal(basin_pictures_load(&picture, pictures, 0, NULL), BASIN_OK);
    assert_int_equal(picture.height, 13);
    basin_picture_free(&picture);
    basin_pictures_close(pictures);
    const char *both[] = {root, "shapes:5"};
    pictures = open_all(both, 2, BASIN_PICTURES_ALL); /* joined */
    assert_int_equal(basin_pictures_count(pictures), 9);
    assert_name(pictures, 3, "train/b/2.jpg");
    assert_name(pictures, 4, "shapes:5[0]");
    basin_pictures_close(pictures);
    snprintf(path, sizeof path, "rm -r '%s'", root);
    assert_int_equal(system(path), 0);
}

TEST(archives) {
    static const char *const name[] = {"a.tar", "a.tar.gz", "a.tar.xz", "a.zip", "b.tar"};
    for (int form = 0; form < 5; form++) {
        char *path = folder_path(state, name[form]);
        put_archive(path, form);
        assert_halves(path);
        basin_pictures *pictures = open_one(path, BASIN_PICTURES_ALL);
        for (int i = 0; i < 4; i++) /* a plain tar's members stay in the file */
            assert_int_equal(pictures->shelf[0].entry[i].owned, form >= 1 && form <= 3);
        basin_pictures_close(pictures);
    }
    char *path = folder_path(state, "cut.tar");
    uint8_t *bytes = calloc(1, 700);
    assert_int_equal(file_put(path, bytes, 700), 0);
    assert_fails(path, BASIN_PICTURES_ALL,
                 "%s: no pictures found (.jpg, .jpeg, .png, .webp; none in archives within it)");
    free(bytes);
    path = folder_path(state, "text.tar");
    assert_int_equal(file_put(path, "hello, hello", 12), 0);
    assert_fails(
        path, BASIN_PICTURES_ALL,
        "%s: is not a picture, idx file, CIFAR batch or archive: Unrecognized archive format");
}

/* An archive that ends within a member says so. */
TEST(archive_cut) {
    static uint8_t bytes[1 << 16];
    char *path = folder_path(state, "a.tar");
    char *cut = folder_path(state, "cut.tar");
    basin_pictures *pictures;
    basin_error error;
    put_archive(path, 0);
    size_t size = file_get(bytes, sizeof bytes, path);
    assert_true(size > 6000 && size < sizeof bytes);
    const char *at = cut;
    assert_int_equal(file_put(cut, bytes, 2700), 0);
    assert_int_equal(basin_pictures_open(&pictures, &at, 1, BASIN_PICTURES_ALL, &error),
                     BASIN_BAD_FILE);
    assert_non_null(strstr(error.text, "cut.tar"));
    assert_null(strchr(error.text, '\n'));
}

static size_t make_idx(uint8_t *out, const int *size, int rank) {
    size_t count = 1;
    memcpy(out, (uint8_t[]){0, 0, 8, (uint8_t)rank}, 4);
    for (int i = 0; i < rank; i++) {
        memcpy(out + 4 + 4 * i, (uint8_t[]){0, 0, (uint8_t)(size[i] >> 8), (uint8_t)size[i]}, 4);
        count *= (size_t)size[i];
    }
    for (size_t i = 0; i < count; i++) out[4 + 4 * (size_t)rank + i] = (uint8_t)(i * 7);
    return 4 + 4 * (size_t)rank + count;
}

TEST(idx) {
    uint8_t bytes[4000];
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = {0};
    const int forms[4][4] = {{5, 6, 7, 0}, {5, 6, 7, 0}, {5, 6, 7, 3}, {5, 3, 6, 7}};
    for (int form = 0; form < 4; form++) {
        size_t size = make_idx(bytes, forms[form], form < 2 ? 3 : 4);
        char *path = folder_path(state, form == 1 ? "x-idx3-ubyte.gz" : "x.idx");
        if (form == 1)
            put_gz(path, bytes, size);
        else
            assert_int_equal(file_put(path, bytes, size), 0);
        basin_pictures *pictures = open_one(path, BASIN_PICTURES_ALL);
        int channels = form < 2 ? 1 : 3;
        assert_int_equal(basin_pictures_count(pictures), 5);
        assert_name(pictures, 4, "[4]");
        assert_int_equal(basin_pictures_load(&picture, pictures, 3, NULL), BASIN_OK);
        assert_true(picture.height == 6 && picture.width == 7 && picture.channels == channels);
        for (int y = 0; y < 6; y++)
            for (int x = 0; x < 7; x++)
                for (int c = 0; c < channels; c++) {
                    int at = form == 3 ? (c * 6 + y) * 7 + x : (y * 7 + x) * channels + c;
                    assert_int_equal(picture.pixel[(y * 7 + x) * channels + c],
                                     (uint8_t)((3 * 42 * channels + at) * 7));
                }
        basin_pictures_close(pictures);
    }
}

TEST(idx_that_lies) {
    uint8_t bytes[4000];
    size_t size = make_idx(bytes, (const int[]){5, 6, 7}, 3);
    char *path = folder_path(state, "x.idx");
    assert_int_equal(file_put(path, bytes, size - 1), 0);
    assert_fails(path, BASIN_PICTURES_ALL,
                 "%s: 209 bytes of pixels; expected 5 pictures of 6 x 7 x 1");
    assert_int_equal(file_put(path, bytes, 9), 0);
    assert_fails(path, BASIN_PICTURES_ALL, "%s: ends within its header");
    memset(bytes + 4, 0xff, 12);
    assert_int_equal(file_put(path, bytes, size), 0);
    assert_fails(path, BASIN_PICTURES_ALL, "%s: pictures of 4294967295 x 4294967295 pixels");
    bytes[2] = 0x0d;
    assert_int_equal(file_put(path, bytes, size), 0);
    assert_fails(path, BASIN_PICTURES_ALL, "%s: idx of type 0x0d; expected bytes (0x08)");
    memcpy(bytes, "\0\0\10\1\0\0\0\2xy", 10);
    assert_int_equal(file_put(path, bytes, 10), 0);
    assert_fails(path, BASIN_PICTURES_ALL,
                 "%s: idx of rank 1; expected 3 or 4 (labels have rank 1)");
    path = folder_path(state, "y-idx3-ubyte.gz");
    size = make_idx(bytes, (const int[]){5, 6, 7}, 3);
    put_gz(path, bytes, size);
    assert_int_equal(truncate(path, 100), 0);
    assert_fails(path, BASIN_PICTURES_ALL, "%s: damaged gz: it is cut off");
    assert_fails("/nowhere", BASIN_PICTURES_ALL,
                 "%s: cannot open for reading: No such file or directory");
    assert_fails("/nowhere", (basin_pictures_split)3, "split is 3; expected 0 to 2");
}

TEST(cifar) {
    static uint8_t bytes[4 * 3074];
    basin_picture picture = {0};
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 31 / 7);
    for (int labels = 1; labels <= 2; labels++) {
        size_t record = 3072 + (size_t)labels;
        char *path = folder_path(state, labels == 1 ? "data_batch_1.bin" : "train.bin");
        assert_int_equal(file_put(path, bytes, 3 * record), 0);
        basin_pictures *pictures = open_one(path, BASIN_PICTURES_ALL);
        assert_int_equal(basin_pictures_count(pictures), 3);
        assert_int_equal(basin_pictures_load(&picture, pictures, 2, NULL), BASIN_OK);
        assert_true(picture.height == 32 && picture.width == 32 && picture.channels == 3);
        for (int k = 0; k < 3072; k++)
            assert_int_equal(picture.pixel[k % 1024 * 3 + k / 1024],
                             bytes[2 * record + (size_t)labels + (size_t)k]);
        basin_pictures_close(pictures);
        unlink(path);
    }
    basin_picture_free(&picture);
    char *path = folder_path(state, "data_batch_2.bin");
    assert_int_equal(file_put(path, bytes, 3000), 0);
    assert_fails(path, BASIN_PICTURES_ALL,
                 "%s: 3000 bytes; expected records of 3073 (CIFAR-10) or 3074 (CIFAR-100)");
    unlink(path);
}

/* The four files of MNIST, and CIFAR's batches, found by their folder and split. */
TEST(known_folders) {
    static uint8_t bytes[2 * 3073];
    char path[PATH_TEXT + 40];
    char *root = folder_path(state, "sets");
    assert_int_equal(mkdir(root, 0777), 0);
    snprintf(path, sizeof path, "%s/train-images-idx3-ubyte.gz", root);
    put_gz(path, bytes, make_idx(bytes, (const int[]){5, 6, 7}, 3));
    snprintf(path, sizeof path, "%s/t10k-images-idx3-ubyte", root);
    assert_int_equal(file_put(path, bytes, make_idx(bytes, (const int[]){2, 6, 7}, 3)), 0);
    const basin_pictures_split splits[] = {BASIN_PICTURES_TRAIN, BASIN_PICTURES_TEST,
                                           BASIN_PICTURES_ALL};
    const int counts[] = {5, 2, 7};
    for (int i = 0; i < 3; i++) {
        basin_pictures *pictures = open_one(root, splits[i]);
        assert_true(basin_pictures_divided(pictures));
        assert_int_equal(basin_pictures_count(pictures), counts[i]);
        basin_pictures_close(pictures);
    }
    unlink(path);
    char text[PATH_TEXT + 60];
    snprintf(text, sizeof text, "%%s: has no files of the split 'test'");
    assert_fails(root, BASIN_PICTURES_TEST, text);
    snprintf(path, sizeof path, "rm -r '%s'", root);
    assert_int_equal(system(path), 0);
}

TEST(shapes) {
    basin_pictures *a = open_one("shapes:50:7:32x24x3", BASIN_PICTURES_TRAIN);
    basin_pictures *b = open_one("shapes:50:7:32x24x3", BASIN_PICTURES_TEST),
                   *c = open_one("shapes", BASIN_PICTURES_TEST);
    basin_picture one = {0}, two = {0};
    int alike = 0;
    assert_int_equal(basin_pictures_count(c), 10000);
    for (int64_t i = 0; i < 50; i++) {
        assert_int_equal(basin_pictures_load(&one, a, i, NULL), BASIN_OK);
        assert_int_equal(basin_pictures_load(&two, a, i, NULL), BASIN_OK);
        assert_int_equal(picture_difference(&one, &two), 0);
        assert_true(one.height == 32 && one.width == 24 && one.channels == 3);
        assert_int_equal(basin_pictures_load(&two, b, i, NULL), BASIN_OK);
        alike += picture_difference(&one, &two) < 40;
        assert_int_equal(basin_pictures_load(&two, a, (i + 1) % 50, NULL), BASIN_OK);
        alike += picture_difference(&one, &two) < 40;
    }
    assert_int_equal(alike, 0);
    basin_picture_free(&one);
    basin_picture_free(&two);
    basin_pictures_close(a);
    basin_pictures_close(b);
    basin_pictures_close(c);
    const char *wrong[] = {"shapes::",
                           "shapes:0",
                           "shapes:5:1:8x8",
                           "shapes:5:1:8x8x2",
                           "shapes:5x",
                           "shapes:5:-1",
                           "shapes:5:99999999999999999999",
                           "shapes:5:1:8x8x4294967297"};
    for (int i = 0; i < 8; i++)
        assert_fails(wrong[i], BASIN_PICTURES_ALL,
                     "'%s': expected shapes:COUNT:SEED:HxWxC with C 1 or 3");
}

TEST(held_out) {
    int64_t kept[90], held[10], again[10], other[10], seen[100] = {0};
    assert_int_equal(basin_pictures_hold_out(kept, held, 100, 10, 3, NULL), BASIN_OK);
    assert_int_equal(basin_pictures_hold_out(kept, again, 100, 10, 3, NULL), BASIN_OK);
    assert_memory_equal(held, again, sizeof held);
    assert_int_equal(basin_pictures_hold_out(kept, other, 100, 10, 4, NULL), BASIN_OK);
    assert_memory_not_equal(held, other, sizeof held);
    for (int i = 0; i < 90; i++) seen[kept[i]]++;
    for (int i = 0; i < 10; i++) seen[other[i]]++;
    for (int i = 0; i < 100; i++) assert_int_equal(seen[i], 1);
    for (int i = 1; i < 10; i++) assert_true(other[i] > other[i - 1]);
    assert_says(basin_pictures_hold_out(kept, held, 3, 4, 0, &failure), BASIN_BAD_VALUE,
                "cannot hold out 4 of 3 pictures");
}

TEST(statistics) {
    uint8_t bytes[4000];
    char *path = folder_path(state, "x.idx");
    float mean[3], deviation[3];
    double sum = 0, square = 0;
    size_t size = make_idx(bytes, (const int[]){5, 6, 7}, 3);
    for (size_t i = 16; i < size; i++) {
        sum += bytes[i] / 255.0 / 210;
        square += bytes[i] / 255.0 * (bytes[i] / 255.0) / 210;
    }
    assert_int_equal(file_put(path, bytes, size), 0);
    BASIN_AT_EXIT(free_pictures) basin_pictures *pictures = open_one(path, BASIN_PICTURES_ALL);
    assert_ok(basin_pictures_statistics(mean, deviation, pictures, NULL, 0, 3, 0, &failure));
    for (int c = 0; c < 3; c++) {
        assert_true(fabs((double)mean[c] - sum) < 1e-6);
        assert_true(fabs((double)deviation[c] - sqrt(square - sum * sum)) < 1e-6);
    }
    const int64_t item[] = {2, 4};
    double half = 0;
    for (int i = 0; i < 42; i++) half += (bytes[16 + 84 + i] + bytes[16 + 168 + i]) / 255.0 / 84;
    assert_ok(basin_pictures_statistics(mean, deviation, pictures, item, 2, 1, 100, &failure));
    assert_true(fabs((double)mean[0] - half) < 1e-6 && mean[1] == 0 && deviation[1] == 1);
}

int main(void) { return tests_run(folder_new, folder_remove); }
