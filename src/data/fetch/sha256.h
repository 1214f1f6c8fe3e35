/* SHA-256 (FIPS 180-4): what downloads are checked by. */
#ifndef BASIN_DATA_FETCH_SHA256_H
#define BASIN_DATA_FETCH_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "basin/status.h"

typedef struct basin_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
} basin_sha256;

enum { BASIN_SHA256_TEXT = 65 };

basin_sha256 basin_sha256_start(void);
void basin_sha256_add(basin_sha256 *sha, const void *data, size_t bytes);
/* The digest as 64 small hexadecimal digits. */
void basin_sha256_end(char text[BASIN_SHA256_TEXT], basin_sha256 *sha);
basin_status basin_sha256_file(char text[BASIN_SHA256_TEXT], const char *path, basin_error *error);

#endif
