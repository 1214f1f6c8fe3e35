/* What the program is made of: options and commands as tables, what every command is given, and
 * what commands share. A command parses (its table of options), calls the library and prints
 * (record.h). The parser, help, manual and completions follow the tables. */
#ifndef BASIN_CLI_CLI_H
#define BASIN_CLI_CLI_H

#include "base/text.h"
#include "basin/tasks/image.h"
#include "program/record.h"
#include "tasks/common/run/settings.h"
#include "tasks/nodes/network/parts/parts.h"

/* ---- progress ---- */

/* How far a long command is, on standard error: a line on a terminal that is drawn over itself and
 * never wider than the terminal, a plain line now and then elsewhere, nothing with --quiet. */
typedef struct basin_progress {
    const char *label;
    int64_t total; /* 0: unknown; then there is no bar */
    bool quiet, terminal, drawn;
    double shown; /* when it was last shown */
} basin_progress;

basin_progress basin_progress_begin(const char *label, int64_t total, bool quiet);
/* Shows `done` as a bar, with a few words each: the most important first, NULL after the
 * last. Words that do not fit are left out. Draws at most ten times a second, so call it
 * often. */
void basin_progress_show(basin_progress *progress, int64_t done, const char *const *words);
/* Clears the line; or whichever is drawn, before something else is printed. */
void basin_progress_end(basin_progress *progress);
void basin_progress_clear(void);
/* The line for a terminal of `width` columns; one is left free, so that no terminal wraps. */
void basin_progress_line(char *text, size_t size, const basin_progress *progress, int64_t done,
                         const char *const *words, int width);

/* Watches a task: the first interrupt asks it to save and end, a second one ends the program. */
typedef struct basin_cli_watch {
    basin_watch watch; /* hand &watch to a task */
    basin_progress progress;
    const char *what;
    bool quiet;
} basin_cli_watch;

/* Points into itself, so it must stay where it is. */
void basin_cli_watch_begin(basin_cli_watch *watch, bool quiet);
/* For work that cannot be stopped and saved: the first interrupt ends the program. */
void basin_cli_watch_plain(basin_cli_watch *watch, bool quiet);
void basin_cli_watch_end(basin_cli_watch *watch);
/* The signal that asked the program to stop; 0: none did. */
int basin_caught_signal(void);

/* ---- the input of a command ---- */

/* Where settings start: a preset, then a file; options override both. */
typedef struct basin_start {
    const char *preset, *config;
    bool print_config;
} basin_start;

/* The options that were given, in the order of basin_option_at: the value of each, "on" for a flag;
 * NULL: not given. */
enum { BASIN_MAX_OPTIONS = 256 };
typedef struct basin_parsed {
    bool help, help_all; /* one of them was met, and nothing else is promised */
    char notes[900];     /* a line for each option that was given twice */
    const char *given[BASIN_MAX_OPTIONS];
} basin_parsed;

/* Of --in-context. */
typedef struct basin_context_args {
    bool on;
    int64_t passes;
    const char *weights; /* NULL: those that come with Basin */
} basin_context_args;

/* What every command has: its operands, and the options that mean the same everywhere. */
#define BASIN_ARGS_MEMBERS                                                                         \
    int operands;                                                                                  \
    char **operand;                                                                                \
    const struct basin_command *command;                                                           \
    basin_settings *settings; /* of the command's task */                                          \
    basin_ranks *ranks;       /* NULL: one process */                                              \
    basin_parsed parsed;                                                                           \
    basin_backend *compute; /* see basin_compute_open */                                           \
    basin_cli_watch watch;                                                                         \
    basin_start start;                                                                             \
    basin_training_options training;                                                               \
    basin_network_options network;                                                                 \
    basin_table_options table;     /* the network's, where it is of CSV */                         \
    const char *missing, *unknown; /* of the network, as words */                                  \
    const char *backend, *products, *dtype, *output;                                               \
    int64_t threads, seed;                                                                         \
    basin_context_args context;                                                                    \
    double memory; /* GiB */                                                                       \
    bool json, quiet, narrow_all;                                                                  \
    bool no_result; /* of training: whoever called prints */
