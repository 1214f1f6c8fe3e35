/* JSON as the tensor files carry it: a header parsed with care, and metadata in and out. */
#ifndef BASIN_IO_JSON_H
#define BASIN_IO_JSON_H

#include <cjson/cJSON.h>

#include "io/bundle.h"

/* `length` bytes of text, which must be one JSON object, as a tree; cJSON_Delete it. `what` is
 * what errors call the text: "the header". */
basin_status basin_json_parse(cJSON **tree, const void *text, size_t length, const char *path,
                              const char *what, basin_error *error);
/* Adds the strings of a JSON object to the bundle's metadata. */
basin_status basin_json_to_meta(basin_bundle *bundle, const cJSON *object, basin_error *error);
/* The metadata as a JSON object; NULL without memory. */
cJSON *basin_json_from_meta(const basin_bundle *bundle);

#endif
