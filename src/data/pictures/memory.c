/* A collection of pictures that are in memory already; see include/basin/tasks/pictures.h. */
#include <stdlib.h>

#include "base/memory.h"
#include "data/pictures/pictures.h"

static basin_status fill(basin_pictures *pictures, const basin_picture *picture, int64_t count,
                         basin_error *error) {
    pictures->shelf = calloc(1, sizeof *pictures->shelf);
    pictures->start = calloc(2, sizeof *pictures->start);
    if (!pictures->shelf || !pictures->start)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a list of pictures");
    basin_shelf *shelf = pictures->shelf;
    pictures->shelves = 1;
    *shelf = (basin_shelf){.kind = BASIN_SHELF_MEMORY,
                           .name = basin_string_copy("memory"),
                           .picture = calloc((size_t)count, sizeof *shelf->picture)};
    if (!shelf->name || !shelf->picture)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a list of pictures");
    basin_status status = BASIN_OK;
    for (int64_t i = 0; i < count && !status; i++) {
        status = basin_picture_copy(&shelf->picture[i], &picture[i], error);
        if (!status) shelf->count++;
    }
    pictures->count = pictures->start[1] = shelf->count;
    return status;
}

basin_status basin_pictures_from_memory(basin_pictures **out, const basin_picture *picture,
                                        int64_t count, basin_error *error) {
    *out = NULL;
    if (count < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "%lld pictures, wanted at least one",
                          (long long)count);
    basin_pictures *pictures = calloc(1, sizeof *pictures);
    if (!pictures)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a list of pictures");
    basin_status status = fill(pictures, picture, count, error);
    if (status)
        basin_pictures_free(pictures);
    else
        *out = pictures;
    return status;
}
