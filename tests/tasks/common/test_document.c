/* Reports: a document that reads back, text that never is markup, pictures within, errors that the
 * end gives, points in any locale. */
#include <locale.h>
#include <math.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "support/files.h"
#include "tasks/common/pixels/picture.h"
#include "tasks/common/view/document.h"

static char path[64];
static size_t length_read; /* of what was read last */

static basin_document *begin(const char *end, const char *title) {
    static basin_document report;
    snprintf(path, sizeof path, "/tmp/basin-report-%d%s", (int)getpid(), end);
    assert_ok(basin_document_begin(&report, path, "test", title, "lead", &failure));
    return &report;
}

/* The document, out of a page or bare; cJSON_Delete it. */
static cJSON *finish(basin_document *report) {
    assert_ok(basin_document_end(report, &failure));
    char *text = slurp(&length_read, path), *at = strstr(text, "id=\"document\">\n");
    cJSON *tree = cJSON_Parse(at ? strchr(at, '\n') : text);
    assert_non_null(tree);
    free(text);
    unlink(path);
    return tree;
}

static const cJSON *member(const cJSON *tree, const char *name) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(tree, name);
    if (!found) fail_msg("no member %s", name);
    return found;
}

TEST(documents_read_back) {
    static const char *const ends[] = {".json", ".html"};
    const double y[] = {1.5, NAN};
    for (int i = 0; i < 2; i++) {
        basin_document *r = begin(ends[i], "</script><b>\"'\xff\n");
        basin_document_put(r, "'sections':[{'n':%d,'m':%lld,'x':%g,'y':%g}", -3, 1LL << 40, 0.1,
                           NAN);
        basin_document_numbers(r, y, 2);
        basin_document_put(r, "]");
        cJSON *tree = finish(r);
        assert_string_equal(member(tree, "title")->valuestring, "</script><b>\"'\xef\xbf\xbd\n");
        const cJSON *all = member(tree, "sections"), *first = cJSON_GetArrayItem(all, 0);
        assert_float_equal(member(first, "n")->valuedouble, -3, 0);
        assert_float_equal(member(first, "m")->valuedouble, (double)(1LL << 40), 0);
        assert_float_equal(member(first, "x")->valuedouble, 0.1, 0);
        assert_true(cJSON_IsNull(member(first, "y")));
        const cJSON *numbers = cJSON_GetArrayItem(all, 1);
        assert_float_equal(cJSON_GetArrayItem(numbers, 0)->valuedouble, 1.5, 0);
        assert_true(cJSON_IsNull(cJSON_GetArrayItem(numbers, 1)));
        cJSON_Delete(tree);
    }
}

/* Nothing in a document ends its element; the page names no other file. */
TEST(pages_are_closed) {
    basin_document *r = begin(".html", "</script><script>alert(1)</script><!--");
    assert_ok(basin_document_end(r, &failure));
    char *text = slurp(&length_read, path);
    const char *at = strchr(strstr(text, "id=\"document\">"), '\n') + 1;
    size_t length = strcspn(at, "\n");
    assert_null(memchr(at, '<', length));
    assert_int_equal(strncmp(at + length, "\n</script>", 10), 0);
    assert_non_null(strstr(text, "default-src 'none'"));
    assert_null(strstr(text, "src=\"http"));
    assert_null(strstr(text, "innerHTML"));
    assert_string_equal(text + strlen(text) - 8, "</html>\n");
    free(text);
    unlink(path);
}

TEST(numbers_have_points) {
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8")) skip();
    basin_document *r = begin(".json", "t");
    basin_document_put(r, "'x':%g,'y':%g", 1.5, 2.25);
    assert_ok(basin_document_end(r, &failure));
    char after[16], *text = slurp(&length_read, path);
    snprintf(after, sizeof after, "%.1f", 1.5);
    setlocale(LC_NUMERIC, "C");
    assert_non_null(strstr(text, "\"x\":1.5,"));
    assert_non_null(strstr(text, "\"y\":2.25"));
    assert_string_equal(after, "1,5"); /* the caller's own again */
    free(text);
    unlink(path);
}

