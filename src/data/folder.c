/* The files below a folder; see folder.h. */
#include "data/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/try.h"

enum { DEPTH = 64 }; /* paths would become too long for the system */

typedef struct walker {
    const char *root;
    basin_folder_take *take;
    void *context;
    struct stat *seen; /* [count] folders */
    size_t count, capacity;
} walker;

static basin_status no_memory(const walker *w, basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to list", w->root);
}

/* Puts a folder among those seen; *fresh tells whether it was not there yet. */
static basin_status see(bool *fresh, walker *w, const struct stat *info, basin_error *error) {
    *fresh = true;
    for (size_t i = 0; i < w->count && *fresh; i++)
        *fresh = w->seen[i].st_dev != info->st_dev || w->seen[i].st_ino != info->st_ino;
    if (!*fresh) return BASIN_OK;
    if (!basin_array_reserve((void **)&w->seen, &w->capacity, w->count + 1, sizeof *w->seen))
        return no_memory(w, error);
    w->seen[w->count++] = *info;
    return BASIN_OK;
}

/* "a/b"; "b" where a is empty; NULL without memory. */
static char *join(const char *a, const char *b) {
    size_t size = strlen(a) + strlen(b) + 2;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s%s%s", a, *a && *b ? "/" : "", b);
    return path;
}

static int is_listed(const struct dirent *e) { return e->d_name[0] != '.'; }
static int by_bytes(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static basin_status walk(walker *w, const char *below, int depth, basin_error *error);

static basin_status visit(walker *w, const char *below, const char *name, int depth,
                          basin_error *error) {
    struct stat info;
    bool fresh;
    BASIN_FREE_AT_EXIT char *path = join(below, name);
    BASIN_FREE_AT_EXIT char *full = path ? join(w->root, path) : NULL;
    if (!full) return no_memory(w, error);
    /* a link to nowhere: who takes it finds that it cannot be read, and says so */
    if (stat(full, &info) != 0) return w->take(w->context, path, 0, error);
    if (S_ISREG(info.st_mode)) return w->take(w->context, path, (size_t)info.st_size, error);
    if (!S_ISDIR(info.st_mode)) return BASIN_OK;
    BASIN_TRY(see(&fresh, w, &info, error));
    return fresh ? walk(w, path, depth + 1, error) : BASIN_OK;
}

static basin_status walk(walker *w, const char *below, int depth, basin_error *error) {
    struct dirent **entry;
    basin_status status = BASIN_OK;
    BASIN_FREE_AT_EXIT char *path = join(w->root, below);
    if (depth > DEPTH)
        return basin_fail(error, BASIN_IO, "%s/%s: more than %d folders deep", w->root, below,
                          DEPTH);
    if (!path) return no_memory(w, error);
    int count = scandir(path, &entry, is_listed, by_bytes);
    if (count < 0 && errno == ENOMEM) return no_memory(w, error);
    if (count < 0) return basin_fail(error, BASIN_IO, "%s: cannot list: %s", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        if (!status) status = visit(w, below, entry[i]->d_name, depth, error);
        free(entry[i]);
    }
    free(entry);
    return status;
}

basin_status basin_folder_walk(const char *root, basin_folder_take *take, void *context,
                               basin_error *error) {
    struct stat info;
    bool fresh;
    walker w = {.root = root, .take = take, .context = context};
    basin_status status = BASIN_OK;
    if (stat(root, &info) == 0) status = see(&fresh, &w, &info, error);
    if (!status) status = walk(&w, "", 0, error);
    free(w.seen);
    return status;
}
