/* Files whose names match a pattern; see include/glob.h. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

/* The pattern without the backslashes that keep the next character from being a wildcard: no name
 * has such characters here. */
static char *unescape(const char *pattern) {
    char *plain = malloc(strlen(pattern) + 1), *to = plain;
    if (!plain) return NULL;
    for (const char *from = pattern; *from; from++) {
        if (*from == '\\' && from[1]) from++;
        *to++ = *from;
    }
    *to = 0;
    return plain;
}

/* Where the name begins behind the folders. */
static size_t folder_length(const char *path) {
    size_t length = 0;
    for (size_t i = 0; path[i]; i++)
        if (path[i] == '/' || path[i] == '\\' || path[i] == ':') length = i + 1;
    return length;
}

static int add(glob_t *found, const char *folder, size_t length, const char *name) {
    char **grown = realloc(found->gl_pathv, (found->gl_pathc + 1) * sizeof *grown);
    if (!grown) return -1;
    found->gl_pathv = grown;
    char *path = malloc(length + strlen(name) + 1);
    if (!path) return -1;
    memcpy(path, folder, length);
    strcpy(path + length, name);
    grown[found->gl_pathc++] = path;
    return 0;
}

int glob(const char *pattern, int flags, int (*failed)(const char *path, int code), glob_t *found) {
    WIN32_FIND_DATAA file;
    char *plain = unescape(pattern);
    int code = plain ? 0 : -1;
    (void)flags, (void)failed;
    *found = (glob_t){0};
    HANDLE search = plain ? FindFirstFileA(plain, &file) : INVALID_HANDLE_VALUE;
    if (search != INVALID_HANDLE_VALUE) {
        do code = add(found, plain, folder_length(plain), file.cFileName);
        while (!code && FindNextFileA(search, &file));
        FindClose(search);
    }
    free(plain);
    if (code) globfree(found);
    return code;
}

void globfree(glob_t *found) {
    for (size_t i = 0; i < found->gl_pathc; i++) free(found->gl_pathv[i]);
    free(found->gl_pathv);
    *found = (glob_t){0};
}
