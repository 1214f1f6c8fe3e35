/* A permutation of 0 .. n - 1 that can be asked for any of its places, keyed by (seed, epoch). */
#ifndef BASIN_DATA_PICTURES_ORDER_H
#define BASIN_DATA_PICTURES_ORDER_H

#include <stdint.h>

int64_t basin_order_at(int64_t place, int64_t n, uint64_t seed, int64_t epoch);

#endif
