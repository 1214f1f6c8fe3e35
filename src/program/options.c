/* The option parser, and options that do not go with others; see cli.h. */
#include "program/cli.h"

#include <stdarg.h>

#include "base/file.h"
#include "base/needs.h"
#include "tasks/common/run/settings.h"

/* ---- finding what a name means ---- */

/* An option of the command's table or of the task's; neither where there is none. */
typedef struct target {
    const basin_option *option;
    const basin_setting *setting;
    int number;   /* of the setting in the task's table */
    bool negated; /* it was met as --no-name */
} target;

static bool found(const target *t) { return t->option || t->setting; }

static bool is_switch(const target *t) {
    return t->option ? t->option->kind == BASIN_OPTION_SWITCH
                     : t->setting->kind == BASIN_SETTING_SWITCH;
}

static bool takes_value(const target *t) {
    return t->option ? t->option->kind > BASIN_OPTION_SWITCH : !is_switch(t);
}

/* A setting is an option with dashes for underscores. */
static void swap_letters(char *text, char from, char to) {
    for (; *text; text++)
        if (*text == from) *text = to;
}

/* The i-th setting of the command's task; NULL past the last, and where it has none. */
static const basin_setting *setting_at(const basin_command *command, int i) {
    return command->task ? basin_setting_at(command->task, i) : NULL;
}

static target find_setting(const basin_command *command, const char *name) {
    target t = {.number = 0};
    while ((t.setting = setting_at(command, t.number)) && strcmp(t.setting->name, name) != 0)
        t.number++;
    return t;
}

const basin_option *basin_option_find(const basin_command *command, const char *name,
                                      size_t length) {
    for (const basin_option *o = command->option; o->name; o++)
        if (strlen(o->name) == length && !strncmp(o->name, name, length)) return o;
    return NULL;
}

static target find_plain(const basin_command *command, const char *name) {
    char text[64];
    const basin_option *o = basin_option_find(command, name, strlen(name));
    if (o) return (target){.option = o};
    snprintf(text, sizeof text, "%s", name);
    swap_letters(text, '-', '_');
    return find_setting(command, text);
}

static target find(const basin_command *command, const char *name) {
    target t = find_plain(command, name);
    if (found(&t) || strncmp(name, "no-", 3) != 0) return t;
    t = find_plain(command, name + 3);
    t.negated = true;
    return found(&t) && is_switch(&t) ? t : (target){0};
}

static target find_letter(const basin_option *option, char letter) {
    while (option->name && option->letter != letter) option++;
    return (target){.option = option->name ? option : NULL};
}

/* ---- names that are not there ---- */

/* The name nearest to what was typed, so far. */
typedef struct guess {
    const char *typed;
    char name[64];
    int distance;
} guess;

static void consider(guess *g, const char *name, bool negated) {
    char candidate[64];
    snprintf(candidate, sizeof candidate, "%s%s", negated ? "no-" : "", name);
    swap_letters(candidate, '_', '-');
    int distance = basin_name_distance(g->typed, candidate);
    if (distance >= g->distance || !basin_name_near(distance, g->typed)) return;
    g->distance = distance;
    memcpy(g->name, candidate, sizeof g->name);
}

/* Whether a line has this word after a blank. */
static bool has_word(const char *line, const char *word) {
    size_t length = strlen(word);
    for (const char *at = line; (at = strstr(at, word)); at++)
        if (at > line && at[-1] == ' ' && strchr(" \n", at[length])) return true;
    return false;
}

/* What other tools' names mean here ("- --rate: lr learning-rate" of commands.md, the best first)
 * goes before what merely looks alike. */
static void guess_name(guess *g, const basin_command *command) {
    for (const char *const *line = basin_section_find("other tools"); *line; line++) {
        char ours[64] = "";
        if (sscanf(*line, "- --%63[^:]", ours) != 1 || !has_word(*line, g->typed)) continue;
        target t = find_plain(command, ours);
        if (!found(&t)) continue;
        memcpy(g->name, ours, sizeof g->name);
        return;
    }
    const basin_setting *s;
    for (const basin_option *o = command->option; o->name; o++)
        for (int no = 0; no <= (o->kind == BASIN_OPTION_SWITCH); no++) consider(g, o->name, no);
    for (int i = 0; (s = setting_at(command, i)); i++)
        for (int no = 0; no <= (s->kind == BASIN_SETTING_SWITCH); no++) consider(g, s->name, no);
}

static basin_status fail_unknown(const basin_command *command, const char *typed,
                                 basin_error *error) {
    guess g = {.typed = typed, .distance = 1000};
    guess_name(&g, command);
    if (*g.name)
        return basin_fail(error, BASIN_BAD_VALUE, "unknown option '--%s'; did you mean '--%s'?",
                          typed, g.name);
    return basin_fail(error, BASIN_BAD_VALUE, "unknown option '--%s'", typed);
}

