/* The pages that are made of the tables of options: help, and the manual as Markdown, from which
 * cmake/manual.awk makes man pages; and basin help, which prints them. */
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "basin/version.h"
#include "cli/command.h"
#include "io/file.h"

/* ---- options ---- */

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
    row->more = o->more;
}

/* Settings that most people set; a name means the same in all tasks that have it. */
static bool is_basic(const char *name) {
    static const char *const basic[] = {"batch",   "blocks", "dim",  "epochs", "heads", "length",
                                        "members", "patch",  "rate", "seed",   "size",  "steps"};
    for (size_t i = 0; i < sizeof basic / sizeof *basic; i++)
        if (!strcmp(basic[i], name)) return true;
    return false;
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
    row->more = !is_basic(s->name);
}

bool basin_option_row_at(basin_option_row *row, const basin_option_set *set, const void *defaults,
                         int i) {
    const basin_option *o = set->option;
    *row = (basin_option_row){0};
    while (o->name && i > 0) o++, i--;
    if (o->name) return option_row(row, set, o, defaults), true;
    if (i < 2 || (i == 2 && set->task)) {
        static const basin_option_row always[] = {
            {.letter = 'h', .name = "help", .help = "What most people need."},
            {.name = "help-all", .help = "All options and settings."},
            {.name = "set",
             .value = "NAME=VALUE",
             .help = "Any setting, by its name in --print-config; may be repeated."},
        };
        *row = always[i];
        return true;
    }
    i -= set->task ? 3 : 2;
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

/* Up to the first full stop or semicolon: what the short help has room for. */
static int first_clause(const char *help) {
    const char *at = help;
    while (*at && !((*at == '.' || *at == ';') && (at[1] == ' ' || !at[1]))) at++;
    return (int)(at - help);
}

static void print_row(FILE *file, const basin_option_row *row, bool all) {
    enum { INDENT = 30 };
    char name[400], text[1200];
    int first = all ? (int)strlen(row->help) : first_clause(row->help);
    basin_option_row_name(name, sizeof name, row);
    if (!all && strlen(name) > 50) snprintf(name + 48, 4, "..");
    int length = fprintf(file, row->letter ? "  %s" : "      %s", name);
    snprintf(text, sizeof text, *row->initial ? "%.*s [%s]" : "%.*s", first, row->help,
             row->initial);
    if (length + 2 > INDENT) fputc('\n', file), length = 0;
    basin_text_wrap(file, text, length, INDENT, BASIN_PAGE_WIDTH);
}

int basin_options_print(FILE *file, const basin_option_set *set, const void *defaults, bool all) {
    basin_option_row row;
    bool settings = false;
    int left_out = 0;
    for (int i = 0; basin_option_row_at(&row, set, defaults, i); i++) {
        left_out += row.more && !all;
        if (row.more && !all) continue;
        if (row.setting && !settings)
            fputs("\nSettings, with the values of the default preset:\n", file);
        settings = row.setting;
        print_row(file, &row, all);
    }
    return left_out;
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
        if (row.letter == 'h' || !strcmp(row.name, "help-all")) continue;
        basin_option_row_name(name, sizeof name, &row);
        fputs("| `", file);
        print_cell(file, name);
        fprintf(file, "` | %s | %s |\n", row.initial, row.help);
    }
}

/* ---- help ---- */

typedef struct options {
    const char *completion;
    bool markdown;
} options;

static const options defaults = {0};

static const basin_option table[] = {
    BASIN_FLAG(options, markdown, 0, "markdown", "The manual of all commands as Markdown.",
               .needs = "OPERAND= completion="),
    BASIN_CHOICE(options, completion, "completion", "bash|zsh|fish",
                 "The script that completes commands in that shell.", .needs = "OPERAND="),
    BASIN_OPTIONS_END,
};

void basin_command_usage_print(FILE *file, const basin_command *command) {
    fprintf(file, "basin %s%s%s%s", command->name, *command->operands ? " " : "", command->operands,
            command->option->name ? " [options]" : "");
}

