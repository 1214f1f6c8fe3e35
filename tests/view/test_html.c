/* Pages: what is escaped, pictures within, and errors that are told at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "picture/encode_jpeg.h"
#include "view/html.h"
#include "view/markup.h"

/* The page as text; free it. */
typedef struct sheet {
    char *text;
    size_t size;
    FILE *file;
    basin_html page;
} sheet;

static void sheet_open(sheet *s, const char *title) {
    s->file = open_memstream(&s->text, &s->size);
    assert_non_null(s->file);
    s->page = basin_html_begin(s->file, title, NULL);
}

static basin_status sheet_close(sheet *s, basin_error *error) {
    basin_status status = basin_html_end(&s->page, NULL, error);
    fclose(s->file);
    return status;
}

static void text_is_escaped(void **state) {
    (void)state;
    sheet s;
    basin_error error;
    sheet_open(&s, "<b>&\"'");
    basin_html_put(&s.page, "[");
    basin_html_text(&s.page, "a<b & \"c\" '\xc3\xa9\xe2\x82\xac' \xff \xc3( \xed\xa0\x80 \x01]");
    assert_int_equal(sheet_close(&s, &error), BASIN_OK);
    assert_non_null(strstr(s.text, "<title>&lt;b&gt;&amp;&quot;&#39;</title>"));
    const char *bad = "\xef\xbf\xbd";
    char wanted[200];
    snprintf(wanted, sizeof wanted,
             "[a&lt;b &amp; &quot;c&quot; &#39;\xc3\xa9\xe2\x82\xac&#39; %s %s( %s%s%s %s]", bad,
             bad, bad, bad, bad, bad);
    assert_non_null(strstr(s.text, wanted));
    assert_non_null(strstr(s.text, "prefers-color-scheme: dark"));
    assert_null(strstr(s.text, "https:"));
    free(s.text);
}

/* Between characters, not between the bytes of one. */
static void long_text_is_cut(void **state) {
    (void)state;
    static const char *const wanted[] = {"ab&lt;\xc3\xbc\xc3\xbc",
                                         "a\xe2\x80\xa6",
                                         "ab\xe2\x80\xa6",
                                         "ab&lt;\xe2\x80\xa6",
                                         "ab&lt;\xc3\xbc\xe2\x80\xa6",
                                         "ab&lt;\xc3\xbc\xc3\xbc"};
    for (int most = 0; most <= 5; most++) {
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);
        assert_non_null(file);
        basin_markup_text(file, "ab<\xc3\xbc\xc3\xbc", most);
        fclose(file);
        assert_string_equal(text, wanted[most]);
        free(text);
    }
}

static int digit(char c) {
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(all, c) : NULL;
    return at ? (int)(at - all) : -1;
}

/* The bytes after `mark`, up to a quote. */
static size_t unpack(uint8_t *bytes, const char *text, const char *mark) {
    const char *at = strstr(text, mark);
    assert_non_null(at);
    size_t size = 0;
    uint32_t group = 0;
    int bits = 0;
    for (at += strlen(mark); digit(*at) >= 0; at++) {
        group = group << 6 | (uint32_t)digit(*at);
        if ((bits += 6) >= 8) bytes[size++] = (uint8_t)(group >> (bits -= 8));
    }
    while (*at == '=') at++;
    assert_int_equal(*at, '"');
    return size;
}

/* Any length of bytes comes back, whatever it is modulo three; pixels too. */
static void pictures_come_back(void **state) {
    (void)state;
    for (int64_t width = 1; width < 12; width++) {
        uint8_t pixel[3 * 4 * 12], bytes[4000];
        basin_picture picture = {.height = 4, .width = width, .channels = 3, .pixel = pixel};
        basin_picture back = {0};
        basin_error error;
        sheet s;
        for (int i = 0; i < 3 * 4 * 12; i++) pixel[i] = (uint8_t)(i * 91);
        sheet_open(&s, "pictures");
        basin_html_picture(&s.page, &picture, BASIN_HTML_PIXELS, 50, "a \"b\"", "data-x=\"1\"");
        assert_int_equal(sheet_close(&s, &error), BASIN_OK);
        size_t size = unpack(bytes, s.text, "data:image/png;base64,");
        assert_int_equal(basin_picture_decode(&back, bytes, size, "back", &error), BASIN_OK);
        assert_int_equal(back.width, width);
        assert_memory_equal(back.pixel, pixel, (size_t)(3 * 4 * width));
        assert_non_null(strstr(s.text, "alt=\"a &quot;b&quot;\" class=\"zoom pixels\" "
                                       "style=\"width:50px\" data-x=\"1\">"));
        basin_picture_free(&back);
        free(s.text);
    }
}

/* JPEG keeps a smooth picture within a few levels, grey and colour. */
static void photographs_come_back(void **state) {
    (void)state;
    enum { SIDE = 40 };
    for (int channels = 1; channels <= 3; channels += 2) {
        uint8_t pixel[SIDE * SIDE * 3], *bytes;
        size_t size;
        basin_picture picture = {SIDE, SIDE, channels, pixel, 0}, back = {0};
        basin_error error;
        for (int i = 0; i < SIDE * SIDE; i++)
            for (int c = 0; c < channels; c++)
                pixel[i * channels + c] = (uint8_t)(60 + i % SIDE * 2 + i / SIDE * (c + 1));
        assert_int_equal(basin_jpeg_encode(&bytes, &size, &picture, 88, channels == 3, &error),
                         BASIN_OK);
        assert_int_equal(basin_picture_decode(&back, bytes, size, "back", &error), BASIN_OK);
        assert_int_equal(back.channels, channels);
        for (int i = 0; i < SIDE * SIDE * channels; i++)
            assert_true(abs((int)back.pixel[i] - (int)pixel[i]) <= 6);
        basin_picture_free(&back);
        free(bytes);
    }
}

static void a_picture_that_fails_is_told(void **state) {
    (void)state;
    sheet s;
    basin_error error = {0};
    uint8_t pixel[1] = {0};
    basin_picture empty = {0, 0, 3, pixel, 0};
    sheet_open(&s, "empty");
    basin_html_picture(&s.page, &empty, BASIN_HTML_PHOTO, 0, "nothing", NULL);
    assert_int_not_equal(sheet_close(&s, &error), BASIN_OK);
    assert_non_null(strstr(error.text, "0 x 0"));
    free(s.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(long_text_is_cut),
        cmocka_unit_test(pictures_come_back),
        cmocka_unit_test(photographs_come_back),
        cmocka_unit_test(a_picture_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
