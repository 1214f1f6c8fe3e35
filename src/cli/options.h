/* Options as a table, one per command: the parser follows it, and the help, the manual and the
 * completions are printed from it, so that none of them can disagree.
 *
 * Values go into the command's own struct, at the offset an entry names; the struct starts as a
 * copy of the command's defaults, which the help prints. */
#ifndef BASIN_CLI_OPTIONS_H
#define BASIN_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "basin/plan.h"
#include "basin/tasks/settings.h"

typedef enum basin_option_kind {
    BASIN_OPTION_FLAG,    /* bool; --name sets it */
    BASIN_OPTION_SWITCH,  /* bool; --name sets it, --no-name clears it */
    BASIN_OPTION_INTEGER, /* int64_t within low .. high */
    BASIN_OPTION_REAL,    /* double within low .. high, finite */
    BASIN_OPTION_TEXT,    /* const char * */
    BASIN_OPTION_CHOICE,  /* const char *, one of `value`: "ref|cpu" */
} basin_option_kind;

typedef struct basin_option {
    const char *name; /* without the dashes; NULL ends a table */
    char letter;      /* 0 where there is none */
    basin_option_kind kind;
    size_t offset;
    const char *value; /* what the help calls the value: "N", "FILE", "ref|cpu" */
    double low, high;
    const char *help;
    /* The values of other options beside which this one has an effect, as base/needs.h has it
     * ("plain=off", "base!="), OPERAND being the first operand; NULL: any. Who gives it beside
     * others gets an error. */
    const char *needs;
    bool writes; /* a file that is written: never one that is read or written, too */
    bool more;   /* few people set it: --help-all shows it, --help does not */
} basin_option;

/* Behind the help an entry may set `.needs`, `.writes` and `.more`. */
#define BASIN_ENTRY_OF(type, field_, kind_, name_, letter_, value_, low_, high_, ...)              \
    {                                                                                              \
        .name = name_, .letter = letter_, .kind = kind_, .offset = offsetof(type, field_),         \
        .value = value_, .low = low_, .high = high_, .help = __VA_ARGS__                           \
    }
#define BASIN_FLAG(type, field, letter, name, ...)                                                 \
    BASIN_ENTRY_OF(type, field, BASIN_OPTION_FLAG, name, letter, NULL, 0, 0, __VA_ARGS__)
#define BASIN_SWITCH(type, field, name, ...)                                                       \
    BASIN_ENTRY_OF(type, field, BASIN_OPTION_SWITCH, name, 0, NULL, 0, 0, __VA_ARGS__)
#define BASIN_INTEGER(type, field, name, value, low, high, ...)                                    \
    BASIN_ENTRY_OF(type, field, BASIN_OPTION_INTEGER, name, 0, value, low, high, __VA_ARGS__)
#define BASIN_REAL(type, field, name, value, low, high, ...)                                       \
    BASIN_ENTRY_OF(type, field, BASIN_OPTION_REAL, name, 0, value, low, high, __VA_ARGS__)
#define BASIN_TEXT(type, field, letter, name, value, ...)                                          \
    BASIN_ENTRY_OF(type, field, BASIN_OPTION_TEXT, name, letter, value, 0, 0, __VA_ARGS__)
#define BASIN_CHOICE(type, field, name, value, ...)                                                \
    BASIN_ENTRY_OF(type, field, BASIN_OPTION_CHOICE, name, 0, value, 0, 0, __VA_ARGS__)
#define BASIN_OPTIONS_END                                                                          \
    { .name = NULL }

/* The options that many commands share, with the same name and meaning everywhere. */
#define BASIN_OPTION_JSON(type) BASIN_OPTION_JSON_FOR(type, NULL)
/* Of commands that print JSON beside some options alone. */
#define BASIN_OPTION_JSON_FOR(type, needs_)                                                        \
    BASIN_FLAG(type, json, 0, "json", "Print the results as JSON.", .needs = needs_)
#define BASIN_OPTION_QUIET(type) BASIN_FLAG(type, quiet, 'q', "quiet", "No progress and no notes.")
#define BASIN_OPTION_BACKEND(type) BASIN_ENTRY_BACKEND(type, backend)
#define BASIN_ENTRY_BACKEND(type, field)                                                           \
    BASIN_CHOICE(type, field, "backend", "ref|cpu|cuda",                                           \
                 "What computes: ref (double, plain loops, slow), cpu (float, fast) or cuda "      \
                 "(float, on an NVIDIA GPU).")
#define BASIN_OPTION_PRODUCTS(type) BASIN_ENTRY_PRODUCTS(type, products)
#define BASIN_ENTRY_PRODUCTS(type, field)                                                          \
    BASIN_CHOICE(type, field, "products", "f32|tf32|bf16x6|bf16x3",                                \
                 "Precision of matrix products. f32: float. tf32, on cuda: factors rounded to 10 " \
                 "bits. bf16x6 and bf16x3, on processors with bfloat16 instructions: sums of six " \
                 "products (as accurate as f32) or three (errors of about 2^-16).",                \
                 .more = true)
#define BASIN_OPTION_DTYPE(type) BASIN_ENTRY_DTYPE(type, dtype)
#define BASIN_ENTRY_DTYPE(type, field)                                                             \
    BASIN_CHOICE(type, field, "dtype", "f32|bf16|fp8",                                             \
                 "Type of stored intermediate results. bf16: factors of large products and of "    \
                 "attention are bfloat16, sums float; on cuda, and on processors with bfloat16 "   \
                 "instructions. fp8: the same, and large products of tokens with weights read 8 "  \
                 "bits; on cuda with compute capability 9.0.",                                     \
                 .more = true)
