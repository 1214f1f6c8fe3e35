/* Fetching files by URL (http, https, file), whole and checked or not at all. */
#ifndef BASIN_DATA_FETCH_FETCH_H
#define BASIN_DATA_FETCH_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "data/fetch/sha256.h"

#define BASIN_FETCH_MOST (INT64_C(8) << 30)

typedef struct basin_fetch_spec {
    const char *url, *path;
    const char *sha256; /* NULL: not known; the one of the first fetch is kept and counts later */
    int64_t size;       /* -1: not known; then BASIN_FETCH_MOST is the most that is taken */
    void (*progress)(void *context, int64_t done, int64_t total); /* or NULL; total -1: unknown */
    void *context;
} basin_fetch_spec;

typedef struct basin_fetch_result {
    char sha256[BASIN_SHA256_TEXT];
    bool was_there;   /* and is what was wanted: nothing was fetched */
    bool first_fetch; /* its digest was not known and has been written to PATH.sha256 */
} basin_fetch_result;

/* Writes PATH.part, checks it and renames it. A file that fails its check is removed, and so is one
 * larger than it should be, or a web page in place of a file whose digest is not known. An
 * interrupted fetch goes on where it stopped if the digest is known, else it starts again. */
basin_status basin_fetch(basin_fetch_result *result, const basin_fetch_spec *spec,
                         basin_error *error);
/* What a redirection from this URL may lead to: https stays https. */
const char *basin_fetch_redirects(const char *url);
/* Writes entry `member` of an archive to `path`; the folders in front of its name do not matter. */
basin_status basin_fetch_unpack(const char *path, const char *archive, const char *member,
                                basin_error *error);

#endif