void basin_command_help_print(FILE *file, const basin_command *command, bool all) {
    fprintf(file, "basin %s: %s\n\nUsage: ", command->name, command->summary);
    basin_command_usage_print(file, command);
    fputs("\n\n", file);
    basin_text_wrap(file, command->text, 0, 0, BASIN_PAGE_WIDTH);
    fputs("\nOptions:\n", file);
    void *values = basin_command_values(command);
    basin_option_set set = basin_command_options(command);
    int left_out = values ? basin_options_print(file, &set, values, all) : 0;
    basin_command_values_free(command, values);
    if (left_out) fprintf(file, "\n--help-all explains these in full, and %d more.\n", left_out);
    if (command->example) fprintf(file, "\nExamples:\n%s", command->example);
}

static void print_commands(FILE *file, const basin_noun *group) {
    for (const basin_command *const *at = basin_commands; *at; at++)
        if (basin_command_noun(*at) == group)
            fprintf(file, "  %-16s  %s\n", (*at)->name, (*at)->summary);
}

void basin_noun_help_print(FILE *file, const basin_noun *group) {
    fprintf(file, "%s.\n\nUsage: basin %s COMMAND [operands] [options]\n\nCommands:\n",
            group->summary, group->noun);
    print_commands(file, group);
    fprintf(file, "\nbasin help %s COMMAND tells more about one.\n", group->noun);
}

static void print_overview(FILE *file) {
    fputs("Basin: Energy Transformers. You write the energy; Basin derives the network.\n\n"
          "Usage: basin COMMAND [operands] [options]\n",
          file);
    for (const basin_noun *group = basin_nouns;; group++) {
        fprintf(file, "\n%s\n", group->summary);
        print_commands(file, group);
        if (!*group->noun) break;
    }
    fputs("\nbasin help COMMAND tells more about one; basin --version names the build.\n"
          "Results go to standard output, progress and errors to standard error.\n"
          "Exit codes: 0 success, 1 failure, 2 wrong usage, 75 training that a signal other than "
          "Ctrl-C\nended and that --resume goes on with.\n",
          file);
}

static void print_manual(FILE *file) {
    fputs(
        "# The program\n\n"
        "Printed by `basin help --markdown`; `basin help COMMAND` prints from the same tables.\n\n"
        "Every command takes `-h`, `--help` and `--help-all`. Options may stand before or after "
        "the operands, "
        "as `--name VALUE`\nor `--name=VALUE`; `--` ends them. Results go to standard output, "
        "progress and errors to standard error; an\nerror is one line, `basin: ...`. Exit codes: "
        "0 success, 1 failure, 2 wrong usage, 75 training that a signal other than Ctrl-C\nended "
        "and that `--resume` goes on with. Files are written aside and renamed, so that a "
        "file is never half there.\n",
        file);
    for (const basin_command *const *at = basin_commands; *at; at++) {
        const basin_command *command = *at;
        fprintf(file, "\n## basin %s\n\n%s: `", command->name, command->summary);
        basin_command_usage_print(file, command);
        fprintf(file, "`\n\n%s\n", command->text);
        if (command->option->name) {
            void *values = basin_command_values(command);
            basin_option_set set = basin_command_options(command);
            fputc('\n', file);
            if (values) basin_options_print_markdown(file, &set, values);
            basin_command_values_free(command, values);
        }
        if (command->example) fprintf(file, "\n```\n%s```\n", command->example);
    }
}

static basin_status print_page(int operands, char **operand, basin_error *error) {
    int used;
    const basin_noun *group = operands == 1 ? basin_noun_find(operand[0]) : NULL;
    if (group) return basin_noun_help_print(stdout, group), BASIN_OK;
    const basin_command *command = basin_command_find(&used, operands, operand, error);
    if (!command) return BASIN_USAGE;
    return basin_command_help_print(stdout, command, false), BASIN_OK;
}

BASIN_RUN(run) {
    const options *o = values;
    if (operands > 0) return print_page(operands, operand, error);
    if (o->markdown)
        print_manual(stdout);
    else if (o->completion)
        basin_completion_print(stdout, o->completion);
    else
        print_overview(stdout);
    return BASIN_OK;
}

const basin_command basin_command_help = {
    .name = "help",
    .summary = "What the commands do and which options they take",
    .operands = "[COMMAND]",
    .operands_most = 2,
    .text = "Without a command: the list of them. A noun alone (image, graph, ...) lists its "
            "commands. An installed Basin has the man pages and the completions already.",
    .example = "  basin help image train\n"
               "  source <(basin help --completion bash)\n",
    BASIN_COMMAND_OPTIONS(table, defaults),
    .run = run,
};
