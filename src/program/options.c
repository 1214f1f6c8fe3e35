/* The option parser, and options that do not go with others; see cli.h. */
#include "program/cli.h"

#include <stdarg.h>

#include "base/file.h"
#include "base/needs.h"

/* ---- finding what a name means ---- */

/* An option of the command's table, or a setting of the task's. */
typedef struct target {
    const basin_setting_entry *entry; /* NULL: there is none */
    const basin_option *option;       /* NULL: a setting */
    int number;                       /* see basin_option_at */
    bool negated;                     /* it was met as --no-name */
} target;

static const basin_option help_option[] = {
    {.entry = {{"help", BASIN_SETTING_SWITCH}, offsetof(basin_args, parsed.help)},
     .flag = true,
     .letter = 'h'},
    {.entry = {{"help-all", BASIN_SETTING_SWITCH}, offsetof(basin_args, parsed.help_all)},
     .flag = true}};
enum { HELP_OPTIONS = sizeof help_option / sizeof *help_option };

const basin_setting_entry *basin_option_at(const basin_option **own, const basin_args *args,
                                           int i) {
    *own = args->command->option;
    while ((*own)->entry.is.name && i > 0) ++*own, i--;
    if ((*own)->entry.is.name) return &(*own)->entry;
    *own = i < HELP_OPTIONS ? &help_option[i] : NULL;
    if (*own) return &(*own)->entry;
    const basin_setting_entry *setting = args->settings ? args->settings->kind->table : NULL;
    for (i -= HELP_OPTIONS; setting && setting->is.name && i > 0; i--) setting++;
    return setting && setting->is.name ? setting : NULL;
}

static bool is_switch(const target *t) {
    return t->entry->is.kind == BASIN_SETTING_SWITCH && !(t->option && t->option->flag);
}

/* A setting is an option with dashes for underscores. */
static void print_name(char text[64], const basin_setting_entry *entry) {
    snprintf(text, 64, "%s", entry->is.name);
    for (; *text; text++)
        if (*text == '_') *text = '-';
}

static bool is_same(const char *name, const char *typed) {
    while (*name && (*name == *typed || (*name == '_' && *typed == '-'))) name++, typed++;
    return *name == *typed;
}

const basin_option *basin_option_find(const basin_command *command, const char *name,
                                      size_t length) {
    for (const basin_option *o = command->option; o->entry.is.name; o++)
        if (strlen(o->entry.is.name) == length && !strncmp(o->entry.is.name, name, length))
            return o;
    return NULL;
}

/* By its name, or (NULL) its letter. */
static target find_plain(const basin_args *args, const char *name, char letter) {
    target t = {.number = 0};
    for (; (t.entry = basin_option_at(&t.option, args, t.number)); t.number++)
        if (name ? is_same(t.entry->is.name, name) : t.option && t.option->letter == letter) break;
    return t;
}

static target find(const basin_args *args, const char *name) {
    target t = find_plain(args, name, 0);
    if (t.entry || strncmp(name, "no-", 3) != 0) return t;
    t = find_plain(args, name + 3, 0);
    t.negated = true;
    return t.entry && is_switch(&t) ? t : (target){0};
}

/* ---- names that are not there ---- */

/* The name nearest to what was typed, so far. */
typedef struct guess {
    const char *typed;
    char name[72];
    int distance;
} guess;

static void consider(guess *g, const target *t, bool negated) {
    char name[64], candidate[72];
    print_name(name, t->entry);
    snprintf(candidate, sizeof candidate, "%s%s", negated ? "no-" : "", name);
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
static void guess_name(guess *g, const basin_args *args) {
    for (const char *const *line = basin_section_find("other tools"); *line; line++) {
        char ours[64] = "";
        if (sscanf(*line, "- --%63[^:]", ours) != 1 || !has_word(*line, g->typed)) continue;
        if (!find_plain(args, ours, 0).entry) continue;
        snprintf(g->name, sizeof g->name, "%s", ours);
        return;
    }
    target t = {.number = 0};
    for (; (t.entry = basin_option_at(&t.option, args, t.number)); t.number++)
        for (int no = 0; no <= is_switch(&t); no++) consider(g, &t, no);
}

static basin_status fail_unknown(const basin_args *args, const char *typed, basin_error *error) {
    guess g = {.typed = typed, .distance = 1000};
    guess_name(&g, args);
    return basin_fail(error, BASIN_BAD_VALUE,
                      *g.name ? "unknown option '--%s'; did you mean '--%s'?"
                              : "unknown option '--%s'",
                      typed, g.name);
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

/* "--head-dim: ..." of a message that begins "head_dim: ...". */
static basin_status as_option(const basin_error *why, basin_error *error) {
    char text[BASIN_ERROR_TEXT];
    snprintf(text, sizeof text, "%s", why->text);
    for (char *c = text; *c && *c != ':'; c++)
        if (*c == '_') *c = '-';
    return basin_fail(error, BASIN_BAD_VALUE, "--%s", text);
}

/* Stores a value and remembers it; notes which one is used if the option is repeated. */
static basin_status store(basin_args *args, const target *t, const char *value,
                          basin_error *error) {
    char name[64];
    basin_error why;
    const char **given = &args->parsed.given[t->number];
    if (t->option ? basin_setting_parse(args, t->entry, value, &why)
                  : basin_settings_set(args->settings, t->entry->is.name, value, &why))
        return as_option(&why, error);
    print_name(name, t->entry);
    if (*given && strcmp(*given, value) != 0)
        add_note(&args->parsed, "--%s was given more than once; the last value is used: %.100s\n",
                 name, value);
    *given = value;
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

static basin_status take_no_value(const word *w, basin_error *error) {
    if (!w->value) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s%.*s takes no value, found '%s'",
                      w->letter ? "-" : "--", (int)w->length, w->name, w->value);
}

/* Whether an argument can hardly be the value of the option before it. */
static bool looks_like_option(const char *text, const basin_args *args) {
    if (text[0] != '-' || !text[1]) return false;
    return text[1] == '-' || (!text[2] && find_plain(args, NULL, text[1]).entry);
}

/* The value of an option: in the same argument, or the next one. */
static basin_status take_value(word *w, int *i, const basin_args *args, int count, char **argument,
                               const char *expected, basin_error *error) {
    int name = (int)w->length;
    const char *next = *i + 1 < count ? argument[*i + 1] : NULL, *dash = w->letter ? "-" : "--";
    if (!expected) expected = "a word";
    if (!w->value && next && looks_like_option(next, args))
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "%s%.*s needs a value: %s; found '%s' (write %s%.*s%s%s if that is meant)", dash, name,
            w->name, expected, next, dash, name, w->name, w->letter ? "" : "=", next);
    if (!w->value && next) w->value = argument[++*i];
    if (w->value) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s%.*s needs a value: %s", dash, name, w->name,
                      expected);
}

