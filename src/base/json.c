/* JSON in and out; see json.h. */
#include "base/json.h"
#include "base/shape.h"

#include "base/number.h"
#include "base/text.h"

/* ---- writing ---- */

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
    start(json, key);
    fputs(basin_shape_text(shape), json->file);
}

/* ---- reading ---- */

/* cJSON cuts strings at an escaped NUL, and two names could become one. */
static bool has_nul(const char *text, size_t length) {
    if (memchr(text, 0, length)) return true;
    for (size_t i = 0; i + 1 < length; i++) {
        if (text[i] != '\\') continue;
        if (length - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0) return true;
        i++;
    }
    return false;
}

/* The text is parsed from a copy that ends with a NUL: cJSON before 1.7.18 can look one byte past
 * an unfinished text. */
basin_status basin_json_parse(cJSON **tree, const void *text, size_t length, const char *path,
                              const char *what, basin_error *error) {
    const char *end = NULL;
    *tree = NULL;
    if (!length) return basin_fail(error, BASIN_BAD_FILE, "%s: %s is empty", path, what);
    if (has_nul(text, length))
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s contains a NUL character", path, what);
    BASIN_SCRATCH_RAW(char, copy, length + 1, what, error);
    memcpy(copy, text, length);
    copy[length] = '\0';
    *tree = cJSON_ParseWithLengthOpts(copy, length + 1, &end, true);
    if (!*tree)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s is not JSON from byte %zu: '%.20s'", path,
                          what, end ? (size_t)(end - copy) : 0, end ? end : copy);
    if (cJSON_IsObject(*tree)) return BASIN_OK;
    cJSON_Delete(*tree);
    *tree = NULL;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s is not a JSON object: '%.20s'", path, what,
                      copy);
}
