/* An album: all the pictures of a run decoded once, by several threads, into memory that someone
 * else provides (a device's, say), and the crops of every step drawn from the seed alone. The
 * order, the crops and what takes the place of an unreadable picture are the feed's
 * (basin/tasks/feed.h), for the same configuration. */
#ifndef BASIN_DATA_PICTURES_ALBUM_H
#define BASIN_DATA_PICTURES_ALBUM_H

#include "data/pictures/keep.h"

/* Called from the thread that makes the album. */
typedef struct basin_album_memory {
    void *context;
    void *(*alloc)(void *context, size_t bytes); /* NULL: no more */
    void (*free)(void *context, void *memory);
    void (*write)(void *context, void *to, const void *from, size_t bytes);
} basin_album_memory;

typedef struct basin_album_config {
    basin_feed_config feed; /* of training; threads, ahead and keep_bytes aside */
    basin_album_memory memory;
    /* How far making it is; false gives up, with BASIN_OK and no album. May be NULL. */
    bool (*progress)(void *context, int64_t done, int64_t items);
    void *progress_context;
} basin_album_config;

/* A picture of the album. */
typedef struct basin_album_page {
    void *pixel;                     /* [kept_height, kept_width, channels]; NULL: unreadable */
    int32_t height, width;           /* in the file */
    int32_t kept_height, kept_width; /* in memory */
    int32_t channels;
} basin_album_page;

typedef struct basin_album basin_album;

/* BASIN_NO_MEMORY where `alloc` gives none. */
basin_status basin_album_new(basin_album **album, const basin_album_config *config,
                             basin_error *error);
void basin_album_free(basin_album *album);

/* What is in place `place` of a step: the page, what was drawn for it (the box in pixels as they
 * are kept) and its number in `pictures`. */
void basin_album_draw(const basin_album_page **page, basin_drawn *drawn, int64_t *index,
                      const basin_album *album, int64_t step, int64_t place);

int64_t basin_album_unreadable(const basin_album *album);
size_t basin_album_bytes(const basin_album *album);

/* What all pictures would take decoded, by the headers of some of them. Those that cannot be read
 * count as nothing. */
double basin_album_estimate(const basin_pictures *pictures, const int64_t *item, int64_t items,
                            basin_cut cut, int64_t size);

#endif
