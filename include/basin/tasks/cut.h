/* A network in parts, for several processes that train or score one graph together: every part has
 * some of the nodes, all that these nodes see, and a halo, the nodes of other parts among what they
 * see. No process ever holds more than its own parts.
 *
 *     basin_cut_spec spec = {.size = sizeof spec, .parts = 8};
 *     basin_cut_report report;
 *     basin_network_cut(&report, "parts", network, &spec, &error);
 *     ...
 *     basin_part *part;
 *     basin_part_open(&part, "parts", 3, &error);
 *
 * What is computed on parts depends on how many there are, not on who computes which. Part of */
#ifndef BASIN_TASKS_CUT_H
#define BASIN_TASKS_CUT_H

#include "basin/tasks/network.h"
#include "basin/tasks/ranks.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BASIN_CUT_PARTS = 1024 };

typedef struct basin_cut_spec {
    size_t size;        /* sizeof(basin_cut_spec): fields beyond it are taken as zero */
    int64_t parts;      /* 1 to BASIN_CUT_PARTS */
    const char *method; /* "metis", "stream", "range"; "auto" or NULL: the first where it is
                           installed and the graph fits, else the second */
    size_t memory;      /* bytes that METIS may take; 0: three quarters of what is free */
} basin_cut_spec;

/* How a cut turned out. */
typedef struct basin_cut_report {
    const char *method; /* that was used */
    int64_t parts;
    int64_t edges, cut; /* of all relations, as `col` counts them; those that lead to other parts */
    int64_t halo;       /* nodes in the halos of all parts */
    int64_t most_nodes, most_edges, most_halo; /* of one part */
    double node_balance, edge_balance;         /* the largest part over the mean */
} basin_cut_report;

/* Cuts a network into the files part-0.basin, part-1.basin, .. of a folder, which is made if
 * absent. A mapped network is read as it is needed; of the nodes a few bytes each are held. */
BASIN_API basin_status basin_network_cut(basin_cut_report *report, const char *folder,
                                         const basin_network *network, const basin_cut_spec *spec,
                                         basin_error *error);

/* One part. Its network has its own nodes, ascending in the order of the whole, whose numbers there
 * are `origin`. A number of `col` below network->nodes is one of these; number nodes + i is node i
 * of the halo. Lists of neighbours keep the order of the whole graph. */
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
BASIN_API bool basin_cut_is(const char *path);
BASIN_API basin_status basin_cut_count(int64_t *parts, const char *folder, basin_error *error);
/* Part `number` of a folder, mapped and checked. */
BASIN_API basin_status basin_part_open(basin_part **part, const char *folder, int64_t number,
                                       basin_error *error);
BASIN_API void basin_part_free(basin_part *part);

/* The same without files: which part every node of a network is in, then parts of it. */
typedef struct basin_partition basin_partition;
BASIN_API basin_status basin_partition_new(basin_partition **cut, const basin_network *network,
                                           const basin_cut_spec *spec, basin_error *error);
BASIN_API void basin_partition_free(basin_partition *cut);
BASIN_API basin_cut_report basin_partition_report(const basin_partition *cut);
BASIN_API basin_status basin_partition_take(basin_part **part, const basin_partition *cut,
                                            int64_t number, basin_error *error);

/* ---- all parts, over ranks ---- */

/* The parts of a network, dealt to ranks (basin/tasks/ranks.h; NULL: this process has all). All
 * ranks make the same calls in the same order. */
typedef struct basin_parts basin_parts;
/* Of a folder; or of a network that every rank has opened, which may be freed afterwards. */
BASIN_API basin_status basin_parts_open(basin_parts **parts, const char *folder, basin_ranks *ranks,
                                        basin_error *error);
BASIN_API basin_status basin_parts_cut(basin_parts **parts, const basin_network *network,
                                       const basin_cut_spec *spec, basin_ranks *ranks,
                                       basin_error *error);
BASIN_API void basin_parts_close(basin_parts *parts);
BASIN_API int64_t basin_parts_count(const basin_parts *parts);
/* The whole graph without its edges and features: how many nodes and features it has, labels,
 * masks, schema, names of columns and relations; the same on every rank. */
BASIN_API const basin_network *basin_parts_face(const basin_parts *parts);
/* Gives the face its ids, where the graph has any: for printing. */
BASIN_API basin_status basin_parts_name_nodes(basin_parts *parts, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
