/* A network in parts, for processes that train or score one graph: a part has nodes, their edges,
 * and a halo, the neighbours in other parts. Results depend only on the number of parts. */
#ifndef BASIN_DATA_NETWORK_PARTS_PARTS_H
#define BASIN_DATA_NETWORK_PARTS_PARTS_H

#include "tasks/common/ranks/ranks.h"
#include "tasks/nodes/network/network.h"

enum { BASIN_CUT_PARTS = 1024 };

typedef struct basin_cut_spec {
    int64_t parts;      /* 1 to BASIN_CUT_PARTS */
    const char *method; /* "stream" (or NULL) or "range" */
    bool replace;       /* another number of parts in the folder goes; else it is an error */
} basin_cut_spec;

typedef struct basin_cut_report {
    int64_t parts;
    int64_t edges, cut; /* of all relations, as `col` counts them; those that lead to other parts */
    int64_t halo;       /* nodes in the halos of all parts */
    int64_t max_nodes, max_edges, max_halo; /* of one part */
    double node_balance, edge_balance;      /* the largest part over the mean */
} basin_cut_report;

/* Cuts a network into the files part-0.basin, part-1.basin, .. of a folder, which is made if
 * absent. A mapped network is read as it is needed; a few bytes per node are kept. */
basin_status basin_network_cut(basin_cut_report *report, const char *folder,
                               const basin_network *network, const basin_cut_spec *spec,
                               basin_error *error);

/* One part: its nodes, ascending, numbered in the whole by `origin`. A `col` from network->nodes on
 * is a node of the halo. Neighbours keep the order of the whole graph. */
typedef struct basin_part {
    int64_t part, parts;
    int64_t total;          /* nodes of the whole graph */
    uint64_t stamp;         /* the same in all parts of one cut */
    int64_t halo;           /* nodes of other parts, by part and ascending */
    const int64_t *halo_at; /* [parts + 1] those of part p begin at halo_at[p] */
    const int64_t *send_at; /* [parts + 1] */
    const int32_t *send;    /* [send_at[parts]] own nodes that are in the halo of part p, in its
                               order, from send_at[p] on */
    basin_network *network;
    int64_t *owned; /* what holds the lists where no file does */
} basin_part;

/* Whether `path` is a folder of parts; and how many. */
bool basin_cut_is(const char *path);
basin_status basin_cut_count(int64_t *parts, const char *folder, basin_error *error);
/* Part `number` of a folder, mapped and checked. */
basin_status basin_part_open(basin_part **part, const char *folder, int64_t number,
                             basin_error *error);
void basin_part_free(basin_part *part);

/* The same without files: which part every node of a network is in, then parts of it. */
typedef struct basin_partition basin_partition;
basin_status basin_partition_new(basin_partition **cut, const basin_network *network,
                                 const basin_cut_spec *spec, basin_error *error);
void basin_partition_free(basin_partition *cut);
static inline void basin_partition_free_at(basin_partition **cut) { basin_partition_free(*cut); }
basin_status basin_partition_take(basin_part **part, const basin_partition *cut, int64_t number,
                                  basin_error *error);

/* ---- all parts, over ranks ---- */

/* The parts of a network, dealt to ranks (basin/tasks/ranks.h; NULL: this process has all). */
typedef struct basin_parts basin_parts;
/* From a folder; or from a network that every rank has opened, which may be freed afterwards, and
 * whose nodes are in the order of their ids in the whole. */
basin_status basin_parts_open(basin_parts **parts, const char *folder, basin_ranks *ranks,
                              basin_error *error);
basin_status basin_parts_cut(basin_parts **parts, const basin_network *network,
                             const basin_cut_spec *spec, basin_ranks *ranks, basin_error *error);
void basin_parts_close(basin_parts *parts);
int64_t basin_parts_count(const basin_parts *parts);
/* The whole without edges and features: sizes, labels, masks, schema, names; alike on all ranks. */
const basin_network *basin_parts_face(const basin_parts *parts);
/* Gives the whole its ids, where the graph has any: for printing. */
basin_status basin_parts_name_nodes(basin_parts *parts, basin_error *error);

/* ---- inside ---- */

/* A part of many nodes costs as one of few that see many: a node counts as this number of edges. */
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

/* ---- file.c ---- */

basin_status basin_part_write(const char *path, const basin_part *part, basin_error *error);
/* The file of a part; free() it. */
char *basin_part_path(const char *folder, int64_t number);

/* ---- a graph in parts over ranks, from within ---- */

enum { BASIN_PARTS_RELATIONS = 16 };

struct basin_parts {
    basin_ranks *ranks;
    int64_t parts;        /* of the graph */
    int64_t first, count; /* those of this rank */
    basin_part **part;    /* [count] */
    basin_network *face;
    uint16_t *owner;             /* [N] the part of each node */
    int64_t *nodes;              /* [parts] how many it has */
    int64_t max_nodes, max_halo; /* of any part */
    int64_t *max_edges;          /* [relations] */
    int threads;                 /* that move rows and take means; 0: one */
    char *buffer;                /* rows on their way; grown as needed */
    size_t buffer_bytes;
};

/* Rows of all or chosen nodes in the whole's order, on every rank; mine[k] of each part k. */
basin_status basin_parts_gather(void *all, basin_parts *parts, const void *const *mine,
                                const uint8_t *chosen /* [N], or NULL: all */, size_t width,
                                basin_error *error);
/* The same of rows that are packed already: those of this rank's chosen nodes, part by part. */
basin_status basin_parts_gather_packed(void *all, basin_parts *parts, const void *own,
                                       const uint8_t *chosen, size_t width, basin_error *error);
/* Threads for work on `count` numbers: few are not worth waking others. */
int basin_parts_threads(const basin_parts *parts, int64_t numbers);

/* A basin_exchange_callback's function; `context`: basin_parts. Sums are in the order of parts. */
basin_status basin_parts_move(void *context, const basin_exchange_rows *rows, int count,
                              basin_error *error);
/* Own rows of each part of this rank are there; fetches those of its halo to the rows after them.
 */
basin_status basin_parts_fetch(basin_parts *parts,
                               float *const *rows /* [count] of [nodes + halo, width] */,
                               int64_t width, basin_error *error);

#endif
