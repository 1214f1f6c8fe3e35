/* A folder of pictures: every .jpg, .jpeg, .png and .webp below it, in the order of their paths'
 * bytes. */
#include "data/folder.h"

#include <stdlib.h>
#include <string.h>

#include "data/pictures/pictures.h"

static basin_status take(void *shelf, const char *path, size_t size, basin_error *error) {
    if (!basin_name_is_picture(path)) return BASIN_OK;
    return basin_shelf_add(shelf, path, NULL, size, false, error);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const basin_entry *)a)->name, ((const basin_entry *)b)->name);
}

basin_status basin_shelf_folder(basin_shelf *shelf, const char *split, bool *divided,
                                basin_error *error) {
    basin_status status = basin_folder_walk(shelf->name, take, shelf, error);
    if (status) return status;
    if (shelf->count > 0) qsort(shelf->entry, (size_t)shelf->count, sizeof *shelf->entry, by_name);
    basin_shelf_divide(shelf, split, divided);
    return BASIN_OK;
}
