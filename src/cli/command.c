/* The list of commands, finding one, and running it; see command.h. */
#include "cli/command.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/team/thread.h"
#include "base/text.h"
#include "basin/energy.h"
#include "cli/launch.h"

#define ROW(name) &basin_command_##name,
const basin_command *const basin_commands[] = {BASIN_COMMANDS(ROW) NULL};

#define NOUN(noun, summary) {noun, summary},
const basin_noun basin_nouns[] = {BASIN_NOUNS(NOUN)};
enum { GROUPS = sizeof basin_nouns / sizeof *basin_nouns };

const basin_noun *basin_command_noun(const basin_command *command) {
    for (int i = 0; i < GROUPS - 1; i++) {
        size_t length = strlen(basin_nouns[i].noun);
        if (!strncmp(command->name, basin_nouns[i].noun, length) && command->name[length] == ' ')
            return &basin_nouns[i];
    }
    return &basin_nouns[GROUPS - 1];
}

const basin_noun *basin_noun_find(const char *noun) {
    for (int i = 0; i < GROUPS - 1; i++)
        if (!strcmp(noun, basin_nouns[i].noun)) return &basin_nouns[i];
    return NULL;
}

static const basin_command *fail_unknown(const char *typed, const char *near, const char *group,
                                         basin_error *error) {
    if (near)
        basin_fail(error, BASIN_BAD_VALUE, "unknown command '%s'; did you mean '%s'?", typed, near);
    else
        basin_fail(error, BASIN_BAD_VALUE, "unknown command '%s' (see 'basin help%s%s')", typed,
                   *group ? " " : "", group);
    return NULL;
}

const basin_command *basin_command_find(int *used, int count, char **word, basin_error *error) {
    char two[128];
    const char *near = NULL;
    int best = 1000;
    snprintf(two, sizeof two, "%s %s", word[0], count > 1 ? word[1] : "");
    for (const basin_command *const *at = basin_commands; *at; at++) {
        const char *name = (*at)->name;
        bool one = !strchr(name, ' ') || strchr(word[0], ' ');
        const char *typed = one ? word[0] : two;
        *used = one ? 1 : 2;
        if (!strcmp(name, typed)) return *at;
        int distance = basin_name_distance(typed, name);
        if (distance < best && basin_name_near(distance, typed)) near = name, best = distance;
    }
    const basin_noun *group = basin_noun_find(word[0]);
    return fail_unknown(group && count > 1 ? two : word[0], near, group ? group->noun : "", error);
}

basin_option_set basin_command_options(const basin_command *command) {
    return (basin_option_set){command->option, command->task, command->settings_at};
}

static basin_settings **settings_in(const basin_command *command, void *values) {
    return (void *)((char *)values + command->settings_at);
}

void *basin_command_values(const basin_command *command) {
    basin_error error;
    char *values = malloc(command->size ? command->size : 1);
    if (values && command->size) memcpy(values, command->defaults, command->size);
    if (!values || !command->task) return values;
    if (!basin_settings_new(settings_in(command, values), command->task, NULL, &error))
        return values;
    free(values);
    return NULL;
}

void basin_command_values_free(const basin_command *command, void *values) {
    if (values && command->task) basin_settings_free(*settings_in(command, values));
    free(values);
}

/* ---- lines on standard error: names in them may hold anything, control bytes included ---- */

void basin_say(const char *format, ...) {
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    basin_text_clean(text);
    basin_text_hide(text);
    fprintf(stderr, "%s\n", text);
}

void basin_note_gamma(const char *path, bool quiet) {
    basin_bundle *weights;
    basin_error error;
    double least;
    if (quiet || basin_bundle_read(&weights, path, &error)) return;
    int64_t count = basin_negative_gammas(&least, weights);
    if (count)
        basin_say("basin: note: %s: gamma of %lld layer norm%s is negative (least %.4g), so that "
                  "the descent climbs; training with positive_gamma keeps it above 0",
                  path, (long long)count, count > 1 ? "s" : "", least);
    basin_bundle_free(weights);
}

