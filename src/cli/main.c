/* The program: runs the command, reports errors, and makes sure that what it printed has arrived.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cli/cli.h"

/* ---- what surrounds the program ---- */

/* ---- files that shrink while they are mapped ---- */

/* Nothing but system calls may be used in a handler. */
static void put(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static uintptr_t hexadecimal(const char **at) {
    uintptr_t value = 0;
    for (;; (*at)++) {
        int digit = **at >= '0' && **at <= '9'   ? **at - '0'
                    : **at >= 'a' && **at <= 'f' ? **at - 'a' + 10
                                                 : -1;
        if (digit < 0) return value;
        value = value * 16 + (uintptr_t)digit;
    }
}

/* The file that is mapped at an address, by a line of /proc/self/maps: "begin-end .. /path". */
static const char *mapped_at(const char *line, uintptr_t address) {
    const char *at = line;
    uintptr_t begin = hexadecimal(&at);
    if (*at++ != '-') return NULL;
    uintptr_t end = hexadecimal(&at);
    return begin <= address && address < end ? strchr(at, '/') : NULL;
}

/* Puts the name of the file that is mapped at an address, if it is found. */
static void put_file_at(uintptr_t address) {
    char line[4200];
    size_t length = 0;
    int fd = open("/proc/self/maps", O_RDONLY);
    for (char byte; fd >= 0 && read(fd, &byte, 1) == 1;) {
        if (byte != '\n' && length < sizeof line - 1) line[length++] = byte;
        if (byte != '\n') continue;
        line[length] = '\0';
        length = 0;
        const char *path = mapped_at(line, address);
        if (!path) continue;
        put(path);
        put(": ");
        break;
    }
    if (fd >= 0) close(fd);
}

static void on_bus(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    put("basin: ");
    put_file_at((uintptr_t)info->si_addr);
    put("the file became shorter while it was read, or its disk failed\n");
    _exit(BASIN_EXIT_FAILURE);
}

/* Before anything else: closed descriptors 0 to 2 are opened on nothing, so that no file gets their
 * number; a limit on the size of files becomes an error of writing in place of a signal; a mapped
 * file that shrinks or cannot be read ends the program with one line that names it. */
static void prepare_process(void) {
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    /* For reading only: what is printed to a closed standard output still fails. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) < 0) break;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
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