/* Each note once, and only whole. */
__attribute__((format(printf, 2, 3))) static void add_note(basin_parsed *parsed, const char *format,
                                                           ...) {
    char note[300];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(note, sizeof note, format, args);
    va_end(args);
    size_t at = strlen(parsed->notes);
    if (length >= (int)sizeof note || at + (size_t)length >= sizeof parsed->notes) return;
    if (!strstr(parsed->notes, note)) memcpy(parsed->notes + at, note, (size_t)length + 1);
}

/* ---- values ---- */

static bool is_choice(const char *choices, const char *value) {
    size_t length = strlen(value);
    for (const char *at = choices; at; at = strchr(at, '|')) {
        if (*at == '|') at++;
        if (strcspn(at, "|") == length && !strncmp(at, value, length)) return true;
    }
    return false;
}

static basin_status read_number(void *at, const basin_option *option, const char *text,
                                basin_error *error) {
    char name[64];
    bool integer = option->kind == BASIN_OPTION_INTEGER;
    snprintf(name, sizeof name, "--%s", option->name);
    basin_setting number = {.name = name,
                            .kind = integer ? BASIN_SETTING_INTEGER : BASIN_SETTING_REAL,
                            .low = option->low,
                            .high = option->high};
    return basin_setting_number(at, &number, text, error);
}

static basin_status read_value(basin_args *args, const basin_option *option, const char *text,
                               basin_error *error) {
    void *at = (char *)args + option->offset;
    if (option->kind == BASIN_OPTION_INTEGER || option->kind == BASIN_OPTION_REAL)
        return read_number(at, option, text, error);
    if (option->kind == BASIN_OPTION_CHOICE && !is_choice(option->value, text))
        return basin_fail(error, BASIN_BAD_VALUE, "--%s: '%s' is not one of %s", option->name, text,
                          option->value);
    if (!*text) return basin_fail(error, BASIN_BAD_VALUE, "--%s: empty value", option->name);
    *(const char **)at = text;
    return BASIN_OK;
}

/* "--head-dim: ..." of a message that begins "head_dim: ...". */
static basin_status as_option(const basin_error *why, basin_error *error) {
    char text[BASIN_ERROR_TEXT];
    snprintf(text, sizeof text, "%s", why->text);
    for (char *c = text; *c && *c != ':'; c++)
        if (*c == '_') *c = '-';
    return basin_fail(error, BASIN_BAD_VALUE, "--%s", text);
}

static basin_status take_setting(basin_args *args, const target *t, const char *value,
                                 basin_error *error) {
    basin_error why;
    if (is_switch(t) && !value) value = t->negated ? "off" : "on";
    if (basin_settings_set(args->settings, t->setting->name, value, &why))
        return as_option(&why, error);
    return BASIN_OK;
}

/* ---- arguments ---- */

/* One argument that is an option: its name, and the value after '=' or its letter, or NULL. */
typedef struct word {
    const char *name, *value;
    size_t length;
    bool letter;
} word;

static word split(const char *text) {
    word w = {.name = text + 1};
    w.letter = *w.name != '-';
    if (w.letter) {
        w.length = 1;
        if (w.name[1]) w.value = w.name + 1;
        return w;
    }
    w.length = strcspn(++w.name, "=");
    if (w.name[w.length]) w.value = w.name + w.length + 1;
    return w;
}

static bool is_named(const word *w, const char *name) {
    return !w->letter && w->length == strlen(name) && !strncmp(w->name, name, w->length);
}

static basin_status take_no_value(const word *w, basin_error *error) {
    if (!w->value) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s%.*s takes no value, found '%s'",
                      w->letter ? "-" : "--", (int)w->length, w->name, w->value);
}

/* Whether an argument can hardly be the value of the option before it. */
static bool looks_like_option(const char *text, const basin_command *command) {
    if (text[0] != '-' || !text[1]) return false;
    if (text[1] == '-') return true;
    target t = find_letter(command->option, text[1]);
    return !text[2] && (found(&t) || text[1] == 'h');
}

/* The value of an option: in the same argument, or the next one. */
static basin_status take_value(word *w, int *i, const basin_command *command, int count,
                               char **argument, const char *expected, basin_error *error) {
    int name = (int)w->length;
    const char *next = *i + 1 < count ? argument[*i + 1] : NULL, *dash = w->letter ? "-" : "--";
    if (!expected) expected = "a word";
    if (!w->value && next && looks_like_option(next, command))
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "%s%.*s needs a value: %s; found '%s' (write %s%.*s%s%s if that is meant)", dash, name,
            w->name, expected, next, dash, name, w->name, w->letter ? "" : "=", next);
    if (!w->value && next) w->value = argument[++*i];
    if (w->value) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s%.*s needs a value: %s", dash, name, w->name,
                      expected);
}

