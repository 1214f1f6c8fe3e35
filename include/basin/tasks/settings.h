/* The settings of a task: what is trained, and how. Each has one name, the same in model files, in
 * configuration files, as an option of the program (with dashes for underscores) and in Python.
 *
 *     basin_settings *settings;
 *     basin_settings_new(&settings, "image", "default", &error);
 *     basin_settings_set_number(settings, "epochs", 5, &error);
 *     basin_settings_set(settings, "crop", "random", &error);
 *
 * A preset gives every setting a value; later ones override it. Presets are files of settings
 * (share/basin/presets) that are embedded in the library. */
#ifndef BASIN_TASKS_SETTINGS_H
#define BASIN_TASKS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "basin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum basin_setting_kind {
    BASIN_SETTING_INTEGER,
    BASIN_SETTING_REAL,
    BASIN_SETTING_SWITCH,   /* "on" or "off"; true or false in JSON */
    BASIN_SETTING_CHOICE,   /* one word of `choices` */
    BASIN_SETTING_CHANNELS, /* three numbers, one per channel: "0.5,0.5,0.5" */
    BASIN_SETTING_TEXT,     /* any text that is not empty; only options of the program are one */
} basin_setting_kind;

/* The description of a setting. The library provides these; fields may be added at the end. */
typedef struct basin_setting {
    const char *name; /* "head_dim" */
    basin_setting_kind kind;
    const char *value;          /* what help calls the value: "D", "N", "RATE" */
    double low, high;           /* the range of an INTEGER or REAL */
    const char *const *choices; /* NULL-terminated */
    const char *help;           /* a sentence or two */
    const char *absent; /* what files of earlier versions meant, as text; NULL: it must be there */
    bool loose;         /* a resumed run may change it */
    /* The values of other settings with which it has an effect: "arch=et|vit hopfield=on trees!=0",
     * all of them; NULL: always. One of "hopfield=on,arch=vit" is enough. Names that the task does
     * not have are ignored. */
    const char *needs;
} basin_setting;

typedef struct basin_settings basin_settings;

/* `task` is "image", "anomaly", "node" or "graphs"; `preset` is the name of one, NULL for
 * "default", or a file NAME.json. */
BASIN_API basin_status basin_settings_new(basin_settings **settings, const char *task,
                                          const char *preset, basin_error *error);
BASIN_API void basin_settings_free(basin_settings *settings);
BASIN_API const char *basin_settings_task(const basin_settings *settings);

/* The settings of a task by number, from 0; NULL past the last and where there is no such task. */
BASIN_API const basin_setting *basin_setting_at(const char *task, int number);
/* Its presets by name, ended by NULL; "default" comes first. */
BASIN_API const char *const *basin_settings_presets(const char *task);

/* Gives all settings the values of a preset, or of the default and then of a file NAME.json. */
BASIN_API basin_status basin_settings_start(basin_settings *settings, const char *preset,
                                            basin_error *error);
/* An error where settings conflict, or where one that was set by its name has no effect with the
 * others. Training checks this as well. */
BASIN_API basin_status basin_settings_check(const basin_settings *settings, basin_error *error);
/* Sets one by its name, from text. */
BASIN_API basin_status basin_settings_set(basin_settings *settings, const char *name,
                                          const char *text, basin_error *error);
/* The same from a number, for an INTEGER (up to 2^53 - 1), a REAL, or a SWITCH (0 or 1). */
BASIN_API basin_status basin_settings_set_number(basin_settings *settings, const char *name,
                                                 double value, basin_error *error);
/* The value as text that basin_settings_set accepts, cut to `size` bytes. */
BASIN_API basin_status basin_settings_get(char *text, size_t size, const basin_settings *settings,
                                          const char *name, basin_error *error);
/* The same as a number. */
BASIN_API basin_status basin_settings_get_number(double *value, const basin_settings *settings,
                                                 const char *name, basin_error *error);
/* All of them as a JSON object, indented; release it with basin_free. NULL when out of memory. */
BASIN_API char *basin_settings_json(const basin_settings *settings);
/* Reads a file with such an object, or with one under "settings" next to "task", the name of the
 * task. Settings that it does not name keep their values. */
BASIN_API basin_status basin_settings_read(basin_settings *settings, const char *path,
                                           basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