typedef struct basin_args {
    BASIN_ARGS_MEMBERS
} basin_args;
/* How the options of a command begin, a struct of its file: the members above, also as `args`. */
#define BASIN_ARGS                                                                                 \
    union {                                                                                        \
        basin_args args;                                                                           \
        struct {                                                                                   \
            BASIN_ARGS_MEMBERS                                                                     \
        };                                                                                         \
    }

/* ---- options ---- */

/* An option is a setting with what only options have. Its name has dashes, and its value stands in
 * a field of OPTIONS: a bool (SWITCH), an int64_t (INTEGER), a double (REAL), or a const char *
 * (TEXT; CHOICE, one of the words "ref|cpu" of `value`). */
typedef struct basin_option {
    basin_setting_entry entry; /* a name of NULL ends a table */
    bool flag;                 /* a SWITCH that --no-NAME does not clear */
    char letter;               /* 0 where there is none */
    double initial;            /* of numbers */
    const char *text;          /* initial value of texts and choices */
    /* The values of other options with which this one has an effect, in the form of base/needs.h
     * ("plain=off", "base!="), OPERAND being the first operand; NULL: any. With other values it is
     * an error to give it. */
    const char *needs;
    bool writes; /* a file that is written: it must differ from all others */
    bool more;   /* few people set it: only --help-all shows it */
} basin_option;

/* Where a field of that type is in OPTIONS, which each file that has commands defines as the struct
 * of their options; another type does not compile. */
#define BASIN_OPTION_AT(field, type)                                                               \
    offsetof(OPTIONS, field) + 0 * sizeof(_Generic(((OPTIONS *)0)->field, type : 0))
/* After its last argument an entry may set `.letter`, `.initial`, `.text`, `.needs`, `.writes` and
 * `.more`. share/basin/commands.md describes it. */
#define BASIN_OPTION(kind_, field_, type_, ...)                                                    \
    {                                                                                              \
        .entry.is.kind = BASIN_SETTING_##kind_, .entry.offset = BASIN_OPTION_AT(field_, type_),    \
        __VA_ARGS__                                                                                \
    }
#define BASIN_FLAG(field, ...) BASIN_SWITCH(field, __VA_ARGS__, .flag = true)
#define BASIN_SWITCH(field, ...) BASIN_OPTION(SWITCH, field, bool, .entry.is.name = __VA_ARGS__)
#define BASIN_NUMBER(kind, field, type, name_, value_, low_, ...)                                  \
    BASIN_OPTION(kind, field, type, .entry.is.name = name_, .entry.is.value = value_,              \
                 .entry.is.low = low_, .entry.is.high = __VA_ARGS__)
#define BASIN_INTEGER(field, ...) BASIN_NUMBER(INTEGER, field, int64_t, __VA_ARGS__)
#define BASIN_REAL(field, ...) BASIN_NUMBER(REAL, field, double, __VA_ARGS__)
#define BASIN_STRING(kind, field, name_, ...)                                                      \
    BASIN_OPTION(kind, field, const char *, .entry.is.name = name_, .entry.is.value = __VA_ARGS__)
#define BASIN_CHOICE(field, ...) BASIN_STRING(CHOICE, field, __VA_ARGS__)
#define BASIN_TEXT(field, letter_, name_, ...)                                                     \
    BASIN_STRING(TEXT, field, name_, __VA_ARGS__, .letter = letter_)
#define BASIN_OPTIONS_END                                                                          \
    { .letter = 0 }

/* The options that many commands share, with the same name and meaning everywhere. */
#define BASIN_OPTION_JSON BASIN_OPTION_JSON_FOR(NULL)
/* For commands that print JSON only with some options. */
#define BASIN_OPTION_JSON_FOR(needs_) BASIN_FLAG(json, "json", .needs = needs_)
#define BASIN_OPTION_QUIET BASIN_FLAG(quiet, "quiet", .letter = 'q')
/* The end of most tables. */
#define BASIN_OPTIONS_LAST BASIN_OPTION_JSON, BASIN_OPTION_QUIET, BASIN_OPTIONS_END
#define BASIN_OPTION_BACKEND BASIN_CHOICE(backend, "backend", "ref|cpu|cuda", .text = "cpu")
#define BASIN_OPTION_PRODUCTS                                                                      \
    BASIN_CHOICE(products, "products", "f32|tf32", .text = "f32", .more = true)
