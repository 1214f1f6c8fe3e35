/* SHA-256 (FIPS 180-4): digests of data and models, the same as sha256sum prints. */
#ifndef BASIN_BASE_SHA256_H
#define BASIN_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { BASIN_SHA256 = 32, BASIN_SHA256_TEXT = 2 * BASIN_SHA256 + 1 };

void basin_sha256(uint8_t digest[BASIN_SHA256], const void *data, size_t size);
/* As 64 hexadecimal digits; returns `text`. */
const char *basin_sha256_print(char text[BASIN_SHA256_TEXT], const void *data, size_t size);

#endif
