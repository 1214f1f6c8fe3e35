/* The program: finds the command, runs it, and makes sure that what it printed has arrived. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

/* clang-format off */
const basin_command *const basin_commands[] = {
    &basin_command_image_train,
    &basin_command_image_complete,
    &basin_command_image_eval,
    &basin_command_image_report,
    &basin_command_image_export,
    &basin_command_image_import,
    &basin_command_anomaly_train,
    &basin_command_anomaly_score,
    &basin_command_anomaly_eval,
    &basin_command_anomaly_explain,
    &basin_command_graph_train,
    &basin_command_graph_predict,
    &basin_command_graph_eval,
    &basin_command_graph_cv,
    &basin_command_graph_make,
    &basin_command_descend,
    &basin_command_data_convert,
    &basin_command_data_info,
    &basin_command_data_make,
    &basin_command_data_get,
    &basin_command_info,
    &basin_command_verify,
    &basin_command_bench_pictures,
    &basin_command_bench,
    &basin_command_version,
    &basin_command_help,
    NULL,
};
/* clang-format on */

int basin_report(const basin_error *error) {
    fprintf(stderr, "basin: %s\n", error->text);
    return BASIN_EXIT_FAILURE;
}

int basin_report_usage(const basin_command *command, const char *format, ...) {
    char text[BASIN_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "basin: %s: %s (see 'basin help %s')\n", command->name, text, command->name);
    return BASIN_EXIT_USAGE;
}

const basin_command *basin_command_find(int *used, int count, char **word, basin_error *error) {
    char two[128];
    const char *near = NULL;
    int best = 1000;
    snprintf(two, sizeof two, "%s %s", word[0], count > 1 ? word[1] : "");
    for (const basin_command *const *at = basin_commands; *at; at++) {
        const char *name = (*at)->name;
        *used = strchr(name, ' ') ? 2 : 1;
        const char *typed = *used == 2 ? two : word[0];
        if (!strcmp(name, typed)) return *at;
        int distance = basin_name_distance(typed, name);
        if (distance < best && basin_name_near(distance, typed)) near = name, best = distance;
    }
    if (near)
        basin_fail(error, BASIN_BAD_VALUE, "unknown command '%s'; did you mean '%s'?", word[0],
                   near);
    else
        basin_fail(error, BASIN_BAD_VALUE, "unknown command '%s' (see 'basin help')", word[0]);
    return NULL;
}

basin_option_set basin_command_options(const basin_command *command) {
    return (basin_option_set){command->option, command->task, command->settings_at};
}

static basin_settings **settings_in(const basin_command *command, void *values) {
    return (void *)((char *)values + command->settings_at);
}

void *basin_command_values(const basin_command *command) {
    basin_error error;
    char *values = malloc(command->size ? command->size : 1);
    if (values && command->size) memcpy(values, command->defaults, command->size);
    if (!values || !command->task) return values;
    if (!basin_settings_new(settings_in(command, values), command->task, NULL, &error))
        return values;
    free(values);
    return NULL;
}

void basin_command_values_free(const basin_command *command, void *values) {
    if (values && command->task) basin_settings_free(*settings_in(command, values));
    free(values);
}

/* Settings begin as the preset and the file that were asked for. */
static basin_status start_settings(const basin_command *command, void *options,
                                   basin_error *error) {
    const basin_start *start = (void *)((char *)options + command->start_at);
    basin_settings *settings = *settings_in(command, options);
    const char *preset = start->preset ? start->preset : "default";
    basin_status status = basin_settings_start(settings, preset, error);
    if (!status && start->config) status = basin_settings_read(settings, start->config, error);
    return status;
}

/* Parses twice where there are settings: the first time only to learn where they start. */
static basin_status parse(void *options, int *operands, bool *help, const basin_command *command,
                          int count, char **argument, basin_error *error) {
    basin_option_set set = basin_command_options(command);
    if (!command->task)
        return basin_options_parse(options, operands, help, &set, count, argument, error);
    size_t bytes = (size_t)count * sizeof *argument;
    char **copy = malloc(bytes ? bytes : 1);
    if (!copy) return basin_fail(error, BASIN_NO_MEMORY, "out of memory");
    if (bytes) memcpy(copy, argument, bytes);
    basin_status status = basin_options_parse(options, operands, help, &set, count, copy, error);
    if (!status && !*help) status = start_settings(command, options, error);
    free(copy);
    if (status || *help) return status;
    return basin_options_parse(options, operands, help, &set, count, argument, error);
}

int basin_command_run(const basin_command *command, int count, char **argument) {
    int operands;
    bool help;
    basin_error error;
    void *options = basin_command_values(command);
    if (!options) {
        basin_fail(&error, BASIN_NO_MEMORY, "%s: out of memory", command->name);
        return basin_report(&error);
    }
    int code = BASIN_EXIT_OK;
    if (parse(options, &operands, &help, command, count, argument, &error))
        code = basin_report_usage(command, "%s", error.text);
    else if (help)
        basin_command_help_print(stdout, command);
    else if (operands < command->operands_least)
        code = basin_report_usage(command, "wants %s", command->operands);
    else if (operands > command->operands_most)
        code = basin_report_usage(command, "'%s' is one operand too many",
                                  argument[command->operands_most]);
    else
        code = command->run(options, operands, argument);
    basin_command_values_free(command, options);
    return code;
}

static int run(int count, char **argument) {
    if (count == 0 || !strcmp(argument[0], "--help") || !strcmp(argument[0], "-h"))
        return basin_command_run(&basin_command_help, 0, NULL);
    if (!strcmp(argument[0], "--version"))
        return basin_command_run(&basin_command_version, count - 1, argument + 1);
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

/* Threads that wait for each other spin for milliseconds by libgomp's default. On cores that others
 * use, too, that made training eight times slower, and on free ones it gained nothing. libgomp
 * reads its settings when it is loaded, so the program starts itself again with a short spin. */
static void wait_politely(char **argument) {
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    if (setenv("GOMP_SPINCOUNT", "300", 0) == 0) execv("/proc/self/exe", argument);
}

int main(int count, char **argument) {
    wait_politely(argument);
    int code = run(count > 0 ? count - 1 : 0, argument + 1);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "basin: standard output: %s\n", strerror(errno));
        if (code == BASIN_EXIT_OK) code = BASIN_EXIT_FAILURE;
    }
    return code;
}
