/* The option parser and the help printed from the same tables; see options.h. */
#include "cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *field(void *values, const basin_option *option) {
    return (char *)values + option->offset;
}

/* The entry `name` of the table and whether it was met as --no-name; NULL where there is none. */
static const basin_option *find(const basin_option *option, const char *name, size_t length,
                                bool *negated) {
    for (; option->name; option++) {
        *negated = false;
        if (strlen(option->name) == length && !strncmp(option->name, name, length)) return option;
        *negated = true;
        if (option->kind == BASIN_OPTION_SWITCH && length == strlen(option->name) + 3 &&
            !strncmp(name, "no-", 3) && !strncmp(name + 3, option->name, length - 3))
            return option;
    }
    return NULL;
}

static const basin_setting *settings_of(const basin_option_set *set) {
    return set->task ? basin_settings_table(set->task) : NULL;
}

static basin_settings *values_of(const basin_option_set *set, const void *values) {
    return *(basin_settings *const *)((const char *)values + set->settings_at);
}

/* The setting that an option names: dashes for underscores, "no-" before a switch. A name of 0.1
 * stays as it is in `name`. */
static const basin_setting *find_setting(char name[64], const basin_option_set *set,
                                         const char *typed, size_t length, bool *negated) {
    const basin_setting *s = settings_of(set);
    *negated = length > 3 && !strncmp(typed, "no-", 3);
    if (length >= 64) return NULL;
    snprintf(name, 64, "%.*s", (int)length, typed);
    for (char *c = name; *c; c++)
        if (*c == '-') *c = '_';
    for (; s && s->name; s++) {
        bool no = *negated && s->kind == BASIN_SETTING_SWITCH;
        const char *wanted = no ? name + 3 : name;
        if (strcmp(s->name, wanted) && (!s->was || strcmp(s->was, wanted))) continue;
        memmove(name, wanted, strlen(wanted) + 1);
        *negated = no;
        return s;
    }
    return NULL;
}

int basin_name_distance(const char *a, const char *b) {
    enum { LIMIT = 31 };
    int rows[3][LIMIT + 1], *before = rows[0], *last = rows[1], *next = rows[2];
    int m = (int)strlen(a), n = (int)strlen(b);
    if (m > LIMIT || n > LIMIT) return m > n ? m : n;
    for (int j = 0; j <= n; j++) before[j] = 0, last[j] = j;
    for (int i = 1; i <= m; i++) {
        next[0] = i;
        for (int j = 1; j <= n; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (next[j - 1] + 1 < best) best = next[j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            next[j] = best;
        }
        int *spare = before;
        before = last, last = next, next = spare;
    }
    return last[n];
}

bool basin_name_near(int distance, const char *name) {
    int length = (int)strlen(name);
    return distance <= (length < 3 ? 1 : length < 6 ? 2 : 3) && distance < length;
}

/* The name nearest to what was typed, so far. */
typedef struct guess {
    const char *typed;
    char name[64];
    int distance;
} guess;

static void consider(guess *g, const char *name, bool negated) {
    char candidate[64];
    snprintf(candidate, sizeof candidate, "%s%s", negated ? "no-" : "", name);
    for (char *c = candidate; *c; c++)
        if (*c == '_') *c = '-';
    int distance = basin_name_distance(g->typed, candidate);
    if (distance >= g->distance || !basin_name_near(distance, g->typed)) return;
    g->distance = distance;
    memcpy(g->name, candidate, sizeof g->name);
}

static basin_status fail_unknown(const basin_option_set *set, const char *name, int length,
                                 basin_error *error) {
    char typed[64];
    guess g = {.typed = typed, .distance = 1000};
    snprintf(typed, sizeof typed, "%.*s", length, name);
    for (const basin_option *o = set->option; o->name; o++)
        for (int no = 0; no <= (o->kind == BASIN_OPTION_SWITCH); no++) consider(&g, o->name, no);
    for (const basin_setting *s = settings_of(set); s && s->name; s++)
        for (int no = 0; no <= (s->kind == BASIN_SETTING_SWITCH); no++) consider(&g, s->name, no);
    if (*g.name)
        return basin_fail(error, BASIN_BAD_VALUE, "unknown option '--%s'; did you mean '--%s'?",
                          typed, g.name);
    return basin_fail(error, BASIN_BAD_VALUE, "unknown option '--%s'", typed);
}

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
    char *end;
    errno = 0;
    bool integer = option->kind == BASIN_OPTION_INTEGER;
    long long whole = integer ? strtoll(text, &end, 10) : 0;
    double value = integer ? (double)whole : strtod(text, &end);
    if (end == text || *end || (integer && errno) || !isfinite(value))
        return basin_fail(error, BASIN_BAD_VALUE, "--%s: '%s' is not %s", option->name, text,
                          integer ? "a whole number" : "a number");
    if (value < option->low)
        return basin_fail(error, BASIN_BAD_VALUE, "--%s: %s is too small; at least %.15g",
                          option->name, text, option->low);
    if (value > option->high)
        return basin_fail(error, BASIN_BAD_VALUE, "--%s: %s is too large; at most %.15g",
                          option->name, text, option->high);
    if (integer)
        *(int64_t *)at = whole;
    else
        *(double *)at = value;
    return BASIN_OK;
}

