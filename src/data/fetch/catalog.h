/* The public sets that `basin data get` knows. */
#ifndef BASIN_DATA_FETCH_CATALOG_H
#define BASIN_DATA_FETCH_CATALOG_H

#include <stdint.h>

typedef struct basin_catalog_file {
    const char *url, *name;
    int64_t size;       /* 0: not known */
    const char *sha256; /* NULL: not known */
    const char *member; /* what to unpack beside it; NULL: nothing */
} basin_catalog_file;

enum { BASIN_CATALOG_FILES = 4 };

typedef struct basin_catalog_set {
    const char *name, *what;
    const char *by_hand; /* where a person gets it, of a set that no URL leads to; else NULL */
    struct {
        const char *file;         /* what to convert into a network; NULL: nothing */
        int64_t unlabelled_first; /* whose first so many labels do not count */
    } convert;
    basin_catalog_file file[BASIN_CATALOG_FILES];
} basin_catalog_set;

extern const basin_catalog_set basin_catalog[]; /* a set without name ends it */

const basin_catalog_set *basin_catalog_find(const char *name); /* or NULL */

#endif
