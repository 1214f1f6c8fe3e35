/* The list of commands, finding one, and running it, in one process or as one of several ranks; see
 * cli.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/info.h"
#include "base/parallel.h"
#include "basin/energy.h"
#include "basin/version.h"
#include "program/cli.h"
#include "tasks/common/ranks/ranks.h"

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

/* The commands of which a verb by itself is the second word, as "'a train', 'b train'". */
static void find_verb(char *found, size_t size, const char *verb) {
    size_t used = 0;
    *found = 0;
    for (const basin_command *const *at = basin_commands; *at; at++) {
        const char *second = strchr((*at)->name, ' ');
        if (!second || strcmp(second + 1, verb) || used >= size) continue;
        used +=
            (size_t)snprintf(found + used, size - used, "%s'%s'", used ? ", " : "", (*at)->name);
    }
}

static const basin_command *fail_unknown(const char *typed, const char *near, const char *group,
                                         basin_error *error) {
    char verbs[200];
    find_verb(verbs, sizeof verbs, typed);
    if (*verbs)
        basin_fail(error, BASIN_BAD_VALUE, "unknown command '%s'; expected one of %s", typed,
                   verbs);
    else if (near)
        basin_fail(error, BASIN_BAD_VALUE, "unknown command '%s'; did you mean '%s'?", typed, near);
    else
        basin_fail(error, BASIN_BAD_VALUE, "unknown command '%s' (see 'basin help%s%s')", typed,
                   *group ? " " : "", group);
    return NULL;
}

/* Words of other tools, and what to type. */
static const char *const other_words[][2] = {{"inpaint", "image complete"},
                                             {"version", "--version"}};

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
    const char *typed = group && count > 1 ? word[1] : word[0];
    for (size_t i = 0; i < sizeof other_words / sizeof *other_words; i++)
        if (!strcmp(typed, other_words[i][0]) || !strcmp(two, other_words[i][0]))
            near = other_words[i][1];
    return fail_unknown(group && count > 1 ? two : word[0], near, group ? group->noun : "", error);
}

/* ---- arguments ---- */

basin_status basin_args_new(basin_args **args, const basin_command *command, basin_error *error) {
    if (!(*args = calloc(1, command->size))) return basin_fail_memory(error, command->name);
    (*args)->command = command;
    for (const basin_option *o = command->option; o->entry.is.name; o++) {
        void *at = (char *)*args + o->entry.offset;
        if (o->entry.is.kind == BASIN_SETTING_INTEGER) *(int64_t *)at = (int64_t)o->initial;
        if (o->entry.is.kind == BASIN_SETTING_REAL) *(double *)at = o->initial;
        if (o->entry.is.kind >= BASIN_SETTING_CHOICE) *(const char **)at = o->text;
    }
    if (!command->task) return BASIN_OK;
    BASIN_TRY_OR(basin_settings_new(&(*args)->settings, command->task, NULL, error), free(*args));
    return BASIN_OK;
}

void basin_args_free(basin_args *args) {
    basin_cli_watch_end(&args->watch);
    basin_backend_close(args->compute);
    basin_settings_free(args->settings);
    free(args);
}

/* How many operands there may be, by words such as "MODEL [DATA] FILE...". */
static void count_operands(int *min, int *max, const basin_command *command, const char *operands) {
    bool optional = false;
    *min = *max = 0;
    for (const char *at = operands; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        optional |= *at == '[';
        *min += !optional;
        *max += 1;
        if (memmem(at, length, "...", 3)) *max = INT_MAX / 2;
        optional &= at[length - 1] != ']';
        at += length;
    }
    if (command->min_operands) *min = command->min_operands;
    if (command->max_operands) *max = command->max_operands;
}

bool basin_option_given(const basin_args *args, const char *name) {
    const basin_option *o = basin_option_find(args->command, name, strlen(name));
    return o && args->parsed.given[o - args->command->option];
}

/* ---- lines on standard error: names in them may hold anything, control bytes included ---- */

/* For a rank whose standard error nobody sees; its main thread reports failures. */
static _Thread_local char last_line[2048];

void basin_say(const char *format, ...) {
    char text[sizeof last_line];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    basin_text_clean(text);
    basin_progress_clear();
    snprintf(last_line, sizeof last_line, "%s", text);
    fprintf(stderr, "%s\n", text);
}

/* "gamma" of one block, "block1.gamma" of several, "LNORM_gamma" of the published weights. */
static bool names_gamma(const char *name) {
    const char *dot = strrchr(name, '.');
    return !strcmp(dot ? dot + 1 : name, "gamma") || !strcmp(name, "LNORM_gamma");
}

int64_t basin_negative_gammas(double *lowest, const basin_bundle *weights) {
    int64_t count = 0;
    double min = 0;
    for (size_t i = 0; i < basin_bundle_count(weights); i++) {
        const basin_tensor *t = basin_bundle_at(weights, i);
        if (!names_gamma(basin_bundle_name(weights, i)) || basin_shape_count(t->shape) != 1)
            continue;
        double gamma = basin_tensor_at(t, 0);
        count += gamma < 0;
        if (gamma < min) min = gamma;
    }
    if (lowest) *lowest = min;
    return count;
}