int basin_report(const basin_error *error) {
    basin_say("basin: %s", error->text);
    return BASIN_EXIT_FAILURE;
}

basin_status basin_usage(basin_error *error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return error->status = BASIN_USAGE;
}

int basin_report_usage(const basin_command *command, const char *format, ...) {
    char text[BASIN_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    basin_say("basin: %s: %s (see 'basin help %s')", command->name, text, command->name);
    return BASIN_EXIT_USAGE;
}

/* ---- running ---- */

/* Settings begin as the preset and the file that were asked for. */
static basin_status start_settings(const basin_command *command, void *options,
                                   basin_error *error) {
    const basin_start *start = (void *)((char *)options + command->start_at);
    basin_settings *settings = *settings_in(command, options);
    const char *preset = start->preset ? start->preset : "default";
    basin_status status = basin_settings_start(settings, preset, error);
    if (!status && start->config) status = basin_settings_read(settings, start->config, error);
    return status;
}

/* Parses, and refuses what has no effect. */
static basin_status parse_once(void *options, basin_parsed *parsed, const basin_option_set *set,
                               int count, char **argument, basin_error *error) {
    basin_status status = basin_options_parse(options, parsed, set, count, argument, error);
    if (status || parsed->help) return status;
    return basin_options_check(options, parsed, set, argument, error);
}

/* Parses twice where there are settings: the first time only to learn where they start. */
static basin_status parse(void *options, basin_parsed *parsed, const basin_command *command,
                          int count, char **argument, basin_error *error) {
    basin_option_set set = basin_command_options(command);
    if (!command->task) return parse_once(options, parsed, &set, count, argument, error);
    size_t bytes = (size_t)count * sizeof *argument;
    char **copy = malloc(bytes ? bytes : 1);
    if (!copy) return basin_fail(error, BASIN_NO_MEMORY, "out of memory");
    if (bytes) memcpy(copy, argument, bytes);
    basin_status status = basin_options_parse(options, parsed, &set, count, copy, error);
    if (!status && !parsed->help) status = start_settings(command, options, error);
    free(copy);
    if (status || parsed->help) return status;
    return parse_once(options, parsed, &set, count, argument, error);
}

static const basin_option *find_option(const basin_command *command, const char *name) {
    for (const basin_option *o = command->option; o->name; o++)
        if (!strcmp(o->name, name)) return o;
    return NULL;
}

bool basin_option_given(const basin_parsed *parsed, const basin_command *command,
                        const char *name) {
    const basin_option *o = find_option(command, name);
    if (o) return parsed->option[o - command->option] != NULL;
    const basin_setting *table = command->task ? basin_settings_table(command->task) : NULL;
    for (int i = 0; table && table[i].name; i++)
        if (!strcmp(table[i].name, name)) return parsed->setting[i] != NULL;
    return false;
}

static bool is_quiet(const basin_command *command, const void *options) {
    const basin_option *o = find_option(command, "quiet");
    return o && *(const bool *)((const char *)options + o->offset);
}

static void print_notes(const char *notes) {
    for (; *notes; notes += strcspn(notes, "\n") + 1)
        basin_say("basin: note: %.*s", (int)strcspn(notes, "\n"), notes);
}

/* More threads than there are cores wait for each other. */
static void note_threads(const basin_command *command, const void *options) {
    const basin_option *o = find_option(command, "threads");
    int64_t threads = o ? *(const int64_t *)(const void *)((const char *)options + o->offset) : 0;
    long cores = basin_thread_processors();
    if (threads > cores)
        basin_say("basin: note: %lld threads on %ld core%s, which is slower than %ld",
                  (long long)threads, cores, cores > 1 ? "s" : "", cores);
}

static int run_parsed(const basin_command *command, void *options, const basin_parsed *parsed,
                      char **argument) {
    int operands = parsed->operands;
    if (parsed->help)
        return basin_command_help_print(stdout, command, parsed->help_all), BASIN_EXIT_OK;
    if (operands < command->operands_least)
        return basin_report_usage(command, "needs %s", command->operands);
    if (operands > command->operands_most)
        return basin_report_usage(command, "unexpected argument '%s'",
                                  argument[command->operands_most]);
    if (!is_quiet(command, options)) {
        print_notes(parsed->notes);
        note_threads(command, options);
    }
    if (command->parsed_at)
        memcpy((char *)options + command->parsed_at, &parsed, sizeof(const basin_parsed *));
    basin_error error;
    basin_status status = command->run(options, operands, argument, &error);
    if (status == BASIN_USAGE && command == &basin_command_help) /* it is the page to see */
        return basin_report(&error), BASIN_EXIT_USAGE;
    if (status == BASIN_USAGE) return basin_report_usage(command, "%s", error.text);
    if (status == BASIN_REPORTED) return BASIN_EXIT_FAILURE;
    if (status == BASIN_AGAIN) return BASIN_EXIT_AGAIN;
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

/* Opens the ranks; without --threads, takes this rank's share of the CPUs. A rank whose options are
 * wrong (`status`) joins the others, too, so that its error is reported. */
static basin_status meet(basin_cli_ranks *ranks, const basin_command *command, void *options,
                         basin_status status, basin_error *error) {
    basin_error met;
    if (!command->ranks_at) return status;
    if (basin_cli_ranks_open(ranks, &met)) {
        if (!status) *error = met;
        return status ? status : met.status;
    }
    status = basin_ranks_agree(ranks->ranks, status, error);
    if (status) return status;
    memcpy((char *)options + command->ranks_at, &ranks->ranks, sizeof ranks->ranks);
    const basin_option *o = find_option(command, "threads");
    int64_t *threads = o ? (void *)((char *)options + o->offset) : NULL;
    bool divides = find_option(command, "jobs"); /* among its jobs, by itself */
    if (ranks->ranks && threads && !divides && !*threads) *threads = basin_cli_ranks_threads(ranks);
    return BASIN_OK;
}

/* Several copies of a command that knows nothing of each other would write the same files. */
static bool runs_alone(const basin_command *command) {
    return !command->ranks_at && command != &basin_command_version &&
           command != &basin_command_help;
}

static int run_among_ranks(const basin_command *command, basin_cli_ranks *ranks, bool several,
                           void *options, const basin_parsed *parsed, char **argument) {
    basin_error error;
    if (parsed->help) return run_parsed(command, options, parsed, argument);
    if (several && runs_alone(command))
        return basin_report_usage(command, "does not run under mpirun or srun");
    if (meet(ranks, command, options, BASIN_OK, &error)) return basin_report(&error);
    basin_option_set set = basin_command_options(command);
    if (!several && basin_options_try_files(options, parsed, &set, &error))
        return basin_report(&error);
    return run_parsed(command, options, parsed, argument);
}

/* Options that make no sense, or a file of --config. */
static int fail_among_ranks(const basin_command *command, basin_cli_ranks *ranks, bool several,
                            void *options, basin_status status, const basin_error *found) {
    basin_error error = *found;
    int code = status == BASIN_BAD_VALUE ? basin_report_usage(command, "%s", found->text)
                                         : basin_report(found);
    if (several) meet(ranks, command, options, status, &error);
    return code;
}

int basin_command_run(const basin_command *command, int count, char **argument) {
    basin_parsed parsed;
    basin_error error;
    void *options = basin_command_values(command);
    if (!options) {
        basin_fail(&error, BASIN_NO_MEMORY, "%s: out of memory", command->name);
        return basin_report(&error);
    }
    int code = BASIN_EXIT_OK;
    basin_cli_ranks ranks;
    bool several = basin_cli_ranks_begin(&ranks, count, argument);
    basin_status status = parse(options, &parsed, command, count, argument, &error);
    code = status ? fail_among_ranks(command, &ranks, several, options, status, &error)
                  : run_among_ranks(command, &ranks, several, options, &parsed, argument);
    fflush(NULL);
    basin_cli_ranks_end(&ranks, code);
    basin_command_values_free(command, options);
    return code;
}
