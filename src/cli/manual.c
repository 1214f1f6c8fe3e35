/* The pages that are made of the tables of options: help, the manual as Markdown, man pages; and
 * basin help, which prints them. See command.h and options.h. */
#include <ctype.h>
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

/* ---- man pages, in roff ---- */

/* A letter that roff would take for something else. */
static void put_letter(FILE *file, char letter, bool line_start) {
    if (line_start && (letter == '.' || letter == '\'')) fputs("\\&", file);
    switch (letter) {
    case '\\': fputs("\\e", file); break;
    case '-': fputs("\\-", file); break;
    case '\'': fputs("\\(aq", file); break;
    case '`': fputs("\\(ga", file); break;
    case '^': fputs("\\(ha", file); break;
    case '~': fputs("\\(ti", file); break;
    case '|': fputs("|\\:", file); break; /* a long list of choices may break here */
    default: fputc(letter, file);
    }
}

static void put(FILE *file, const char *text) {
    for (bool start = true; *text; text++, start = false) put_letter(file, *text, start);
}

/* Paragraphs; an empty line parts them. */
static void put_paragraphs(FILE *file, const char *text) {
    bool start = true;
    for (; *text; text++) {
        if (*text != '\n') {
            put_letter(file, *text, start);
            start = false;
            continue;
        }
        fputs(text[1] == '\n' ? "\n.PP\n" : "\n.br\n", file);
        while (text[1] == '\n') text++;
        start = true;
    }
    fputc('\n', file);
}

/* "image train" as "image-train", in capitals for the heading. */
static void put_name(FILE *file, const char *name, bool capitals) {
    for (; *name; name++) {
        char letter = *name == ' ' ? '-' : *name;
        put_letter(file, capitals ? (char)toupper((unsigned char)letter) : letter, false);
    }
}

static void put_heading(FILE *file, const char *name, const char *summary) {
    fputs(".TH \"BASIN", file);
    if (name) fputs("\\-", file), put_name(file, name, true);
    fprintf(file, "\" 1 \"\" \"Basin %s\" \"User Commands\"\n", basin_version());
    fputs(".ad l\n.SH NAME\nbasin", file); /* long lists of choices have no blanks to stretch */
    if (name) fputs("\\-", file), put_name(file, name, false);
    fputs(" \\- ", file);
    put(file, summary);
    fputc('\n', file);
}

static void put_option(FILE *file, const basin_option_row *row) {
    fputs(".TP\n", file);
    if (row->letter) fprintf(file, "\\fB\\-%c\\fR, ", row->letter);
    fputs("\\fB\\-\\-", file);
    if (row->negatable) fputs("\\fR[\\fBno\\-\\fR]\\fB", file);
    put(file, row->name);
    fputs("\\fR", file);
    if (*row->value) {
        fputs(" \\fI", file);
        put(file, row->value);
        fputs("\\fR", file);
    }
    fputc('\n', file);
    put(file, row->help);
    if (*row->initial) {
        fputs(" Default: \\fB", file);
        put(file, row->initial);
        fputs("\\fR", file);
    }
    fputc('\n', file);
}

static void put_options(FILE *file, const basin_command *command) {
    void *values = basin_command_values(command);
    basin_option_set set = basin_command_options(command);
    basin_option_row row;
    bool settings = false;
    fputs(".SH OPTIONS\n", file);
    for (int i = 0; values && basin_option_row_at(&row, &set, values, i); i++) {
        if (row.setting && !settings)
            fputs(".SH SETTINGS\nDefaults are those of the default preset.\n", file);
        settings = row.setting;
        put_option(file, &row);
    }
    basin_command_values_free(command, values);
}

/* Lines as they stand, without the two blanks that the help indents by. */
static void put_examples(FILE *file, const char *example) {
    fputs(".SH EXAMPLES\n.nf\n", file);
    while (*example) {
        size_t length = strcspn(example, "\n");
        size_t blanks = strspn(example, " ");
        for (size_t i = blanks; i < length; i++) put_letter(file, example[i], i == blanks);
        fputc('\n', file);
        example += length + (example[length] == '\n');
    }
    fputs(".fi\n", file);
}

static void put_exit(FILE *file) {
    fputs(".SH \"EXIT STATUS\"\n0: success. 1: failure. 2: wrong usage. 75: training that a signal "
          "other than Ctrl-C ended\nand that \\-\\-resume goes on with.\n"
          "An error is one line on standard error.\n",
          file);
}

/* Names of pages with commas between; `group` NULL means all. */
static void put_see_also(FILE *file, const basin_noun *group, const basin_command *but) {
    fputs(".SH \"SEE ALSO\"\n", file);
    if (but) fputs(".BR basin (1)", file);
    for (const basin_command *const *at = basin_commands; *at; at++) {
        if (*at == but || (group && basin_command_noun(*at) != group)) continue;
        fputs(but || at != basin_commands ? ",\n.BR basin\\-" : ".BR basin\\-", file);
        put_name(file, (*at)->name, false);
        fputs(" (1)", file);
    }
    fputc('\n', file);
}