static basin_status read_value(void *values, const basin_option *option, const char *text,
                               basin_error *error) {
    void *at = field(values, option);
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

static basin_status take_setting(const basin_option_set *set, const void *values,
                                 const basin_setting *s, const char *name, bool negated,
                                 const char *value, basin_error *error) {
    basin_error why;
    if (s->kind == BASIN_SETTING_SWITCH) value = negated ? "off" : "on";
    if (!basin_settings_set(values_of(set, values), name, value, &why)) return BASIN_OK;
    return as_option(&why, error);
}

/* One argument that is an option: its name, and the value behind '=' or its letter, or NULL. */
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

static const basin_option *find_letter(const basin_option *option, char letter) {
    while (option->name && option->letter != letter) option++;
    return option->name ? option : NULL;
}

static bool is_help(const word *w) {
    return w->letter ? *w->name == 'h' : w->length == 4 && !strncmp(w->name, "help", 4);
}

static basin_status take_no_value(const word *w, basin_error *error) {
    if (!w->value) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "--%.*s takes no value, found '%s'", (int)w->length,
                      w->name, w->value);
}

/* The value of an option that wants one: behind it, or the next argument. */
static basin_status take_value(word *w, int *i, int count, char **argument, const char *wanted,
                               basin_error *error) {
    if (!w->value && *i + 1 < count) w->value = argument[++*i];
    if (w->value) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "--%.*s wants a value: %s", (int)w->length, w->name,
                      wanted ? wanted : "a word");
}

/* One option at argument[*i], a value that follows it included. */
static basin_status read_option(void *values, int *i, bool *help, const basin_option_set *set,
                                int count, char **argument, basin_error *error) {
    word w = split(argument[*i]);
    bool negated = false;
    char name[64];
    if (is_help(&w)) return *help = true, BASIN_OK;
    const basin_option *entry = w.letter ? find_letter(set->option, *w.name)
                                         : find(set->option, w.name, w.length, &negated);
    const basin_setting *setting =
        entry || w.letter ? NULL : find_setting(name, set, w.name, w.length, &negated);
    if (!entry && w.letter)
        return basin_fail(error, BASIN_BAD_VALUE, "unknown option '-%c'", *w.name);
    if (!entry && !setting) return fail_unknown(set, w.name, (int)w.length, error);
    bool flag = entry ? entry->kind <= BASIN_OPTION_SWITCH : setting->kind == BASIN_SETTING_SWITCH;
    basin_status status =
        flag ? take_no_value(&w, error)
             : take_value(&w, i, count, argument, entry ? entry->value : setting->value, error);
    if (status) return status;
    if (setting) return take_setting(set, values, setting, name, negated, w.value, error);
    if (!flag) return read_value(values, entry, w.value, error);
    *(bool *)field(values, entry) = !negated;
    return BASIN_OK;
}

basin_status basin_options_parse(void *values, int *operands, bool *help,
                                 const basin_option_set *set, int count, char **argument,
                                 basin_error *error) {
    bool open = true;
    *operands = 0;
    *help = false;
    for (int i = 0; i < count; i++) {
        if (open && !strcmp(argument[i], "--")) {
            open = false;
        } else if (open && argument[i][0] == '-' && argument[i][1]) {
            basin_status status = read_option(values, &i, help, set, count, argument, error);
            if (status || *help) return status;
        } else {
            argument[(*operands)++] = argument[i];
        }
    }
    return BASIN_OK;
}

basin_dtype basin_option_dtype(const char *name) {
    if (name && !strcmp(name, "f64")) return BASIN_F64;
    return name && !strcmp(name, "bf16") ? BASIN_BF16 : BASIN_F32;
}

basin_status basin_option_backend(basin_backend **backend, const char *name, int64_t threads,
                                  const char *products, const char *dtype, basin_error *error) {
    basin_status status = basin_backend_open(backend, name, (int)threads, error);
    if (status) return status;
    if (products) basin_backend_set_products(*backend, basin_option_products(products));
    if (dtype) status = basin_backend_set_storage(*backend, basin_option_dtype(dtype), error);
    if (!status) return BASIN_OK;
    basin_backend_close(*backend);
    *backend = NULL;
    return status;
}

basin_products basin_option_products(const char *name) {
    if (!strcmp(name, "tf32")) return BASIN_PRODUCTS_TF32;
    if (!strcmp(name, "bf16x6")) return BASIN_PRODUCTS_BF16X6;
    return !strcmp(name, "bf16x3") ? BASIN_PRODUCTS_BF16X3 : BASIN_PRODUCTS_F32;
}