/* Remembers what was given for an option; notes which value is used if it is repeated. */
static void remember(basin_args *args, const target *t, const char *value) {
    basin_parsed *parsed = &args->parsed;
    const basin_command *command = args->command;
    const char *given = value ? value : is_switch(t) && t->negated ? "off" : "on";
    const char **place =
        t->option ? &parsed->option[t->option - command->option] : &parsed->setting[t->number];
    char name[64];
    snprintf(name, sizeof name, "%s", t->option ? t->option->name : t->setting->name);
    swap_letters(name, '_', '-');
    if (*place && strcmp(*place, given) != 0)
        add_note(parsed, "--%s was given more than once; the last value is used: %.100s\n", name,
                 given);
    *place = given;
}

static basin_status store(basin_args *args, const target *t, const char *value,
                          basin_error *error) {
    if (t->setting) return take_setting(args, t, value, error);
    if (takes_value(t)) return read_value(args, t->option, value, error);
    *(bool *)((char *)args + t->option->offset) = !t->negated;
    return BASIN_OK;
}

/* One option at argument[*i], a value that follows it included. */
static basin_status read_option(basin_args *args, int *i, int count, char **argument,
                                basin_error *error) {
    const basin_command *command = args->command;
    char typed[64];
    word w = split(argument[*i]);
    args->parsed.help_all = is_named(&w, "help-all");
    args->parsed.help =
        args->parsed.help_all || is_named(&w, "help") || (w.letter && *w.name == 'h');
    if (args->parsed.help) return BASIN_OK;
    snprintf(typed, sizeof typed, "%.*s", (int)w.length, w.name);
    target t = w.letter ? find_letter(command->option, *typed) : find(command, typed);
    if (!found(&t) && w.letter)
        return basin_fail(error, BASIN_BAD_VALUE, "unknown option '-%c'", *w.name);
    if (!found(&t)) return fail_unknown(command, typed, error);
    const char *expected = t.option ? t.option->value : t.setting->value;
    BASIN_TRY(takes_value(&t) ? take_value(&w, i, command, count, argument, expected, error)
                              : take_no_value(&w, error));
    BASIN_TRY(store(args, &t, w.value, error));
    remember(args, &t, w.value);
    return BASIN_OK;
}

basin_status basin_options_parse(basin_args *args, int count, char **argument, basin_error *error) {
    bool open = true;
    args->parsed = (basin_parsed){0};
    args->operands = 0;
    args->operand = argument;
    for (int i = 0; i < count; i++) {
        if (open && !strcmp(argument[i], "--")) {
            open = false;
        } else if (open && argument[i][0] == '-' && argument[i][1]) {
            BASIN_TRY(read_option(args, &i, count, argument, error));
            if (args->parsed.help) return BASIN_OK;
        } else {
            argument[args->operands++] = argument[i];
        }
    }
    return BASIN_OK;
}

/* ---- options beside others: one that others make idle, one that would write over a file ---- */

static const char operand_name[] = "OPERAND";

static const char *first_operand(const basin_args *args) {
    return args->operands ? args->operand[0] : "";
}

void basin_option_print(char *text, size_t size, const basin_option *o, const basin_args *args) {
    const void *at = (const char *)args + o->offset;
    const char *said = NULL;
    if (o->kind <= BASIN_OPTION_SWITCH) said = *(const bool *)at ? "on" : "off";
    if (o->kind >= BASIN_OPTION_TEXT) said = *(const char *const *)at;
    if (o->kind == BASIN_OPTION_INTEGER)
        snprintf(text, size, "%lld", (long long)*(const int64_t *)at);
    else if (o->kind == BASIN_OPTION_REAL)
        snprintf(text, size, "%.15g", *(const double *)at);
    else
        snprintf(text, size, "%s", said ? said : "");
}

static bool value_of(char text[BASIN_NEEDS_VALUE], const void *context, const char *name,
                     size_t length) {
    const basin_args *args = context;
    const basin_option *o = basin_option_find(args->command, name, length);
    if (basin_needs_names(name, operand_name))
        return snprintf(text, BASIN_NEEDS_VALUE, "%s", first_operand(args)), true;
    if (o) basin_option_print(text, BASIN_NEEDS_VALUE, o, args);
    return o;
}

