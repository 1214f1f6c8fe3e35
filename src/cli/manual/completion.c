/* Completion of commands, from the tables of options: what the three shells share, and the script
 * for bash. See manual.h. */
#include <stdlib.h>
#include <string.h>

#include "cli/manual/manual.h"

void basin_completion_print(FILE *file, const char *shell) {
    if (!strcmp(shell, "bash")) basin_completion_bash(file);
    if (!strcmp(shell, "zsh")) basin_completion_zsh(file);
    if (!strcmp(shell, "fish")) basin_completion_fish(file);
}

basin_operand_kind basin_option_row_kind(const basin_option_row *row) {
    static const char *const file[] = {"FILE", "PATH", "FOLDER", "DIR"};
    if (!*row->value) return BASIN_OPERAND_NONE;
    if (row->choice) return BASIN_OPERAND_CHOICE;
    for (size_t i = 0; i < sizeof file / sizeof *file; i++)
        if (strstr(row->value, file[i])) return BASIN_OPERAND_FILE;
    return BASIN_OPERAND_OTHER;
}

void basin_completion_quote(FILE *file, const char *text, const char *escaped) {
    const char *end = strstr(text, ". ");
    size_t length = end ? (size_t)(end - text) : strlen(text);
    if (length && text[length - 1] == '.') length--;
    for (size_t i = 0; i < length; i++) {
        if (strchr(escaped, text[i])) fputc('\\', file);
        fputs(text[i] == '\'' && !strchr(escaped, '\'') ? "'\\''" : (char[]){text[i], 0}, file);
    }
}

void basin_completion_words(FILE *file, const char *choices) {
    for (; *choices; choices++) fputc(*choices == '|' ? ' ' : *choices, file);
}

void basin_completion_each(FILE *file,
                           void (*print)(FILE *, const basin_command *, const void *values)) {
    for (const basin_command *const *at = basin_commands; *at; at++) {
        void *values = basin_command_values(*at);
        if (values) print(file, *at, values);
        basin_command_values_free(*at, values);
    }
}

/* Nouns and commands of one word, each once. */
void basin_completion_firsts(FILE *file) {
    for (const basin_noun *group = basin_nouns; *group->noun; group++)
        fprintf(file, "%s ", group->noun);
    for (const basin_command *const *at = basin_commands; *at; at++)
        if (!strchr((*at)->name, ' ')) fprintf(file, "%s ", (*at)->name);
}

/* ---- bash ---- */

static void put_option_words(FILE *file, const basin_command *command, const void *values) {
    basin_option_set set = basin_command_options(command);
    basin_option_row row;
    fprintf(file, "    '%s') echo '", command->name);
    for (int i = 0; basin_option_row_at(&row, &set, values, i); i++) {
        fprintf(file, "%s--%s", i ? " " : "", row.name);
        if (row.negatable) fprintf(file, " --no-%s", row.name);
    }
    fputs("' ;;\n", file);
}

/* The pattern of an option: "'image train --output' | 'image train -o'". */
static void put_pattern(FILE *file, const basin_command *command, const basin_option_row *row) {
    fprintf(file, "    '%s --%s'", command->name, row->name);
    if (row->letter) fprintf(file, " | '%s -%c'", command->name, row->letter);
}

static void put_values(FILE *file, const basin_command *command, const void *values) {
    basin_option_set set = basin_command_options(command);
    basin_option_row row;
    for (int i = 0; basin_option_row_at(&row, &set, values, i); i++) {
        basin_operand_kind kind = basin_option_row_kind(&row);
        if (kind == BASIN_OPERAND_NONE) continue;
        put_pattern(file, command, &row);
        fputs(") ", file);
        if (kind == BASIN_OPERAND_CHOICE) {
            fputs("echo '", file);
            basin_completion_words(file, row.value);
            fputs("' ", file);
        }
        fputs(";;\n", file);
    }
}

/* A line for each noun; `bench` is one, too, and a command. */
static void put_verbs(FILE *file) {
    for (const basin_command *const *at = basin_commands; *at; at++) {
        const char *blank = strchr((*at)->name, ' ');
        if (!blank) continue;
        int length = (int)(blank - (*at)->name);
        fprintf(file, "    [[ $1 == %.*s ]] && echo %s\n", length, (*at)->name, blank + 1);
    }
}

static void put_long_names(FILE *file) {
    bool first = true;
    for (const basin_command *const *at = basin_commands; *at; at++) {
        if (!strchr((*at)->name, ' ')) continue;
        fprintf(file, "%s'%s'", first ? "    " : " | ", (*at)->name);
        first = false;
    }
    fputs(") ;;\n", file);
}

void basin_completion_bash(FILE *file) {
    fputs("# Completion of basin for bash. Made by: basin help --completion bash\n\n"
          "_basin_verbs() {\n",
          file);
    put_verbs(file);
    fputs("    return 0\n}\n\n_basin_options() {\n    case $1 in\n", file);
    basin_completion_each(file, put_option_words);
    fputs("    esac\n}\n\n"
          "# Prints what may stand behind an option, if it is a choice. Fails if nothing may.\n"
          "_basin_values() {\n    case \"$1 $2\" in\n",
          file);
    basin_completion_each(file, put_values);
    fputs("    *) return 1 ;;\n    esac\n}\n\n"
          "_basin_firsts='",
          file);
    basin_completion_firsts(file);
    fputs("'\n\n"
          "_basin() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local command=\"${COMP_WORDS[1]} ${COMP_WORDS[2]-}\" words=\n"
          "    COMPREPLY=()\n"
          "    # Words break at '=': --backend=c is three of them.\n"
          "    if [[ $word == = ]]; then\n"
          "        word=\n"
          "    elif [[ $before == = ]]; then\n"
          "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    case $command in\n",
          file);
    put_long_names(file);
    fputs("    *) command=${COMP_WORDS[1]} ;;\n"
          "    esac\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        words=\"$_basin_firsts --help --version\"\n"
          "    elif words=$(_basin_values \"$command\" \"$before\"); then\n"
          "        [[ $words ]] || return\n"
          "    elif [[ $word == -* ]]; then\n"
          "        words=$(_basin_options \"$command\")\n"
          "    elif ((COMP_CWORD == 2)) && [[ $command != help ]]; then\n"
          "        words=$(_basin_verbs \"${COMP_WORDS[1]}\")\n"
          "    elif [[ $command == help ]]; then\n"
          "        words=$_basin_firsts\n"
          "        ((COMP_CWORD == 2)) || words=$(_basin_verbs \"$before\")\n"
          "    fi\n"
          "    [[ $words ]] || return\n"
          "    compopt +o default 2>/dev/null\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "}\n\n"
          "# Where nothing is offered, names of files are.\n"
          "complete -o default -F _basin basin\n",
          file);
}
