/* The files below a folder; see folder.h. */
#include "data/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

enum { DEPTH = 64 }; /* paths would become too long for the system */

typedef struct place {
    dev_t device;
    ino_t inode;
} place;

typedef struct walker {
    const char *root;
    basin_folder_take *take;
    void *context;
    place *seen; /* [count] folders, ascending */
    size_t count, capacity;
} walker;

static basin_status no_memory(const walker *w, basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to list", w->root);
}

static bool before(place a, place b) {
    return a.device < b.device || (a.device == b.device && a.inode < b.inode);
}

/* Puts a folder among those seen; *fresh tells whether it was not there yet. */
static basin_status see(bool *fresh, walker *w, const struct stat *info, basin_error *error) {
    place p = {info->st_dev, info->st_ino};
    size_t low = 0, high = w->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (before(w->seen[middle], p))
            low = middle + 1;
        else
            high = middle;
    }
    *fresh = low == w->count || before(p, w->seen[low]);
    if (!*fresh) return BASIN_OK;
    if (!basin_array_reserve((void **)&w->seen, &w->capacity, w->count + 1, sizeof *w->seen))
        return no_memory(w, error);
    memmove(w->seen + low + 1, w->seen + low, (w->count - low) * sizeof *w->seen);
    w->seen[low] = p;
    w->count++;
    return BASIN_OK;
}

/* The names in a folder that do not begin with a dot, ascending. */
typedef struct names {
    char **name; /* [count] */
    size_t count, capacity;
} names;

static void names_free(names *n) {
    for (size_t i = 0; i < n->count; i++) free(n->name[i]);
    free(n->name);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static basin_status read_names(names *n, const walker *w, const char *path, basin_error *error) {
    basin_status status = BASIN_OK;
    DIR *folder = opendir(path);
    if (!folder) return basin_fail(error, BASIN_IO, "%s: cannot list: %s", path, strerror(errno));
    for (struct dirent *e; !status && (e = readdir(folder));) {
        if (e->d_name[0] == '.') continue;
        char *copy = basin_string_copy(e->d_name);
        if (copy &&
            basin_array_reserve((void **)&n->name, &n->capacity, n->count + 1, sizeof *n->name)) {
            n->name[n->count++] = copy;
        } else {
            free(copy);
            status = no_memory(w, error);
        }
    }
    closedir(folder);
    if (n->count) qsort(n->name, n->count, sizeof *n->name, by_text);
    return status;
}

static basin_status walk(walker *w, const char *below, int depth, basin_error *error);

static basin_status visit(walker *w, const char *below, const char *name, int depth,
                          basin_error *error) {
    struct stat info;
    basin_status status = BASIN_OK;
    size_t inner = strlen(below) + strlen(name) + 2, whole = strlen(w->root) + inner + 1;
    char *path = malloc(inner), *full = malloc(whole);
    if (!path || !full) {
        free(path);
        free(full);
        return no_memory(w, error);
    }
    snprintf(path, inner, "%s%s%s", below, *below ? "/" : "", name);
    snprintf(full, whole, "%s/%s", w->root, path);
    if (stat(full, &info) != 0) {
        /* a link to nowhere: who takes it finds that it cannot be read, and says so */
        status = w->take(w->context, path, 0, error);
    } else if (S_ISDIR(info.st_mode)) {
        bool fresh;
        status = see(&fresh, w, &info, error);
        if (!status && fresh) status = walk(w, path, depth + 1, error);
    } else if (S_ISREG(info.st_mode)) {
        status = w->take(w->context, path, (size_t)info.st_size, error);
    }
    free(path);
    free(full);
    return status;
}

static basin_status walk(walker *w, const char *below, int depth, basin_error *error) {
    const char *root = w->root;
    size_t size = strlen(root) + strlen(below) + 2;
    names n = {0};
    if (depth > DEPTH)
        return basin_fail(error, BASIN_IO, "%s/%s: more than %d folders deep", root, below, DEPTH);
    char *path = malloc(size);
    if (!path) return no_memory(w, error);
    snprintf(path, size, "%s%s%s", root, *below ? "/" : "", below);
    basin_status status = read_names(&n, w, path, error);
    for (size_t i = 0; i < n.count && !status; i++)
        status = visit(w, below, n.name[i], depth, error);
    names_free(&n);
    free(path);
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
