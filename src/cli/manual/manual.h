/* What else is made of the tables of options: man pages and scripts that complete commands. */
#ifndef BASIN_CLI_MANUAL_MANUAL_H
#define BASIN_CLI_MANUAL_MANUAL_H

#include "cli/command.h"

/* The man page of a command as roff; NULL: basin(1), with the list of commands. */
void basin_man_print(FILE *file, const basin_command *command);
/* All of them into a folder, which is made if absent: basin.1, basin-image-train.1, ... */
basin_status basin_man_write(const char *folder, basin_error *error);

/* The script for a shell: "bash", "zsh" or "fish". */
void basin_completion_print(FILE *file, const char *shell);

/* What stands behind an option, for completion. */
typedef enum basin_operand_kind {
    BASIN_OPERAND_NONE,   /* a flag */
    BASIN_OPERAND_CHOICE, /* one of the row's values */
    BASIN_OPERAND_FILE,
    BASIN_OPERAND_OTHER, /* a number, a name */
} basin_operand_kind;
basin_operand_kind basin_option_row_kind(const basin_option_row *row);

/* Each shell's script. */
void basin_completion_bash(FILE *file);
void basin_completion_zsh(FILE *file);
void basin_completion_fish(FILE *file);
/* The first sentence of a help text without its full stop, to stand within single quotes; letters
 * of `escaped` get a backslash. */
void basin_completion_quote(FILE *file, const char *text, const char *escaped);
/* The words of "a|b|c" with blanks between. */
void basin_completion_words(FILE *file, const char *choices);
/* Nouns and commands of one word: what may stand first. */
void basin_completion_firsts(FILE *file);
/* Calls `print` for each command, with its defaults. */
void basin_completion_each(FILE *file,
                           void (*print)(FILE *, const basin_command *, const void *values));

#endif
