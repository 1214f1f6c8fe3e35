/* A folder of pictures: every .jpg, .jpeg and .png below it, in the order of their paths' bytes. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "data/pictures/pictures.h"

enum { DEPTH = 64 }; /* deeper folders are a loop of links */

static basin_status walk(basin_shelf *shelf, const char *below, int depth, basin_error *error);

static basin_status visit(basin_shelf *shelf, const char *below, const char *name, int depth,
                          basin_error *error) {
    struct stat info;
    basin_status status = BASIN_OK;
    size_t inner = strlen(below) + strlen(name) + 2, whole = strlen(shelf->name) + inner + 1;
    char *path = malloc(inner), *full = malloc(whole);
    if (!path || !full) {
        free(path);
        free(full);
        return basin_fail(error, BASIN_NO_MEMORY, "%s: no memory to list", shelf->name);
    }
    snprintf(path, inner, "%s%s%s", below, *below ? "/" : "", name);
    snprintf(full, whole, "%s/%s", shelf->name, path);
    if (stat(full, &info) != 0) {
        /* a link to nowhere is no picture, and no reason to stop */
    } else if (S_ISDIR(info.st_mode)) {
        status = walk(shelf, path, depth + 1, error);
    } else if (S_ISREG(info.st_mode) && basin_name_is_picture(name)) {
        status = basin_shelf_add(shelf, path, NULL, (size_t)info.st_size, false, error);
    }
    free(path);
    free(full);
    return status;
}

static basin_status walk(basin_shelf *shelf, const char *below, int depth, basin_error *error) {
    size_t size = strlen(shelf->name) + strlen(below) + 2;
    basin_status status = BASIN_OK;
    if (depth > DEPTH)
        return basin_fail(error, BASIN_IO, "%s/%s: more than %d folders deep", shelf->name, below,
                          DEPTH);
    char *path = malloc(size);
    if (!path) return basin_fail(error, BASIN_NO_MEMORY, "%s: no memory to list", shelf->name);
    snprintf(path, size, "%s%s%s", shelf->name, *below ? "/" : "", below);
    DIR *folder = opendir(path);
    if (!folder) status = basin_fail(error, BASIN_IO, "%s: cannot list: %s", path, strerror(errno));
    for (struct dirent *e; !status && (e = readdir(folder));)
        if (e->d_name[0] != '.') status = visit(shelf, below, e->d_name, depth, error);
    if (folder) closedir(folder);
    free(path);
    return status;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const basin_entry *)a)->name, ((const basin_entry *)b)->name);
}

basin_status basin_shelf_folder(basin_shelf *shelf, const char *split, bool *divided,
                                basin_error *error) {
    basin_status status = walk(shelf, "", 0, error);
    if (status) return status;
    if (shelf->count > 0) qsort(shelf->entry, (size_t)shelf->count, sizeof *shelf->entry, by_name);
    basin_shelf_divide(shelf, split, divided);
    return BASIN_OK;
}