static int digit(char c) {
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(all, c) : NULL;
    return at ? (int)(at - all) : -1;
}

static size_t unpack(uint8_t *bytes, const char *text) {
    size_t size = 0;
    uint32_t group = 0;
    int bits = 0;
    for (; digit(*text) >= 0; text++) {
        group = group << 6 | (uint32_t)digit(*text);
        if ((bits += 6) >= 8) bytes[size++] = (uint8_t)(group >> (bits -= 8));
    }
    while (*text == '=') text++;
    assert_int_equal(*text, 0);
    return size;
}

/* Any length of bytes comes back, whatever it is modulo three; pixels too. */
TEST(pictures_come_back) {
    for (int64_t width = 1; width < 12; width++) {
        uint8_t pixel[3 * 4 * 12], bytes[4000];
        basin_picture picture = {.height = 4, .width = width, .channels = 3, .pixel = pixel};
        basin_picture back = {0};
        for (int i = 0; i < 3 * 4 * 12; i++) pixel[i] = (uint8_t)(i * 91);
        basin_document *r = begin(".html", "pictures");
        basin_document_put(r, "'one':{");
        basin_document_picture(r, &picture, BASIN_DOCUMENT_PIXELS, "a \"b\"");
        basin_document_put(r, "},'share':");
        basin_document_bytes(r, pixel, (size_t)width);
        cJSON *tree = finish(r);
        const cJSON *one = member(tree, "one");
        const char *source = member(one, "src")->valuestring, *mark = "data:image/png;base64,";
        assert_int_equal(strncmp(source, mark, strlen(mark)), 0);
        size_t size = unpack(bytes, source + strlen(mark));
        assert_ok(basin_picture_decode(&back, bytes, size, "back", &failure));
        assert_int_equal(back.width, width);
        assert_memory_equal(back.pixel, pixel, (size_t)(3 * 4 * width));
        assert_string_equal(member(one, "alt")->valuestring, "a \"b\"");
        assert_string_equal(member(one, "form")->valuestring, "pixels");
        assert_int_equal(unpack(bytes, member(tree, "share")->valuestring), width);
        assert_memory_equal(bytes, pixel, (size_t)width);
        basin_picture_free(&back);
        cJSON_Delete(tree);
    }
}

/* JPEG keeps a smooth picture within a few levels, grey and colour. */
TEST(photographs_come_back) {
    enum { SIDE = 40 };
    for (int channels = 1; channels <= 3; channels += 2) {
        uint8_t pixel[SIDE * SIDE * 3], *bytes;
        size_t size;
        basin_picture picture = {SIDE, SIDE, channels, pixel, 0}, back = {0};
        for (int i = 0; i < SIDE * SIDE; i++)
            for (int c = 0; c < channels; c++)
                pixel[i * channels + c] = (uint8_t)(60 + i % SIDE * 2 + i / SIDE * (c + 1));
        assert_ok(basin_jpeg_encode(&bytes, &size, &picture, 88, channels == 3, &failure));
        assert_ok(basin_picture_decode(&back, bytes, size, "back", &failure));
        assert_int_equal(back.channels, channels);
        for (int i = 0; i < SIDE * SIDE * channels; i++)
            assert_true(abs((int)back.pixel[i] - (int)pixel[i]) <= 6);
        basin_picture_free(&back);
        free(bytes);
    }
}

/* The first error is that of the end, and no file is left. */
TEST(a_picture_that_fails_is_reported) {
    uint8_t pixel[1] = {0};
    basin_picture empty = {0, 0, 3, pixel, 0};
    basin_document *r = begin(".html", "empty");
    basin_document_put(r, "'one':{");
    basin_document_picture(r, &empty, BASIN_DOCUMENT_PHOTO, "nothing");
    basin_document_put(r, "}");
    assert_failed(basin_document_end(r, &failure), "0 x 0");

    assert_int_not_equal(access(path, F_OK), 0);
}
