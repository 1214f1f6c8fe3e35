/* Inside a collection of pictures: shelves, one per file or folder, each with a function to
 * fetch. */
#ifndef BASIN_DATA_PICTURES_PICTURES_H
#define BASIN_DATA_PICTURES_PICTURES_H

#include "base/file.h"
#include "basin/tasks/pictures.h"
#include "tasks/common/pixels/picture.h"

/* ---- more of feeds ---- */

/* The next batch will be that of this step: 0 begins again, a step saved goes on from there. */
void basin_picture_feed_seek(basin_picture_feed *feed, int64_t step);

typedef struct basin_picture_feed_counts {
    int64_t unreadable; /* pictures, found so far */
    size_t kept;        /* bytes of pictures kept decoded */
    double waited;      /* seconds in basin_picture_feed_next: near 0 where the workers keep up */
} basin_picture_feed_counts;

basin_picture_feed_counts basin_picture_feed_count(const basin_picture_feed *feed);

/* ---- collections ---- */

/* Chooses `helds` of `count` pictures by the seed. Both lists are in ascending order. */
basin_status basin_pictures_hold_out(int64_t *kept /* [count - helds] */,
                                     int64_t *held /* [helds] */, int64_t count, int64_t helds,
                                     uint64_t seed, basin_error *error);
/* Mean and deviation of each channel (0 .. 1) over `max` items evenly spread (0: all; items NULL:
 * all pictures), unreadable ones left out. A deviation of 0 becomes 1. */
basin_status basin_pictures_statistics(float mean[3], float deviation[3],
                                       const basin_pictures *pictures, const int64_t *item,
                                       int64_t items, int channels, int64_t max,
                                       basin_error *error);

/* Where a picture's encoded bytes are. */
typedef struct basin_entry {
    char *name;          /* within the shelf */
    const uint8_t *data; /* NULL: in a separate file, the shelf's name / name */
    size_t size;
    bool owned;
} basin_entry;

typedef enum basin_shelf_kind {
    BASIN_SHELF_ENTRIES, /* encoded pictures: files, members of an archive */
    BASIN_SHELF_RAW,     /* pixels: idx, CIFAR */
    BASIN_SHELF_SHAPES,  /* generated */
    BASIN_SHELF_MEMORY,  /* pictures that a caller gave */
} basin_shelf_kind;

typedef struct basin_shelf {
    basin_shelf_kind kind;
    char *name;
    int64_t count;
    basin_map map;
    uint8_t *unpacked; /* a compressed file's content, in place of the map */
    size_t limit;      /* bytes that unpacking may take; 0: basin_memory_share */
    /* entries */
    basin_entry *entry; /* [count] */
    size_t entry_capacity;
    const uint8_t *bytes; /* of an archive: all of it, */
    size_t size, held;    /* and how much of it was unpacked */
    /* raw and generated */
    int64_t height, width;
    int channels;
    const uint8_t *first; /* the first picture's pixels */
    size_t step;          /* bytes from one to the next */
    bool planar;          /* [channels, height, width] */
    uint64_t seed;
    /* memory */
    basin_picture *picture; /* [count] */
} basin_shelf;

struct basin_pictures {
    basin_shelf *shelf;
    int shelves;
    size_t capacity;
    int64_t count;
    bool divided;
};

/* Encoded bytes of a picture, or its pixels; `map` is to be closed afterwards. */
typedef struct basin_fetched {
    basin_map map;
    const uint8_t *bytes; /* encoded, or NULL where the picture was loaded */
    size_t size;
} basin_fetched;

/* Fetches picture i: either encoded bytes, or the pixels in `picture`. */
basin_status basin_pictures_fetch(basin_fetched *fetched, basin_picture *picture,
                                  const basin_pictures *pictures, int64_t i, basin_error *error);
/* The fingerprint of picture i: of its stored bytes, or pixels. */
basin_status basin_pictures_print(uint64_t *print, const basin_pictures *pictures, int64_t i,
                                  basin_error *error);
/* Whether picture i is stored as pixels, so that keeping it decoded gains nothing. */
bool basin_pictures_is_raw(const basin_pictures *pictures, int64_t i);

void basin_shelf_free(basin_shelf *shelf);
basin_status basin_shelf_add(basin_shelf *shelf, const char *name, const uint8_t *data, size_t size,
                             bool owned, basin_error *error);
/* Entries by the bytes of their paths. */
void basin_shelf_sort(basin_shelf *shelf);
bool basin_name_is_picture(const char *name);

/* Each fills a zeroed shelf whose name is set. */
basin_status basin_shelf_idx(basin_shelf *shelf, basin_error *error);
basin_status basin_shelf_cifar(basin_shelf *shelf, basin_error *error);
basin_status basin_shelf_shapes(basin_shelf *shelf, const char *split, basin_error *error);
basin_status basin_shapes_draw(basin_picture *picture, const basin_shelf *shelf, int64_t i,
                               basin_error *error);

/* idx from memory, for the fuzzer: sets the sizes and `first`, which points into the bytes. */
basin_status basin_idx_parse(basin_shelf *shelf, const uint8_t *bytes, size_t size,
                             basin_error *error);
/* Archives likewise; entries may point into the bytes. */
basin_status basin_archive_parse(basin_shelf *shelf, const uint8_t *bytes, size_t size,
                                 basin_error *error);
/* Keeps entries whose path has a folder `split` ("val.." for "test"); whether there were such. */
void basin_shelf_divide(basin_shelf *shelf, const char *split, bool *divided);

/* ---- A permutation of 0 .. n - 1 asked for at any place, keyed by (seed, epoch) ---- */

int64_t basin_order_at(int64_t place, int64_t n, uint64_t seed, int64_t epoch);

/* How far each pixel of picture i is from opaque, 0 to 255, in one channel; no pixels where its
 * kind of file has none that are transparent. */
basin_status basin_pictures_transparency(basin_picture *picture, const basin_pictures *pictures,
                                         int64_t i, basin_error *error);

#endif
