/* A pair of a list by its query and key. */
#ifndef BASIN_BASE_PAIRS_H
#define BASIN_BASE_PAIRS_H

#include "basin/pairs.h"

/* The number of the pair (query, key), or -1. */
static inline int64_t basin_pairs_find(const basin_pairs *pairs, int32_t query, int32_t key) {
    if (query < 0 || query >= pairs->queries) return -1;
    int64_t low = pairs->row[query], high = pairs->row[query + 1];
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (pairs->key[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < pairs->row[query + 1] && pairs->key[low] == key ? low : -1;
}

#endif
