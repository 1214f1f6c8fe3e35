/* Batches of pictures, decoded and augmented by worker threads ahead of whoever trains.
 *
 *     basin_feed_config config = {.pictures = pictures, .augment = augment, .batch = 64,
 *                                 .training = true, .seed = 1};
 *     basin_feed_new(&feed, &config, &error);
 *     while (!basin_feed_next(&batch, feed, &error) && batch.count) train(batch.values);
 *     basin_feed_free(feed);
 *
 * In training the order of an epoch is a permutation of the items keyed by (seed, epoch), batches
 * are whole (the rest of an epoch is dropped), and there is no end. In evaluation the items come in
 * their own order, once; the last batch may be smaller, and a batch of 0 says that all are through.
 * What comes depends on the configuration alone, never on the threads.
 *
 * A picture that cannot be read is told once, counted, and left out: in training the next one in
 * the order takes its place, in evaluation its batch is one smaller. */
#ifndef BASIN_TASKS_FEED_H
#define BASIN_TASKS_FEED_H

#include "basin/tasks/augment.h"
#include "basin/tasks/pictures.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_feed basin_feed;

/* What crops are cut from. It changes the values a little (what was reduced first is smoother), so
 * a run keeps to one of them; whether there is memory to keep pictures changes nothing. Crops are
 * drawn by the size in the file always, so they show the same part of the picture. */
typedef enum basin_cut {
    BASIN_CUT_FILES,   /* only the part wanted is decoded, a JPEG reduced by 2, 4 or 8 meanwhile,
                          as far as the crop allows */
    BASIN_CUT_WHOLE,   /* the picture decoded whole, its long side at most 64 times the crop's */
    BASIN_CUT_REDUCED, /* and its short side at most 8/7 of the crop's, as in evaluation */
} basin_cut;

typedef struct basin_feed_config {
    const basin_pictures *pictures; /* borrowed, and must outlive the feed */
    const int64_t *item;            /* [items] which of them, copied; NULL: all */
    int64_t items;
    basin_augment augment;
    int64_t batch;
    bool training;
    uint64_t seed;
    int threads; /* 0: one a processor, at most 16 */
    int ahead;   /* batches kept ready; 0: 4 */
    basin_cut cut;
    size_t keep_bytes; /* memory for keeping pictures decoded, those that files give unreduced or
                          all of them as `cut` says; 0: none */
    /* Told of each picture that cannot be read, from within basin_feed_next; may be NULL. */
    void (*unreadable)(void *context, const char *name, const char *why);
    void *context;
    /* Training: only the places first .. first + count - 1 of each batch, for one of several ranks;
     * 0: all. */
    int64_t first, count;
} basin_feed_config;

typedef struct basin_feed_batch {
    const float *values;  /* [count, N, P] or [count, c, size, size]; until the next call */
    const int64_t *index; /* [count] number of each picture in `pictures` */
    int64_t count;
    int64_t step, epoch;
} basin_feed_batch;

BASIN_API basin_status basin_feed_new(basin_feed **feed, const basin_feed_config *config,
                                      basin_error *error);
BASIN_API void basin_feed_free(basin_feed *feed);

/* Waits for the next batch. Fails where no picture is left that can be read. */
BASIN_API basin_status basin_feed_next(basin_feed_batch *batch, basin_feed *feed,
                                       basin_error *error);
/* The next batch will be that of this step: 0 begins again, a step saved goes on from there. */
BASIN_API void basin_feed_seek(basin_feed *feed, int64_t step);

BASIN_API int64_t basin_feed_steps(const basin_feed *feed); /* batches an epoch */
BASIN_API int64_t basin_feed_items(const basin_feed *feed);
BASIN_API int64_t basin_feed_unreadable(const basin_feed *feed); /* found so far */
/* Seconds that basin_feed_next has waited: near 0 where the workers keep up. */
BASIN_API double basin_feed_waited(const basin_feed *feed);
/* Bytes of pictures kept decoded. */
BASIN_API size_t basin_feed_kept(const basin_feed *feed);

#ifdef __cplusplus
}
#endif
#endif
