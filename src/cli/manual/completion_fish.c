/* Completion of commands for fish; see manual.h. */
#include <string.h>

#include "cli/manual/manual.h"

static void put_text(FILE *file, const char *text) {
    fputs(" -d '", file);
    basin_completion_quote(file, text, "'\\");
    fputs("'\n", file);
}

static void put_names(FILE *file) {
    for (const basin_noun *group = basin_nouns; *group->noun; group++) {
        fprintf(file, "complete -c basin -f -n '__basin_words 1' -a %s", group->noun);
        put_text(file, group->summary);
    }
    for (const basin_command *const *at = basin_commands; *at; at++) {
        const char *name = (*at)->name, *blank = strchr(name, ' ');
        if (blank)
            fprintf(file, "complete -c basin -f -n '__basin_words 2; and __basin_at %.*s' -a %s",
                    (int)(blank - name), name, blank + 1);
        else
            fprintf(file, "complete -c basin -f -n '__basin_words 1' -a %s", name);
        put_text(file, (*at)->summary);
    }
}

/* Where the options of a command hold: not for one whose name goes on from it. */
static void put_condition(FILE *file, const basin_command *command) {
    size_t length = strlen(command->name);
    fprintf(file, " -n '__basin_at %s", command->name);
    for (const basin_command *const *at = basin_commands; *at; at++)
        if (!strncmp((*at)->name, command->name, length) && (*at)->name[length] == ' ')
            fprintf(file, "; and not __basin_at %s", (*at)->name);
    fputc('\'', file);
}

static void put_value(FILE *file, const basin_option_row *row) {
    basin_operand_kind kind = basin_option_row_kind(row);
    if (kind == BASIN_OPERAND_FILE) fputs(" -r -F", file);
    if (kind == BASIN_OPERAND_OTHER) fputs(" -x", file);
    if (kind != BASIN_OPERAND_CHOICE) return;
    fputs(" -x -a '", file);
    basin_completion_words(file, row->value);
    fputc('\'', file);
}

static void put_option(FILE *file, const basin_command *command, const basin_option_row *row,
                       const char *no) {
    fputs("complete -c basin", file);
    put_condition(file, command);
    fprintf(file, " -l %s%s", no, row->name);
    if (row->letter) fprintf(file, " -s %c", row->letter);
    put_value(file, row);
    put_text(file, row->help);
}

static void put_options(FILE *file, const basin_command *command, const void *values) {
    basin_option_set set = basin_command_options(command);
    basin_option_row row;
    for (int i = 0; basin_option_row_at(&row, &set, values, i); i++) {
        put_option(file, command, &row, "");
        if (row.negatable) put_option(file, command, &row, "no-");
    }
}

void basin_completion_fish(FILE *file) {
    fputs("# Completion of basin for fish. Made by: basin help --completion fish\n\n"
          "# Whether so many words stand before the cursor.\n"
          "function __basin_words\n"
          "    set -l words (commandline -opc)\n"
          "    test (count $words) -eq $argv[1]\n"
          "end\n\n"
          "# Whether the command begins with these words.\n"
          "function __basin_at\n"
          "    set -l words (commandline -opc)\n"
          "    set -l last (math 1 + (count $argv))\n"
          "    test (count $words) -ge $last; and test \"$words[2..$last]\" = \"$argv\"\n"
          "end\n\n",
          file);
    put_names(file);
    fputs("complete -c basin -f -n '__basin_at help' -a '", file);
    basin_completion_firsts(file);
    fputs("'\n", file);
    basin_completion_each(file, put_options);
}
