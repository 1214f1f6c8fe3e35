/* Models that come with Basin.
 *
 *     char path[4096];
 *     if (basin_models_find(path, sizeof path, "photos", &error)) ...
 *     if (basin_image_open(&model, path, backend, &error)) ...
 */
#ifndef BASIN_TASKS_MODELS_H
#define BASIN_TASKS_MODELS_H

#include <stddef.h>

#include "basin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The path of NAME.safetensors: in the folder that the environment variable BASIN_MODELS names, and
 * nowhere else if it is set; otherwise in share/basin/models of the installation that this library
 * belongs to, in that of the prefix it was built for, or in models/ of the source tree it was built
 * in. "photos" completes photographs, "fashion" pictures of Fashion-MNIST; "context" finds
 * anomalies from a few labels. A path longer than `size` - 1 bytes is not found. */
BASIN_API basin_status basin_models_find(char *path, size_t size, const char *name,
                                         basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
