/* Completion of commands for zsh; see manual.h. */
#include <string.h>

#include "cli/manual/manual.h"

static void put_item(FILE *file, const char *name, const char *summary) {
    fprintf(file, "            '%s:", name);
    basin_completion_quote(file, summary, "");
    fputs("'\n", file);
}

static void put_firsts(FILE *file) {
    for (const basin_noun *group = basin_nouns; *group->noun; group++)
        put_item(file, group->noun, group->summary);
    for (const basin_command *const *at = basin_commands; *at; at++)
        if (!strchr((*at)->name, ' ')) put_item(file, (*at)->name, (*at)->summary);
}

static void put_verbs(FILE *file) {
    for (const basin_command *const *at = basin_commands; *at; at++) {
        const char *blank = strchr((*at)->name, ' ');
        if (!blank) continue;
        fprintf(file, "        [[ $words[2] == %.*s ]] && commands+=(\n",
                (int)(blank - (*at)->name), (*at)->name);
        put_item(file, blank + 1, (*at)->summary);
        fputs("        )\n", file);
    }
}

static void put_value(FILE *file, const basin_option_row *row) {
    basin_operand_kind kind = basin_option_row_kind(row);
    if (kind == BASIN_OPERAND_NONE) return;
    if (kind == BASIN_OPERAND_CHOICE) {
        fputs(":value:(", file);
        basin_completion_words(file, row->value);
        fputc(')', file);
    } else
        fprintf(file, ":%s:%s", row->value, kind == BASIN_OPERAND_FILE ? "_files" : " ");
}

/* '(-o --output)'{-o,--output=}'[The model file to write]:FILE:_files' */
static void put_spec(FILE *file, const basin_option_row *row, const char *no) {
    const char *equals = *row->value ? "=" : "";
    fputs("            ", file);
    if (row->letter)
        fprintf(file, "'(-%c --%s)'{-%c,--%s%s}'[", row->letter, row->name, row->letter, row->name,
                equals);
    else
        fprintf(file, "'--%s%s%s[", no, row->name, equals);
    basin_completion_quote(file, row->help, "[]\\");
    fputc(']', file);
    put_value(file, row);
    fputs("' \\\n", file);
}

static void put_command(FILE *file, const basin_command *command, const void *values) {
    basin_option_set set = basin_command_options(command);
    basin_option_row row;
    bool two = strchr(command->name, ' ') != NULL;
    fprintf(file, "    '%s'%s)\n", command->name, two ? "" : "*");
    fputs(two ? "        shift 2 words; (( CURRENT -= 2 ))\n"
              : "        shift words; (( CURRENT-- ))\n",
          file);
    fputs("        _arguments -s \\\n", file);
    for (int i = 0; basin_option_row_at(&row, &set, values, i); i++) {
        put_spec(file, &row, "");
        if (row.negatable) put_spec(file, &row, "no-");
    }
    if (!strcmp(command->name, "help")) {
        fputs("            '*:command:(", file);
        basin_completion_firsts(file);
        fputs(")' ;;\n", file);
    } else
        fputs("            '*:operand:_files' ;;\n", file);
}

void basin_completion_zsh(FILE *file) {
    fputs("#compdef basin\n"
          "# Completion of basin for zsh. Made by: basin help --completion zsh\n\n"
          "_basin() {\n"
          "    local -a commands\n"
          "    if (( CURRENT == 2 )); then\n"
          "        commands=(\n",
          file);
    put_firsts(file);
    fputs("        )\n"
          "    elif (( CURRENT == 3 )) && [[ $words[3] != -* ]]; then\n",
          file);
    put_verbs(file);
    fputs("    fi\n"
          "    if (( $#commands )); then\n"
          "        _describe -t commands command commands\n"
          "        return\n"
          "    fi\n"
          "    case \"$words[2] $words[3]\" in\n",
          file);
    basin_completion_each(file, put_command);
    fputs("    esac\n"
          "}\n\n"
          "_basin \"$@\"\n",
          file);
}
