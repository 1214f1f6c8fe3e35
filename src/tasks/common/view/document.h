/* A report: one JSON document (docs/reports.md) that share/basin/viewer.html draws, written as a
 * page, the viewer with the document inside, or bare: begin, put, numbers, .., end. Errors stick:
 * basin_document_end gives the first one, and commits nothing then. */
#ifndef BASIN_VIEW_DOCUMENT_H
#define BASIN_VIEW_DOCUMENT_H

#include <locale.h>

#include "base/file.h"
#include "basin/tasks/picture.h"

typedef struct basin_document {
    basin_writer file; /* without a path: stdout */
    bool page;
    char last;           /* what was written last, to know where a comma belongs */
    basin_status status; /* the first error */
    basin_error error;
    locale_t before; /* until the end numbers have decimal points, whatever the program's locale */
} basin_document;

/* Opens the document up to its first members. `path` NULL: stdout, and bare; one that ends in .json
 * gets the bare document, any other the page. `kind` is the task, as "image". */
basin_status basin_document_begin(basin_document *report, const char *path, const char *kind,
                                  const char *title, const char *lead, basin_error *error);
/* Ends and commits it, or discards it and gives the first error. */
basin_status basin_document_end(basin_document *report, basin_error *error);
/* Keeps the first error; whether there is none. */
bool basin_document_check(basin_document *report, basin_status status, const basin_error *error);

/* Part of the document: JSON with single quotes for double ones. %s is a text, quoted here, %d and
 * %lld whole numbers, %g a number with all its digits (null where it is not finite). A member that
 * is not there is an empty text. Commas between two calls are added. */
void basin_document_put(basin_document *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void basin_document_numbers(basin_document *report, const double *value, int64_t count);

/* How a picture is packed and shown. */
typedef enum basin_document_form {
    BASIN_DOCUMENT_PHOTO,  /* JPEG */
    BASIN_DOCUMENT_PIXELS, /* without loss (unless it is huge); pixels stay square when enlarged */
} basin_document_form;

/* Members src, form, width, height, alt of an object that is open; `alt` may be NULL. */
void basin_document_picture(basin_document *report, const basin_picture *picture,
                            basin_document_form form, const char *alt);
/* A value of bytes as base64. */
void basin_document_bytes(basin_document *report, const uint8_t *bytes, size_t size);

#endif
