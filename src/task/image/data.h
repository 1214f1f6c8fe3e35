/* Pictures as the settings of a model want them: the feeds of training and of evaluation. */
#ifndef BASIN_TASK_IMAGE_DATA_H
#define BASIN_TASK_IMAGE_DATA_H

#include "basin/tasks/feed.h"
#include "task/image/image.h"

/* Which pictures a task takes. */
typedef struct basin_image_source {
    const char *const *path; /* [paths], as basin_pictures_open takes them */
    int paths;
    const char *split; /* "train", "test", or NULL */
    int64_t limit;     /* the first so many; 0: all */
    int64_t hold_out;  /* so many are left to the other side, chosen by `seed`; 0: none */
    bool held;         /* this is the other side */
    uint64_t seed;
} basin_image_source;

typedef struct basin_image_data {
    basin_pictures *pictures;
    int64_t *item; /* [items] the chosen ones; NULL: all */
    int64_t items;
} basin_image_data;

basin_status basin_image_data_open(basin_image_data *data, const basin_image_source *source,
                                   basin_error *error);
void basin_image_data_close(basin_image_data *data);

/* Fills in the mean and deviation where the settings leave them 0. */
basin_status basin_image_measure(basin_image_settings *settings, const basin_image_data *data,
                                 basin_error *error);

/* The feed of such pictures, and the configuration that it is made with. */
basin_feed_config basin_image_feed_config(const basin_image_data *data,
                                          const basin_image_settings *settings, int64_t batch,
                                          bool training, int threads, const basin_watch *watch);
/* Batches of patches. Unreadable pictures are told to the watcher. */
basin_status basin_image_feed(basin_feed **feed, const basin_image_data *data,
                              const basin_image_settings *settings, int64_t batch, bool training,
                              int threads, const basin_watch *watch, basin_error *error);

#endif
