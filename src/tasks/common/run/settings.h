/* Settings inside the library: a task lists its settings once, as a macro, and gets of it the
 * struct that holds them and the table that describes them.
 *
 *     typedef struct things { THINGS(BASIN_SETTING_FIELD) } things;
 *     const basin_setting_entry table[] = {THINGS(BASIN_SETTING_ENTRY) BASIN_SETTINGS_END};
 *
 * where BASIN_SETTINGS_TYPE is defined as `things`, and THINGS(X) lists
 *
 *     X(INTEGER, dim, "D", 1, 65536, "Token dimension.")
 *     X(SWITCH, flip, "Mirror every other picture.")
 *
 * Behind the help an entry may set further members: `.absent = "0"`, `.needs =
 * "arch=et"`. What several tasks share (BASIN_BLOCK_SETTINGS, BASIN_RUN_SETTINGS) is listed here.
 */
#ifndef BASIN_TRAIN_RUN_SETTINGS_H
#define BASIN_TRAIN_RUN_SETTINGS_H

#include <string.h>

#include "basin/energy.h"
#include "basin/tasks/settings.h"
#include "basin/train.h"

/* ---- lists become structs and tables ---- */

typedef double basin_channels[3];
#define BASIN_TYPE_INTEGER int64_t
#define BASIN_TYPE_REAL double
#define BASIN_TYPE_SWITCH bool
#define BASIN_TYPE_CHOICE const char *
#define BASIN_TYPE_CHANNELS basin_channels
#define BASIN_SETTING_FIELD(kind, name, ...) BASIN_TYPE_##kind name;

/* A setting, and where it is in the task's struct. */
typedef struct basin_setting_entry {
    basin_setting is;
    size_t offset;
} basin_setting_entry;

