/* What the readers and writers need of a bundle beyond its public face. */
#ifndef BASIN_IO_BUNDLE_H
#define BASIN_IO_BUNDLE_H

#include "basin/io.h"
#include "io/file.h"

/* The name under which both formats keep the metadata; no tensor can have it. */
#define BASIN_METADATA_NAME "__metadata__"

/* An empty bundle whose errors name `path`. */
basin_status basin_bundle_open(basin_bundle **bundle, const char *path, basin_error *error);
/* What a reader returns where the bundle refused a value: to the reader's caller the file is bad.
 */
basin_status basin_bundle_blame_file(basin_status status, basin_error *error);
/* Takes ownership of the map, which is closed when the bundle is freed. */
void basin_bundle_keep(basin_bundle *bundle, basin_map *map);

#endif
