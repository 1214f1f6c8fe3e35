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

/* The path of a file of the folder; one of 64 that are kept, until as many others were asked for.
 * Where gcc inlines it, a path could be as long as all 64 in its warnings. */
__attribute__((noinline, unused)) static char *folder_path(void **state, const char *name) {
    static char kept[64][PATH_TEXT], path[PATH_TEXT];
    static int next;
    snprintf(path, sizeof path, "%s/%s", (const char *)*state, name);
    for (int i = 0; i < 64; i++)
        if (!strcmp(kept[i], path)) return kept[i];
    return strcpy(kept[next++ % 64], path);
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
            snprintf(path, sizeof path, "%s/%s", (const char *)*state, e->d_name);
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

/* Reads at most `size` bytes; returns how many. */
static inline size_t file_get(void *data, size_t size, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) perror(path), abort();
    size = fread(data, 1, size, file);
    fclose(file);
    return size;
}

/* A text as a file of the folder; returns its path. */
static inline char *folder_put(void **state, const char *name, const char *text) {
    char *path = folder_path(state, name);
    if (file_put(path, text, strlen(text))) perror(path), abort();
    return path;
}

#endif
