/* Pairs of tokens that become one, by rank, and what they make of a word. */
#ifndef BASIN_DATA_TEXT_MERGES_H
#define BASIN_DATA_TEXT_MERGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/text/queue.h"

typedef struct basin_token_merge {
    int32_t left, right, token;
} basin_token_merge;

typedef struct basin_merges {
    basin_token_merge *merge; /* [count] by rank */
    int64_t count;
    size_t room;
    int32_t *slot; /* [slots], a power of two: ranks by pair, or -1 */
    size_t slots;
} basin_merges;

void basin_merges_free(basin_merges *merges);
/* Appends a merge; its rank was merges->count. false: no memory. */
bool basin_merges_add(basin_merges *merges, basin_token_merge merge);
/* The rank of a pair, or -1. */
int64_t basin_merges_find(const basin_merges *merges, int32_t left, int32_t right);

/* What merging a word needs, kept from word to word. */
typedef struct basin_merging {
    struct basin_symbol *symbol;
    size_t room;
    basin_queue candidates; /* pairs by rank, then from the left */
} basin_merging;

void basin_merging_free(basin_merging *merging);
/* Merges pairs of token [count] in place, those of lowest rank first and from the left; false: no
 * memory. *count becomes what is left. */
bool basin_merging_run(int32_t *token, size_t *count, const basin_merges *merges,
                       basin_merging *merging);

#endif