void basin_note_gamma(const basin_args *args, const char *path) {
    basin_bundle *weights;
    basin_error error;
    double lowest;
    if (args->quiet || basin_bundle_read(&weights, path, &error)) return;
    int64_t count = basin_negative_gammas(&lowest, weights);
    if (count)
        basin_note(args,
                   "%s: gamma of %lld layer norm%s is negative (minimum %.4g), so that the descent "
                   "raises the energy; the setting positive_gamma keeps it above 0",
                   path, (long long)count, count > 1 ? "s" : "", lowest);
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

static int report_usage(const basin_command *command, const char *text) {
    bool version = command == &basin_command_version;
    basin_say("basin: %s: %s (see 'basin %s%s')", command->name, text, version ? "" : "help ",
              version ? "--version --help" : command->name);
    return BASIN_EXIT_USAGE;
}

/* ---- ranks: rank 0 prints; the others are silent until one fails ---- */

typedef struct cli_ranks {
    basin_ranks *ranks; /* NULL: one process */
    int64_t rank;       /* as the launcher set it */
    int heard;          /* of a silent rank: its original standard error */
    char *words;        /* the command line, where there are several; NULL: out of memory */
} cli_ranks;

static void silence(cli_ranks *r) {
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    r->heard = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (nowhere < 0) return;
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
}

/* Whether this word may differ from host to host; *next: so may the one after it. */
static bool is_own(const char *word, bool *next) {
    static const char *const own[] = {"--threads", "--memory"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        size_t length = strlen(own[i]);
        if (strncmp(word, own[i], length) != 0) continue;
        *next = !word[length];
        if (*next || word[length] == '=') return true;
    }
    return false;
}

/* The version, then one line per word; free() it. */
static char *list_words(int words, char *const *word) {
    static const char version[] = "basin " BASIN_VERSION_STRING "\n";
    size_t size = sizeof version, at = sizeof version - 1;
    for (int i = 0; i < words; i++) size += strlen(word[i]) + 1;
    char *text = malloc(size);
    if (!text) return NULL;
    memcpy(text, version, sizeof version);
    for (int i = 0; i < words; i++) {
        bool next = false;
        if (!is_own(word[i], &next)) at += (size_t)sprintf(text + at, "%s\n", word[i]);
        i += next;
    }
    return text;
}

/* By the environment only, before anything is printed: silences all ranks but 0. Returns whether
 * there are several. */
static bool ranks_begin(cli_ranks *r, int words, char *const *word) {
    int64_t count;
    *r = (cli_ranks){.heard = -1};
    bool launched = basin_ranks_launched(&r->rank, &count);
    if (r->rank > 0) silence(r);
    if (!launched || count < 2) return false;
    r->words = list_words(words, word);
    return true;
}

static basin_status compare_words(const cli_ranks *r, basin_error *error) {
    basin_status status = BASIN_OK;
    if (!r->words)
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for the command's words");
    status = basin_ranks_agree(r->ranks, status, error);
    return status ? status : basin_ranks_alike(r->ranks, r->words, "the command's words", error);
}

/* An error where the ranks are of another version or were started with other words. Ranks of one
 * host take its GPUs in turn. */
static basin_status ranks_open(cli_ranks *r, basin_error *error) {
    char device[32];
    BASIN_TRY(basin_ranks_open(&r->ranks, error));
    snprintf(device, sizeof device, "%lld", (long long)basin_ranks_local(r->ranks));
    if (r->ranks) setenv("BASIN_CUDA_DEVICE", device, 0);
    return basin_ranks_count(r->ranks) > 1 ? compare_words(r, error) : BASIN_OK;
}

/* A failure that not all ranks share ends the job. Rank 0 has printed its own; others give it a
 * second to end the job first, since most failures come to all ranks alike, then print theirs. */
static void fail(const cli_ranks *r, int code) {
    static const char start[] = "basin: ";
    bool reported = !strncmp(last_line, start, sizeof start - 1);
    basin_error error;
    basin_fail(&error, BASIN_BAD_VALUE, "%s", reported ? last_line + sizeof start - 1 : "failed");
    if (r->rank > 0 && basin_ranks_agreed(&error)) return;
    if (r->rank > 0) {
        sleep(1);
        dprintf(r->heard >= 0 ? r->heard : STDERR_FILENO, "basin: rank %lld on %s: %s\n",
                (long long)r->rank, basin_ranks_host(r->ranks), error.text);
    }
    basin_ranks_abort(r->ranks, code);
}

/* With the exit code. A failure that the ranks have not agreed on ends the job. */
static void ranks_end(cli_ranks *r, int code) {
    if (r->ranks && code && code != BASIN_EXIT_AGAIN) fail(r, code);
    basin_ranks_close(r->ranks);
    if (r->heard >= 0) close(r->heard);
    free(r->words);
}

/* ---- running ---- */

/* Settings begin as the preset and the file that were asked for. */
static basin_status start_settings(basin_args *args, basin_error *error) {
    const basin_start *start = &args->start;
    BASIN_TRY(
        basin_settings_start(args->settings, start->preset ? start->preset : "default", error));
    return start->config ? basin_settings_read(args->settings, start->config, error) : BASIN_OK;
}

/* Twice where there are settings: the first time only to learn where they start. */
basin_status basin_args_parse(basin_args *args, int count, char **argument, basin_error *error) {
    if (args->settings) {
        BASIN_FREE_AT_EXIT char **copy = NULL;
        BASIN_TRY(BASIN_NEW(&copy, count + 1, "arguments", error));
        for (int i = 0; i < count; i++) copy[i] = argument[i];
        BASIN_TRY(basin_options_parse(args, count, copy, error));
        if (args->parsed.help) return BASIN_OK;
        BASIN_TRY(start_settings(args, error));
    }
    BASIN_TRY(basin_options_parse(args, count, argument, error));
    return args->parsed.help ? BASIN_OK : basin_options_check(args, error);
}

/* What the command line has too much of: options given twice, more threads than there are cores,
 * which wait for each other. */
static void print_notes(const basin_args *args) {
    long cores = basin_machine_info_now().processors;
    for (const char *at = args->parsed.notes; *at; at += strcspn(at, "\n") + 1)
        basin_note(args, "%.*s", (int)strcspn(at, "\n"), at);
    if (args->threads > cores)
        basin_note(args, "%lld threads on %ld core%s, which is slower than %ld",
                   (long long)args->threads, cores, cores > 1 ? "s" : "", cores);
}

static int run_parsed(basin_args *args) {
    const basin_command *command = args->command;
    int min, max;
    basin_error error;
    basin_status status = BASIN_OK;
    basin_page page;
    basin_page_read(&page, command);
    count_operands(&min, &max, command, page.operands);
    if (args->parsed.help)
        return basin_command_help_print(command, args->parsed.help_all), BASIN_EXIT_OK;
    if (args->operands < min)
        status = basin_usage(&error, "needs %s", page.operands);
    else if (args->operands > max)
        status = basin_usage(&error, "unexpected argument '%s'", args->operand[max]);
    if (!status) {
        print_notes(args);
        status = command->run(args, &error);
        basin_cli_watch_end(&args->watch);
    }
    if (status == BASIN_USAGE && command == &basin_command_help) /* it is the page to see */
        return basin_report(&error), BASIN_EXIT_USAGE;
    if (status == BASIN_USAGE) return report_usage(command, error.text);
    if (status == BASIN_REPORTED) return BASIN_EXIT_FAILURE;
    if (status == BASIN_AGAIN) return BASIN_EXIT_AGAIN;
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

/* Opens the ranks; without --threads, takes this rank's share of the CPUs. A rank whose options are
 * wrong (`status`) also joins the others, so that its error is reported. */
static basin_status join_ranks(cli_ranks *ranks, basin_args *args, basin_status status,
                               basin_error *error) {
    basin_error met;
    if (!args->command->ranks) return status;
    if (ranks_open(ranks, &met)) {
        if (!status) *error = met;
        return status ? status : met.status;
    }
    BASIN_TRY(basin_ranks_agree(ranks->ranks, status, error));
    args->ranks = ranks->ranks;
    bool divides = basin_option_find(args->command, "jobs", 4); /* among its jobs, by itself */
    if (args->ranks && !divides && !args->threads) args->threads = basin_ranks_threads(args->ranks);
    return BASIN_OK;
}

static int run_among_ranks(cli_ranks *ranks, bool several, basin_args *args) {
    const basin_command *command = args->command;
    basin_error error;
    if (args->parsed.help) return run_parsed(args);
    /* Several copies of a command that knows nothing of each other would write the same files. */
    if (several && !command->ranks && command != &basin_command_version &&
        command != &basin_command_help)
        return report_usage(command, "does not run under mpirun or srun");
    if (join_ranks(ranks, args, BASIN_OK, &error)) return basin_report(&error);
    if (!several && basin_options_try_files(args, &error)) return basin_report(&error);
    return run_parsed(args);
}

/* Options that make no sense, or a file of --config. */
static int fail_among_ranks(cli_ranks *ranks, bool several, basin_args *args, basin_status status,
                            basin_error *error) {
    int code =
        status == BASIN_BAD_VALUE ? report_usage(args->command, error->text) : basin_report(error);
    if (several) join_ranks(ranks, args, status, error);
    return code;
}

int basin_command_run(const basin_command *command, int count, char **argument) {
    basin_error error;
    basin_args *args;
    cli_ranks ranks;
    if (basin_args_new(&args, command, &error)) return basin_report(&error);
    bool several = ranks_begin(&ranks, count, argument);
    basin_status status = basin_args_parse(args, count, argument, &error);
    int code = status ? fail_among_ranks(&ranks, several, args, status, &error)
                      : run_among_ranks(&ranks, several, args);
    fflush(NULL);
    basin_args_free(args);
    ranks_end(&ranks, code);
    return code;
}