#define BASIN_SETTING_ENTRY(kind, name, ...) BASIN_ENTRY_##kind(name, __VA_ARGS__, .loose = false),
#define BASIN_LOOSE_ENTRY(kind, name, ...) BASIN_ENTRY_##kind(name, __VA_ARGS__, .loose = true),
#define BASIN_ENTRY(kind_, name_, ...)                                                             \
    { {#name_, BASIN_SETTING_##kind_, __VA_ARGS__}, offsetof(BASIN_SETTINGS_TYPE, name_) }
#define BASIN_ENTRY_NUMBER(kind_, name_, value_, low_, high_, help_, ...)                          \
    BASIN_ENTRY(kind_, name_, .value = value_, .low = low_, .high = high_, .help = help_,          \
                __VA_ARGS__)
#define BASIN_ENTRY_INTEGER(...) BASIN_ENTRY_NUMBER(INTEGER, __VA_ARGS__)
#define BASIN_ENTRY_REAL(...) BASIN_ENTRY_NUMBER(REAL, __VA_ARGS__)
#define BASIN_ENTRY_SWITCH(name_, help_, ...) BASIN_ENTRY(SWITCH, name_, .help = help_, __VA_ARGS__)
#define BASIN_ENTRY_CHOICE(name_, choices_, help_, ...)                                            \
    BASIN_ENTRY(CHOICE, name_, .choices = choices_, .help = help_, __VA_ARGS__)
#define BASIN_ENTRY_CHANNELS(name_, value_, help_, ...)                                            \
    BASIN_ENTRY(CHANNELS, name_, .value = value_, .help = help_, __VA_ARGS__)
#define BASIN_CHOICES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define BASIN_SETTINGS_END                                                                         \
    { .offset = 0 }

/* ---- what tasks share ---- */

/* The paper's block and its descent. `needs` names `arch` and `form`, which tasks without them pass
 * over. Other models than the Energy Transformer have heads or hidden units by the same names. */
#define BASIN_NEEDS_DESCENT "arch=et form=energy"
#define BASIN_NEEDS_ATTENTION "arch=et form=energy attention=on"
#define BASIN_NEEDS_HOPFIELD "arch=et form=energy|published hopfield=on"
#define BASIN_NEEDS_HEADS                                                                          \
    "arch=et|vit|albert|hyperset|gt|gat form=energy|published "                                    \
    "attention=on,arch=vit|albert|hyperset|gt|gat"
#define BASIN_NEEDS_HIDDEN                                                                         \
    "arch=et|vit|albert|hyperset form=energy|published hopfield=on,arch=vit|albert|hyperset"
#define BASIN_BLOCK_SETTINGS(X)                                                                    \
    X(INTEGER, dim, "D", 1, 65536, "Dimension of a token.", .needs = "form=energy|published")      \
    X(INTEGER, heads, "H", 1, 4096, "Heads of attention.", .needs = BASIN_NEEDS_HEADS)             \
    X(INTEGER, head_dim, "Y", 1, 65536, "Dimension of a head: of queries and keys.",               \
      .needs = BASIN_NEEDS_HEADS)                                                                  \
    X(INTEGER, memories, "M", 1, 1 << 24, "Memories of the Hopfield network.",                     \
      .needs = BASIN_NEEDS_HIDDEN)                                                                 \
    X(INTEGER, steps, "T", 1, 10000, "Steps of the descent in a block.",                           \
      .needs = "arch=et|vit|albert|hyperset form=energy|published implicit=off")                   \
    X(REAL, alpha, "X", 0, 1e6, "Size of a step of the descent.", .needs = BASIN_NEEDS_DESCENT)    \
    X(SWITCH, implicit,                                                                            \
      "Instead of `steps` steps, descend to a fixed point, held near the initial tokens; "         \
      "gradients are those of that point, and training takes the memory of one step.",             \
      .absent = "off", .needs = BASIN_NEEDS_DESCENT)                                               \
    X(INTEGER, rest_steps, "T", 0, 1e6, "Maximum steps to the fixed point; 0: 500.",               \
      .absent = "0", .needs = BASIN_NEEDS_DESCENT " implicit=on")                                  \
    X(REAL, rest_until, "SHARE", 0, 0.999,                                                         \
      "At the fixed point no force moves a token by more than this share of its length; 0: 1e-4.", \
      .absent = "0", .needs = BASIN_NEEDS_DESCENT " implicit=on")                                  \
    X(INTEGER, rest_products, "N", 0, 1e6,                                                         \
      "Maximum products with the energy's Hessian for a gradient at the fixed point; 0: 100.",     \
      .absent = "0", .needs = BASIN_NEEDS_DESCENT " implicit=on")                                  \
    X(REAL, rest_accuracy, "SHARE", 0, 0.999,                                                      \
      "How far its linear system may be off, relative; 0: 1e-3.", .absent = "0",                   \
      .needs = BASIN_NEEDS_DESCENT " implicit=on")                                                 \
    X(SWITCH, attention, "The attention energy.", .needs = "arch=et form=energy|published")        \
    X(SWITCH, hopfield, "The Hopfield energy.", .needs = "arch=et form=energy|published")          \
    X(CHOICE, hopfield_kind, BASIN_CHOICES("relu", "power", "softmax"),                            \
      "What the Hopfield network makes of a memory's overlap: relu(z)^2 / 2; relu(z)^n / n; or "   \
      "the log-sum-exp over memories.",                                                            \
      .absent = "relu", .needs = BASIN_NEEDS_HOPFIELD)                                             \
    X(REAL, hopfield_power, "N", 1, 100, "The n of the power.", .absent = "3",                     \
      .needs = BASIN_NEEDS_HOPFIELD " hopfield_kind=power")                                        \
    X(REAL, beta, "X", 0, 1e6,                                                                     \
      "Inverse temperature of attention; where it is learned, its first value. 0: 1 / sqrt(Y).",   \
      .absent = "0", .needs = BASIN_NEEDS_ATTENTION)                                               \
    X(SWITCH, learn_beta, "Learn one inverse temperature per head.", .absent = "off",              \
      .needs = BASIN_NEEDS_ATTENTION)                                                              \
    X(SWITCH, positive_gamma,                                                                      \
      "Keep the layer norms' gamma above 0 in training: below it the descent climbs.",             \
      .absent = "off", .needs = BASIN_NEEDS_DESCENT)

/* "relu", "power" or "softmax". */
static inline basin_hopfield basin_hopfield_named(const char *name) {
    if (!strcmp(name, "power")) return BASIN_HOPFIELD_POWER;
    return !strcmp(name, "softmax") ? BASIN_HOPFIELD_SOFTMAX : BASIN_HOPFIELD_RELU;
}

/* The initialisers of a basin_block_config; `s` points to the task's struct. */
#define BASIN_BLOCK_OF(s)                                                                          \
    .dim = (s)->dim, .heads = (s)->heads, .head_dim = (s)->head_dim, .memories = (s)->memories,    \
    .no_attention = !(s)->attention, .no_hopfield = !(s)->hopfield,                                \
    .hopfield = basin_hopfield_named((s)->hopfield_kind), .power = (s)->hopfield_power,            \
    .beta = (s)->beta, .learn_beta = (s)->learn_beta, .positive_gamma = (s)->positive_gamma

/* The initialisers of a basin_descent_spec. */
#define BASIN_DESCENT_OF(s)                                                                        \
    .steps = (int)(!(s)->implicit    ? (s)->steps                                                  \
                   : (s)->rest_steps ? (s)->rest_steps                                             \
                                     : 500),                                                       \
    .alpha = (s)->alpha,                                                                           \
    .implicit = {.on = (s)->implicit,                                                              \
                 .until = (s)->rest_until,                                                         \
                 .accuracy = (s)->rest_accuracy,                                                   \
                 .products = (int)((s)->rest_products ? (s)->rest_products : 100)}

/* A training run. */
#define BASIN_RUN_SETTINGS(X)                                                                      \
    X(INTEGER, warmup, "EPOCHS", 0, 1e9, "Epochs in which the learning rate rises.")               \
    X(INTEGER, batch, "N", 1, 1e9, "Items per step: pictures, graphs, or nodes that are sampled.", \
      .needs = "sampling!=full")                                                                   \
    X(REAL, rate, "RATE", 0, 1e3, "Highest learning rate.")                                        \
    X(REAL, rate_first, "RATE", -1, 1e3,                                                           \
      "Learning rate of the first step; -1: 0, or without warm-up the highest.", .absent = "-1",   \
      .needs = "warmup!=0")                                                                        \
    X(REAL, rate_last, "RATE", -1, 1e3,                                                            \
      "Learning rate of the last step; -1: a twentieth of the highest, or without warm-up the "    \
      "highest.",                                                                                  \
      .absent = "-1")                                                                              \
    X(REAL, decay, "X", 0, 1e3, "Weight decay.")                                                   \
    X(REAL, beta2, "X", 0, 1, "Second decay rate of AdamW.", .absent = "0.999")                    \
    X(REAL, clip, "NORM", 0, 1e9, "Maximum norm of the gradient; 0: no limit.")                    \
    X(INTEGER, seed, "N", 0, 9007199254740991.0, "Seed of all random numbers.")
/* A run whose batches are cut into shards (common/shards/shards.h). */
#define BASIN_SHARD_SETTINGS(X)                                                                    \
    X(INTEGER, shards, "N", 0, 65536,                                                              \
      "Parts of a batch that are computed apart, their gradients added in one order: the weights " \
      "do not depend on how many ranks share them. 0: 1, or with mpirun up to 8 that divide the "  \
      "batch.",                                                                                    \
      .absent = "1")
/* The basin_schedule of these, with `per_epoch` steps per epoch. */
#define BASIN_SCHEDULE_OF(s, per_epoch)                                                            \
    basin_schedule_make(per_epoch, (s)->epochs, (s)->warmup, (s)->rate, (s)->rate_first,           \
                        (s)->rate_last)
/* The same, and a resumed run may change them. More epochs than before lengthen the run. */
#define BASIN_LOOSE_SETTINGS(X)                                                                    \
    X(INTEGER, epochs, "N", 0, 1e9,                                                                \
      "Passes over the training data; for graphs 0: 100, of large sets fewer.")                    \
    X(INTEGER, patience, "EPOCHS", 0, 1e9,                                                         \
      "Stop after this number of epochs without a better validation score; 0: never.",             \
      .absent = "0")                                                                               \
    X(SWITCH, recompute,                                                                           \
      "Keep one token tensor per step of the descent and recompute the rest: less memory, more "   \
      "time.",                                                                                     \
      .absent = "off", .needs = "form=energy implicit=off")

/* ---- a task's settings as a whole ---- */

/* The tasks and their presets: share/basin/presets/TASK/NAME.json, which the build embeds
 * (cmake/presets.cmake). "default" is the first and names every setting of the table; the others
 * name what differs from it. A task NAME defines basin_NAME_task. */
typedef struct basin_preset_list {
    const char *task;                      /* NULL ends the lists */
    const char *const *name, *const *json; /* NULL-terminated */
    const struct basin_task_settings *settings;
} basin_preset_list;
extern const basin_preset_list basin_presets[];

typedef struct basin_task_settings {
    const char *task; /* "image" */
    const basin_setting_entry *table;
    size_t size; /* of the task's struct */
    /* What ranges cannot express: settings that conflict. */
    basin_status (*check)(const void *values, basin_error *error);
    const void *base; /* of fields that the table does not have; NULL: they are zero */
    const basin_preset_list *presets; /* NULL: those of the task's name in basin_presets */
    const char *model; /* "basin.model" of its files, or the first word of it; NULL: the task */
} basin_task_settings;

struct basin_settings {
    const basin_task_settings *kind;
    void *values; /* the task's struct */
    bool *given;  /* [entries of the table] set by name since the last start; NULL: not known */
};

basin_status basin_settings_make(basin_settings **settings, const basin_task_settings *kind,
                                 const char *preset, basin_error *error);
/* Fills `values` by a preset's name, or from a file NAME.json; an error lists those that there are.
 */
basin_status basin_settings_preset(void *values, const basin_task_settings *kind,
                                   const char *preset, basin_error *error);

/* Takes every setting that was not set by its name from `values`, a struct of the same task. */
void basin_settings_underlay(basin_settings *settings, const void *values);
/* Whether a setting was set by its name. */
bool basin_settings_given(const basin_settings *settings, const char *name);
/* An error where settings that were set by their names have no effect with the values of others. */
basin_status basin_settings_check_effect(const basin_settings *settings, basin_error *error);

/* The entry of that name; NULL where there is none. */
const basin_setting_entry *basin_setting_find(const basin_setting_entry *table, const char *name);
/* Sets one field from text, or prints it. TEXT, and a CHOICE whose words are in `value`, "a|b|c",
 * keep the text. */
enum { BASIN_SETTING_VALUE = 200 }; /* bytes that are enough for all others */
basin_status basin_setting_parse(void *values, const basin_setting_entry *setting, const char *text,
                                 basin_error *error);
void basin_setting_print(char *text, size_t size, const void *values,
                         const basin_setting_entry *setting);

/* Words as "a|b|c"; NULL ends them. */
void basin_choices_print(char *text, size_t size, const char *const *choice);

/* The settings as a JSON object, one line or indented for people; free it. NULL without memory. */
char *basin_settings_print(const void *values, const basin_setting_entry *table, bool indented);
/* Reads a JSON object. `whole`: every setting must be there, but for those that its version did
 * not have, as in model files; else those that are not named stay. Unknown ones are errors. `path`
 * is what errors call the file. */
basin_status basin_settings_parse(void *values, const basin_setting_entry *table, const char *json,
                                  bool whole, const char *path, basin_error *error);
/* Reads a configuration file, see basin_settings_read. */
basin_status basin_settings_load(void *values, const basin_task_settings *kind, const char *path,
                                 basin_error *error);
/* An error where they are another task's. */
basin_status basin_settings_of(const basin_settings *settings, const basin_task_settings *kind,
                               basin_error *error);
/* An error where a run that is resumed from `path` would change what it may not: anything but loose
 * settings, and those only where a run may go on with them. */
basin_status basin_settings_match(const void *saved, const void *asked,
                                  const basin_setting_entry *table, const char *path,
                                  basin_error *error);
/* An error where settings by these names (NULL ends them) differ from those of the model file
 * `path`, whose weights a run is to begin with. */
basin_status basin_settings_match_weights(const void *its, const void *asked,
                                          const basin_setting_entry *table,
                                          const char *const *names, const char *path,
                                          basin_error *error);

/* ---- settings in model files and checkpoints: metadata "basin.model" and "basin.config" ---- */

/* An error where a file's model is not `model`, or `model` and another word. */
basin_status basin_settings_check_model(const basin_bundle *bundle, const char *model,
                                        basin_error *error);
basin_status basin_settings_take(void *values, const basin_task_settings *kind,
                                 const basin_bundle *bundle, basin_error *error);
/* `model` NULL: only the settings. */
basin_status basin_settings_store(basin_bundle *bundle, const char *model, const void *values,
                                  const basin_task_settings *kind, basin_error *error);

/* ---- what the shared settings mean ---- */

/* Whether a choice has the value `name`; settings' strings may come from anywhere. */
bool basin_choice_is(const char *choice, const char *name);
/* The schedule of a run with `steps` steps per epoch; rates below 0 as the settings' help
 * describes them. */
basin_schedule basin_schedule_make(int64_t steps, int64_t epochs, int64_t warmup, double rate,
                                   double first, double last);

#endif
