/* Man pages from the tables of options, in roff; see manual.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "basin/version.h"
#include "cli/manual/manual.h"
#include "io/file.h"

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

static void print_overview(FILE *file) {
    put_heading(file, NULL, "Energy Transformers: train, use and inspect them");
    fputs(".SH SYNOPSIS\n.B basin\n.I command\n[\\fIoperands\\fR] [\\fIoptions\\fR]\n"
          ".SH DESCRIPTION\n"
          "Basin trains networks that descend an energy, and uses them: on pictures, on the nodes "
          "of a network, on sets of graphs.\n"
          "Every command takes \\fB\\-h\\fR and \\fB\\-\\-help\\fR. Options may stand before or "
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

void basin_man_print(FILE *file, const basin_command *command) {
    if (!command) {
        print_overview(file);
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
    basin_man_print(writer.file, command);
    return basin_writer_commit(&writer, error);
}

basin_status basin_man_write(const char *folder, basin_error *error) {
    basin_status status = basin_folder_make(folder, error);
    if (!status) status = write_page(folder, NULL, error);
    for (const basin_command *const *at = basin_commands; *at && !status; at++)
        status = write_page(folder, *at, error);
    return status;
}