#define BASIN_OPTION_THREADS BASIN_INTEGER(threads, "threads", "N", 0, 4096)
/* The options of computing, the same four in every command that computes. */
#define BASIN_COMPUTE_OPTIONS                                                                      \
    BASIN_OPTION_BACKEND, BASIN_OPTION_PRODUCTS,                                                   \
        BASIN_CHOICE(dtype, "dtype", "f32|bf16|fp8", .more = true), BASIN_OPTION_THREADS
#define BASIN_OPTION_MEMORY BASIN_REAL(memory, "memory", "GIB", 0, 1e6, .more = true)
/* These, and the memory limit. */
#define BASIN_WORK_OPTIONS BASIN_OPTION_MEMORY, BASIN_COMPUTE_OPTIONS, BASIN_OPTION_QUIET
#define BASIN_OPTION_SEED BASIN_OPTION_SEED_FOR(NULL)
/* A seed that has an effect only with some options. */
#define BASIN_OPTION_SEED_FOR(needs_)                                                              \
    BASIN_INTEGER(seed, "seed", "N", 0, 9007199254740991.0, .needs = needs_, .more = true)
#define BASIN_OPTIONS_START(preset_)                                                               \
    BASIN_TEXT(start.preset, 0, "preset", "NAME", .text = preset_),                                \
        BASIN_TEXT(start.config, 0, "config", "FILE"),                                             \
        BASIN_FLAG(start.print_config, "print-config")

/* Opens args->compute, the backend that the options name; it is closed when the command is done. */
basin_status basin_compute_open(basin_args *args, basin_error *error);
/* --dtype as basin_compute.storage (NULL: f32), and --products. */
basin_dtype basin_option_dtype(const char *name);
basin_products basin_option_products(const char *name);
/* An error if this backend has no choice of --products. */
basin_status basin_option_products_check(const basin_args *args, basin_error *error);

/* ---- commands ---- */

/* Exit codes. */
enum {
    BASIN_EXIT_OK = 0,
    BASIN_EXIT_FAILURE = 1,
    BASIN_EXIT_USAGE = 2,
    BASIN_EXIT_AGAIN = 75, /* EX_TEMPFAIL: a run that a scheduler ended, and may begin again */
};

/* What a command is; share/basin/commands.md has its operands, its description and its options'. */
typedef struct basin_command {
    const char *name; /* "info", or noun and verb: "graph train" */
    const basin_option *option;
    size_t size; /* of OPTIONS */
    /* Runs it. The caller reports failures, and for wrong usage (basin_usage) the page to read. */
    basin_status (*run)(void *options, basin_error *error);
    const struct basin_train_task *train; /* of basin_train_run */
    const struct basin_use_task *use;     /* of basin_use_run */
    const char *task;                     /* whose settings it takes as options; or NULL */
    bool ranks;                           /* several ranks may share it */
    int min_operands, max_operands;       /* where not as the page says; -1: none needed */
} basin_command;

#define BASIN_COMMAND(name_, table_) .name = name_, .option = table_, .size = sizeof(OPTIONS)

/* The section of a command in commands.md. */
typedef struct basin_page {
    char operands[80]; /* "MODEL [DATA] FILE..." says how many there may be */
    char summary[120]; /* one line, no full stop */
    char text[2400];   /* paragraphs */
    char example[800]; /* lines, indented by two blanks */
} basin_page;

void basin_page_read(basin_page *page, const basin_command *command);
/* The heading "## NAME .." among the lines of commands.md; at the final NULL: there is none. */
const char *const *basin_section_find(const char *name);

typedef struct basin_train_task basin_train_task;
/* The fields of a command that trains, and of one that uses a model. */
#define BASIN_TRAINS(task_, ...)                                                                   \
    .run = basin_train_run, .train = &(const basin_train_task){__VA_ARGS__}, .task = task_,        \
    .ranks = true, .min_operands = -1
#define BASIN_USES(job_, ...)                                                                      \
    .run = basin_use_run, .use = &(const basin_use_task) { .size = sizeof(job_), __VA_ARGS__ }

/* What `run` may return besides a status: each ends the program with its own exit code. */
#define BASIN_USAGE ((basin_status)100)    /* wrong usage; the error says what */
#define BASIN_REPORTED ((basin_status)101) /* a failure that was already reported */
#define BASIN_AGAIN ((basin_status)102)    /* BASIN_EXIT_AGAIN */

