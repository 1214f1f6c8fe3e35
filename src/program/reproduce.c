/* basin reproduce: trains again from what a model file records, and compares; and that record,
 * metadata "trained.command", which every command that trains adds to its model: lines of
 *
 *     version 1.0.0
 *     machine avx2                     the instruction set: others round differently
 *     command graph train
 *     option --split=scaffold          of the command's own; settings are in "basin.config"
 *     file DIGEST --index=folds        the file that an option names
 *     data DIGEST                      of operands
 *
 * without threads, ranks and names of data, on which nothing depends. */
#include <sys/stat.h>

#include "base/bundle.h"
#include "base/file.h"
#include "base/info.h"
#include "base/needs.h"
#include "basin/version.h"
#include "program/cli.h"
#include "tasks/common/digest.h"

typedef struct options {
    BASIN_ARGS;
} options;
#define OPTIONS options

static const basin_option table[] = {
    BASIN_TEXT(training.output, 'o', "output", "FILE", .text = "reproduced.safetensors",
               .writes = true),
    BASIN_FLAG(training.resume, "resume"),
    BASIN_OPTION_MEMORY,
    BASIN_OPTION_THREADS,
    BASIN_OPTIONS_LAST,
};

static const char key[] = "trained.command";
enum { LINE = 8192 };

/* ---- the record ---- */

typedef struct listing {
    const char *root;
    FILE *to;
    size_t bytes; /* read so far */
} listing;

static basin_status list_file(void *context, const char *path, size_t size, basin_error *error) {
    static const size_t limit = (size_t)1 << 30;
    listing *l = context;
    char text[BASIN_SHA256_TEXT] = "", full[LINE];
    snprintf(full, sizeof full, "%s/%s", l->root, path);
    if ((l->bytes += size) <= limit) BASIN_TRY(basin_file_sha256(text, full, error));
    fprintf(l->to, "%s  %zu %s\n", text, size, path);
    return BASIN_OK;
}

/* SHA-256: a file's own; for a folder that of the list of its files, their sizes and, of the first
 * GiB in the order of names, their SHA-256: a run need not wait for all of a million photographs
 * to be read. Pictures that are drawn have only a name. */
static basin_status digest_of(char text[LINE], const char *path, basin_error *error) {
    struct stat found;
    basin_memory_file list;
    if (!strncmp(path, "shapes:", 7)) return snprintf(text, LINE, "%s", path), BASIN_OK;
    if (stat(path, &found) || !S_ISDIR(found.st_mode)) return basin_file_sha256(text, path, error);
    listing l = {path, basin_memory_file_open(&list), 0};
    if (!l.to) return basin_fail_memory(error, "digests");
    basin_status status = basin_folder_walk(path, list_file, &l, error);
    BASIN_FREE_AT_EXIT char *lines = basin_memory_file_close(&list);
    if (!lines) return basin_fail_memory(error, "digests");
    basin_sha256_print(text, lines, strlen(lines));
    return status;
}

/* Options on which the model does not depend, or which its settings stand for. */
static bool is_left_out(const basin_option *o) {
    static const char names[] = "preset|config|print-config|resume|restart|keep-checkpoint|"
                                "save-every|log-every|memory|threads|json|quiet|reliability";
    return o->writes || basin_word_among(names, sizeof names - 1, o->entry.is.name);
}

static basin_status put_option(FILE *to, const basin_option *o, const char *value,
                               basin_error *error) {
    static const char files[] = "PATH|FILE|MODEL";
    char digest[LINE];
    const char *kind = o->entry.is.value, *name = o->entry.is.name;
    if (strchr(value, '\n')) return basin_fail(error, BASIN_BAD_VALUE, "%s has two lines", name);
    if (!kind) return fprintf(to, "option --%s\n", name), BASIN_OK; /* a flag: only "on" is given */
    if (!basin_word_among(files, sizeof files - 1, kind))
        return fprintf(to, "option --%s=%s\n", name, value), BASIN_OK;
    BASIN_TRY(digest_of(digest, value, error));
    fprintf(to, "file %s --%s=%s\n", digest, name, value);
    return BASIN_OK;
}

static basin_status put_lines(FILE *to, const basin_args *args, basin_error *error) {
    char digest[LINE];
    const basin_option *o = args->command->option;
    fprintf(to, "version %s\nmachine %s\ncommand %s\n", BASIN_VERSION_STRING,
            basin_machine_info_now().instruction_set, args->command->name);
    for (int i = 0; o[i].entry.is.name; i++)
        if (args->parsed.given[i] && !is_left_out(&o[i]))
            BASIN_TRY(put_option(to, &o[i], args->parsed.given[i], error));
    for (int i = 0; i < args->operands; i++) {
        BASIN_TRY(digest_of(digest, args->operand[i], error));
        fprintf(to, "data %s\n", digest);
    }
    return BASIN_OK;
}

