/* Collections of pictures: opening by what lies at a path, joining, fetching, holding out. */
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/sort.h"
#include "base/try.h"
#include "basin/random.h"
#include "tasks/pictures/sets/pictures.h"

bool basin_name_is_picture(const char *name) {
    static const char *const known_ends[] = {".jpg", ".jpeg", ".png", ".webp"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof known_ends / sizeof *known_ends; i++)
        if (!strcasecmp(dot, known_ends[i])) return true;
    return false;
}

void basin_shelf_free(basin_shelf *shelf) {
    for (int64_t i = 0; shelf->entry && i < shelf->count; i++) {
        free(shelf->entry[i].name);
        if (shelf->entry[i].owned) free((void *)shelf->entry[i].data);
    }
    for (int64_t i = 0; shelf->picture && i < shelf->count; i++)
        basin_picture_free(&shelf->picture[i]);
    BASIN_FREE(shelf->picture, shelf->entry, shelf->unpacked, shelf->name);
    basin_map_close(&shelf->map);
    *shelf = (basin_shelf){0};
}

basin_status basin_shelf_add(basin_shelf *shelf, const char *name, const uint8_t *data, size_t size,
                             bool owned, basin_error *error) {
    char *copy = basin_string_copy(name);
    if (!copy || !BASIN_RESERVE(&shelf->entry, &shelf->entry_capacity, shelf->count + 1)) {
        free(copy);
        return basin_fail_memory(error, "a list of pictures");
    }
    shelf->entry[shelf->count++] = (basin_entry){copy, data, size, owned};
    return BASIN_OK;
}

/* Members of an archive of one name stay in their order. */
static int by_name(const void *a, const void *b) {
    const basin_entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : BASIN_COMPARE(x->data, y->data);
}

void basin_shelf_sort(basin_shelf *shelf) {
    if (shelf->count > 0) qsort(shelf->entry, (size_t)shelf->count, sizeof *shelf->entry, by_name);
}

/* Whether one of the folders in a path is called so; "val", "valid", "validation" are "test". */
static bool lies_in(const char *path, const char *split) {
    static const char *const tests[] = {"test", "val", "valid", "validation", NULL};
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        size_t length = (size_t)(slash - path);
        if (length == strlen(split) && !strncmp(path, split, length)) return true;
        for (int i = 0; !strcmp(split, "test") && tests[i]; i++)
            if (length == strlen(tests[i]) && !strncmp(path, tests[i], length)) return true;
    }
    return false;
}

void basin_shelf_divide(basin_shelf *shelf, const char *split, bool *divided) {
    int64_t found = 0, kept = 0;
    *divided = !split;
    if (!split) return;
    bool train = false, test = false;
    for (int64_t i = 0; i < shelf->count; i++) {
        train = train || lies_in(shelf->entry[i].name, "train");
        test = test || lies_in(shelf->entry[i].name, "test");
        found += lies_in(shelf->entry[i].name, split);
    }
    if (!train || !test || !found) return;
    *divided = true;
    for (int64_t i = 0; i < shelf->count; i++) {
        basin_entry entry = shelf->entry[i];
        if (lies_in(entry.name, split)) {
            shelf->entry[kept++] = entry;
        } else {
            free(entry.name);
            if (entry.owned) free((void *)entry.data);
        }
    }
    shelf->count = kept;
}

/* ---- opening ---- */

/* Adds an empty shelf of this name. */
static basin_status shelf_new(basin_shelf **shelf, basin_pictures *pictures, const char *name,
                              basin_error *error) {
    if (!BASIN_RESERVE(&pictures->shelf, &pictures->capacity, pictures->shelves + 1))
        return basin_fail_memory(error, "a list of pictures");
    *shelf = &pictures->shelf[pictures->shelves++];
    **shelf = (basin_shelf){.name = basin_string_copy(name)};
    return (*shelf)->name ? BASIN_OK : basin_fail_memory(error, "a list of pictures");
}

/* Detects the kind of a file by its first bytes, or by its size for CIFAR, which has no
 * signature. */