/* All commands in the order of `basin help`, and their groups; a command NOUN VERB is defined as
 * basin_command_NOUN_VERB. */
/* clang-format off */
#define BASIN_COMMANDS(X) \
    X(image_train) X(image_complete) X(image_eval) X(image_report) X(image_export) \
    X(anomaly_train) X(anomaly_score) X(anomaly_eval) X(anomaly_explain) X(anomaly_report) \
    X(node_train) X(node_predict) X(node_eval) X(node_explain) \
    X(graph_train) X(graph_predict) X(graph_explain) X(graph_eval) X(graph_cv) \
    X(graph_convert) X(graph_report) \
    X(zoo_list) \
    X(serve) \
    X(descend) \
    X(data_convert) X(data_info) X(data_part) X(data_journal) X(data_get) \
    X(info) X(verify) X(reproduce) X(bench) X(help)
#define BASIN_NOUNS(X) \
    X("image", "Pictures: learn them, fill in what is hidden") \
    X("anomaly", "Networks: find the anomalous nodes") \
    X("node", "Networks: classes of nodes") \
    X("graph", "Sets of graphs: classes and values") \
    X("zoo", "Published models, and whether their updates descend their energies") \
    X("data", "Data of networks: fetch, convert, inspect, cut into parts") \
    X("", "Files, checks, measurements")
/* clang-format on */
#define BASIN_COMMAND_DECLARE(name) extern const basin_command basin_command_##name;
BASIN_COMMANDS(BASIN_COMMAND_DECLARE)
extern const basin_command *const basin_commands[]; /* ends with NULL */
extern const basin_command basin_command_version;   /* an option, basin --version */

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
/* The arguments as they start: the tables' values, the settings of the default preset. */
basin_status basin_args_new(basin_args **args, const basin_command *command, basin_error *error);
void basin_args_free(basin_args *args);
/* Parses, and refuses what has no effect. Operands move to the front of `argument`. */
basin_status basin_args_parse(basin_args *args, int count, char **argument, basin_error *error);
/* The i-th option: those of the command's table, --help and --help-all, then the settings of its
 * task, for which *own is NULL. NULL past the last. */
const basin_setting_entry *basin_option_at(const basin_option **own, const basin_args *args, int i);
/* The option of that name [length] in the table of the command; or NULL. */
const basin_option *basin_option_find(const basin_command *command, const char *name,
                                      size_t length);
/* Whether such an option was given, whatever its value. */
bool basin_option_given(const basin_args *args, const char *name);

/* Reads `count` arguments. Operands move to the front of `argument`, in order. Errors are
 * BASIN_BAD_VALUE: wrong usage. */
basin_status basin_options_parse(basin_args *args, int count, char **argument, basin_error *error);
/* An error if a given option has no effect with the others (`needs`), or if a file to write is also
 * an operand or the file of another option (`writes`). */
basin_status basin_options_check(const basin_args *args, basin_error *error);
/* An error if a file that an option names cannot be written: before the work, not after it. */
basin_status basin_options_try_files(const basin_args *args, basin_error *error);

/* ---- pages ---- */

/* Pages: of a command (all of its options, or those that most people set), of a group. */
void basin_command_help_print(const basin_command *command, bool all);
void basin_noun_help_print(const basin_noun *group);

/* ---- lines on standard error ---- */

/* Clears progress before it. Control characters of the names in it are replaced: file names may
 * hold any bytes. */
void basin_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "basin: note: ...", unless --quiet. */
#define basin_note(args, ...) ((args)->quiet ? (void)0 : basin_say("basin: note: " __VA_ARGS__))
/* The number of blocks in a file of weights that have a negative gamma, and the minimum (or NULL):
 * the norm is then the gradient of a concave function, and the descent raises the energy. */