basin_status basin_command_record(char **record, const basin_args *args, basin_error *error) {
    basin_memory_file list;
    *record = NULL;
    if (!basin_memory_file_open(&list)) return basin_fail_memory(error, "a record");
    basin_status status = put_lines(list.file, args, error);
    BASIN_FREE_AT_EXIT char *text = basin_memory_file_close(&list);
    if (!status && !text) status = basin_fail_memory(error, "a record");
    if (!status) *record = text, text = NULL;
    return status;
}

basin_status basin_command_record_add(const char *record, const char *path, basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    BASIN_TRY(basin_model_read(&bundle, path, error));
    BASIN_TRY(basin_bundle_meta_set(bundle, key, record, error));
    BASIN_TRY(basin_bundle_digest(bundle, error));
    return basin_bundle_write(path, bundle, error);
}

/* ---- a run that had finished ---- */

static void free_settings(basin_settings **settings) { basin_settings_free(*settings); }

enum { DIFFERENCE = 2 * BASIN_SETTING_VALUE + 100 };

/* Whether a setting that was given has another value in the model, and which: "rate 0.1, not 0.2".
 * What the data or the run choose (auto, 0) is not compared. */
static bool differs(char text[DIFFERENCE], const basin_settings *its, const basin_settings *now) {
    char found[BASIN_SETTING_VALUE], asked[BASIN_SETTING_VALUE];
    for (const basin_setting_entry *s = now->kind->table; s->is.name; s++) {
        basin_setting_print(found, sizeof found, its->values, s);
        basin_setting_print(asked, sizeof asked, now->values, s);
        if (basin_settings_given(now, s->is.name) && strcmp(found, asked) != 0 &&
            strcmp(asked, "auto") != 0 && strcmp(asked, "0") != 0) {
            snprintf(text, DIFFERENCE, "%.60s %s, not %s", s->is.name, found, asked);
            return true;
        }
    }
    return false;
}

void basin_command_record_compare(const char *record, const basin_args *args) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    BASIN_AT_EXIT(free_settings) basin_settings *its = NULL;
    const basin_task_settings *kind = args->settings->kind;
    const char *path = args->training.output;
    basin_error error;
    if (basin_model_read(&bundle, path, &error) ||
        basin_settings_make(&its, kind, "default", &error) ||
        basin_settings_take(its->values, kind, bundle, &error))
        return; /* other commands report a model that cannot be read */
    char difference[DIFFERENCE];
    const char *was = basin_bundle_meta(bundle, key);
    const char *before = was ? strstr(was, "\ncommand ") : NULL;
    const char *now = strstr(record, "\ncommand ");
    if (differs(difference, its, args->settings))
        basin_say("basin: note: %s was trained with %s; --restart trains anew", path, difference);
    else if (before && now && strcmp(before, now) != 0)
        basin_say("basin: note: %s was trained on other data or with other options; --restart "
                  "trains anew",
                  path);
}

/* ---- training again ---- */

typedef struct comparison {
    const options *o;
    basin_bundle *was, *is;
    int64_t tensors, differ;
    double distance;   /* the largest ||a - b|| / ||a|| of a tensor */
    const char *first; /* the tensor or the metadata that differs first; NULL: none */
} comparison;

/* The command that trained and its options, which point into `text`; that is cut into lines. */
static const basin_command *parse_record(int *count, char **option, char *text) {
    const basin_command *command = NULL;
    basin_error error;
    char *rest, *line = strtok_r(text, "\n", &rest);
    for (int used; line; line = strtok_r(NULL, "\n", &rest)) {
        char *name = line + 8, *found = strstr(line, " --");
        if (!strncmp(line, "command ", 8)) command = basin_command_find(&used, 1, &name, &error);
        if (found) option[(*count)++] = found + 1;
    }
    return command && command->train ? command : NULL;
}

/* An error where data are others than those of training; other versions and machines are noted. */
static basin_status compare_records(const char *was, const char *is, const options *o,
                                    basin_error *error) {
    for (int data = 0; *was || *is; was += *was == '\n', is += *is == '\n') {
        int before = (int)strcspn(was, "\n"), now = (int)strcspn(is, "\n");
        bool noted = !strncmp(was, "version", 7) || !strncmp(was, "machine", 7);
        bool equal = before == now && !strncmp(was, is, (size_t)now);
        data += !strncmp(is, "data ", 5);
        if (!equal && !noted)
            return basin_fail(error, BASIN_BAD_VALUE, "%s: found '%.*s', %s was trained on '%.*s'",
                              data ? o->operand[data] : "DATA", now ? now : 7, now ? is : "nothing",
                              o->operand[0], before ? before : 7, before ? was : "nothing");
        if (!equal)
            basin_note(o, "trained with %.*s, this is %.*s: last bits may differ", before, was, now,
                       is);
        was += before, is += now;
    }
    return BASIN_OK;
}