static basin_status add_file(basin_pictures *pictures, const char *path, const char *split,
                             bool *divided, basin_error *error) {
    unsigned char head[12] = {0};
    basin_map map;
    basin_shelf *shelf;
    BASIN_TRY(shelf_new(&shelf, pictures, path, error));
    BASIN_TRY(basin_map_open(&map, shelf->name, error));
    size_t got = map.size < sizeof head ? map.size : sizeof head;
    if (got) memcpy(head, map.data, got);
    basin_map_close(&map);
    *divided = !split;
    const char *slash = strrchr(shelf->name, '/'), *base = slash ? slash + 1 : shelf->name;
    bool packed = head[0] == 0x1f && head[1] == 0x8b;
    if (got == 0) return basin_fail(error, BASIN_BAD_FILE, "%s: is empty", shelf->name);
    if ((head[0] == 0xff && head[1] == 0xd8) || !memcmp(head, "\x89PNG", 4) ||
        !memcmp(head, "RIFF", 4)) {
        BASIN_TRY(basin_shelf_add(shelf, base, NULL, 0, false, error));
        shelf->name[slash ? slash - shelf->name + (slash == shelf->name) : 0] = '\0';
        return BASIN_OK;
    }
    if ((head[0] == 0 && head[1] == 0 && head[2] != 0 && head[3] >= 1 && head[3] <= 4) ||
        (packed && (strstr(base, "idx") || strstr(base, "ubyte"))))
        return basin_shelf_idx(shelf, error);
    const char *dot = strrchr(base, '.'), *foreign = basin_picture_foreign(head, got);
    if (foreign)
        return basin_fail(error, BASIN_UNSUPPORTED, "%s: is a %s file; expected JPEG, PNG or WebP",
                          shelf->name, foreign);
    if (dot && !strcmp(dot, ".bin")) return basin_shelf_cifar(shelf, error);
    BASIN_TRY(basin_map_open(&shelf->map, shelf->name, error));
    BASIN_TRY(basin_archive_parse(shelf, shelf->map.data, shelf->map.size, error));
    basin_shelf_divide(shelf, split, divided);
    return BASIN_OK;
}

/* Files that a folder of a public set is known by; those that begin with "te" or "t1" are its test
 * half. */
static const char *const known[] = {
    "train-images-idx3-ubyte.gz",
    "train-images-idx3-ubyte",
    "train-images.idx3-ubyte",
    "t10k-images-idx3-ubyte.gz",
    "t10k-images-idx3-ubyte",
    "t10k-images.idx3-ubyte",
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
    "test_batch.bin",
    "train.bin",
    "test.bin",
};

/* Adds the files of a public set that lie in the folder; *found is whether there were any. */
static basin_status add_known(bool *found, basin_pictures *pictures, const char *path,
                              const char *split, basin_error *error) {
    size_t size = strlen(path) + 64;
    bool divided, in_split = false;
    *found = false;
    BASIN_SCRATCH_RAW(char, file, size, "a path", error);
    bool have[2] = {false, false}; /* of each half, plain before packed copies */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct stat info;
        bool test = strchr("e1", known[i][1]) != NULL;
        snprintf(file, size, "%s/%s", path, known[i]);
        if (stat(file, &info) != 0 || !S_ISREG(info.st_mode)) continue;
        if (strstr(known[i], "idx") && have[test]) continue;
        *found = have[test] = true;
        if (split && test != !strcmp(split, "test")) continue;
        in_split = true;
        BASIN_TRY(add_file(pictures, file, NULL, &divided, error));
    }
    if (*found && !in_split)
        return basin_fail(error, BASIN_IO, "%s: has no files of the split '%s'", path, split);
    return BASIN_OK;
}

static basin_status take(void *shelf, const char *path, size_t size, basin_error *error) {
    if (!basin_name_is_picture(path)) return BASIN_OK;
    return basin_shelf_add(shelf, path, NULL, size, false, error);
}

/* A folder of pictures: every .jpg, .jpeg, .png and .webp below it, by the bytes of paths. */
static basin_status fill_folder(basin_shelf *shelf, const char *split, bool *divided,
                                basin_error *error) {
    BASIN_TRY(basin_folder_walk(shelf->name, take, shelf, error));
    basin_shelf_sort(shelf);
    basin_shelf_divide(shelf, split, divided);
    return BASIN_OK;
}

