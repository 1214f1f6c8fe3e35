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
 * Any number of threads may read one collection at once. */
#ifndef BASIN_TASKS_PICTURES_H
#define BASIN_TASKS_PICTURES_H

#include <stdbool.h>

#include "basin/tasks/picture.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_pictures basin_pictures;

/* The part of a collection that has parts: the files of MNIST and CIFAR, generated shapes, and
 * folders or archives with subfolders "train" and "test" (or "val"). */
typedef enum basin_pictures_split {
    BASIN_PICTURES_ALL,
    BASIN_PICTURES_TRAIN,
    BASIN_PICTURES_TEST,
} basin_pictures_split;

/* Opens and joins the collections at `paths` places. */
BASIN_API basin_status basin_pictures_open(basin_pictures **pictures, const char *const *path,
                                           int paths, basin_pictures_split split,
                                           basin_error *error);
BASIN_API void basin_pictures_close(basin_pictures *pictures);
BASIN_API int64_t basin_pictures_count(const basin_pictures *pictures);
/* Whether all the collections had the requested split. A collection without it was taken whole; the
 * caller may then hold some pictures out. */
BASIN_API bool basin_pictures_divided(const basin_pictures *pictures);

/* Where picture i is from: its path, "archive.tar/folder/a.jpg", "train-images.gz[17]". */
enum { BASIN_MAX_PICTURE_NAME = 512 };
BASIN_API const char *basin_pictures_name(char text[BASIN_MAX_PICTURE_NAME],
                                          const basin_pictures *pictures, int64_t i);
/* Picture i as it is stored, upright; `picture` must be zeroed or hold a picture. */
BASIN_API basin_status basin_pictures_load(basin_picture *picture, const basin_pictures *pictures,
                                           int64_t i, basin_error *error);

/* A collection of pictures that are in memory, of any sizes; they are copied. Their names are
 * "memory[0]", "memory[1]", ... */
BASIN_API basin_status basin_pictures_from_memory(basin_pictures **pictures,
                                                  const basin_picture *picture, /* [count] */
                                                  int64_t count, basin_error *error);

/* ---- batches ----
 *
 * Worker threads decode and augment pictures ahead of the caller. In training the order is a
 * permutation keyed by (seed, epoch), batches are whole, and there is no end; in evaluation the
 * items come in their order, once, and a batch of 0 is the end. The values depend only on the
 * configuration: of a JPEG only the part that a crop needs is decoded, reduced by 2, 4 or 8 while
 * it is decoded, as far as the crop allows. A picture that cannot be read is reported once, counted
 * and left out: in training the next one takes its place, in evaluation its batch is one smaller.
 */

/* One thread at a time may use a feed. */
typedef struct basin_picture_feed basin_picture_feed;

typedef struct basin_picture_feed_config {
    size_t size;                    /* sizeof(basin_picture_feed_config), or 0 */
    const basin_pictures *pictures; /* borrowed, and must outlive the feed */
    const int64_t *item;            /* [items] which of them, copied; NULL: all */
    int64_t items;
    basin_augment augment;
    int64_t batch;
    bool training;
    uint64_t seed;
    int threads;       /* 0: one per processor, at most 16 */
    int ahead;         /* batches kept ready; 0: 4 */
    size_t keep_bytes; /* memory for decoded pictures; 0: none are kept. It changes no values */
    /* Called by basin_picture_feed_next for each picture that cannot be read; may be NULL. */
    void (*unreadable)(void *context, const char *name, const char *why);
    void *context;
    /* Training: only places first .. first + count - 1 of each batch, for one rank; 0: all. */
    int64_t first, count;
} basin_picture_feed_config;

typedef struct basin_picture_feed_batch {
    size_t size;          /* set by the caller */
    const float *values;  /* [count, N, P] or [count, c, size, size]; until the next call */
    const int64_t *index; /* [count] number of each picture in `pictures` */
    int64_t count;
    int64_t step, epoch;
} basin_picture_feed_batch;

BASIN_API basin_status basin_picture_feed_new(basin_picture_feed **feed,
                                              const basin_picture_feed_config *config,
                                              basin_error *error);
BASIN_API void basin_picture_feed_free(basin_picture_feed *feed);

/* Waits for the next batch. Fails where no picture is left that can be read. */
BASIN_API basin_status basin_picture_feed_next(basin_picture_feed_batch *batch,
                                               basin_picture_feed *feed, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
