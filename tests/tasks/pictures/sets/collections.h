/* For tests of collections: four small pictures in two halves, as files, archives and gz. */
#ifndef TESTS_DATA_COLLECTIONS_H
#define TESTS_DATA_COLLECTIONS_H

#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include "basin/tasks/pictures.h"
#include "support/folder.h"
#include "support/test.h"
#include "tasks/nodes/network/make.h"
#include "tasks/pictures/sets/pictures.h"

static inline basin_pictures *open_all(const char *const *path, int paths,
                                       basin_pictures_split split) {
    basin_pictures *pictures;
    assert_ok(basin_pictures_open(&pictures, path, paths, split, &failure));
    return pictures;
}

static inline basin_pictures *open_one(const char *path, basin_pictures_split split) {
    return open_all(&path, 1, split);
}

static inline void assert_fails(const char *path, basin_pictures_split split, const char *format) {
    basin_pictures *pictures;
    basin_error error = {0};
    char want[BASIN_ERROR_TEXT];
    snprintf(want, sizeof want, format, path);
    assert_int_not_equal(basin_pictures_open(&pictures, &path, 1, split, &error), BASIN_OK);
    assert_null(pictures);
    assert_string_equal(error.text, want);
}

static inline void assert_name(const basin_pictures *pictures, int64_t i, const char *end) {
    char text[BASIN_MAX_PICTURE_NAME];
    basin_pictures_name(text, pictures, i);
    size_t length = strlen(text), tail = strlen(end);
    if (length < tail || strcmp(text + length - tail, end) != 0)
        fail_msg("picture %d is %s, want ...%s", (int)i, text, end);
}

static const char *const names[] = {"train/b/2.jpg", "train/a/1.PNG", "test/a/3.jpeg",
                                    "train/a/0.jpg"};

/* The bytes of file `name` of the list above; freed by the caller. */
static inline size_t make_file(uint8_t **bytes, int i) {
    size_t size;
    basin_picture picture = make_picture(10 + i, 20, 3, i);
    if (strstr(names[i], "PNG"))
        assert_int_equal(basin_png_encode(bytes, &size, &picture, NULL), BASIN_OK);
    else
        size = make_jpeg(bytes, &picture, (jpeg_form){0});
    basin_picture_free(&picture);
    return size;
}

/* Writes the four files, and some that are none, as an archive. */
static inline void put_archive(const char *path, int form) {
    struct archive *a = archive_write_new();
    if (form == 3)
        archive_write_set_format_zip(a);
    else if (form == 4)
        archive_write_set_format_gnutar(a);
    else
        archive_write_set_format_pax_restricted(a);
    if (form == 1) archive_write_add_filter_gzip(a);
    if (form == 2) archive_write_add_filter_xz(a);
    assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
    for (int i = -2; i < 4; i++) {
        uint8_t *bytes = NULL;
        char name[200];
        size_t size = i < 0 ? 5 : make_file(&bytes, i);
        snprintf(name, sizeof name, "./%s",
                 i == -2 ? "README"
                 : i < 0 ? "train/._0.jpg"
                         : names[i]);
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname(entry, name);
        archive_entry_set_size(entry, (la_int64_t)size);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
        archive_write_data(a, bytes ? (const void *)bytes : "hello", size);
        archive_entry_free(entry);
        free(bytes);
    }
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
}

static inline void put_gz(const char *path, const void *bytes, size_t size) {
    gzFile file = gzopen(path, "wb");
    assert_int_equal(gzwrite(file, bytes, (unsigned)size), (int)size);
    assert_int_equal(gzclose(file), Z_OK);
}

#endif