static basin_status add_path(basin_pictures *pictures, const char *path, const char *split,
                             bool *divided, basin_error *error) {
    struct stat info;
    basin_shelf *shelf;
    bool found;
    *divided = true;
    if (!strncmp(path, "shapes", 6) && (path[6] == ':' || !path[6])) {
        BASIN_TRY(shelf_new(&shelf, pictures, path, error));
        return basin_shelf_shapes(shelf, split, error);
    }
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return add_file(pictures, path, split, divided, error);
    BASIN_TRY(add_known(&found, pictures, path, split, error));
    if (found) return BASIN_OK;
    BASIN_TRY(shelf_new(&shelf, pictures, path, error));
    return fill_folder(shelf, split, divided, error);
}

basin_status basin_pictures_open(basin_pictures **out, const char *const *path, int paths,
                                 basin_pictures_split split, basin_error *error) {
    static const char *const folder[] = {NULL, "train", "test"};
    basin_status status = BASIN_OK;
    *out = NULL;
    if (split < BASIN_PICTURES_ALL || split > BASIN_PICTURES_TEST)
        return basin_fail(error, BASIN_BAD_VALUE, "split is %d; expected 0 to 2", (int)split);
    basin_pictures *pictures = NULL;
    BASIN_TRY(BASIN_NEW(&pictures, 1, "a list of pictures", error));
    pictures->divided = true;
    for (int i = 0; i < paths && !status; i++) {
        bool divided;
        status = add_path(pictures, path[i], folder[split], &divided, error);
        pictures->divided = pictures->divided && divided;
    }
    for (int i = 0; i < pictures->shelves; i++) pictures->count += pictures->shelf[i].count;
    if (!status && pictures->count == 0)
        status = basin_fail(
            error, BASIN_IO,
            "%s: no pictures found (.jpg, .jpeg, .png, .webp; none in archives within it)",
            paths > 0 ? path[0] : "no path");
    if (status) {
        basin_pictures_close(pictures);
        return status;
    }
    *out = pictures;
    return BASIN_OK;
}

void basin_pictures_close(basin_pictures *pictures) {
    if (!pictures) return;
    for (int i = 0; i < pictures->shelves; i++) basin_shelf_free(&pictures->shelf[i]);
    BASIN_FREE(pictures->shelf, pictures);
}

/* ---- reading ---- */

int64_t basin_pictures_count(const basin_pictures *pictures) { return pictures->count; }
bool basin_pictures_divided(const basin_pictures *pictures) { return pictures->divided; }

/* The shelf that picture *i is on; *i becomes its number there. */
static const basin_shelf *locate(const basin_pictures *pictures, int64_t *i) {
    const basin_shelf *shelf = pictures->shelf;
    while (*i >= shelf->count) *i -= shelf++->count;
    return shelf;
}

bool basin_pictures_is_raw(const basin_pictures *pictures, int64_t i) {
    return locate(pictures, &i)->kind != BASIN_SHELF_ENTRIES;
}

const char *basin_pictures_name(char text[BASIN_MAX_PICTURE_NAME], const basin_pictures *pictures,
                                int64_t i) {
    const basin_shelf *shelf = locate(pictures, &i);
    if (shelf->kind != BASIN_SHELF_ENTRIES)
        snprintf(text, BASIN_MAX_PICTURE_NAME, "%s[%lld]", shelf->name, (long long)i);
    else
        snprintf(text, BASIN_MAX_PICTURE_NAME, "%s%s%s", shelf->name, *shelf->name ? "/" : "",
                 shelf->entry[i].name);
    return text;
}

static basin_status load_raw(basin_picture *picture, const basin_shelf *shelf, int64_t i,
                             basin_error *error) {
    size_t area = (size_t)(shelf->height * shelf->width), channels = (size_t)shelf->channels;
    const uint8_t *from = shelf->first + (size_t)i * shelf->step;
    BASIN_TRY(
        basin_picture_resize_memory(picture, shelf->height, shelf->width, shelf->channels, error));
    if (!shelf->planar) {
        memcpy(picture->pixel, from, area * channels);
        return BASIN_OK;
    }
    for (size_t c = 0; c < channels; c++)
        for (size_t k = 0; k < area; k++) picture->pixel[k * channels + c] = from[c * area + k];
    return BASIN_OK;
}