/* What would help, of a clause whose conditions all fail: "--top or --kind hard". */
static void list_expected(char *text, size_t size, const char *clause,
                          const basin_command *command) {
    size_t used = 0;
    *text = 0;
    for (const char *at = clause, *end = at + strcspn(at, " "); at < end; at += strspn(at, ",")) {
        size_t length, name = strcspn(at, "!=");
        bool expected;
        const char *words = basin_needs_words(at, &length, &expected);
        const basin_option *o = basin_option_find(command, at, name);
        bool plain = !expected || !o || o->kind <= BASIN_OPTION_SWITCH;
        if (o && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s--%s%s%.*s", used ? " or " : "",
                                     o->name, plain ? "" : " ", plain ? 0 : (int)length, words);
        at = words + length;
    }
}

static basin_status fail_idle(const basin_option *option, const char *condition,
                              const basin_args *args, basin_error *error) {
    char expected[200];
    const char *operand = first_operand(args);
    if (basin_needs_names(condition, operand_name))
        return basin_fail(error, BASIN_BAD_VALUE, "--%s has no effect with%s %.100s", option->name,
                          *operand ? "" : "out an", *operand ? operand : "operand");
    const basin_option *other =
        basin_option_find(args->command, condition, strcspn(condition, "!="));
    const char *given = args->parsed.option[other - args->command->option];
    bool worded = given && other->kind > BASIN_OPTION_SWITCH;
    list_expected(expected, sizeof expected, condition, args->command);
    if (given)
        return basin_fail(error, BASIN_BAD_VALUE, "--%s has no effect with --%s%s%.100s",
                          option->name, other->name, worded ? " " : "", worded ? given : "");
    return basin_fail(error, BASIN_BAD_VALUE, "--%s has no effect without %s", option->name,
                      expected);
}

/* ---- files ---- */

/* The file that an option writes; NULL: none. */
static const char *written(const basin_args *args, const basin_option *o) {
    if (!o->writes) return NULL;
    return *(const char *const *)(const void *)((const char *)args + o->offset);
}

static basin_status check_file(const basin_args *args, const basin_option *option,
                               basin_error *error) {
    const char *path = written(args, option);
    bool same = false;
    for (int i = 0; path && i < args->operands; i++) {
        BASIN_TRY(basin_file_same(&same, path, args->operand[i], error));
        if (same)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "--%s %s would overwrite %s, which is read; name another file",
                              option->name, path, args->operand[i]);
    }
    for (const basin_option *o = args->command->option; path && o < option; o++) {
        if (!written(args, o)) continue;
        BASIN_TRY(basin_file_same(&same, path, written(args, o), error));
        if (same)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "--%s and --%s are both %s; expected two different files", o->name,
                              option->name, path);
    }
    return BASIN_OK;
}

basin_status basin_options_check(const basin_args *args, basin_error *error) {
    const basin_option *option = args->command->option;
    for (int i = 0; option[i].name; i++) {
        const char *unmet =
            args->parsed.option[i] ? basin_needs_unmet(option[i].needs, value_of, args) : NULL;
        if (unmet) return fail_idle(&option[i], unmet, args, error);
    }
    for (; option->name; option++) BASIN_TRY(check_file(args, option, error));
    return BASIN_OK;
}

basin_status basin_options_try_files(const basin_args *args, basin_error *error) {
    const basin_option *option = args->command->option;
    for (int i = 0; option[i].name; i++)
        if (args->parsed.option[i] && written(args, &option[i]))
            BASIN_TRY(basin_writer_try(written(args, &option[i]), error));
    return BASIN_OK;
}

/* ---- what computes ---- */

basin_dtype basin_option_dtype(const char *name) {
    if (name && !strcmp(name, "f64")) return BASIN_F64;
    if (name && !strcmp(name, "fp8")) return BASIN_F8_E4M3;
    return name && !strcmp(name, "bf16") ? BASIN_BF16 : BASIN_F32;
}

basin_products basin_option_products(const char *name) {
    return !strcmp(name, "tf32") ? BASIN_PRODUCTS_TF32 : BASIN_PRODUCTS_F32;
}

basin_status basin_option_products_check(const basin_args *args, basin_error *error) {
    if (!strcmp(args->products, "f32") || !strcmp(args->backend, "cuda")) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "products %s have no effect on backend %s; use backend cuda, or products f32",
                      args->products, args->backend);
}

basin_status basin_compute_open(basin_args *args, basin_error *error) {
    BASIN_TRY(basin_option_products_check(args, error));
    basin_compute compute = {.backend = args->backend,
                             .threads = (int)args->threads,
                             .products = basin_option_products(args->products),
                             .storage = args->dtype ? basin_option_dtype(args->dtype) : 0,
                             .narrow_min = args->narrow_all ? 1 : 0};
    return basin_backend_open(&args->compute, &compute, error);
}
