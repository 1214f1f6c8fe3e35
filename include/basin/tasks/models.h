/* Models that come with Basin.
 *
 *     char path[BASIN_MODEL_PATH];
 *     if (basin_models_find(path, "photos", &error) || basin_image_open(&model, path, ...)) ...
 */
#ifndef BASIN_TASKS_MODELS_H
#define BASIN_TASKS_MODELS_H

#include "basin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BASIN_MODEL_PATH = 4096 };

/* Where NAME.safetensors lies: in the folder that the environment variable BASIN_MODELS names, and
 * nowhere else if it is set; otherwise in share/basin/models of the installation that this library
 * belongs to, in that of the prefix it was built for, or in models/ of the source tree it was built
 * in. "photos" completes photographs, "fashion" pictures of Fashion-MNIST. */
BASIN_API basin_status basin_models_find(char path[BASIN_MODEL_PATH], const char *name,
                                         basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
