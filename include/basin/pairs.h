/* Lists of pairs (query, key) in CSR form, by query and by key: the edges of a graph in the layout
 * that energy attention reads. */
#ifndef BASIN_PAIRS_H
#define BASIN_PAIRS_H

#include "basin/expr.h"
#include "basin/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_pairs {
    int64_t queries, keys, pairs;
    int32_t *row;    /* [queries + 1] pairs row[q] .. row[q + 1] - 1 belong to query q */
    int32_t *key;    /* [pairs] ascending within a query */
    int32_t *column; /* [keys + 1] the same pairs by key: */
    int32_t *query;  /* [pairs] ascending within a key */
    int32_t *pair;   /* [pairs] number in the order by query */
} basin_pairs;

enum {
    BASIN_PAIRS_BOTH_WAYS = 1, /* each edge also the other way */
    BASIN_PAIRS_DROP_SELF = 2, /* leave out query == key */
    BASIN_PAIRS_ADD_SELF = 4,  /* a pair of each token with itself */
};

/* From edges [count, 2] (query, key); equal pairs are merged. */
BASIN_API basin_status basin_pairs_new(basin_pairs *pairs, int64_t queries, int64_t keys,
                                       const int32_t *edge, int64_t count, int flags,
                                       basin_error *error);
BASIN_API void basin_pairs_free(basin_pairs *pairs);

/* Index inputs "NAME.row", "NAME.key", ... for a list of up to `capacity` pairs among the given
 * maximum numbers of queries and keys, and writing a list into a plan: a shorter list is padded,
 * and tokens that it does not mention have no pairs. */
BASIN_API basin_pattern basin_pairs_declare(basin_graph *graph, const char *name, int64_t queries,
                                            int64_t keys, int64_t capacity);
BASIN_API basin_status basin_pairs_write(basin_plan *plan, const basin_pattern *pattern,
                                         const basin_pairs *pairs, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
