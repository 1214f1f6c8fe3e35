/* Labelled pictures for superpixel graphs: the pixels come from a collection of pictures, the
 * classes from the labels beside MNIST's images, from the records of CIFAR's binaries, or from the
 * names of folders. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "basin/random.h"
#include "basin/tasks/pictures.h"
#include "data/graphset/graphset.h"
#include "data/gz.h"

enum { CIFAR_RECORD = 3073, IDX_LABELS = 8 };

/* One half of a collection. */
typedef struct half {
    basin_pictures *pictures;
    int64_t count, all;
    uint8_t *pixel;    /* [count, height, width, channels] */
    int32_t *class_of; /* [count] */
} half;

typedef struct album {
    const char *path;
    int64_t height, width, limit;
    int channels;
    bool named; /* classes are folders */
    half part[2];
    char (*name)[64]; /* [names] the folders' */
    int names;
} album;

enum { MOST_NAMES = 1000 };

static basin_status no_memory(const album *a, basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for the pictures", a->path);
}

/* ---- classes ---- */

/* "FILE[17]" -> FILE and 17; false where the name is not of that form. */
static bool split_name(char *file, size_t size, int64_t *number, const char *name) {
    const char *open = strrchr(name, '[');
    if (!open || (size_t)(open - name) >= size) return false;
    memcpy(file, name, (size_t)(open - name));
    file[open - name] = 0;
    *number = strtoll(open + 1, NULL, 10);
    return true;
}

/* A byte of a file, gzipped or not. */
static bool byte_at(uint8_t *value, gzFile file, int64_t offset) {
    return gzseek(file, (z_off_t)offset, SEEK_SET) >= 0 && gzread(file, value, 1) == 1;
}

/* Where the class of picture `number` of `file` is kept; the file is replaced by that one. */
static int64_t label_place(char *file, int64_t number) {
    char *images = strstr(file, "images-idx3");
    if (!images) images = strstr(file, "images.idx3");
    if (!images) return number * CIFAR_RECORD;
    memcpy(images, "labels", 6);
    images[10] = '1';
    return IDX_LABELS + number;
}

/* Classes of pictures that are stored as pixels; labels are read in order, file by file. */
static basin_status read_labels(half *h, const album *a, const int64_t *item, basin_error *error) {
    char name[BASIN_PICTURE_NAME], file[BASIN_PICTURE_NAME], open[BASIN_PICTURE_NAME] = "";
    gzFile stream = NULL;
    basin_status status = BASIN_OK;
    for (int64_t i = 0; i < h->count && !status; i++) {
        int64_t number;
        uint8_t value;
        basin_pictures_name(name, h->pictures, item[i]);
        if (!split_name(file, sizeof file, &number, name)) {
            status = basin_fail(error, BASIN_BAD_FILE, "%s: a picture without a class: %s", a->path,
                                name);
            break;
        }
        int64_t place = label_place(file, number);
        if (strcmp(file, open) != 0) {
            if (stream) gzclose(stream);
            if (basin_gz_open(&stream, file, NULL)) stream = NULL;
            snprintf(open, sizeof open, "%s", file);
        }
        if (!stream || !byte_at(&value, stream, place))
            status = basin_fail(error, BASIN_IO, "%s: no class of picture %lld", file,
                                (long long)number);
        else
            h->class_of[i] = value;
    }
    if (stream) gzclose(stream);
    return status;
}

