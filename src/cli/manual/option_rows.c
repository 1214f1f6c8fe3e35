/* Options on pages: rows that help, the manual, man pages and completions print; see options.h. */
#include "cli/options.h"

#include <string.h>

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

/* Writes a list of words as "a|b|c". */
static void join_choices(char *text, size_t size, const char *const *choice) {
    size_t at = 0;
    for (int i = 0; choice[i] && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? "|" : "", choice[i]);
}

static void option_row(basin_option_row *row, const basin_option_set *set, const basin_option *o,
                       const void *defaults) {
    row->letter = o->letter;
    snprintf(row->name, sizeof row->name, "%s", o->name);
    row->negatable = o->kind == BASIN_OPTION_SWITCH;
    row->choice = o->kind == BASIN_OPTION_CHOICE;
    if (o->value) snprintf(row->value, sizeof row->value, "%s", o->value);
    if (set->task && !strcmp(o->name, "preset")) {
        join_choices(row->value, sizeof row->value, basin_settings_presets(set->task));
        row->choice = true;
    }
    print_default(row->initial, sizeof row->initial, o, defaults);
    row->help = o->help;
}

static void setting_row(basin_option_row *row, const basin_setting *s,
                        const basin_settings *values) {
    basin_error error;
    snprintf(row->name, sizeof row->name, "%s", s->name);
    for (char *c = row->name; *c; c++)
        if (*c == '_') *c = '-';
    row->negatable = s->kind == BASIN_SETTING_SWITCH;
    row->choice = s->kind == BASIN_SETTING_CHOICE;
    if (s->value) snprintf(row->value, sizeof row->value, "%s", s->value);
    if (s->choices) join_choices(row->value, sizeof row->value, s->choices);
    basin_settings_get(row->initial, sizeof row->initial, values, s->name, &error);
    row->help = s->help;
    row->setting = true;
}

bool basin_option_row_at(basin_option_row *row, const basin_option_set *set, const void *defaults,
                         int i) {
    const basin_option *o = set->option;
    *row = (basin_option_row){0};
    while (o->name && i > 0) o++, i--;
    if (o->name) return option_row(row, set, o, defaults), true;
    if (i-- == 0) {
        *row = (basin_option_row){.letter = 'h', .name = "help", .help = "This help."};
        return true;
    }
    const basin_setting *s = set->task ? basin_settings_table(set->task) : NULL;
    while (s && s->name && i > 0) s++, i--;
    if (!s || !s->name) return false;
    setting_row(row, s, *(basin_settings *const *)((const char *)defaults + set->settings_at));
    return true;
}

void basin_option_row_name(char *text, size_t size, const basin_option_row *row) {
    char letter[8] = "";
    if (row->letter) snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(text, size, "%s--%s%s%s%s", letter, row->negatable ? "[no-]" : "", row->name,
             *row->value ? " " : "", row->value);
}

static void print_row(FILE *file, const basin_option_row *row) {
    enum { INDENT = 30 };
    char name[400], text[1200];
    basin_option_row_name(name, sizeof name, row);
    int length = fprintf(file, row->letter ? "  %s" : "      %s", name);
    snprintf(text, sizeof text, *row->initial ? "%s [%s]" : "%s", row->help, row->initial);
    if (length + 2 > INDENT) fputc('\n', file), length = 0;
    basin_text_wrap(file, text, length, INDENT, BASIN_PAGE_WIDTH);
}

void basin_options_print(FILE *file, const basin_option_set *set, const void *defaults) {
    basin_option_row row;
    bool settings = false;
    for (int i = 0; basin_option_row_at(&row, set, defaults, i); i++) {
        if (row.setting && !settings)
            fputs("\nSettings, with the values of the default preset:\n", file);
        settings = row.setting;
        print_row(file, &row);
    }
}

/* A table's cell: a bar would end it. */
static void print_cell(FILE *file, const char *text) {
    for (; *text; text++) fprintf(file, *text == '|' ? "\\|" : "%c", *text);
}

void basin_options_print_markdown(FILE *file, const basin_option_set *set, const void *defaults) {
    char name[400];
    basin_option_row row;
    fputs("| option | default | |\n|---|---|---|\n", file);
    for (int i = 0; basin_option_row_at(&row, set, defaults, i); i++) {
        if (row.letter == 'h') continue;
        basin_option_row_name(name, sizeof name, &row);
        fputs("| `", file);
        print_cell(file, name);
        fprintf(file, "` | %s | %s |\n", row.initial, row.help);
    }
}
