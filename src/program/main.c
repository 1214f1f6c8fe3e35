/* The program: runs the command, reports errors, and makes sure that what it printed has arrived.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "program/cli.h"

/* ---- the process ---- */

/* A mapped file shrank. Nothing but system calls may be used in a handler. */
static void on_bus(int number) {
    static const char line[] =
        "basin: a file became shorter while it was read, or its disk failed\n";
    (void)number;
    ssize_t written = write(STDERR_FILENO, line, sizeof line - 1);
    (void)written;
    _exit(BASIN_EXIT_FAILURE);
}

/* Before anything else: closed descriptors 0 to 2 are opened on nothing, so that no file gets their
 * number; a limit on the size of files becomes an error of writing in place of a signal; a mapped
 * file that shrinks or cannot be read ends the program with one line. */
static void prepare_process(void) {
    /* For reading only: what is printed to a closed standard output still fails. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) < 0) break;
    signal(SIGBUS, on_bus);
    signal(SIGXFSZ, SIG_IGN);
}

/* ---- the program ---- */

static bool asks_help(const char *argument) {
    return !strcmp(argument, "--help") || !strcmp(argument, "-h") ||
           !strcmp(argument, "--help-all");
}

/* `basin image`, `basin image --help`: the commands of the group. */
static bool show_group(int count, char **argument) {
    const basin_noun *group = basin_noun_find(argument[0]);
    if (!group || (count > 1 && !asks_help(argument[1]))) return false;
    basin_noun_help_print(group);
    return true;
}

static int run(int count, char **argument) {
    if (count == 0 || asks_help(argument[0]))
        return basin_command_run(&basin_command_help, 0, NULL);
    if (!strcmp(argument[0], "--version"))
        return basin_command_run(&basin_command_version, count - 1, argument + 1);
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
    prepare_process();
    int code = run(count > 0 ? count - 1 : 0, argument + 1);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "basin: standard output: %s\n", strerror(errno));
        if (code == BASIN_EXIT_OK) code = BASIN_EXIT_FAILURE;
    }
    return code;
}