static basin_status map_entry(basin_fetched *fetched, const basin_shelf *shelf,
                              const basin_entry *entry, basin_error *error) {
    size_t size = strlen(shelf->name) + strlen(entry->name) + 2;
    BASIN_SCRATCH_RAW(char, path, size, "a path", error);
    snprintf(path, size, "%s%s%s", shelf->name, *shelf->name ? "/" : "", entry->name);
    BASIN_TRY(basin_map_open(&fetched->map, path, error));
    fetched->bytes = fetched->map.data ? fetched->map.data : (const uint8_t *)"";
    fetched->size = fetched->map.size;
    return BASIN_OK;
}

basin_status basin_pictures_fetch(basin_fetched *fetched, basin_picture *picture,
                                  const basin_pictures *pictures, int64_t i, basin_error *error) {
    *fetched = (basin_fetched){0};
    const basin_shelf *shelf = locate(pictures, &i);
    switch (shelf->kind) {
    case BASIN_SHELF_RAW: return load_raw(picture, shelf, i, error);
    case BASIN_SHELF_SHAPES: return basin_shapes_draw(picture, shelf, i, error);
    case BASIN_SHELF_MEMORY: return basin_picture_copy(picture, &shelf->picture[i], error);
    case BASIN_SHELF_ENTRIES: break;
    }
    const basin_entry *entry = &shelf->entry[i];
    if (!entry->data) return map_entry(fetched, shelf, entry, error);
    fetched->bytes = entry->data;
    fetched->size = entry->size;
    return BASIN_OK;
}

static basin_status load(basin_picture *picture, const basin_pictures *pictures, int64_t i,
                         bool transparency, basin_error *error) {
    char name[BASIN_MAX_PICTURE_NAME];
    basin_fetched fetched;
    if (i < 0 || i >= pictures->count)
        return basin_fail(error, BASIN_BAD_VALUE, "picture %lld of %lld", (long long)i,
                          (long long)pictures->count);
    basin_status status = basin_pictures_fetch(&fetched, picture, pictures, i, error);
    if (!status && fetched.bytes)
        status = (transparency ? basin_picture_transparency : basin_picture_decode)(
            picture, fetched.bytes, fetched.size, basin_pictures_name(name, pictures, i), error);
    else if (transparency)
        basin_picture_free(picture);
    basin_map_close(&fetched.map);
    return status;
}

basin_status basin_pictures_load(basin_picture *picture, const basin_pictures *pictures, int64_t i,
                                 basin_error *error) {
    return load(picture, pictures, i, false, error);
}

basin_status basin_pictures_transparency(basin_picture *picture, const basin_pictures *pictures,
                                         int64_t i, basin_error *error) {
    return load(picture, pictures, i, true, error);
}

/* ---- choosing and measuring ---- */

basin_status basin_pictures_hold_out(int64_t *kept, int64_t *held, int64_t count, int64_t helds,
                                     uint64_t seed, basin_error *error) {
    enum { STREAM = 0x5011d007 };
    if (helds < 0 || helds > count)
        return basin_fail(error, BASIN_BAD_VALUE, "cannot hold out %lld of %lld pictures",
                          (long long)helds, (long long)count);
    BASIN_SCRATCH_RAW(int64_t, order, count, "a split", error);
    BASIN_SCRATCH(bool, out, count, "a split", error);
    basin_random_permutation(order, (size_t)count, seed, STREAM);
    for (int64_t i = 0; i < helds; i++) out[order[i]] = true;
    for (int64_t i = 0; i < count; i++) *(out[i] ? held++ : kept++) = i;
    return BASIN_OK;
}

/* Adds a picture's mean and mean square to the sums; whole numbers until the last division. */
static void measure(double sum[3], double square[3], const basin_picture *picture) {
    size_t count = (size_t)picture->height * (size_t)picture->width;
    size_t channels = (size_t)picture->channels;
    for (size_t c = 0; c < channels; c++) {
        uint64_t s = 0, q = 0;
        for (size_t k = 0; k < count; k++) {
            unsigned v = picture->pixel[k * channels + c];
            s += v;
            q += v * v;
        }
        sum[c] += (double)s / (255.0 * (double)count);
        square[c] += (double)q / (65025.0 * (double)count);
    }
}

