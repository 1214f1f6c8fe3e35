/* basin data get: public sets, fetched by curl and checked by SHA-256. What it does is a script,
 * share/basin/get.sh, which the shell runs in place of this program. */
#include <errno.h>
#include <unistd.h>

#include "cli/cli.h"
#include "io/file.h"

extern const char *const basin_get_script[]; /* its lines */

static const basin_option table[] = {
    BASIN_TEXT(output, 'o', "output", "FOLDER", "The folder for the files; made if absent.",
               .needs = "list=off", .text = "."),
    BASIN_TEXT(mirror, 0, "mirror", "URL",
               "Fetch from URL/FILE instead, with the same checks; file:///FOLDER works, too.",
               .needs = "list=off"),
    BASIN_FLAG(list, "list", "List the sets."),
    BASIN_OPTION_QUIET,
    BASIN_OPTION_JSON_FOR("list=on"),
    BASIN_OPTIONS_END,
};

/* As the script reads it. */
static bool export(const basin_args *o) {
    const char *list = !o->list ? "" : o->json ? "json" : "text";
    return !setenv("output", o->output, 1) && !setenv("mirror", o->mirror ? o->mirror : "", 1) &&
           !setenv("quiet", o->quiet ? "yes" : "", 1) && !setenv("list", list, 1);
}

static basin_status run(basin_args *o, basin_error *error) {
    BASIN_FREE_AT_EXIT char **argument = NULL;
    basin_memory_file script;
    if (o->list && o->operands)
        return basin_usage(error, "--list lists all sets and takes no names");
    if (!o->list && o->operands < 1)
        return basin_usage(error, "needs NAME, or --list for the names");
    BASIN_TRY(BASIN_NEW(&argument, o->operands + 5, "a script", error));
    if (!basin_memory_file_open(&script)) return basin_fail_memory(error, "a script");
    for (const char *const *line = basin_get_script; *line; line++) fputs(*line, script.file);
    BASIN_FREE_AT_EXIT char *text = basin_memory_file_close(&script);
    if (!text || !export(o)) return basin_fail_memory(error, "a script");
    char *const first[] = {"sh", "-c", text, "basin"};
    memcpy(argument, first, sizeof first);
    memcpy(argument + 4, o->operand, (size_t)o->operands * sizeof *argument);
    fflush(stdout);
    execvp("sh", argument);
    return basin_fail(error, BASIN_UNSUPPORTED, "the program sh cannot be run: %s",
                      strerror(errno));
}

const basin_command basin_command_data_get = {"data get", table, .run = run, .least = -1};
