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

static basin_status fail_unknown(const basin_option *option, const char *name, int length,
                                 basin_error *error) {
    char typed[64], near[64] = "", candidate[64];
    int best = 1000;
    snprintf(typed, sizeof typed, "%.*s", length, name);
    for (; option->name; option++)
        for (int no = 0; no <= (option->kind == BASIN_OPTION_SWITCH); no++) {
            snprintf(candidate, sizeof candidate, "%s%s", no ? "no-" : "", option->name);
            int distance = basin_name_distance(typed, candidate);
            if (distance >= best || !basin_name_near(distance, typed)) continue;
            best = distance;
            memcpy(near, candidate, sizeof near);
        }
    if (*near)
        return basin_fail(error, BASIN_BAD_VALUE, "unknown option '--%s'; did you mean '--%s'?",
                          typed, near);
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

/* One option at argument[*i], a value that follows it included. */
static basin_status read_option(void *values, int *i, bool *help, const basin_option *option,
                                int count, char **argument, basin_error *error) {
    const char *text = argument[*i] + 1, *value = NULL;
    bool negated = false;
    const basin_option *entry = option;
    if (*text == '-') {
        size_t length = strcspn(++text, "=");
        if (text[length]) value = text + length + 1;
        if (!strcmp(text, "help")) return *help = true, BASIN_OK;
        entry = find(option, text, length, &negated);
        if (!entry) return fail_unknown(option, text, (int)length, error);
    } else {
        if (*text == 'h') return *help = true, BASIN_OK;
        while (entry->name && entry->letter != *text) entry++;
        if (!entry->name) return basin_fail(error, BASIN_BAD_VALUE, "unknown option '-%c'", *text);
        if (text[1]) value = text + 1;
    }
    if (entry->kind <= BASIN_OPTION_SWITCH) {
        if (value)
            return basin_fail(error, BASIN_BAD_VALUE, "--%s takes no value, found '%s'",
                              entry->name, value);
        *(bool *)field(values, entry) = !negated;
        return BASIN_OK;
    }
    if (!value && *i + 1 < count) value = argument[++*i];
    if (!value)
        return basin_fail(error, BASIN_BAD_VALUE, "--%s wants a value: %s", entry->name,
                          entry->value);
    return read_value(values, entry, value, error);
}

basin_status basin_options_parse(void *values, int *operands, bool *help,
                                 const basin_option *option, int count, char **argument,
                                 basin_error *error) {
    bool open = true;
    *operands = 0;
    *help = false;
    for (int i = 0; i < count; i++) {
        if (open && !strcmp(argument[i], "--")) {
            open = false;
        } else if (open && argument[i][0] == '-' && argument[i][1]) {
            basin_status status = read_option(values, &i, help, option, count, argument, error);
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

/* "-o, --output FILE", `none` in place of a letter and `bar` between choices; returns how long it
 * is, a bar counting as one. */
static int print_name(FILE *file, const basin_option *option, const char *none, const char *bar) {
    int length =
        option->letter ? fprintf(file, "-%c, ", option->letter) : fprintf(file, "%s", none);
    length +=
        fprintf(file, "--%s%s", option->kind == BASIN_OPTION_SWITCH ? "[no-]" : "", option->name);
    if (option->value) length += fprintf(file, " ");
    for (const char *c = option->value; c && *c; c++, length++)
        fprintf(file, "%.*s", *c == '|' ? (int)strlen(bar) : 1, *c == '|' ? bar : c);
    return length;
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

void basin_options_print(FILE *file, const basin_option *option, const void *defaults) {
    enum { INDENT = 30 };
    static const basin_option help = {"help", 'h', BASIN_OPTION_FLAG, 0, NULL, 0, 0, "This help."};
    for (bool last = false; !last; option++) {
        last = !option->name;
        const basin_option *entry = last ? &help : option;
        char value[64] = "", text[1000];
        fputs("  ", file);
        int length = print_name(file, entry, "    ", "|");
        if (!last) print_default(value, sizeof value, entry, defaults);
        snprintf(text, sizeof text, *value ? "%s [%s]" : "%s", entry->help, value);
        if (length + 4 > INDENT) fputc('\n', file), length = -2;
        basin_text_wrap(file, text, length + 2, INDENT, BASIN_PAGE_WIDTH);
    }
}

void basin_options_print_markdown(FILE *file, const basin_option *option, const void *defaults) {
    fputs("| option | default | |\n|---|---|---|\n", file);
    for (; option->name; option++) {
        char value[64];
        print_default(value, sizeof value, option, defaults);
        fputs("| `", file);
        print_name(file, option, "", "\\|");
        fprintf(file, "` | %s | %s |\n", value, option->help);
    }
}
