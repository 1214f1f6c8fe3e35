/* Reports as JSON in a page; see document.h. */
#include "tasks/common/view/document.h"
#include "base/file.h"

#include <stdarg.h>

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "basin/version.h"
#include "tasks/common/pixels/picture.h"

/* share/basin/viewer.html, lines ending with NULL; "null" is where the document goes. */
extern const char *const basin_viewer[];

/* The viewer before the document, or after it. */
static void put_viewer(const basin_document *r, bool after) {
    bool there = false;
    for (const char *const *line = basin_viewer; *line && r->page; line++) {
        bool here = !strcmp(*line, "null\n");
        if (there == after && !here) fputs(*line, r->file.file);
        there = there || here;
    }
}

basin_status basin_document_begin(basin_document *r, const char *path, const char *kind,
                                  const char *title, const char *lead, basin_error *error) {
    *r = (basin_document){
        .page = path && !basin_text_ends(path, ".json"), .file.file = stdout, .last = ','};
    if (path) BASIN_TRY(basin_writer_create(&r->file, path, error));
    r->before = basin_numbers_begin();
    put_viewer(r, false);
    basin_document_put(r, "{'kind':%s,'version':1,'writer':%s,'title':%s,'lead':%s", kind,
                       "Basin " BASIN_VERSION_STRING, title, lead);
    return BASIN_OK;
}

basin_status basin_document_end(basin_document *r, basin_error *error) {
    basin_document_put(r, "}\n");
    put_viewer(r, true);
    basin_numbers_end(&r->before);
    if (!r->status) return r->file.path ? basin_writer_commit(&r->file, error) : BASIN_OK;
    if (r->file.path) basin_writer_discard(&r->file);
    return basin_fail(error, r->status, "%s", r->error.text);
}

bool basin_document_check(basin_document *r, basin_status status, const basin_error *error) {
    if (!r->status && status) {
        r->status = status;
        r->error = *error;
    }
    return !r->status;
}

static void put_value(basin_document *r, char kind, va_list *args) {
    FILE *file = r->file.file;
    switch (kind) {
    case 's': basin_json_quote(file, va_arg(*args, const char *), r->page); break;
    case 'd': fprintf(file, "%d", va_arg(*args, int)); break;
    case 'l': fprintf(file, "%lld", va_arg(*args, long long)); break;
    default: basin_json_put_number(file, va_arg(*args, double)); break;
    }
}

void basin_document_put(basin_document *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    /* A comma where a member or an element follows another one. */
    if (!strchr("[{:,", r->last) && !strchr("]},:\n", *format)) fputc(',', r->file.file);
    for (const char *at = format; *at; at++) {
        r->last = *at;
        if (*at != '%') {
            fputc(*at == '\'' ? '"' : *at, r->file.file);
            continue;
        }
        put_value(r, *++at, &args);
        if (*at == 'l') at += 2; /* lld */
    }
    va_end(args);
}

void basin_document_numbers(basin_document *r, const double *value, int64_t count) {
    basin_document_put(r, "[");
    for (int64_t i = 0; i < count; i++) basin_document_put(r, "%g", value[i]);
    basin_document_put(r, "]");
}

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

void basin_document_bytes(basin_document *r, const uint8_t *bytes, size_t size) {
    basin_document_put(r, "'");
    put_base64(r->file.file, bytes, size);
    fputc('"', r->file.file);
}

/* Beyond this many bytes of pixels, even a crisp picture becomes a (good) JPEG. */
enum { HUGE_PICTURE = 1 << 20, QUALITY = 80, QUALITY_CRISP = 88 };

void basin_document_picture(basin_document *r, const basin_picture *picture,
                            basin_document_form form, const char *alt) {
    static const char *const name[] = {"photo", "pixels"};
    bool crisp = form != BASIN_DOCUMENT_PHOTO;
    bool png = crisp && picture->height * picture->width * picture->channels <= HUGE_PICTURE;
    uint8_t *bytes = NULL;
    size_t size = 0;
    basin_error error;
    if (r->status) return;
    basin_status status = png ? basin_png_encode(&bytes, &size, picture, &error)
                              : basin_jpeg_encode(&bytes, &size, picture,
                                                  crisp ? QUALITY_CRISP : QUALITY, crisp, &error);
    if (!basin_document_check(r, status, &error)) return;
    basin_document_put(r, png ? "'src':'data:image/png;base64," : "'src':'data:image/jpeg;base64,");
    put_base64(r->file.file, bytes, size);
    basin_document_put(r, "','form':%s,'width':%lld,'height':%lld", name[form],
                       (long long)picture->width, (long long)picture->height);
    if (alt) basin_document_put(r, "'alt':%s", alt);
    free(bytes);
}