void basin_text_wrap(FILE *file, const char *text, int column, int indent, int width) {
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (column > indent && column + 1 + length > width) {
            fputc('\n', file);
            column = 0;
        }
        if (column < indent) {
            fprintf(file, "%*s", indent - column, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', file);
            column++;
        }
        fprintf(file, "%.*s", length, text);
        column += length;
        text += length;
        for (; *text == ' ' || *text == '\n'; text++)
            if (*text == '\n') fputc('\n', file), column = 0;
    }
    fputc('\n', file);
}

/* "12", "cpu", "on"; "" where the default is not worth a word: unset, or a plain flag. */
static void print_default(char *text, size_t size, const basin_option *option,
                          const void *defaults) {
    const void *at = (const char *)defaults + option->offset;
    *text = 0;
    switch (option->kind) {
    case BASIN_OPTION_FLAG: break;
    case BASIN_OPTION_SWITCH: snprintf(text, size, "%s", *(const bool *)at ? "on" : "off"); break;
    case BASIN_OPTION_INTEGER:
        if ((double)*(const int64_t *)at >= option->low)
            snprintf(text, size, "%lld", (long long)*(const int64_t *)at);
        break;
    case BASIN_OPTION_REAL:
        if (*(const double *)at >= option->low) snprintf(text, size, "%g", *(const double *)at);
        break;
    case BASIN_OPTION_TEXT:
    case BASIN_OPTION_CHOICE:
        if (*(const char *const *)at) snprintf(text, size, "%s", *(const char *const *)at);
        break;
    }
}

/* One entry as help shows it, whichever table it comes from. */
typedef struct row {
    char name[300], value[64];
    const char *help;
} row;

static void setting_row(row *r, const basin_setting *s, const basin_settings *values) {
    basin_error error;
    size_t at = 0, size = sizeof r->name;
    at += (size_t)snprintf(r->name, size, "--%s", s->kind == BASIN_SETTING_SWITCH ? "[no-]" : "");
    for (const char *c = s->name; *c; c++) r->name[at++] = *c == '_' ? '-' : *c;
    r->name[at] = 0;
    for (int i = 0; s->choices && s->choices[i] && at < size; i++)
        at += (size_t)snprintf(r->name + at, size - at, "%c%s", i ? '|' : ' ', s->choices[i]);
    if (s->value && at < size) snprintf(r->name + at, size - at, " %s", s->value);
    basin_settings_get(r->value, sizeof r->value, values, s->name, &error);
    r->help = s->help;
}

static void option_row(row *r, const basin_option *o, const void *defaults) {
    snprintf(r->name, sizeof r->name, "--%s%s%s%s", o->kind == BASIN_OPTION_SWITCH ? "[no-]" : "",
             o->name, o->value ? " " : "", o->value ? o->value : "");
    print_default(r->value, sizeof r->value, o, defaults);
    r->help = o->help;
}

static void print_row(FILE *file, const row *r, char letter) {
    enum { INDENT = 30 };
    char text[1200];
    int length =
        letter ? fprintf(file, "  -%c, %s", letter, r->name) : fprintf(file, "      %s", r->name);
    snprintf(text, sizeof text, *r->value ? "%s [%s]" : "%s", r->help, r->value);
    if (length + 2 > INDENT) fputc('\n', file), length = 0;
    basin_text_wrap(file, text, length, INDENT, BASIN_PAGE_WIDTH);
}

void basin_options_print(FILE *file, const basin_option_set *set, const void *defaults) {
    row r;
    for (const basin_option *o = set->option; o->name; o++) {
        option_row(&r, o, defaults);
        print_row(file, &r, o->letter);
    }
    print_row(file, &(row){"--help", "", "This help."}, 'h');
    if (!set->task) return;
    fputs("\nSettings, with the values of the default preset:\n", file);
    for (const basin_setting *s = settings_of(set); s->name; s++) {
        setting_row(&r, s, values_of(set, defaults));
        print_row(file, &r, 0);
    }
}

/* A table's cell: a bar would end it. */
static void print_cell(FILE *file, const char *text) {
    for (; *text; text++) fprintf(file, *text == '|' ? "\\|" : "%c", *text);
}

static void print_markdown_row(FILE *file, const row *r, char letter) {
    fputs("| `", file);
    if (letter) fprintf(file, "-%c, ", letter);
    print_cell(file, r->name);
    fprintf(file, "` | %s | %s |\n", r->value, r->help);
}

void basin_options_print_markdown(FILE *file, const basin_option_set *set, const void *defaults) {
    row r;
    fputs("| option | default | |\n|---|---|---|\n", file);
    for (const basin_option *o = set->option; o->name; o++) {
        option_row(&r, o, defaults);
        print_markdown_row(file, &r, o->letter);
    }
    for (const basin_setting *s = settings_of(set); s && s->name; s++) {
        setting_row(&r, s, values_of(set, defaults));
        print_markdown_row(file, &r, 0);
    }
}