basin_status basin_pictures_statistics(float mean[3], float deviation[3],
                                       const basin_pictures *pictures, const int64_t *item,
                                       int64_t items, int channels, int64_t max,
                                       basin_error *error) {
    double sum[3] = {0}, square[3] = {0};
    basin_picture picture = {0};
    basin_status status = BASIN_OK;
    int64_t seen = 0;
    if (!item) items = pictures->count;
    if (max <= 0 || max > items) max = items;
    for (int64_t i = 0; i < max && status != BASIN_NO_MEMORY; i++) {
        int64_t at = i * (items / max) + i * (items % max) / max;
        status = basin_pictures_load(&picture, pictures, item ? item[at] : at, error);
        if (!status) status = basin_picture_set_channels(&picture, channels, error);
        if (status) continue;
        measure(sum, square, &picture);
        seen++;
    }
    basin_picture_free(&picture);
    if (status == BASIN_NO_MEMORY || seen == 0)
        return status ? status : basin_fail(error, BASIN_BAD_VALUE, "no pictures to measure");
    for (int c = 0; c < 3; c++) mean[c] = 0, deviation[c] = 1;
    for (int c = 0; c < channels; c++) {
        double m = sum[c] / (double)seen, v = square[c] / (double)seen - m * m;
        mean[c] = (float)m;
        deviation[c] = v > 1e-12 ? (float)sqrt(v) : 1;
    }
    return BASIN_OK;
}

/* ---- A collection of pictures in memory; see include/basin/tasks/pictures.h ---- */

static basin_status fill(basin_pictures *pictures, const basin_picture *picture, int64_t count,
                         basin_error *error) {
    basin_shelf *shelf;
    BASIN_TRY(shelf_new(&shelf, pictures, "memory", error));
    shelf->kind = BASIN_SHELF_MEMORY;
    BASIN_TRY(BASIN_NEW(&shelf->picture, count, "a list of pictures", error));
    pictures->count = shelf->count = count;
    for (int64_t i = 0; i < count; i++)
        BASIN_TRY(basin_picture_copy(&shelf->picture[i], &picture[i], error));
    return BASIN_OK;
}

basin_status basin_pictures_from_memory(basin_pictures **out, const basin_picture *picture,
                                        int64_t count, basin_error *error) {
    *out = NULL;
    if (count < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "%lld pictures; expected at least one",
                          (long long)count);
    basin_pictures *pictures = NULL;
    BASIN_TRY(BASIN_NEW(&pictures, 1, "a list of pictures", error));
    BASIN_TRY_OR(fill(pictures, picture, count, error), basin_pictures_close(pictures));
    *out = pictures;
    return BASIN_OK;
}

/* ---- Fingerprints of pictures: 64 bits of what is stored, not decoded: a copy of a file has the
 * same, the same picture compressed anew not ---- */

/* The first bytes and the number of all: large files are not read whole. */
basin_status basin_pictures_print(uint64_t *print, const basin_pictures *pictures, int64_t i,
                                  basin_error *error) {
    enum { PREFIX = 1 << 16 };
    basin_fetched fetched;
    basin_picture picture = {0};
    basin_status status = basin_pictures_fetch(&fetched, &picture, pictures, i, error);
    const uint8_t *bytes = fetched.bytes ? fetched.bytes : picture.pixel;
    uint64_t size[3] = {fetched.size, 0, 0};
    if (!fetched.bytes) {
        size[0] = (uint64_t)(picture.height * picture.width * picture.channels);
        size[1] = (uint64_t)picture.height, size[2] = (uint64_t)picture.channels;
    }
    *print = 0;
    if (!status) {
        uint64_t hash = basin_hash_bytes(BASIN_HASH_START, size, sizeof size);
        hash = basin_hash_bytes(hash, bytes, size[0] < PREFIX ? size[0] : PREFIX);
        /* Spreads what the last bytes changed over all bits. */
        hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
        hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
        *print = hash ^ (hash >> 33);
    }
    basin_map_close(&fetched.map);
    basin_picture_free(&picture);
    return status;
}
