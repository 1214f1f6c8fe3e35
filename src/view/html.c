/* Pages; see html.h. The style and the script are html.css and html.js. */
#include "view/html.h"

#include <stdarg.h>
#include <stdlib.h>

#include "picture/encode_jpeg.h"
#include "view/markup.h"

static void put_lines(basin_html *page, const char *const *line) {
    for (; line && *line; line++) fputs(*line, page->file);
}

basin_html basin_html_begin(FILE *file, const char *title, const char *const *style) {
    basin_html page = {.file = file, .status = BASIN_OK};
    basin_html_put(&page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                          "<meta name=\"viewport\" content=\"width=device-width, "
                          "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">"
                          "\n<title>");
    basin_html_text(&page, title);
    basin_html_put(&page, "</title>\n<style>\n");
    put_lines(&page, basin_html_style);
    put_lines(&page, style);
    basin_html_put(&page, "</style>\n<script>document.documentElement.className = 'js'</script>\n"
                          "</head>\n<body>\n");
    return page;
}

basin_status basin_html_end(basin_html *page, const char *const *script, basin_error *error) {
    basin_html_put(page, "<script>\n");
    put_lines(page, basin_html_script);
    put_lines(page, script);
    basin_html_put(page, "</script>\n</body>\n</html>\n");
    if (page->status) basin_fail(error, page->status, "%s", page->error.text);
    return page->status;
}

void basin_html_put(basin_html *page, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(page->file, format, args);
    va_end(args);
}

void basin_html_text(basin_html *page, const char *text) { basin_markup_text(page->file, text, 0); }

void basin_html_number(basin_html *page, int64_t number) {
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number);
    for (int i = 0; i < length; i++)
        basin_html_put(page, "%s%c", i && (length - i) % 3 == 0 ? "," : "", digits[i]);
}

void basin_html_section(basin_html *page, const char *id, const char *heading, bool wide) {
    basin_html_put(page,
                   "<section id=\"%s\"%s aria-labelledby=\"%s-heading\">\n<h2 "
                   "id=\"%s-heading\">",
                   id, wide ? " class=\"wide\"" : "", id, id);
    basin_html_text(page, heading);
    basin_html_put(page, "</h2>\n");
}

void basin_html_section_end(basin_html *page) { basin_html_put(page, "</section>\n"); }

/* ---- pictures ---- */

static void put_base64(FILE *file, const uint8_t *bytes, size_t size) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t group = (uint32_t)bytes[i] << 16;
        if (left > 1) group |= (uint32_t)bytes[i + 1] << 8;
        if (left > 2) group |= bytes[i + 2];
        fputc(digit[group >> 18], file);
        fputc(digit[group >> 12 & 63], file);
        fputc(left > 1 ? digit[group >> 6 & 63] : '=', file);
        fputc(left > 2 ? digit[group & 63] : '=', file);
    }
}

/* Beyond this many bytes of pixels, even a crisp picture becomes a (good) JPEG. */
enum { HUGE_PICTURE = 1 << 20, QUALITY = 80, QUALITY_CRISP = 88 };

static void put_uri(basin_html *page, const basin_picture *picture, bool crisp) {
    uint8_t *bytes = NULL;
    size_t size = 0;
    if (page->status) return;
    bool png = crisp && picture->height * picture->width * picture->channels <= HUGE_PICTURE;
    page->status = png ? basin_png_encode(&bytes, &size, picture, &page->error)
                       : basin_jpeg_encode(&bytes, &size, picture, crisp ? QUALITY_CRISP : QUALITY,
                                           crisp, &page->error);
    if (page->status) return;
    basin_html_put(page, "data:image/%s;base64,", png ? "png" : "jpeg");
    put_base64(page->file, bytes, size);
    free(bytes);
}

void basin_html_picture(basin_html *page, const basin_picture *picture, basin_html_kind kind,
                        int width, const char *alt, const char *attributes) {
    static const char *const class[] = {"zoom", "zoom pixels", "zoom sheet"};
    basin_html_put(page, "<img src=\"");
    put_uri(page, picture, kind != BASIN_HTML_PHOTO);
    basin_html_put(page, "\" width=\"%lld\" height=\"%lld\" alt=\"", (long long)picture->width,
                   (long long)picture->height);
    basin_html_text(page, alt);
    basin_html_put(page, "\" class=\"%s\"", class[kind]);
    if (width > 0) basin_html_put(page, " style=\"width:%dpx\"", width);
    basin_html_put(page, "%s%s>", attributes ? " " : "", attributes ? attributes : "");
}

void basin_html_bytes(basin_html *page, const uint8_t *bytes, size_t size) {
    put_base64(page->file, bytes, size);
}

void basin_html_plot(basin_html *page, const basin_plot *plot) {
    basin_plot form = *plot;
    basin_html_put(page, "<div class=\"plot plot-wide\">\n");
    form.width = plot->width > 0 ? plot->width : 420;
    form.height = plot->height > 0 ? plot->height : 300;
    basin_plot_write(page->file, &form);
    basin_html_put(page, "</div>\n<div class=\"plot plot-narrow\">\n");
    form.width = 340;
    form.height = 270;
    basin_plot_write(page->file, &form);
    basin_html_put(page, "</div>\n");
}
