/* JSON in and out: headers of tensor files, metadata, results. */
#ifndef BASIN_IO_JSON_H
#define BASIN_IO_JSON_H

#include <cjson/cJSON.h>

#include "base/try.h"
#include "basin/tensor.h"

/* A tree that is deleted at the end of its scope. */
#define BASIN_JSON_AT_EXIT BASIN_AT_EXIT(basin_json_delete_at)
static inline void basin_json_delete_at(cJSON **tree) { cJSON_Delete(*tree); }

/* `length` bytes of text, which must be one JSON object, as a tree; delete it also after an error.
 * `what` names the text in errors: "the header". */
basin_status basin_json_parse(cJSON **tree, const void *text, size_t length, const char *path,
                              const char *what, basin_error *error);
/* ---- writing ----
 * A JSON text written piece by piece, as results are printed: nothing is kept and nothing can fail
 * but the file. Numbers read back as the same number; NaN and infinity become null, invalid UTF-8
 * becomes U+FFFD. */

enum { BASIN_JSON_DEPTH = 16 };

typedef struct basin_json {
    FILE *file;
    bool line; /* all on one line */
    int depth;
    bool begun[BASIN_JSON_DEPTH]; /* whether the object or array has an entry already */
    bool array[BASIN_JSON_DEPTH];
} basin_json;

/* Opens the outermost object; the last basin_json_end closes it and ends the line. */
basin_json basin_json_begin(FILE *file);
/* The same without line breaks and blanks: a record of a log. */
basin_json basin_json_begin_line(FILE *file);
/* `key` is NULL inside an array. */
void basin_json_object(basin_json *json, const char *key);
void basin_json_array(basin_json *json, const char *key);
void basin_json_end(basin_json *json);

void basin_json_text(basin_json *json, const char *key, const char *value); /* NULL: null */
void basin_json_number(basin_json *json, const char *key, double value);
void basin_json_integer(basin_json *json, const char *key, int64_t value);
void basin_json_boolean(basin_json *json, const char *key, bool value);
void basin_json_numbers(basin_json *json, const char *key, const double *value, int64_t count);
void basin_json_shape(basin_json *json, const char *key, basin_shape shape);

/* One value by itself: text in quotes (`in_page`: inside an element of HTML, which no '<' of it may
 * end), and a number. */
void basin_json_quote(FILE *file, const char *text, bool in_page);
void basin_json_put_number(FILE *file, double value);

/* The shortest decimal that reads back as `value`, for CSV too; whole numbers without an exponent;
 * "nan", "inf", "-inf". */
enum { BASIN_NUMBER_TEXT = 32 };
char *basin_number_print(char text[BASIN_NUMBER_TEXT], double value);

#endif