#define BASIN_OPTION_THREADS(type) BASIN_ENTRY_THREADS(type, threads)
#define BASIN_ENTRY_THREADS(type, field)                                                           \
    BASIN_INTEGER(type, field, "threads", "N", 0, 4096, "Number of threads; 0 means one per core.")
#define BASIN_OPTION_SEED(type) BASIN_OPTION_SEED_FOR(type, NULL)
/* A seed that counts beside some options alone. */
#define BASIN_OPTION_SEED_FOR(type, needs_)                                                        \
    BASIN_INTEGER(type, seed, "seed", "N", 0, 9007199254740991.0, "Seed of all random numbers.",   \
                  .needs = needs_, .more = true)

/* What computes: on every command that does, the same four. `type` has a member `compute`. */
typedef struct basin_compute_flags {
    const char *backend, *products, *dtype; /* dtype NULL: f32 */
    int64_t threads;
    bool narrow_all; /* not only large factors; verify's own option */
} basin_compute_flags;

#define BASIN_COMPUTE_DEFAULT                                                                      \
    { .backend = "cpu", .products = "f32" }
#define BASIN_COMPUTE_OPTIONS(type) BASIN_COMPUTE_ENTRIES(type, compute)
#define BASIN_COMPUTE_ENTRIES(type, field)                                                         \
    BASIN_ENTRY_BACKEND(type, field.backend), BASIN_ENTRY_PRODUCTS(type, field.products),          \
        BASIN_ENTRY_DTYPE(type, field.dtype), BASIN_ENTRY_THREADS(type, field.threads)

/* Opens what those options name. */
basin_status basin_compute_open(basin_backend **backend, const basin_compute_flags *flags,
                                basin_error *error);

/* What BASIN_OPTION_DTYPE read, for basin_compute.storage; f32 for NULL. */
basin_dtype basin_option_dtype(const char *name);
/* What BASIN_OPTION_PRODUCTS read, for basin_compute.products. */
basin_products basin_option_products(const char *name);
/* An error where this backend would compute in its own precision, whatever was asked. */
basin_status basin_option_products_check(const char *products, const char *backend,
                                         basin_error *error);

/* What a command takes: its own table and, where it has a task, the task's settings, which are
 * options by their names with dashes; `settings_at` is where the values hold a basin_settings *. */
typedef struct basin_option_set {
    const basin_option *option;
    const char *task; /* or NULL */
    size_t settings_at;
} basin_option_set;

enum { BASIN_OPTIONS_MOST = 128 }; /* of a command's own table, and of a task's settings */

/* What a parse found beside the values. */
typedef struct basin_parsed {
    int operands;
    bool help, help_all; /* --help or --help-all was met, and nothing else is promised */
    char notes[900];     /* a line for each option that was given twice */
    /* What was given for each option of both tables: the value, "on" for a flag; NULL: not given.
     */
    const char *option[BASIN_OPTIONS_MOST], *setting[BASIN_OPTIONS_MOST];
} basin_parsed;

/* Reads `count` arguments into `values`. Operands move to the front of `argument`, in order. Errors
 * are BASIN_BAD_VALUE: wrong usage. */
basin_status basin_options_parse(void *values, basin_parsed *parsed, const basin_option_set *set,
                                 int count, char **argument, basin_error *error);
/* An error where an option that was given has no effect beside the others (`needs`), or names a
 * file to write that is an operand or another's (`writes`). */
basin_status basin_options_check(const void *values, const basin_parsed *parsed,
                                 const basin_option_set *set, char **operand, basin_error *error);
/* An error where a file cannot be written that an option names: before the work, not after it. */
basin_status basin_options_try_files(const void *values, const basin_parsed *parsed,
                                     const basin_option_set *set, basin_error *error);

/* ---- pages ---- */

/* One option as pages and completions show it, whichever table it comes from. */
typedef struct basin_option_row {
    char letter;      /* 0 where there is none */
    char name[64];    /* without dashes: "head-dim" */
    bool negatable;   /* there is --no-name, too */
    char value[300];  /* "N", "ref|cpu"; "" where it takes none */
    bool choice;      /* `value` lists all that it may be */
    char initial[64]; /* the default; "" where there is none worth a word */
    const char *help;
    bool setting; /* of the task's table */
    bool more;    /* not in the short help */
} basin_option_row;

/* The i-th row: the command's own, --help, then the task's settings. False behind the last. */
bool basin_option_row_at(basin_option_row *row, const basin_option_set *set, const void *defaults,
                         int i);
/* "-o, --output FILE", "--[no-]flip". */
void basin_option_row_name(char *text, size_t size, const basin_option_row *row);

/* The options with their help, wrapped to the width of a page: all of them, or those that most
 * people set, with the first sentence on each. Defaults come from `defaults`. Returns how many were
 * left out. */
int basin_options_print(FILE *file, const basin_option_set *set, const void *defaults, bool all);
/* The same as a Markdown table. */
void basin_options_print_markdown(FILE *file, const basin_option_set *set, const void *defaults);
/* `text` wrapped at `width` columns, continued at `indent`; the cursor stands at `column`. */
void basin_text_wrap(FILE *file, const char *text, int column, int indent, int width);

enum { BASIN_PAGE_WIDTH = 80 };

#endif
