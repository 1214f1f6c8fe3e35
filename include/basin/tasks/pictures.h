/* Collections of pictures, opened by path and content:
 *
 *     a folder of JPEG, PNG and WebP files, nested as one likes, in the order of their paths' bytes
 *     a tar or zip archive of such files (.tar, .tar.gz, .tar.xz, ...)
 *     an idx file of images, plain or gz, and the folder of MNIST's or Fashion-MNIST's four files
 *     a CIFAR-10 or CIFAR-100 binary batch, and the folder that holds them
 *     one JPEG, PNG or WebP file
 *     "shapes:COUNT:SEED:HxWxC", generated shapes and textures that need no file; what is left
 *     out ("shapes:", "shapes:512") is 60000 (10000 in the split "test"), seed 1 and 28x28x1
 *
 * Loading is safe from any number of threads at once. */
#ifndef BASIN_TASKS_PICTURES_H
#define BASIN_TASKS_PICTURES_H

#include <stdbool.h>

#include "basin/tasks/picture.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_pictures basin_pictures;

/* Opens and joins the collections at `paths` places. `split`, "train" or "test", chooses where one
 * knows such halves: the files of MNIST and CIFAR, generated shapes, and folders or archives with
 * subfolders of that name ("val" serves for "test"). NULL takes all there is. */
BASIN_API basin_status basin_pictures_open(basin_pictures **pictures, const char *const *path,
                                           int paths, const char *split, basin_error *error);
BASIN_API void basin_pictures_free(basin_pictures *pictures);
BASIN_API int64_t basin_pictures_count(const basin_pictures *pictures);
/* Whether all the collections had the split asked for. Where one had not, all of it was taken, and
 * the caller may want to hold some out. */
BASIN_API bool basin_pictures_divided(const basin_pictures *pictures);

/* Where picture i is from: its path, "archive.tar/folder/a.jpg", "train-images.gz[17]". */
enum { BASIN_PICTURE_NAME = 512 };
BASIN_API const char *basin_pictures_name(char text[BASIN_PICTURE_NAME],
                                          const basin_pictures *pictures, int64_t i);
/* Picture i as it is stored, upright; `picture` must be zeroed or hold a picture. */
BASIN_API basin_status basin_pictures_load(basin_picture *picture, const basin_pictures *pictures,
                                           int64_t i, basin_error *error);

/* A collection of pictures that are in memory, of any sizes; they are copied. Their names are
 * "memory[0]", "memory[1]", ... */
BASIN_API basin_status basin_pictures_from_memory(basin_pictures **pictures,
                                                  const basin_picture *picture, /* [count] */
                                                  int64_t count, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
