/* The frame of a MATLAB 5 file: tags and sizes, apart from the numbers. */
#ifndef BASIN_DATA_NETWORK_MAT_FRAME_H
#define BASIN_DATA_NETWORK_MAT_FRAME_H

#include <stddef.h>

#include "basin/status.h"

/* Walks through all tags of the file, those of compressed variables included, and refuses one that
 * is cut off, that does not unpack to its end, whose matrices hold other counts than their sizes
 * say, or that has a matrix of more than `limit` bytes (0: basin_memory_share). Files of other
 * versions pass. */
basin_status basin_mat_frame_check(const void *data, size_t size, size_t limit, const char *path,
                                   basin_error *error);

#endif