/* The folder that a picture is in: the last but one part of its path. */
static bool folder_of(char folder[64], const char *name) {
    const char *end = strrchr(name, '/'), *start = end;
    if (!end || end == name) return false;
    while (start > name && start[-1] != '/') start--;
    size_t length = (size_t)(end - start);
    if (!length || length >= 64) return false;
    memcpy(folder, start, length);
    folder[length] = 0;
    return true;
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

/* All folders of the training half, sorted: their places are the classes. */
static basin_status list_folders(album *a, basin_error *error) {
    char name[BASIN_PICTURE_NAME], folder[64], last[64] = "";
    a->name = calloc(MOST_NAMES, sizeof *a->name);
    if (!a->name) return no_memory(a, error);
    for (int64_t i = 0; i < a->part[0].all; i++) {
        basin_pictures_name(name, a->part[0].pictures, i);
        if (!folder_of(folder, name) || !strcmp(folder, last)) continue;
        snprintf(last, sizeof last, "%s", folder);
        bool known = false;
        for (int k = 0; k < a->names; k++) known = known || !strcmp(a->name[k], folder);
        if (known) continue;
        if (a->names == MOST_NAMES)
            return basin_fail(error, BASIN_UNSUPPORTED, "%s: more than %d classes", a->path,
                              MOST_NAMES);
        memcpy(a->name[a->names++], folder, sizeof folder);
    }
    qsort(a->name, (size_t)a->names, sizeof *a->name, by_name);
    return BASIN_OK;
}

static basin_status read_folders(half *h, const album *a, const int64_t *item, basin_error *error) {
    char name[BASIN_PICTURE_NAME], folder[64];
    for (int64_t i = 0; i < h->count; i++) {
        basin_pictures_name(name, h->pictures, item[i]);
        char(*at)[64] = folder_of(folder, name)
                            ? bsearch(folder, a->name, (size_t)a->names, sizeof *a->name, by_name)
                            : NULL;
        if (!at)
            return basin_fail(error, BASIN_BAD_FILE, "%s: %s is in no folder of the training half",
                              a->path, name);
        h->class_of[i] = (int32_t)(at - a->name);
    }
    return BASIN_OK;
}

/* ---- pixels ---- */

static basin_status load(half *h, const album *a, const int64_t *item, basin_error *error) {
    size_t size = (size_t)(a->height * a->width * a->channels);
    basin_picture picture = {0};
    basin_status status = BASIN_OK;
    for (int64_t i = 0; i < h->count && !status; i++) {
        status = basin_pictures_load(&picture, h->pictures, item[i], error);
        if (!status) status = basin_picture_set_channels(&picture, a->channels, error);
        if (!status && (picture.height != a->height || picture.width != a->width))
            status =
                basin_fail(error, BASIN_BAD_FILE,
                           "%s: picture %lld is %lld x %lld; wanted %lld x %lld as the first",
                           a->path, (long long)item[i], (long long)picture.height,
                           (long long)picture.width, (long long)a->height, (long long)a->width);
        if (!status) memcpy(h->pixel + (size_t)i * size, picture.pixel, size);
    }
    basin_picture_free(&picture);
    return status;
}

/* Takes the items' pixels and classes. */
static basin_status take(album *a, int which, const int64_t *item, basin_error *error) {
    half *h = &a->part[which];
    size_t size;
    if (!basin_size_multiply(&size, (size_t)h->count, (size_t)(a->height * a->width * a->channels)))
        return no_memory(a, error);
    h->pixel = basin_array_new(size, 1);
    h->class_of = basin_array_new((size_t)h->count, sizeof *h->class_of);
    if (!h->pixel || !h->class_of) return no_memory(a, error);
    basin_status status = load(h, a, item, error);
    if (status) return status;
    return a->named ? read_folders(h, a, item, error) : read_labels(h, a, item, error);
}

/* ---- the set ---- */

static void album_free(album *a) {
    for (int i = 0; i < 2; i++) {
        basin_pictures_free(a->part[i].pictures);
        free(a->part[i].pixel);
        free(a->part[i].class_of);
    }
    free(a->name);
}

static basin_status album_open(album *a, basin_error *error) {
    static const char *const split[2] = {"train", "test"};
    char name[BASIN_PICTURE_NAME], file[BASIN_PICTURE_NAME];
    int64_t number;
    for (int i = 0; i < 2; i++) {
        half *h = &a->part[i];
        basin_status status = basin_pictures_open(&h->pictures, &a->path, 1, split[i], error);
        if (status) return status;
        h->all = h->count = basin_pictures_count(h->pictures);
        if (a->limit && h->count > a->limit) h->count = a->limit;
        if (!basin_pictures_divided(h->pictures))
            return basin_fail(error, BASIN_BAD_FILE, "%s: no halves for training and test",
                              a->path);
        if (!h->count)
            return basin_fail(error, BASIN_BAD_FILE, "%s: no pictures for %s", a->path, split[i]);
    }
    basin_pictures_name(name, a->part[0].pictures, 0);
    a->named = !split_name(file, sizeof file, &number, name);
    basin_picture first = {0};
    basin_status status = basin_pictures_load(&first, a->part[0].pictures, 0, error);
    a->height = first.height, a->width = first.width, a->channels = first.channels;
    basin_picture_free(&first);
    return !status && a->named ? list_folders(a, error) : status;
}

/* The order of training pictures, those for validation behind the others, and of test pictures. */
static basin_status choose(int64_t *item[2], const album *a, int64_t validation, uint64_t seed,
                           basin_error *error) {
    int64_t n = a->part[0].count, all = a->part[0].all;
    if (validation >= n)
        return basin_fail(error, BASIN_BAD_VALUE, "%lld of %lld pictures for validation",
                          (long long)validation, (long long)n);
    item[0] = basin_array_new((size_t)all, sizeof *item[0]);
    item[1] = basin_array_new((size_t)a->part[1].all, sizeof *item[1]);
    if (!item[0] || !item[1]) return no_memory(a, error);
    for (int part = 0; part < 2; part++)
        for (int64_t i = 0; i < a->part[part].all; i++) item[part][i] = i;
    basin_random random = basin_random_start(seed, 61, 0);
    if (a->named) {
        basin_random_shuffle(item[0], (size_t)all, &random);
        basin_random_shuffle(item[1], (size_t)a->part[1].all, &random);
    } else
        for (int64_t i = 0; i < n; i++) item[0][i] = (i + validation) % n;
    return BASIN_OK;
}

static basin_status make(basin_graphset *set, album *a, const basin_superpixels *spec,
                         int64_t validation, basin_error *error) {
    basin_superpixels s = *spec;
    half *train = &a->part[0], *test = &a->part[1];
    int64_t split[3] = {train->count - validation, validation, test->count};
    size_t size = (size_t)(a->height * a->width * a->channels);
    size_t first = (size_t)train->count, second = (size_t)test->count;
    uint8_t *pixel = realloc(train->pixel, (first + second) * size);
    if (pixel) train->pixel = pixel;
    int32_t *class_of = realloc(train->class_of, (first + second) * sizeof *class_of);
    if (class_of) train->class_of = class_of;
    if (!pixel || !class_of) return no_memory(a, error);
    memcpy(pixel + first * size, test->pixel, second * size);
    memcpy(class_of + first, test->class_of, second * sizeof *class_of);
    if (!s.segments) s.segments = a->channels == 1 ? 75 : 150;
    if (s.compactness <= 0) s.compactness = a->channels == 1 ? 0.25 : 10;
    return basin_graphset_superpixels(set, pixel, class_of, split, a->height, a->width, a->channels,
                                      &s, error);
}

basin_status basin_graphset_read_pictures(basin_graphset *set, const char *path,
                                          const basin_superpixels *spec, int64_t validation,
                                          int64_t limit, uint64_t seed, basin_error *error) {
    album a = {.path = path, .limit = limit};
    int64_t *item[2] = {NULL, NULL};
    *set = (basin_graphset){0};
    basin_status status = album_open(&a, error);
    if (!status) status = choose(item, &a, validation, seed, error);
    for (int i = 0; i < 2 && !status; i++) status = take(&a, i, item[i], error);
    if (!status) status = make(set, &a, spec, validation, error);
    free(item[0]);
    free(item[1]);
    album_free(&a);
    return status;
}
