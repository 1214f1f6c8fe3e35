/* A page that needs no other file: style, script and pictures are all within. Readable on a phone,
 * light or dark as the reader likes, and without script all of it is shown at once.
 *
 * The file's own error flag tells whether all was written; a picture that cannot be packed is an
 * error of its own, kept in the page and told by basin_html_end. */
#ifndef BASIN_VIEW_HTML_H
#define BASIN_VIEW_HTML_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "basin/tasks/picture.h"
#include "view/plot.h"

typedef struct basin_html {
    FILE *file;
    basin_status status; /* of the first picture that failed */
    basin_error error;
} basin_html;

/* Head, style and the beginning of the body. Every page has the style and the script of this room
 * (html.css, html.js); `style` and `script` are more of it, or NULL. */
basin_html basin_html_begin(FILE *file, const char *title, const char *const *style);
/* The script and the end; the first error of a picture, if any. */
basin_status basin_html_end(basin_html *page, const char *const *script, basin_error *error);

/* Markup as it stands, printf's way. */
void basin_html_put(basin_html *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Text, escaped so that it is right between tags and in attributes; bytes that are not UTF-8
 * become U+FFFD. */
void basin_html_text(basin_html *page, const char *text);
/* A number with a comma between thousands. */
void basin_html_number(basin_html *page, int64_t number);

/* <section id> with a heading, and its end. On a desktop two are side by side, a wide one alone. */
void basin_html_section(basin_html *page, const char *id, const char *heading, bool wide);
void basin_html_section_end(basin_html *page);

/* How an <img> is packed and shown. */
typedef enum basin_html_kind {
    BASIN_HTML_PHOTO,  /* JPEG */
    BASIN_HTML_PIXELS, /* without loss (unless it is huge); pixels stay square when enlarged */
    BASIN_HTML_SHEET,  /* packed as PIXELS; has thin lines, which no scaling on the page may drop */
} basin_html_kind;

/* An <img> with its bytes within; a click shows it large. `width` is that on the page in CSS
 * pixels, 0: what the style says. `alt` is escaped; `attributes` is markup, or NULL. */
void basin_html_picture(basin_html *page, const basin_picture *picture, basin_html_kind kind,
                        int width, const char *alt, const char *attributes);
/* Bytes for a script to read, as base64. */
void basin_html_bytes(basin_html *page, const uint8_t *bytes, size_t size);
/* A plot, once for wide cells and once for narrow ones; the style shows one of them. */
void basin_html_plot(basin_html *page, const basin_plot *plot);

/* NULL-terminated lists of lines: html.css and html.js, embedded by the build. */
extern const char *const basin_html_style[], *const basin_html_script[];

#endif
