/* What a command is, and the list of them. A command parses (its option table), calls the library
 * and prints; it computes nothing itself.
 *
 * Exit codes: 0 success, 1 failure, 2 wrong usage, 75 a run that was asked to end and saved itself.
 */
#ifndef BASIN_CLI_COMMAND_H
#define BASIN_CLI_COMMAND_H

#include "cli/options.h"

enum {
    BASIN_EXIT_OK = 0,
    BASIN_EXIT_FAILURE = 1,
    BASIN_EXIT_USAGE = 2,
    BASIN_EXIT_AGAIN = 75, /* EX_TEMPFAIL: a run that a scheduler ended, and may begin again */
};

typedef struct basin_command {
    const char *name;     /* "info", or noun and verb: "graph train" */
    const char *summary;  /* one line, no full stop */
    const char *operands; /* "FILE..." */
    int operands_least, operands_most;
    const char *text;    /* paragraphs for the help */
    const char *example; /* lines, indented by two blanks */
    const basin_option *option;
    const void *defaults; /* [size] bytes, what `options` of run starts as */
    size_t size;
    /* A command that trains takes the settings of a task as options: `options` hold them at
     * `settings_at` (basin_settings *), and at `start_at` where they start (basin_start). */
    const char *task; /* or NULL */
    size_t settings_at, start_at;
    /* A command that several ranks may share finds them at `ranks_at` (basin_ranks *); the offset 0
     * stands for none, so that they are never the first of the options. */
    size_t ranks_at;
    /* A command that asks which options were given (basin_option_given) finds what was parsed at
     * `parsed_at` (const basin_parsed *); 0: none does. */
    size_t parsed_at;
    /* Does it. What fails is reported by the caller, who also prints how wrong usage is put right
     * (basin_usage). */
    basin_status (*run)(const void *options, int operands, char **operand, basin_error *error);
} basin_command;

/* The head of such a function; and the options of a command. */
#define BASIN_RUN(name)                                                                            \
    static basin_status name(const void *values __attribute__((unused)),                           \
                             int operands __attribute__((unused)),                                 \
                             char **operand __attribute__((unused)), basin_error *error)
#define BASIN_COMMAND_OPTIONS(table_, defaults_)                                                   \
    .option = table_, .defaults = &defaults_, .size = sizeof defaults_

/* What `run` may return besides a status: each ends the program with its own exit code. */
#define BASIN_USAGE ((basin_status)100)    /* wrong usage; the error says what */
#define BASIN_REPORTED ((basin_status)101) /* a failure that has been said already */
#define BASIN_AGAIN ((basin_status)102)    /* BASIN_EXIT_AGAIN */

/* Where settings start: a preset, then a file; options override both. */
typedef struct basin_start {
    const char *preset, *config;
    bool print_config;
} basin_start;

#define BASIN_START_ENTRIES(type, field)                                                           \
    BASIN_TEXT(type, field.preset, 0, "preset", "NAME",                                            \
               "The settings to start from; other options override them. paper-*: the paper's "    \
               "tables; published-*: its released code; the others are ours."),                    \
        BASIN_TEXT(type, field.config, 0, "config", "FILE",                                        \
                   "Settings as --print-config prints them; they override the preset."),           \
        BASIN_FLAG(type, field.print_config, 0, "print-config",                                    \
                   "Print the settings, and what the run would take, and do nothing.")
#define BASIN_OPTIONS_START(type) BASIN_START_ENTRIES(type, start)

extern const basin_command *const basin_commands[]; /* ends with NULL */

/* All commands in the order of `basin help`, and their groups; a command NOUN VERB is defined as
 * basin_command_NOUN_VERB. */
/* clang-format off */
#define BASIN_COMMANDS(X) \
    X(image_train) X(image_complete) X(image_eval) X(image_report) X(image_export) \
    X(image_import) \
    X(anomaly_train) X(anomaly_score) X(anomaly_eval) X(anomaly_explain) X(anomaly_report) \
    X(node_train) X(node_predict) X(node_eval) X(node_explain) \
    X(graph_train) X(graph_predict) X(graph_explain) X(graph_eval) X(graph_cv) \
    X(text_train) X(text_generate) X(text_eval) \
    X(zoo_list) X(zoo_show) X(zoo_descend) \
    X(descend) \
    X(data_convert) X(data_info) X(data_make) X(data_part) X(data_get) \
    X(info) X(verify) X(bench) X(version) X(help)
/* clang-format on */
#define BASIN_NOUNS(X)                                                                             \
    X("image", "Pictures: learn them, fill in what is hidden")                                     \
    X("anomaly", "Networks: find the anomalous nodes")                                             \
    X("node", "Networks: classes of nodes")                                                        \
    X("graph", "Sets of graphs: classes and values")                                               \
    X("text", "Text: learn it, go on from a prompt")                                               \
    X("zoo", "Published models, and whether their updates go down their energies")                 \
    X("data", "Data of networks: fetch, convert, inspect, generate")                               \
    X("", "Files, checks, measurements")
#define BASIN_COMMAND_DECLARE(name) extern const basin_command basin_command_##name;
BASIN_COMMANDS(BASIN_COMMAND_DECLARE)

/* Commands of one noun belong together. */
typedef struct basin_noun {
    const char *noun;    /* "image"; "" for commands without a group */
    const char *summary; /* one line, no full stop */
} basin_noun;

extern const basin_noun basin_nouns[]; /* the one without a noun comes last */

const basin_noun *basin_command_noun(const basin_command *command);
/* The group of that noun; NULL where there is none. */
const basin_noun *basin_noun_find(const char *noun);

/* Finds the command that `count` words name; *used is how many of them its name took. Where there
 * is none, NULL, and error says so with the nearest name. */
const basin_command *basin_command_find(int *used, int count, char **word, basin_error *error);
/* Parses and runs. */
int basin_command_run(const basin_command *command, int count, char **argument);
/* Whether an option of the command's own table or a setting was given, whatever its value. */
bool basin_option_given(const basin_parsed *parsed, const basin_command *command, const char *name);
/* The command's defaults, with the settings of the default preset. */
void *basin_command_values(const basin_command *command);
void basin_command_values_free(const basin_command *command, void *values);
basin_option_set basin_command_options(const basin_command *command);

/* Pages: of a command (all of its options, or those that most people set), of a group. */
void basin_command_help_print(FILE *file, const basin_command *command, bool all);
void basin_noun_help_print(FILE *file, const basin_noun *group);
/* "basin info FILE... [options]" */
void basin_command_usage_print(FILE *file, const basin_command *command);

/* The script that completes commands in a shell: "bash", "zsh" or "fish"; and what may stand in
 * place of the last of the words behind `basin`, which these scripts ask for. */
void basin_completion_print(FILE *file, const char *shell);
void basin_complete(int count, char **word);

/* Prints a line on standard error, with control characters of the names in it replaced: file names
 * may hold any bytes. */
void basin_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A note where the weights in a file have a negative gamma; nothing where there is no such file. */
void basin_note_gamma(const char *path, bool quiet);
/* "basin: <text>" on standard error; returns the exit code. */
int basin_report(const basin_error *error);
/* Fills in the error and returns BASIN_USAGE. */
basin_status basin_usage(basin_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int basin_report_usage(const basin_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
