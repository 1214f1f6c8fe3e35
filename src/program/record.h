/* One result in three forms. A command says once what it found, in the order of its fields, and the
 * record prints it as text for people, as JSON or as CSV:
 *
 *     static void fill(basin_record *r, const void *context) {
 *         basin_record_text(r, "model", path);
 *         basin_record_table(r, "nodes", "nodes by score:");
 *         for (..) { basin_record_row(r); basin_record_text(r, "node", ..); }
 *         basin_record_end(r);
 *     }
 *     return basin_record_print(json, fill, &context, error);
 *
 * JSON has every field under its key. Text has aligned lines "name value" and tables; a name is the
 * key with blanks for underscores, or the part after a bar: "fit_seconds|seconds". A key that
 * begins with a dot is only in JSON, and so are groups inside a row; one that begins with
 * a bar is only in text. CSV has the rows of the table, objects inside them spread out; their
 * fields need not be the same in all rows. */
#ifndef BASIN_CLI_RECORD_H
#define BASIN_CLI_RECORD_H

#include <stddef.h>
#include <stdio.h>

#include "basin/tensor.h"

typedef enum basin_print_form {
    BASIN_FORM_TEXT,
    BASIN_FORM_JSON,
    BASIN_FORM_CSV,
} basin_print_form;

typedef struct basin_record basin_record;

basin_print_form basin_record_form(const basin_record *r);
bool basin_record_is_text(const basin_record *r);

/* Fields. The key is NULL in a list. Text is cleaned of control bytes in the text form. */
void basin_record_text(basin_record *r, const char *key, const char *value); /* NULL: none */
void basin_record_format(basin_record *r, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void basin_record_integer(basin_record *r, const char *key, int64_t value);
void basin_record_flag(basin_record *r, const char *key, bool value);
/* One double after `format`, which the text form uses ("%.2f dB"); the others have all digits.
 * NaN is null, empty in CSV, "-" in text. */
void basin_record_number(basin_record *r, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Several of them: "mae=%.4f;known=%lld", keys and formats; %lld is for integers, %s for text, %d
 * for flags. The compiler checks the types. */
void basin_record_fields(basin_record *r, const char *fields, ...)
    __attribute__((format(printf, 2, 3)));
/* Bytes, as GiB, MiB or KiB in text. */
void basin_record_bytes(basin_record *r, const char *key, int64_t bytes);
/* [mean, deviation]; "97.10 +- 0.52" in text. */
void basin_record_spread(basin_record *r, const char *key, int decimals, double mean,
                         double deviation);
/* [low, high]; "0.81 to 0.93" in text, each by `format`. */
void basin_record_interval(basin_record *r, const char *key, const char *format,
                           const double bound[2]) __attribute__((format(printf, 3, 0)));
/* Only in JSON. */
void basin_record_numbers(basin_record *r, const char *key, const double *value, int64_t count);
void basin_record_shape(basin_record *r, const char *key, basin_shape shape);

/* The fields of a result that is a struct, as a table that ends with {0}:
 *
 *     #define F(member, ...) BASIN_FIELD(basin_cut_report, member, __VA_ARGS__)
 *     static const basin_field fields[] = {F(cut, "cut|edges between parts"),
 *                                          F(share, "share", "%.1f %%", 100), {0}};
 *     basin_record_struct(r, fields, &report);
 *
 * A key that begins with '?' is left out where a real number is NaN, an integer is not above 0, a
 * text is NULL or a flag is false. */
typedef enum basin_field_kind {
    BASIN_FIELD_REAL,
    BASIN_FIELD_INTEGER, /* int64_t */
    BASIN_FIELD_INT,
    BASIN_FIELD_FLAG,
    BASIN_FIELD_BYTES, /* size_t */
    BASIN_FIELD_TEXT,  /* const char * */
    BASIN_FIELD_CHARS, /* an array of char */
} basin_field_kind;
typedef struct basin_field {
    size_t offset;
    basin_field_kind kind;
    const char *key;    /* NULL ends the table */
    const char *format; /* of a real number in text */
    double scale;       /* what a real number is multiplied by; 0: 1 */
} basin_field;
/* clang-format off */
#define BASIN_FIELD(type, member, ...)                                                             \
    {.offset = offsetof(type, member), .kind = _Generic((((type *)0)->member),                     \
         double: BASIN_FIELD_REAL, int64_t: BASIN_FIELD_INTEGER, int: BASIN_FIELD_INT,             \
         bool: BASIN_FIELD_FLAG, size_t: BASIN_FIELD_BYTES, const char *: BASIN_FIELD_TEXT,        \
         char *: BASIN_FIELD_CHARS), .key = __VA_ARGS__}
/* clang-format on */
void basin_record_struct(basin_record *r, const basin_field *table, const void *object);
/* A table with a row for each of `count` structs of `size` bytes. */
void basin_record_rows(basin_record *r, const char *key, const char *title,
                       const basin_field *table, const void *first, int64_t count, size_t size);

/* Groups; each is ended by basin_record_end. */
void basin_record_object(basin_record *r, const char *key);
void basin_record_list(basin_record *r, const char *key); /* values without keys */
/* An object only in JSON: in the other forms its fields belong to the enclosing group. */
void basin_record_section(basin_record *r, const char *key);
/* `title` (or NULL) stands above the table in text, where it has rows. A row ends where the next
 * one begins, and with its table. */
void basin_record_table(basin_record *r, const char *key, const char *title);
void basin_record_row(basin_record *r);
/* A table whose rows JSON has under keys, as objects of an object. */
void basin_record_dictionary(basin_record *r, const char *key, const char *title);
void basin_record_entry(basin_record *r, const char *key);
void basin_record_end(basin_record *r);
/* Keys come from data, and mean nothing else: no dot, no bar. */
void basin_record_data_keys(basin_record *r, bool are);
/* Rows give only the heading of a CSV, for tables that may have no rows. */
void basin_record_heading_only(basin_record *r, bool only);

/* A line only in text. */
void basin_record_note(basin_record *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

typedef void basin_record_fill(basin_record *r, const void *context);
/* Prints what `fill` says on standard output, as JSON or text; or writes it to the file `path`
 * (NULL: standard output). */
basin_status basin_record_print(bool json, basin_record_fill *fill, const void *context,
                                basin_error *error);
basin_status basin_record_write(const char *path, basin_print_form form, basin_record_fill *fill,
                                const void *context, basin_error *error);
/* The same where rows come one by one while work goes on. */
basin_record *basin_record_open(FILE *file, basin_print_form form); /* NULL: out of memory */
basin_status basin_record_close(basin_record *r, basin_error *error);

#endif
