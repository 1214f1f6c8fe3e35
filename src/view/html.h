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

/* Head, style and the beginning of the body. */
basin_html basin_html_begin(FILE *file, const char *title);
/* The script and the end; the first error of a picture, if any. */
basin_status basin_html_end(basin_html *page, basin_error *error);

/* Markup as it stands, printf's way. */
void basin_html_put(basin_html *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Text, escaped so that it is right between tags and in attributes; bytes that are not UTF-8
 * become U+FFFD. */
void basin_html_text(basin_html *page, const char *text);

/* <section id> with a heading, and its end. */
void basin_html_section(basin_html *page, const char *id, const char *heading);
void basin_html_section_end(basin_html *page);

/* An <img> with its bytes within. A crisp one keeps its pixels square when it is enlarged and is
 * packed without loss (unless it is huge); others are photographs and become JPEG. `width` is that
 * on the page in CSS pixels, 0: what the style says. `alt` is escaped; `attributes` is markup, or
 * NULL. */
void basin_html_picture(basin_html *page, const basin_picture *picture, bool crisp, int width,
                        const char *alt, const char *attributes);
/* A line plot, once for wide pages and once for narrow ones. */
void basin_html_plot(basin_html *page, const basin_plot *plot);

/* Lines; NULL ends them. */
extern const char *const basin_html_style[], *const basin_html_script[];

#endif
