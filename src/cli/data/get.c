/* basin data get: fetches public sets and checks their digests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "data/fetch/catalog.h"
#include "data/fetch/fetch.h"
#include "io/file.h"
#include "io/json_writer.h"

typedef struct options {
    const char *output, *mirror;
    bool list, json, quiet;
} options;

static const options defaults = {.output = "."};

static const basin_option table[] = {
    BASIN_TEXT(options, output, 'o', "output", "FOLDER",
               "The folder for the files; made if absent.", .needs = "list=off"),
    BASIN_TEXT(options, mirror, 0, "mirror", "URL",
               "Fetch from URL/FILE instead, with the same checks; file:///FOLDER works, too.",
               .needs = "list=off"),
    BASIN_FLAG(options, list, 0, "list", "List the sets."),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON_FOR(options, "list=on"),
    BASIN_OPTIONS_END,
};

/* ---- the list ---- */

static const char *check_of(const basin_catalog_set *set) {
    return set->by_hand ? "by hand" : set->file[0].sha256 ? "known digest" : "first fetch counts";
}

static void list_json(void) {
    basin_json json = basin_json_begin(stdout);
    basin_json_array(&json, "sets");
    for (const basin_catalog_set *set = basin_catalog; set->name; set++) {
        basin_json_object(&json, NULL);
        basin_json_text(&json, "name", set->name);
        basin_json_text(&json, "what", set->what);
        basin_json_text(&json, "by_hand", set->by_hand);
        basin_json_array(&json, "files");
        for (int i = 0; i < BASIN_CATALOG_FILES && set->file[i].url; i++) {
            basin_json_object(&json, NULL);
            basin_json_text(&json, "name", set->file[i].name);
            basin_json_text(&json, "url", set->file[i].url);
            basin_json_text(&json, "sha256", set->file[i].sha256);
            basin_json_end(&json);
        }
        basin_json_end(&json);
        basin_json_end(&json);
    }
    basin_json_end(&json);
    basin_json_end(&json);
}

static int list(bool json) {
    if (json) {
        list_json();
        return BASIN_EXIT_OK;
    }
    basin_table rows = {.layout = "lll"};
    basin_table_add(&rows, "set");
    basin_table_add(&rows, "check");
    basin_table_add(&rows, "what");
    for (const basin_catalog_set *set = basin_catalog; set->name; set++) {
        basin_table_add(&rows, "%s", set->name);
        basin_table_add(&rows, "%s", check_of(set));
        basin_table_add(&rows, "%s", set->what);
    }
    return basin_table_print(&rows, stdout, 0) ? BASIN_EXIT_OK : BASIN_EXIT_FAILURE;
}

/* ---- fetching ---- */

static void show(void *context, int64_t done, int64_t total) {
    basin_progress *progress = context;
    char bytes[60];
    progress->total = total > 0 ? total : 0;
    if (total > 0)
        snprintf(bytes, sizeof bytes, "%.1f of %.1f MB", (double)done / 1e6, (double)total / 1e6);
    else
        snprintf(bytes, sizeof bytes, "%.1f MB", (double)done / 1e6);
    basin_progress_show(progress, done, (const char *[]){bytes, NULL});
}

static char *join(const char *a, const char *b) {
    size_t room = strlen(a) + strlen(b) + 2;
    char *text = malloc(room);
    if (text) snprintf(text, room, "%s/%s", a, b);
    return text;
}

static void report(const char *path, const basin_fetch_result *result, bool quiet) {
    printf("%s  %s\n", result->sha256, path);
    if (quiet) return;
    if (result->was_there) basin_say("%s: was there already", path);
    if (result->first_fetch)
        basin_say("%s: Basin knows no digest of this file; the one above is kept in %s.sha256 and "
                  "counts from now on",
                  path, path);
}

static basin_status get_file(const basin_catalog_file *file, const options *o, basin_error *error) {
    char *path = join(o->output, file->name), *url = o->mirror ? join(o->mirror, file->name) : NULL;
    char *unpacked = file->member ? join(o->output, file->member) : NULL;
    basin_status status = BASIN_OK;
    if (!path || (o->mirror && !url) || (file->member && !unpacked))
        status = basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", file->name);
    if (!status) {
        basin_progress progress = basin_progress_begin(file->name, 0, o->quiet);
        basin_fetch_result result;
        basin_fetch_spec spec = {.url = url ? url : file->url,
                                 .path = path,
                                 .sha256 = file->sha256,
                                 .size = file->size > 0 ? file->size : -1,
                                 .progress = show,
                                 .context = &progress};
        status = basin_fetch(&result, &spec, error);
        basin_progress_end(&progress);
        if (!status) report(path, &result, o->quiet);
        struct stat s;
        if (!status && unpacked && (!result.was_there || stat(unpacked, &s) != 0))
            status = basin_fetch_unpack(unpacked, path, file->member, error);
        if (!status && unpacked) printf("%s\n", unpacked);
    }
    free(path);
    free(url);
    free(unpacked);
    return status;
}

/* The command to go on with; false where there is none. */
static bool next_command(char *text, size_t size, const basin_catalog_set *set) {
    char option[60] = "";
    if (!set->convert.file) return false;
    if (set->convert.unlabelled_first)
        snprintf(option, sizeof option, " --unlabelled-first %lld",
                 (long long)set->convert.unlabelled_first);
    snprintf(text, size, "basin data convert %s %s.basin%s", set->convert.file, set->name, option);
    return true;
}

static basin_status get_set(const basin_catalog_set *set, const options *o, basin_error *error) {
    char next[300] = "";
    bool more = next_command(next, sizeof next, set);
    if (set->by_hand)
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "%s: no link leads to the file itself; get it with a browser from %s, then: %s",
            set->name, set->by_hand, next);
    basin_status status = basin_folder_make(o->output, error);
    for (int i = 0; i < BASIN_CATALOG_FILES && set->file[i].url && !status; i++)
        status = get_file(&set->file[i], o, error);
    if (!status && more && !o->quiet) basin_say("next: %s", next);
    return status;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    if (o->list && operands)
        return basin_report_usage(&basin_command_data_get,
                                  "--list lists all sets; wanted no names beside it");
    if (o->list) return list(o->json);
    if (operands < 1)
        return basin_report_usage(&basin_command_data_get, "wants NAME, or --list for the names");
    for (int i = 0; i < operands; i++) {
        const basin_catalog_set *set = basin_catalog_find(operand[i]);
        if (!set)
            return basin_report_usage(&basin_command_data_get,
                                      "no set '%s'; 'basin data get --list' names them",
                                      operand[i]);
        if (get_set(set, o, &error)) return basin_report(&error);
    }
    return BASIN_EXIT_OK;
}

const basin_command basin_command_data_get = {
    .name = "data get",
    .summary = "Fetch a public set and check its digest",
    .operands = "NAME...",
    .operands_least = 0,
    .operands_most = 64,
    .text = "A file arrives whole and checked, or not at all: it is written aside, compared with "
            "its SHA-256 and renamed. Where Basin knows no digest, that of the first fetch is "
            "printed and kept beside the file, and later fetches are held to it; compare it with "
            "another source if that matters to you. An interrupted fetch of a file with a known "
            "digest goes on where it stopped.",
    .example = "  basin data get --list\n"
               "  basin data get amazon -o data\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
