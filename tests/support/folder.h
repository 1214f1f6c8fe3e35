/* A folder for a test's files, made afresh and removed with all that is in it. */
#ifndef TESTS_IO_FOLDER_H
#define TESTS_IO_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_TEXT = 300 };

/* Use as cmocka's group setup and teardown; *state is the folder's path. */
static inline int folder_new(void **state) {
    const char *base = getenv("TMPDIR");
    char path[PATH_TEXT];
    snprintf(path, sizeof path, "%s/basin-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(path)) return -1;
    *state = strdup(path);
    return *state ? 0 : -1;
}

static inline char *folder_path(char path[PATH_TEXT], void **state, const char *name) {
    snprintf(path, PATH_TEXT, "%s/%s", (const char *)*state, name);
    return path;
}

/* How many entries the folder has. */
static inline int folder_count(void **state) {
    int count = 0;
    DIR *folder = opendir(*state);
    for (struct dirent *e; folder && (e = readdir(folder));) count += e->d_name[0] != '.';
    if (folder) closedir(folder);
    return count;
}

static inline int folder_remove(void **state) {
    char path[PATH_TEXT];
    DIR *folder = opendir(*state);
    for (struct dirent *e; folder && (e = readdir(folder));)
        if (e->d_name[0] != '.') {
            folder_path(path, state, e->d_name);
            if (unlink(path) != 0) rmdir(path);
        }
    if (folder) closedir(folder);
    rmdir(*state);
    free(*state);
    return 0;
}

static inline int file_put(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (!file) return -1;
    size_t put = fwrite(data, 1, size, file);
    return fclose(file) == 0 && put == size ? 0 : -1;
}

#endif
