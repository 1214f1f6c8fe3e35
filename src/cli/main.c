/* The program: runs the command, reports errors, and makes sure that what it printed has arrived.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/surroundings/surroundings.h"

static bool asks_help(const char *argument) {
    return !strcmp(argument, "--help") || !strcmp(argument, "-h") ||
           !strcmp(argument, "--help-all");
}

/* `basin image`, `basin image --help`: the commands of the group. */
static bool show_group(int count, char **argument) {
    const basin_noun *group = basin_noun_find(argument[0]);
    if (!group || (count > 1 && !asks_help(argument[1]))) return false;
    basin_noun_help_print(stdout, group);
    return true;
}

static int run(int count, char **argument) {
    if (count == 0 || asks_help(argument[0]))
        return basin_command_run(&basin_command_help, 0, NULL);
    if (!strcmp(argument[0], "--version"))
        return basin_command_run(&basin_command_version, count - 1, argument + 1);
    if (!strcmp(argument[0], "__complete"))
        return basin_complete(count - 1, argument + 1), BASIN_EXIT_OK;
    if (show_group(count, argument)) return BASIN_EXIT_OK;
    int used;
    basin_error error;
    if (argument[0][0] == '-')
        basin_fail(&error, BASIN_BAD_VALUE,
                   "'%s' before the command: basin COMMAND [options] (see 'basin help')",
                   argument[0]);
    const basin_command *command =
        argument[0][0] == '-' ? NULL : basin_command_find(&used, count, argument, &error);
    if (command) return basin_command_run(command, count - used, argument + used);
    basin_report(&error);
    return BASIN_EXIT_USAGE;
}

int main(int count, char **argument) {
    basin_surroundings_prepare(count, argument);
    int code = run(count > 0 ? count - 1 : 0, argument + 1);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "basin: standard output: %s\n", strerror(errno));
        if (code == BASIN_EXIT_OK) code = BASIN_EXIT_FAILURE;
    }
    return code;
}
