/* The files below a folder. */
#ifndef BASIN_DATA_FOLDER_H
#define BASIN_DATA_FOLDER_H

#include <stddef.h>

#include "basin/status.h"

/* Gets every regular file whose name does not begin with a dot: its path below the folder; and
 * links to nowhere, which may be files that have gone, with size 0. */
typedef basin_status basin_folder_take(void *context, const char *path, size_t size,
                                       basin_error *error);

/* Hands out the files, those of a folder in the order of their names' bytes. A folder that links
 * lead to more than once is listed once, under the first of its paths, so that a link to a folder
 * above it ends the walk there. */
basin_status basin_folder_walk(const char *root, basin_folder_take *take, void *context,
                               basin_error *error);

#endif
