/* What the files that cut networks share; callers see include/basin/tasks/cut.h. */
#ifndef BASIN_DATA_NETWORK_PARTS_PARTS_H
#define BASIN_DATA_NETWORK_PARTS_PARTS_H

#include "basin/tasks/cut.h"

/* A part of many nodes costs as one of few that see many: a node counts as so many edges. */
enum { BASIN_NODE_EDGES = 8 };

struct basin_partition {
    const basin_network *network;
    int64_t parts;
    uint16_t *part;  /* [N] of each node */
    int32_t *place;  /* [N] which of its part's nodes it is */
    uint64_t *shown; /* [N, words] bit p of a node: it is in the halo of part p */
    size_t words;
    int64_t *nodes; /* [parts] */
    uint64_t stamp;
    basin_cut_report report;
};

/* Whether a node is in the halo of a part. */
static inline bool basin_partition_shows(const basin_partition *c, int64_t node, int64_t part) {
    return c->shown[(size_t)node * c->words + (size_t)part / 64] >> (part % 64) & 1;
}

/* ---- assign.c, metis.c: which part a node is in ---- */

/* Along the relation to use where one is wanted, or all of them one after the other. */
basin_status basin_cut_by_metis(uint16_t *part /* [N] */, const basin_network *network,
                                int64_t parts, basin_error *error);
/* Linear deterministic greedy: one node after the other to the part that most of its neighbours are
 * in and that has room; then again with all of them known. */
basin_status basin_cut_by_stream(uint16_t *part, const basin_network *network, int64_t parts,
                                 basin_error *error);
/* Ranges of nodes, alike in nodes and edges. */
void basin_cut_by_range(uint16_t *part, const basin_network *network, int64_t parts);
/* Bytes that METIS takes, about; 0: it cannot cut such a graph. */
size_t basin_cut_metis_bytes(const basin_network *network);

/* What a node sees in all relations; the union alone where there is one. */
int64_t basin_cut_degree(const basin_network *network, int64_t node);
/* The relations that count: 0 and all, or the union and the one behind it. */
void basin_cut_relations(int *first, int *end, const basin_network *network);

/* ---- part.c ---- */

basin_status basin_part_write(const char *path, const basin_part *part, basin_error *error);
/* The file of a part; free() it. */
char *basin_part_path(const char *folder, int64_t number);

#endif