/* With the settings of the model, after a look at the data. */
static basin_status train_as(basin_args *args, const comparison *c, basin_error *error) {
    const options *o = c->o;
    const char *record = basin_bundle_meta(c->was, key);
    BASIN_FREE_AT_EXIT char *now;
    BASIN_TRY(basin_command_record(&now, args, error));
    BASIN_TRY(compare_records(record, now, o, error));
    BASIN_TRY(basin_settings_take(args->settings->values, args->settings->kind, c->was, error));
    args->start.config = o->operand[0];
    args->ranks = o->ranks, args->threads = o->threads, args->memory = o->memory;
    args->training.output = o->training.output, args->training.resume = o->training.resume;
    args->quiet = o->quiet, args->no_result = true;
    return args->command->run(args, error);
}

static basin_status train_again(const comparison *c, basin_error *error) {
    const char *record = basin_bundle_meta(c->was, key), *path = c->o->operand[0];
    basin_args *args;
    int given = 0, operands = c->o->operands;
    if (!record)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: does not record how it was trained; needs a model that a command "
                          "of this version trained on files",
                          path);
    BASIN_FREE_AT_EXIT char *text = basin_string_copy(record);
    BASIN_SCRATCH(char *, word, (int64_t)strlen(record) + operands, "arguments", error);
    const basin_command *command = text ? parse_record(&given, word, text) : NULL;
    if (!command)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s names no command that trains", path, key);
    word[given] = "--";
    memcpy(&word[given + 1], c->o->operand + 1, (size_t)(operands - 1) * sizeof *word);
    BASIN_TRY(basin_args_new(&args, command, error));
    basin_status status = basin_args_parse(args, given + operands, word, error);
    if (!status) status = train_as(args, c, error);
    basin_args_free(args);
    return status;
}

/* ---- comparing ---- */

static bool is_equal(comparison *c, const basin_tensor *a, const basin_tensor *b) {
    double off = 0, all = 0;
    bool alike = b && a->dtype == b->dtype && basin_shape_equal(a->shape, b->shape);
    if (alike && !memcmp(a->data, b->data, basin_tensor_bytes(a))) return true;
    for (int64_t i = 0; alike && i < basin_shape_count(a->shape); i++) {
        double x = basin_tensor_at(a, i), y = basin_tensor_at(b, i);
        off += (x - y) * (x - y), all += x * x;
    }
    c->distance = fmax(c->distance, alike ? sqrt(off / fmax(all, 1e-300)) : INFINITY);
    return false;
}

/* Metadata that hold days and paths may differ. */
static void compare(comparison *c) {
    static const char may[] = "trained.date|trained.version|trained.data|trained.files|"
                              "trained.command|basin.card|basin.digests";
    const char *name, *value;
    c->tensors = (int64_t)basin_bundle_count(c->was);
    c->differ = llabs((int64_t)basin_bundle_count(c->is) - c->tensors);
    for (int64_t i = 0; i < c->tensors; i++) {
        name = basin_bundle_name(c->was, (size_t)i);
        if (is_equal(c, basin_bundle_at(c->was, (size_t)i), basin_bundle_find(c->is, name)))
            continue;
        if (!c->differ++) c->first = name;
    }
    for (size_t i = 0; (name = basin_bundle_meta_at(c->was, i, &value)) && !c->first; i++) {
        const char *now = basin_bundle_meta(c->is, name);
        bool counts = !basin_word_among(may, sizeof may - 1, name);
        if (counts && (!now || strcmp(now, value))) c->first = name;
    }
}

static void print(basin_record *r, const void *context) {
    const comparison *c = context;
    bool equal = !c->differ && !c->first;
    basin_record_fields(r, "model=%s;again=%s;tensors=%lld;different=%lld", c->o->operand[0],
                        c->o->training.output, (long long)c->tensors, (long long)c->differ);
    if (c->differ)
        basin_record_number(r, "distance|largest relative difference", "%.2g", c->distance);
    if (c->first) basin_record_text(r, "first|first that differs", c->first);
    basin_record_flag(r, ".equal", equal);
    basin_record_note(r, equal ? "reproduced: the same bits" : "NOT reproduced");
}

static basin_status run(void *context, basin_error *error) {
    options *o = context;
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *was = NULL;
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *is = NULL;
    BASIN_TRY(basin_model_read(&was, o->operand[0], error));
    comparison c = {.o = o, .was = was};
    BASIN_TRY(train_again(&c, error));
    if (basin_ranks_rank(o->ranks)) return BASIN_OK; /* the first compares */
    BASIN_TRY(basin_model_read(&is, o->training.output, error));
    c.is = is;
    compare(&c);
    BASIN_TRY(basin_record_print(o->json, print, &c, error));
    return c.differ || c.first ? BASIN_REPORTED : BASIN_OK;
}

const basin_command basin_command_reproduce = {BASIN_COMMAND("reproduce", table), .run = run,
                                               .ranks = true};
