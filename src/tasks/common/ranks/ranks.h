/* Communication between ranks; see include/basin/tasks/ranks.h. All ranks make the same calls in
 * the same order; NULL is a single rank: then these copy, or do nothing. A slow
 * rank is waited for; the launcher ends the others of one that has died. */
#ifndef BASIN_RANKS_RANKS_H
#define BASIN_RANKS_RANKS_H

#include "basin/collective.h"
#include "basin/tasks/ranks.h"

/* ---- numbers and hosts ---- */

const char *basin_ranks_host(const basin_ranks *ranks); /* of this rank; "" of NULL */
int64_t basin_ranks_local(const basin_ranks *ranks);    /* its number on its host, from 0 */
/* Whether a message is one that basin_ranks_agree gave to all ranks: it names the rank. */
bool basin_ranks_agreed(const basin_error *error);

/* ---- bytes of host memory ---- */

basin_status basin_ranks_barrier(basin_ranks *ranks, basin_error *error);
/* `data` of rank `root` to all. */
basin_status basin_ranks_broadcast(basin_ranks *ranks, void *data, size_t bytes, int64_t root,
                                   basin_error *error);
/* Every rank's bytes, in the order of ranks, on every rank; `mine` may be its own place in `all`.
 */
basin_status basin_ranks_gather(basin_ranks *ranks, void *all /* [count, bytes] */,
                                const void *mine /* [bytes] */, size_t bytes, basin_error *error);
/* The same with as many bytes of each rank as `bytes` says, alike on all. */
basin_status basin_ranks_gather_parts(basin_ranks *ranks, void *all /* [sum of bytes] */,
                                      const void *mine /* [bytes[rank]] */,
                                      const size_t *bytes /* [count] */, basin_error *error);

/* A message to or from one rank. Those between two ranks arrive in the order in which they were
 * sent, and have the sizes that both sides name. */
typedef struct basin_ranks_part {
    void *data; /* is only read where it is sent */
    size_t bytes;
    int64_t rank; /* may be this one */
} basin_ranks_part;

/* Neighbours exchange: all parts leave and arrive at once. A part may be empty on both sides. */
basin_status basin_ranks_exchange(basin_ranks *ranks, const basin_ranks_part *send, int64_t sends,
                                  const basin_ranks_part *receive, int64_t receives,
                                  basin_error *error);

/* ---- numbers ---- */

/* Sums over many shards, in one order for any number of ranks: the tree that adds 0 and 1,
 * 2 and 3, .., then 0-1 and 2-3, .. Shards are dealt to ranks as basin_ranks_deal says. */
typedef struct basin_ranks_share {
    int64_t first, count;
} basin_ranks_share;
basin_ranks_share basin_ranks_deal(const basin_ranks *ranks, int64_t items);
/* What rank `rank` of `count` would get. */
basin_ranks_share basin_ranks_deal_to(int64_t rank, int64_t count, int64_t items);

/* This rank's shards, one after the other; memory for a few of `count` numbers: of a device, whose
 * functions are in `table`, or the host's (NULL). */
typedef struct basin_ranks_tree basin_ranks_tree;
basin_status basin_ranks_tree_new(basin_ranks_tree **tree, basin_ranks *ranks, int64_t shards,
                                  int64_t count, basin_backend *backend,
                                  const basin_collective *table, basin_error *error);
void basin_ranks_tree_free(basin_ranks_tree *tree);
/* Where the next shard's numbers go; every number must be written. */
float *basin_ranks_tree_next(basin_ranks_tree *tree); /* [count] */
/* They are there. */
void basin_ranks_tree_push(basin_ranks_tree *tree);
/* After this rank's last shard: the sum over all shards, on every rank, the caller's to write to
 * until the next shard begins. The tree is empty again. */
basin_status basin_ranks_tree_sum(float **sum /* [count] */, basin_ranks_tree *tree,
                                  basin_error *error);

/* Sums of few numbers that do not depend on rounding, or need not: in the order of ranks. */
basin_status basin_ranks_sum(basin_ranks *ranks, double *values /* [count] */, int64_t count,
                             basin_error *error);
basin_status basin_ranks_sum_integers(basin_ranks *ranks, int64_t *values /* [count] */,
                                      int64_t count, basin_error *error);
/* Whether it is true on any rank. */
basin_status basin_ranks_any(basin_ranks *ranks, bool *value, basin_error *error);

/* ---- text ---- */

/* An error on all ranks where the lines of `text` are not rank 0's on each; it names the first line
 * that differs. `what` they are begins it: "the settings". */
basin_status basin_ranks_alike(basin_ranks *ranks, const char *text, const char *what,
                               basin_error *error);

#endif
