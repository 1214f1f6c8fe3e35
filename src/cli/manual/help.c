/* basin help: the overview, the page of a command, and the manual from the same tables. */
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/manual/manual.h"

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

/* Commands whose name goes on from this one: bench pictures from bench. */
static void print_longer(FILE *file, const basin_command *command) {
    size_t length = strlen(command->name);
    for (const basin_command *const *at = basin_commands; *at; at++)
        if (!strncmp((*at)->name, command->name, length) && (*at)->name[length] == ' ')
            fprintf(file, "\nSee also:\n  %-16s %s\n", (*at)->name, (*at)->summary);
}

void basin_command_help_print(FILE *file, const basin_command *command) {
    fprintf(file, "basin %s: %s\n\nUsage: ", command->name, command->summary);
    basin_command_usage_print(file, command);
    fputs("\n\n", file);
    basin_text_wrap(file, command->text, 0, 0, BASIN_PAGE_WIDTH);
    fputs("\nOptions:\n", file);
    void *values = basin_command_values(command);
    basin_option_set set = basin_command_options(command);
    if (values) basin_options_print(file, &set, values);
    basin_command_values_free(command, values);
    if (command->example) fprintf(file, "\nExamples:\n%s", command->example);
    print_longer(file, command);
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
    fputs("# The program\n\n"
          "Printed by `basin help --markdown` and under test: this page and `basin help COMMAND` "
          "come from the\nsame tables.\n\n"
          "Every command takes `-h` and `--help`. Options may stand before or after the operands, "
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

static int print_page(bool man, int operands, char **operand) {
    int used;
    basin_error error;
    const basin_noun *group = operands == 1 && !man ? basin_noun_find(operand[0]) : NULL;
    if (group) return basin_noun_help_print(stdout, group), BASIN_EXIT_OK;
    const basin_command *command = basin_command_find(&used, operands, operand, &error);
    if (!command) return basin_report(&error), BASIN_EXIT_USAGE;
    if (man)
        basin_man_print(stdout, command);
    else
        basin_command_help_print(stdout, command);
    return BASIN_EXIT_OK;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    if (o->output) return basin_man_write(o->output, &error) ? basin_report(&error) : BASIN_EXIT_OK;
    if (operands > 0) return print_page(o->man, operands, operand);
    if (o->markdown)
        print_manual(stdout);
    else if (o->man)
        basin_man_print(stdout, NULL);
    else if (o->completion)
        basin_completion_print(stdout, o->completion);
    else
        print_overview(stdout);
    return BASIN_EXIT_OK;
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
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