/* One option at argument[*i], a value that follows it included. */
static basin_status read_option(basin_args *args, int *i, int count, char **argument,
                                basin_error *error) {
    char typed[64];
    word w = split(argument[*i]);
    snprintf(typed, sizeof typed, "%.*s", (int)w.length, w.name);
    target t = w.letter ? find_plain(args, NULL, *typed) : find(args, typed);
    if (!t.entry && w.letter)
        return basin_fail(error, BASIN_BAD_VALUE, "unknown option '-%c'", *w.name);
    if (!t.entry) return fail_unknown(args, typed, error);
    if (t.entry->is.kind != BASIN_SETTING_SWITCH) {
        BASIN_TRY(take_value(&w, i, args, count, argument, t.entry->is.value, error));
    } else {
        BASIN_TRY(take_no_value(&w, error));
        w.value = t.negated ? "off" : "on";
    }
    return store(args, &t, w.value, error);
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
            args->parsed.help |= args->parsed.help_all;
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

static bool value_of(char text[BASIN_NEEDS_VALUE], const void *context, const char *name,
                     size_t length) {
    const basin_args *args = context;
    const basin_option *o = basin_option_find(args->command, name, length);
    if (basin_needs_names(name, operand_name))
        return snprintf(text, BASIN_NEEDS_VALUE, "%s", first_operand(args)), true;
    if (o) basin_setting_print(text, BASIN_NEEDS_VALUE, args, &o->entry);
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
        bool plain = !expected || !o || o->entry.is.kind == BASIN_SETTING_SWITCH;
        if (o && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s--%s%s%.*s", used ? " or " : "",
                                     o->entry.is.name, plain ? "" : " ", plain ? 0 : (int)length,
                                     words);
        at = words + length;
    }
}

static basin_status fail_idle(const basin_option *option, const char *condition,
                              const basin_args *args, basin_error *error) {
    char expected[200];
    const char *operand = first_operand(args), *name = option->entry.is.name;
    if (basin_needs_names(condition, operand_name))
        return basin_fail(error, BASIN_BAD_VALUE, "--%s has no effect with%s %.100s", name,
                          *operand ? "" : "out an", *operand ? operand : "operand");
    const basin_option *other =
        basin_option_find(args->command, condition, strcspn(condition, "!="));
    const char *given = args->parsed.given[other - args->command->option];
    bool worded = given && other->entry.is.kind != BASIN_SETTING_SWITCH;
    list_expected(expected, sizeof expected, condition, args->command);
    if (given)
        return basin_fail(error, BASIN_BAD_VALUE, "--%s has no effect with --%s%s%.100s", name,
                          other->entry.is.name, worded ? " " : "", worded ? given : "");
    return basin_fail(error, BASIN_BAD_VALUE, "--%s has no effect without %s", name, expected);
}

/* ---- files ---- */

/* The file that an option writes; NULL: none. */
static const char *written(const basin_args *args, const basin_option *o) {
    if (!o->writes) return NULL;
    return *(const char *const *)(const void *)((const char *)args + o->entry.offset);
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
                              option->entry.is.name, path, args->operand[i]);
    }
    for (const basin_option *o = args->command->option; path && o < option; o++) {
        if (!written(args, o)) continue;
        BASIN_TRY(basin_file_same(&same, path, written(args, o), error));
        if (same)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "--%s and --%s are both %s; expected two different files",
                              o->entry.is.name, option->entry.is.name, path);
    }
    return BASIN_OK;
}

basin_status basin_options_check(const basin_args *args, basin_error *error) {
    const basin_option *option = args->command->option;
    for (int i = 0; option[i].entry.is.name; i++) {
        const char *unmet =
            args->parsed.given[i] ? basin_needs_unmet(option[i].needs, value_of, args) : NULL;
        if (unmet) return fail_idle(&option[i], unmet, args, error);
    }
    for (; option->entry.is.name; option++) BASIN_TRY(check_file(args, option, error));
    return BASIN_OK;
}

basin_status basin_options_try_files(const basin_args *args, basin_error *error) {
    const basin_option *option = args->command->option;
    for (int i = 0; option[i].entry.is.name; i++)
        if (args->parsed.given[i] && written(args, &option[i]))
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
