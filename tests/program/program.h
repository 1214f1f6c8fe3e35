/* For tests of the program: runs it as a shell would and keeps what it printed. */
#ifndef TESTS_CLI_PROGRAM_H
#define TESTS_CLI_PROGRAM_H

#include <sys/wait.h>

#include <cjson/cJSON.h>

#include "support/folder.h"
#include "support/test.h"

typedef struct program {
    int code;
    char out[262144], err[4096];
} program;

static inline void slurp(char *text, size_t size, const char *path) {
    text[file_get(text, size - 1, path)] = 0;
}

static inline bool is_there(void **state, const char *name) {
    return access(folder_path(state, name), F_OK) == 0;
}

/* `basin ARGUMENTS` in the folder of `state`. The result is overwritten by the next call. */
static inline const program *run(void **state, const char *format, ...) {
    static program result;
    char arguments[2000], line[4000];
    va_list args;
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    snprintf(line, sizeof line, "cd '%s' && >.out 2>.err %s %s", (const char *)*state,
             BASIN_PROGRAM, arguments);
    int status = system(line);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    slurp(result.out, sizeof result.out, folder_path(state, ".out"));
    slurp(result.err, sizeof result.err, folder_path(state, ".err"));
    return &result;
}

static inline void assert_contains(const char *text, const char *wanted) {
    if (!strstr(text, wanted)) fail_msg("\"%s\" is not in:\n%s", wanted, text);
}

/* The text output has a line with this name and value, whatever the blanks between them. */
static inline void assert_field(const char *text, const char *name, const char *value) {
    size_t length = strlen(name);
    for (const char *at = text; at; at = (at = strchr(at, '\n')) ? at + 1 : NULL) {
        size_t blanks = strncmp(at, name, length) ? 0 : strspn(at + length, " ");
        const char *found = at + length + blanks;
        if (blanks && !strncmp(found, value, strlen(value)) && strchr("\n", found[strlen(value)]))
            return;
    }
    fail_msg("no line '%s  %s' in:\n%s", name, value, text);
}

/* The run failed with `code` and said so in one line that contains `wanted`. */
static inline void assert_error(const program *p, int code, const char *wanted) {
    assert_int_equal(p->code, code);
    assert_true(strncmp(p->err, "basin: ", 7) == 0);
    if (strchr(p->err, '\n') != p->err + strlen(p->err) - 1) fail_msg("not one line:\n%s", p->err);
    assert_contains(p->err, wanted);
}

/* A run that must not fail. */
static inline const program *succeeded(const program *p) {
    if (p->code) fail_msg("exit %d: %s", p->code, p->err);
    return p;
}
#define run_ok(...) succeeded(run(__VA_ARGS__))

/* A text as JSON, which lives until a few others have been read; nobody deletes it. */
static inline cJSON *json_read(const char *text) {
    enum { KEPT = 8 };
    static cJSON *kept[KEPT];
    static int next;
    cJSON *tree = cJSON_Parse(text);
    if (!tree) fail_msg("not JSON:\n%s", text);
    next = (next + 1) % KEPT;
    cJSON_Delete(kept[next]);
    return kept[next] = tree;
}
static inline cJSON *run_json(const program *p) { return json_read(succeeded(p)->out); }

/* "files.0.bytes": a member, an element, a member. */
static inline const cJSON *json_at(const cJSON *tree, const char *path) {
    char key[100];
    while (*path && tree) {
        size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        tree = cJSON_IsArray(tree) ? cJSON_GetArrayItem(tree, atoi(key))
                                   : cJSON_GetObjectItemCaseSensitive(tree, key);
        path += length + (path[length] == '.');
    }
    if (!tree) fail_msg("no %s in the JSON", path);
    return tree;
}

static inline double json_number(const cJSON *tree, const char *path) {
    const cJSON *item = json_at(tree, path);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

/* Hidden files of the folder are the harness's own. */
static inline int program_teardown(void **state) {
    unlink(folder_path(state, ".out"));
    unlink(folder_path(state, ".err"));
    return folder_remove(state);
}

#endif