static void man_overview(FILE *file) {
    put_heading(file, NULL, "Energy Transformers: train, use and inspect them");
    fputs(".SH SYNOPSIS\n.B basin\n.I command\n[\\fIoperands\\fR] [\\fIoptions\\fR]\n"
          ".SH DESCRIPTION\n"
          "Basin trains networks that descend an energy, and uses them: on pictures, on the nodes "
          "of a network, on sets of graphs.\n"
          "Every command takes \\fB\\-h\\fR, \\fB\\-\\-help\\fR and \\fB\\-\\-help\\-all\\fR. "
          "Options may stand before or "
          "after the operands, as \\fB\\-\\-name\\fR \\fIVALUE\\fR or "
          "\\fB\\-\\-name=\\fR\\fIVALUE\\fR; \\fB\\-\\-\\fR ends them.\n"
          "Results go to standard output, progress and errors to standard error.\n"
          "Files are written aside and renamed, so that a file is never half there.\n"
          ".SH COMMANDS\n",
          file);
    for (const basin_noun *group = basin_nouns;; group++) {
        fprintf(file, ".SS \"%s\"\n", group->summary);
        for (const basin_command *const *at = basin_commands; *at; at++) {
            if (basin_command_noun(*at) != group) continue;
            fprintf(file, ".TP\n.B %s\n", (*at)->name);
            put(file, (*at)->summary);
            fputs(".\n", file);
        }
        if (!*group->noun) break;
    }
    put_exit(file);
    put_see_also(file, NULL, NULL);
}

static void man_print(FILE *file, const basin_command *command) {
    if (!command) {
        man_overview(file);
        return;
    }
    put_heading(file, command->name, command->summary);
    fprintf(file, ".SH SYNOPSIS\n.B basin %s\n", command->name);
    if (*command->operands) {
        fputs("\\fI", file);
        put(file, command->operands);
        fputs("\\fR\n", file);
    }
    fputs("[\\fIoptions\\fR]\n.SH DESCRIPTION\n", file);
    put_paragraphs(file, command->text);
    put_options(file, command);
    if (command->example) put_examples(file, command->example);
    put_exit(file);
    put_see_also(file, basin_command_noun(command), command);
}

static basin_status write_page(const char *folder, const basin_command *command,
                               basin_error *error) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/basin%s%s.1", folder, command ? "-" : "",
                          command ? command->name : "");
    if (length < 0 || (size_t)length >= sizeof path)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: the name is too long", folder);
    for (char *c = path + strlen(folder); *c; c++)
        if (*c == ' ') *c = '-';
    basin_writer writer;
    basin_status status = basin_writer_create(&writer, path, error);
    if (status) return status;
    man_print(writer.file, command);
    return basin_writer_commit(&writer, error);
}

static basin_status man_write(const char *folder, basin_error *error) {
    basin_status status = basin_folder_make(folder, error);
    if (!status) status = write_page(folder, NULL, error);
    for (const basin_command *const *at = basin_commands; *at && !status; at++)
        status = write_page(folder, *at, error);
    return status;
}

/* ---- help ---- */

typedef struct options {
    const char *completion, *output;
    bool markdown, man;
} options;

static const options defaults = {0};

static const basin_option table[] = {
    BASIN_FLAG(options, markdown, 0, "markdown", "The manual of all commands as Markdown.",
               .needs = "OPERAND= man=off completion="),
    BASIN_FLAG(options, man, 0, "man", "The man page, of a command or of the program.",
               .needs = "completion="),
    BASIN_TEXT(options, output, 'o', "output", "FOLDER", "With --man: write all man pages there.",
               .needs = "man=on OPERAND="),
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

static basin_status print_page(const options *o, int operands, char **operand, basin_error *error) {
    int used;
    const basin_noun *group = operands == 1 && !o->man ? basin_noun_find(operand[0]) : NULL;
    if (group) return basin_noun_help_print(stdout, group), BASIN_OK;
    const basin_command *command = basin_command_find(&used, operands, operand, error);
    if (!command) return BASIN_USAGE;
    if (o->man)
        man_print(stdout, command);
    else
        basin_command_help_print(stdout, command, false);
    return BASIN_OK;
}

BASIN_RUN(run) {
    const options *o = values;
    if (o->output) return man_write(o->output, error);
    if (operands > 0) return print_page(o, operands, operand, error);
    if (o->markdown)
        print_manual(stdout);
    else if (o->man)
        man_print(stdout, NULL);
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
               "  basin help --man image train | man -l -\n"
               "  source <(basin help --completion bash)\n",
    BASIN_COMMAND_OPTIONS(table, defaults),
    .run = run,
};
