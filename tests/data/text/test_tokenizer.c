/* Tokenizers of characters and bytes, and reading text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cmocka.h>

#include "basin/tasks/tokenizer.h"
#include "io/folder.h"

/* Encodes, compares with what is wanted, and decodes back to the text. */
static void expect_ids(const basin_tokenizer *t, const char *text, size_t length,
                       const int32_t *want, int64_t wanted) {
    int32_t *id;
    int64_t count;
    char *back;
    size_t bytes;
    basin_error error;
    if (basin_tokenizer_encode(&id, &count, NULL, t, text, length, &error))
        fail_msg("%s", error.text);
    assert_int_equal(count, wanted);
    for (int64_t i = 0; i < count; i++) assert_int_equal(id[i], want[i]);
    if (basin_tokenizer_decode(&back, &bytes, t, id, count, &error)) fail_msg("%s", error.text);
    assert_int_equal(bytes, length);
    assert_memory_equal(back, text, length);
    free(back);
    free(id);
}

static void characters(void **state) {
    (void)state;
    const char text[] = "b\xc3\xa9 a\n\xf0\x9f\x98\x80 b";
    basin_tokenizer *t;
    basin_error error;
    if (basin_tokenizer_characters(&t, text, strlen(text), &error)) fail_msg("%s", error.text);
    assert_string_equal(basin_tokenizer_kind(t), "characters");
    assert_int_equal(basin_tokenizer_size(t), 6);
    expect_ids(t, text, strlen(text), (int32_t[]){3, 4, 1, 2, 0, 5, 1, 3}, 8);
    expect_ids(t, "", 0, NULL, 0);
    size_t length;
    assert_memory_equal(basin_tokenizer_piece(&length, t, 4), "\xc3\xa9", 2);
    assert_int_equal(length, 2);
    assert_null(basin_tokenizer_piece(&length, t, 6));
    assert_null(basin_tokenizer_piece(&length, t, -1));
    assert_int_equal(basin_tokenizer_find(t, "\xc3\xa9", 2), 4);
    assert_int_equal(basin_tokenizer_find(t, "x", 1), -1);
    assert_false(basin_tokenizer_is_special(t, 4));
    basin_tokenizer_free(t);
}

static void expect_error(const basin_tokenizer *t, const char *text, size_t length,
                         const char *want) {
    int32_t *id;
    int64_t count;
    basin_error error;
    assert_int_equal(basin_tokenizer_encode(&id, &count, NULL, t, text, length, &error),
                     BASIN_BAD_VALUE);
    assert_null(id);
    if (!strstr(error.text, want)) fail_msg("wanted '%s' in '%s'", want, error.text);
}

static void unknown_characters(void **state) {
    (void)state;
    basin_tokenizer *t;
    int32_t *id;
    int64_t count, skipped = 7;
    assert_int_equal(basin_tokenizer_characters(&t, "ab\n\xc3\xa9", 5, NULL), BASIN_OK);
    expect_error(t, "ab\n\xc3\xa9x", 6, "no token for 'x' (U+0078), line 2, column 2");
    expect_error(t, "a\t", 2, "no token for U+0009, line 1, column 2");
    expect_error(t, "ab\xff", 3, "not UTF-8 at byte 2 (0xff)");
    assert_int_equal(basin_tokenizer_encode(&id, &count, &skipped, t, "axbyz", 5, NULL), BASIN_OK);
    assert_int_equal(skipped, 3);
    assert_int_equal(count, 2);
    free(id);
    basin_tokenizer_free(t);
}

static void bad_texts(void **state) {
    (void)state;
    basin_tokenizer *t;
    basin_error error;
    assert_int_equal(basin_tokenizer_characters(&t, "a\xc3", 2, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "byte 1 (0xc3)"));
    assert_int_equal(basin_tokenizer_characters(&t, "a\0b", 3, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "NUL at byte 1"));
    assert_int_equal(basin_tokenizer_characters(&t, "", 0, &error), BASIN_BAD_VALUE);
    assert_null(t);
}

static void bytes(void **state) {
    (void)state;
    basin_tokenizer *t;
    basin_error error;
    char *text;
    size_t length;
    assert_int_equal(basin_tokenizer_bytes(&t, NULL), BASIN_OK);
    assert_string_equal(basin_tokenizer_kind(t), "bytes");
    assert_int_equal(basin_tokenizer_size(t), 256);
    expect_ids(t, "a\xff\0z", 4, (int32_t[]){97, 255, 0, 122}, 4);
    assert_int_equal(basin_tokenizer_decode(&text, &length, t, (int32_t[]){1, 256}, 2, &error),
                     BASIN_BAD_VALUE);
    assert_string_equal(error.text, "token 1 is 256, the tokenizer has 0 .. 255");
    assert_null(text);
    basin_tokenizer_free(t);
}

/* ---- reading ---- */

static void put_gz(const char *path, const char *text) {
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
    gzclose(file);
}

static void expect_text(const char *const *path, int count, const char *want) {
    char *text;
    size_t length;
    basin_error error;
    if (basin_text_read(&text, &length, path, count, &error)) fail_msg("%s", error.text);
    assert_int_equal(length, strlen(want));
    assert_string_equal(text, want);
    free(text);
}

static void expect_no_text(const char *path, const char *want) {
    char *text;
    size_t length;
    basin_error error;
    assert_int_not_equal(basin_text_read(&text, &length, &path, 1, &error), BASIN_OK);
    assert_null(text);
    if (!strstr(error.text, want) || !strstr(error.text, path))
        fail_msg("wanted '%s' in '%s'", want, error.text);
}

static void reading(void **state) {
    char folder[PATH_TEXT], a[PATH_TEXT], b[PATH_TEXT], sub[PATH_TEXT], c[PATH_TEXT], d[PATH_TEXT];
    snprintf(folder, sizeof folder, "%s", (const char *)*state);
    folder_path(a, state, "b.txt");
    folder_path(b, state, "c.txt.gz");
    folder_path(sub, state, "a");
    folder_path(c, state, "a/z.txt");
    folder_path(d, state, "notes.md");
    expect_no_text(a, "No such file");
    expect_no_text(folder, "no file below it ends in .txt");
    mkdir(sub, 0777);
    assert_int_equal(file_put(a, "\xef\xbb\xbfone\n", 7), 0);
    put_gz(b, "two\n");
    assert_int_equal(file_put(c, "zero\n", 5), 0);
    assert_int_equal(file_put(d, "nothing\n", 8), 0);
    expect_text((const char *[]){a, b}, 2, "one\ntwo\n");
    expect_text((const char *[]){folder}, 1, "zero\none\ntwo\n");
    assert_int_equal(file_put(a, "", 0), 0);
    expect_no_text(a, "there is no text");
    assert_int_equal(file_put(a, "\xff\xfeo\0", 4), 0);
    expect_no_text(a, "UTF-16");
    unlink(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters),
        cmocka_unit_test(unknown_characters),
        cmocka_unit_test(bad_texts),
        cmocka_unit_test(bytes),
        cmocka_unit_test_setup_teardown(reading, folder_new, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
