/* The pictures of a task as the settings of a model want them: which ones, and the feeds of
 * training and of scores. */
#ifndef BASIN_TASK_IMAGE_SET_H
#define BASIN_TASK_IMAGE_SET_H

#include "basin/tasks/feed.h"
#include "task/image/image.h"

/* Chosen pictures of a collection. */
typedef struct basin_image_set {
    const basin_pictures *pictures;
    basin_pictures *opened; /* the same where it is the set's own; else NULL */
    int64_t *item;          /* [items] the chosen ones */
    int64_t items;
    bool held; /* they are said to be all that was held out of training */
} basin_image_set;

/* The pictures that are held out (`held`), or the rest. Nothing held out: all of them, either way.
 */
basin_status basin_image_set_open(basin_image_set *set, const basin_image_source *source, bool held,
                                  uint64_t seed, basin_error *error);
void basin_image_set_close(basin_image_set *set);

/* What a few of them, spread over the set, look like. */
typedef struct basin_image_look {
    bool colour;  /* one of them is in colour, not only stored so */
    int64_t side; /* the shortest side, in pixels */
} basin_image_look;
basin_status basin_image_set_look(basin_image_look *look, const basin_image_set *set,
                                  basin_error *error);

/* Fills in the mean and deviation where the settings leave them 0. */
basin_status basin_image_measure(basin_image_settings *settings, const basin_image_set *set,
                                 basin_error *error);

/* The feed of such pictures, and the configuration that it is made with. */
basin_feed_config basin_image_feed_config(const basin_image_set *set,
                                          const basin_image_settings *settings, int64_t batch,
                                          bool training, int threads, const basin_watch *watch);
/* Batches of patches. Unreadable pictures are told to the watcher. */
basin_status basin_image_feed(basin_feed **feed, const basin_image_set *set,
                              const basin_image_settings *settings, int64_t batch, bool training,
                              int threads, const basin_watch *watch, basin_error *error);

#endif
