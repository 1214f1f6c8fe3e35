/* Settings as a table: the fields of a struct by name, so that what a model file's configuration
 * holds, what --print-config shows and what a preset sets are one list. */
#ifndef BASIN_TRAIN_RUN_SETTINGS_H
#define BASIN_TRAIN_RUN_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basin/status.h"

typedef enum basin_setting_kind {
    BASIN_SETTING_INTEGER, /* int64_t */
    BASIN_SETTING_REAL,    /* double */
    BASIN_SETTING_SWITCH,  /* bool */
    BASIN_SETTING_CHOICE,  /* const char *, one of `choices` */
    BASIN_SETTING_REALS,   /* double [count] */
} basin_setting_kind;

typedef struct basin_setting {
    const char *name; /* NULL ends a table */
    basin_setting_kind kind;
    size_t offset;
    double low, high;           /* INTEGER and REAL: the range a file may ask for */
    const char *const *choices; /* ends with NULL */
    int count;
    bool later;    /* files of earlier versions lack it: INTEGER and REAL only, */
    double absent; /* which then means this */
} basin_setting;

#define BASIN_SETTING_INTEGER_OF(type, field, low, high)                                           \
    { #field, BASIN_SETTING_INTEGER, offsetof(type, field), low, high, NULL, 0, false, 0 }
#define BASIN_SETTING_REAL_OF(type, field, low, high)                                              \
    { #field, BASIN_SETTING_REAL, offsetof(type, field), low, high, NULL, 0, false, 0 }
#define BASIN_SETTING_INTEGER_SINCE(type, field, low, high, absent)                                \
    { #field, BASIN_SETTING_INTEGER, offsetof(type, field), low, high, NULL, 0, true, absent }
#define BASIN_SETTING_REAL_SINCE(type, field, low, high, absent)                                   \
    { #field, BASIN_SETTING_REAL, offsetof(type, field), low, high, NULL, 0, true, absent }
#define BASIN_SETTING_SWITCH_OF(type, field)                                                       \
    { #field, BASIN_SETTING_SWITCH, offsetof(type, field), 0, 0, NULL, 0, false, 0 }
#define BASIN_SETTING_CHOICE_OF(type, field, choices)                                              \
    { #field, BASIN_SETTING_CHOICE, offsetof(type, field), 0, 0, choices, 0, false, 0 }
#define BASIN_SETTING_REALS_OF(type, field, count)                                                 \
    { #field, BASIN_SETTING_REALS, offsetof(type, field), 0, 0, NULL, count, false, 0 }
#define BASIN_SETTINGS_END                                                                         \
    { NULL, BASIN_SETTING_INTEGER, 0, 0, 0, NULL, 0, false, 0 }

/* The settings as a JSON object, one line, or indented for people; free it. NULL without memory. */
char *basin_settings_print(const void *settings, const basin_setting *table, bool indented);
/* Reads a JSON object into `settings`. Every field of the table must be there, but for
 * those of later versions; others are errors.
 * `path` is what errors call the file. Choices then point to the table's strings. */
basin_status basin_settings_parse(void *settings, const basin_setting *table, const char *json,
                                  const char *path, basin_error *error);
/* The name of the first field in which the two differ; NULL where they agree. */
const char *basin_settings_differ(const void *a, const void *b, const basin_setting *table);

#endif