int64_t basin_negative_gammas(double *lowest, const basin_bundle *weights);
/* A note if the weights in a file have a negative gamma; nothing if there is no such file. */
void basin_note_gamma(const basin_args *args, const char *path);
/* "basin: <text>"; returns the exit code. */
int basin_report(const basin_error *error);
/* Fills in the error and returns BASIN_USAGE. */
basin_status basin_usage(basin_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether a path has the extension of model files. */
bool basin_is_model(const char *path);

/* ---- images ---- */

/* How a model descends, where not as it was trained. */
#define BASIN_OPTIONS_DESCENT                                                                      \
    BASIN_INTEGER(descent.steps, "steps", "N", 0, 10000),                                          \
        BASIN_REAL(descent.alpha, "alpha", "X", 0, 1e6, .more = true)

/* The value of --part; with --hold-out, pictures are held out of the training part. */
basin_pictures_split basin_split_of(const char *part, bool hold_out);

/* Opens a model on args->compute, to descend as these options say. */
basin_status basin_args_image(basin_image_model **model, const basin_args *args,
                              const basin_image_descent_options *descent, const char *path,
                              basin_error *error);

/* ---- networks ---- */

#define BASIN_OPTIONS_NETWORK                                                                      \
    BASIN_FLAG(network.directed, "directed"), BASIN_TEXT(table.id, 0, "id", "COLUMN"),             \
        BASIN_TEXT(table.label, 0, "label", "COLUMN"),                                             \
        BASIN_TEXT(table.source, 0, "source", "COLUMN", .more = true),                             \
        BASIN_TEXT(table.target, 0, "target", "COLUMN", .more = true),                             \
        BASIN_CHOICE(missing, "missing", "error|zero|mean", .more = true),                         \
        BASIN_INTEGER(network.unlabelled_first, "unlabelled-first", "N", 0, 2147483647,            \
                      .more = true),                                                               \
        BASIN_TEXT(table.edge_type, 0, "relation-column", "COLUMN", .more = true),                 \
        BASIN_TEXT(table.time, 0, "time", "COLUMN", .more = true),                                 \
        BASIN_TEXT(table.until, 0, "until", "TIME", .more = true),                                 \
        BASIN_TEXT(table.drop, 0, "drop", "COLUMNS", .more = true),                                \
        BASIN_INTEGER(table.max_categories, "max-categories", "N", 1, 100000, .more = true),       \
        BASIN_CHOICE(unknown, "unknown", "error|skip|add", .more = true),                          \
        BASIN_FLAG(table.headerless, "no-header", .more = true),                                   \
        BASIN_TEXT(table.date_format, 0, "date-format", "FORMAT", .more = true),                   \
        BASIN_TEXT(table.edge_date_format, 0, "edge-date-format", "FORMAT", .more = true)

/* For commands that split. */
#define BASIN_OPTION_SPLIT_TIME(needs_)                                                            \
    BASIN_TEXT(network.split_time, 0, "split-time", "COLUMN", .needs = needs_, .more = true)

/* With args->memory GiB. `table` is part of the result. */
basin_network_options basin_network_options_of(const basin_args *args, basin_table_options *table);
/* Opens the files by `schema` (or NULL), and notes on standard error how they were read. */
basin_status basin_args_network(basin_network **network, const basin_args *args,
                                const basin_schema *schema, int paths, char **path,
                                basin_error *error);
/* ---- training ---- */

/* Options of all commands that train; `preset` is their default preset. */
#define BASIN_TRAIN_OPTIONS(preset)                                                                \
    BASIN_OPTIONS_START(preset),                                                                   \
        BASIN_TEXT(training.output, 'o', "output", "FILE", .text = "model.safetensors",            \
                   .writes = true),                                                                \
        BASIN_TEXT(training.log, 0, "log", "FILE", .writes = true),                                \
        BASIN_FLAG(training.resume, "resume"),                                                     \
        BASIN_FLAG(training.restart, "restart", .more = true),                                     \
        BASIN_TEXT(training.from, 0, "from", "MODEL"),                                             \
        BASIN_TEXT(training.checkpoint, 0, "checkpoint", "FILE", .writes = true, .more = true),    \
        BASIN_FLAG(training.keep_checkpoint, "keep-checkpoint", .more = true),                     \
        BASIN_REAL(training.save_every, "save-every", "SECONDS", 0, 1e9, .initial = 60,            \
                   .more = true),                                                                  \
        BASIN_INTEGER(training.log_every, "log-every", "STEPS", 0, 1e9, .more = true),             \
        BASIN_INTEGER(training.score_every, "score-every", "EPOCHS", 0, 1e9, .more = true),        \
        BASIN_OPTION_MEMORY, BASIN_COMPUTE_OPTIONS, BASIN_OPTION_JSON, BASIN_OPTION_QUIET

/* The driver of all commands that train: settings, --print-config, ranks and backend, training,
 * progress, the printed result and the exit code are the same for all; a task fills in a table of
 * functions, which its command names (.train). */
typedef struct basin_train_job {
    basin_args *o;
    const basin_train_task *task;
    basin_training_result outcome;
    const char *things; /* the items it was trained on: "nodes" */
    int64_t count;      /* how many */
    void *model, *more; /* the task's own */
    double began;       /* when the command did, by the clock */
    char *record;       /* basin_command_record; rank 0 has it */
} basin_train_job;

struct basin_train_task {
    /* Before anything is opened: usage, settings that follow from the data; or NULL. */
    basin_status (*prepare)(basin_train_job *job, basin_error *error);
    /* Trains with job->o->training. Fills in outcome, things, count and model. With --print-config
     * training lasts about a second. */
    basin_status (*train)(basin_train_job *job, basin_error *error);
    /* Prints the fields of this task; or NULL. */
    void (*print)(basin_record *r, const basin_train_job *job);
    void (*close)(basin_train_job *job); /* or NULL */
    bool validates;                      /* the result has the best score of validation */
};

basin_status basin_train_run(void *options, basin_error *error);

/* How a model is trained, for basin reproduce (reproduce.c); free() it. An error where data come
 * from a pipe, or cannot be read. */
basin_status basin_command_record(char **record, const basin_args *args, basin_error *error);
/* Adds it to the model file. */
basin_status basin_command_record_add(const char *record, const char *path, basin_error *error);
/* A note where a run that had finished before was not trained as is requested now. */
void basin_command_record_compare(const char *record, const basin_args *args);

/* The measures of a score in percent, as an object; nothing without a score. */
void basin_record_percent(basin_record *r, const char *key, const basin_score *score);

/* Whether a setting, a preset or a file of settings was given; `heard` (or NULL), NULL-terminated,
 * does not count. For commands that may train nothing. */
bool basin_training_settings_given(const basin_args *args, const char *const *heard);

/* ---- using models ---- */

/* The driver of all commands that use or evaluate models (predict, score, explain, eval, cv,
 * report): backend, progress and interrupts, the printed record, its form, and closing are the same
 * for all; a command names a table of functions (.use). They get the job, a struct that begins with
 * a pointer to the options of the command; the other members start as 0. */
typedef struct basin_use_task {
    size_t size; /* of the job */
    /* Before anything is opened: usage, and what an interrupt may end at once; or NULL. */
    basin_status (*prepare)(void *job, basin_error *error);
    /* Opens the model and what it is used on, and calls the library. */
    basin_status (*work)(void *job, basin_error *error);
    basin_record_fill *print; /* of rank 0; gets the job. NULL: `work` prints */
    /* Writes what follows the record, such as pictures; or NULL. */
    basin_status (*finish)(void *job, basin_error *error);
    void (*close)(void *job);
    /* The record is a table, written to --output: CSV, or with --json JSON. */
    bool rows;
    bool no_backend, no_stop; /* an interrupt ends the program at once */
} basin_use_task;

basin_status basin_use_run(void *options, basin_error *error);

/* The driver of evaluation over splits: calls `run` for each, and sums up their figures. */
typedef struct basin_splits {
    basin_args *o;
    int64_t runs;
    void *job;
    basin_status (*run)(void *job, int64_t run, basin_error *error);
    /* Figure i of one model, or of validation: `row` is the task's. False: there is none. */
    bool (*figure)(double *value, const void *job, int row, const char *measure, int64_t i);
    double *value;  /* [figures] space for the figures of a row; the task's */
    double overlap; /* test items over the others, for intervals */
    bool stopped;   /* by an interrupt; set by `run` */
} basin_splits;

/* Statistics of figures. */
typedef struct basin_spread {
    int64_t count;
    double mean, deviation, lowest, highest;
    double interval[2]; /* of 95 % */
    bool has_interval;
} basin_spread;

basin_status basin_splits_run(basin_splits *splits, basin_error *error);
/* The spread of figures first .. first + count - 1 of a row. */
basin_spread basin_splits_spread(const basin_splits *splits, int row, const char *measure,
                                 int64_t first, int64_t count);

#endif
