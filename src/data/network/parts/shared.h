/* A graph in parts over ranks, from within: this rank's parts, rows of nodes gathered from all, and
 * rows of halos exchanged. */
#ifndef BASIN_DATA_NETWORK_PARTS_SHARED_H
#define BASIN_DATA_NETWORK_PARTS_SHARED_H

#include "data/network/parts/parts.h"
#include "ranks/ranks.h"

enum { BASIN_PARTS_RELATIONS = 16 };

struct basin_parts {
    basin_ranks *ranks;
    int64_t parts;        /* of the graph */
    int64_t first, count; /* those of this rank */
    basin_part **part;    /* [count] */
    basin_network *face;
    uint16_t *owner;               /* [N] the part of each node */
    int64_t *nodes;                /* [parts] how many it has */
    int64_t most_nodes, most_halo; /* of any part */
    int64_t *most_edges;           /* [relations] */
    int threads;                   /* that move rows and take means; 0: one */
    char *buffer;                  /* rows on their way; grown as needed */
    size_t buffer_bytes;
};

/* Rows of `width` bytes of all nodes, or of those chosen, in the order of the whole graph, on every
 * rank. mine[k] has those of this rank's part k, of all its nodes. */
basin_status basin_parts_gather(void *all, basin_parts *parts, const void *const *mine,
                                const uint8_t *chosen /* [N], or NULL: all */, size_t width,
                                basin_error *error);
/* The same of rows that are packed already: those of this rank's chosen nodes, part by part. */
basin_status basin_parts_gather_packed(void *all, basin_parts *parts, const void *own,
                                       const uint8_t *chosen, size_t width, basin_error *error);
int64_t basin_parts_rank(const basin_parts *parts, int64_t part);
/* Threads for work on so many numbers: few are not worth waking others. */
int basin_parts_threads(const basin_parts *parts, int64_t numbers);

/* Moves rows of halos: a basin_exchange_way's function, `context` the basin_parts, one entry of
 * `rows` a part of this rank. What comes back is added in the order of the parts. */
basin_status basin_parts_move(void *context, const basin_exchange_rows *rows, int count,
                              basin_error *error);
/* Own rows of each part of this rank are there; fetches those of its halo to behind them. */
basin_status basin_parts_fetch(basin_parts *parts,
                               float *const *rows /* [count] of [nodes + halo, width] */,
                               int64_t width, basin_error *error);

#endif
