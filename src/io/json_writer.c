/* JSON out; see json_writer.h. */
#include "io/json_writer.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"

void basin_json_quote(FILE *file, const char *text, bool in_page) {
    fputc('"', file);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        uint32_t point;
        size_t length = *at < 0x80 ? 1
                                   : basin_text_character(&point, (const char *)at,
                                                          strnlen((const char *)at, 4));
        if (length == 0)
            fputs("\\ufffd", file);
        else if (*at == '"' || *at == '\\')
            fprintf(file, "\\%c", *at);
        else if (*at == '\n')
            fputs("\\n", file);
        else if (*at < ' ' || *at == 127 || (*at == '<' && in_page))
            fprintf(file, "\\u%04x", *at);
        else
            fwrite(at, 1, length, file);
        at += length ? length : 1;
    }
    fputc('"', file);
}

static void start(basin_json *json, const char *key) {
    int depth = json->depth;
    if (json->begun[depth]) fputc(',', json->file);
    json->begun[depth] = true;
    if (!json->line) fprintf(json->file, "\n%*s", 2 * (depth + 1), "");
    if (json->array[depth]) return;
    basin_json_quote(json->file, key, false);
    fputs(json->line ? ":" : ": ", json->file);
}

static void enter(basin_json *json, bool array) {
    fputc(array ? '[' : '{', json->file);
    json->depth++;
    json->begun[json->depth] = false;
    json->array[json->depth] = array;
}

static basin_json begin(FILE *file, bool line) {
    basin_json json = {.file = file, .line = line, .depth = -1};
    enter(&json, false);
    return json;
}

basin_json basin_json_begin(FILE *file) { return begin(file, false); }
basin_json basin_json_begin_line(FILE *file) { return begin(file, true); }

void basin_json_object(basin_json *json, const char *key) {
    start(json, key);
    enter(json, false);
}

void basin_json_array(basin_json *json, const char *key) {
    start(json, key);
    enter(json, true);
}

void basin_json_end(basin_json *json) {
    if (json->begun[json->depth] && !json->line) fprintf(json->file, "\n%*s", 2 * json->depth, "");
    fputc(json->array[json->depth] ? ']' : '}', json->file);
    if (json->depth-- == 0) fputc('\n', json->file);
}

void basin_json_text(basin_json *json, const char *key, const char *value) {
    start(json, key);
    if (value)
        basin_json_quote(json->file, value, false);
    else
        fputs("null", json->file);
}

/* Whole numbers that a double holds exactly have all their digits: 520560640, not 5.2056064e+08. */
char *basin_number_print(char text[BASIN_NUMBER_TEXT], double value) {
    if (fabs(value) <= 9007199254740992.0 && value == floor(value) && value != 0) {
        snprintf(text, BASIN_NUMBER_TEXT, "%.0f", value);
        return text;
    }
    for (int digits = 6; digits <= 17; digits++) {
        basin_real_print(text, BASIN_NUMBER_TEXT, digits, value);
        if (basin_real_read(text, NULL) == value) break;
    }
    return text;
}

void basin_json_put_number(FILE *file, double value) {
    char text[BASIN_NUMBER_TEXT];
    fputs(isfinite(value) ? basin_number_print(text, value) : "null", file);
}

void basin_json_number(basin_json *json, const char *key, double value) {
    start(json, key);
    basin_json_put_number(json->file, value);
}

void basin_json_integer(basin_json *json, const char *key, int64_t value) {
    start(json, key);
    fprintf(json->file, "%lld", (long long)value);
}

void basin_json_boolean(basin_json *json, const char *key, bool value) {
    start(json, key);
    fputs(value ? "true" : "false", json->file);
}

void basin_json_numbers(basin_json *json, const char *key, const double *value, int64_t count) {
    start(json, key);
    for (int64_t i = 0; i < count; i++) {
        fputs(i ? ", " : "[", json->file);
        basin_json_put_number(json->file, value[i]);
    }
    fputs(count ? "]" : "[]", json->file);
}

void basin_json_shape(basin_json *json, const char *key, basin_shape shape) {
    char text[BASIN_SHAPE_TEXT];
    start(json, key);
    fputs(basin_shape_print(text, shape), json->file);
}
